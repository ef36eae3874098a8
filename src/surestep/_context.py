"""The task that is running in the current context."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

current_task: ContextVar[Any] = ContextVar("surestep_task", default=None)
