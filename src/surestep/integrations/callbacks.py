"""The base of life-cycle callbacks where LangChain is installed: a callback handler like any of LangChain's."""

from __future__ import annotations

from langchain_core.callbacks.base import BaseCallbackHandler

__all__ = ("BaseCallbackHandler",)
