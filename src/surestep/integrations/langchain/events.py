"""What chat models say as content-block events, for event streams (`stream_events(version="v3")`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration
from langchain_core.tracers._streaming import _V2StreamingCallbackHandler

from surestep._core.events import Part
from surestep.integrations.langchain.messages import Place, StreamMessages


class StreamMessageEvents(StreamMessages, _V2StreamingCallbackHandler):
    """Puts the events of messages on the stream. A model whose handlers include this one speaks in such events."""

    def __init__(self, put: Callable[[Part], None], subgraphs: bool, ns: tuple[str, ...]) -> None:
        super().__init__(put, subgraphs, ns)
        self.heard: set[UUID] = set()  # runs of models that spoke in events

    def show(self, place: Place, message: BaseMessage, once: bool = True) -> None:
        """A whole message. What tools say is no message of the graph's."""
        if not isinstance(message, ToolMessage):
            super().show(place, message, once)

    def on_stream_event(self, event: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """An event of a message."""
        if (place := self.places.get(run_id)) is None:
            return
        ns, metadata = place
        if event.get("event") == "message-start":
            self.heard.add(run_id)
            self.seen.add(event.get("message_id") or event.get("id"))
        self.put(Part(ns, "messages", (event, {**metadata, "run_id": str(run_id)})))

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **kwargs: Any) -> None:
        """Tokens come as events."""

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """The whole message: known already where it came in events, whatever its id is in the end."""
        if run_id in self.heard:
            self.heard.discard(run_id)
            self.places.pop(run_id, None)
            for generation in (one for several in response.generations for one in several):
                if isinstance(generation, ChatGeneration) and generation.message.id is not None:
                    self.seen.add(generation.message.id)
        else:
            super().on_llm_end(response, run_id=run_id, **kwargs)
