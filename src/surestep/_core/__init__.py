"""The engine's decisions, and nothing else.

Layout: `run` and `step` are generators that yield `commands` and are sent `events`; `begin`, `plan`, `apply`,
`resume`, `rows`, `retry` and `emit` are what they decide with; `state` looks at threads and edits them. `head`, `task`
and `blueprint` are the things they decide about. There is no thread, no event loop, no clock, no SQL and no LangChain
here: drivers (`_drive`) have those. Drivers import from these modules directly; nothing is re-exported.
"""
