"""Drivers: they do what the core asks. `sync` has threads, `async_` has an event loop; the rest serves both."""
