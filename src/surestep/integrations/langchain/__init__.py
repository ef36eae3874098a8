"""Everything that knows LangChain, loaded only when LangChain is in the process.

`nodes`: Runnables as nodes. `tracing`: runs and nodes told to callbacks. `messages`, `tools`: the stream modes that
live on callbacks. `quiet`: callback managers where nobody listens. What has to be there before LangChain is (graphs
as Runnables, the ambient config) lies outside, in `integrations`.
"""

from __future__ import annotations

from surestep.integrations.langchain.nodes import coerce_runnable

__all__ = ["coerce_runnable"]
