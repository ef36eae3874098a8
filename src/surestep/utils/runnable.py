"""Functions as LangChain Runnables under LangGraph's old path. Importing this imports LangChain."""

from __future__ import annotations

from surestep.integrations.langchain.callable import RunnableCallable, RunnableLike

__all__ = ("RunnableCallable", "RunnableLike")
