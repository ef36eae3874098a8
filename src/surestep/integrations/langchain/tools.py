"""`stream_mode="tools"`: tools as they start, give output in pieces, and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from surestep._core.events import Part
from surestep.errors import GraphBubbleUp
from surestep.integrations.langchain.messages import PartsHandler
from surestep.pregel._tools import _tool_call_writer


class StreamTools(PartsHandler):
    """Puts events of tools on the stream."""

    def __init__(self, put: Callable[[Part], None], subgraphs: bool, ns: tuple[str, ...]) -> None:
        super().__init__(put, subgraphs, ns)
        self.calls: dict[UUID, tuple[tuple[str, ...], str]] = {}

    def show(self, ns: tuple[str, ...], event: str, call_id: str, **fields: Any) -> None:
        """Put an event on the stream."""
        self.put(Part(ns, "tools", {"event": event, "tool_call_id": call_id, **fields}))

    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool starts."""
        if (ns := self.visible(metadata, tags)) is None:
            return
        call_id = kwargs.get("tool_call_id") or str(run_id)
        self.calls[run_id] = ns, call_id
        name = kwargs.get("name") or (serialized or {}).get("name", "")
        self.show(ns, "tool-started", call_id, tool_name=name, input=inputs)
        _tool_call_writer.set(lambda delta: self.show(ns, "tool-output-delta", call_id, delta=delta))

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool ended."""
        if (call := self.calls.pop(run_id, None)) is not None:
            self.show(call[0], "tool-finished", call[1], output=output)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool failed. One that pauses or stops the graph did not."""
        if (call := self.calls.pop(run_id, None)) is not None and not isinstance(error, GraphBubbleUp):
            self.show(call[0], "tool-error", call[1], message=str(error))
