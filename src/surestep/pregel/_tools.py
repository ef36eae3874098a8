"""Where a running tool finds the writer for pieces of its output. `langgraph-prebuilt` looks for it here."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

_tool_call_writer: ContextVar[Callable[[Any], None] | None] = ContextVar("surestep_tool_call_writer", default=None)
