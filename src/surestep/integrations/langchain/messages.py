"""`stream_mode="messages"`: what chat models say, token by token, and the messages that nodes return.

One handler for each consumer, carried by the callbacks into whatever the graph calls, nested graphs too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from langchain_core.callbacks.base import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk

from surestep._context import current_task
from surestep._core.events import Part
from surestep._core.ids import ns_path
from surestep.constants import TAG_HIDDEN, TAG_NOSTREAM
from surestep.types import Command

if TYPE_CHECKING:
    from surestep._drive.context import TaskContext

Place = tuple[tuple[str, ...], dict[str, Any]]  # where a message comes from: the graph's namespace, metadata

_SILENT = frozenset((TAG_NOSTREAM, "langsmith:nostream"))


class PartsHandler(BaseCallbackHandler):
    """A handler that puts parts on a run's stream: on that of the run which asked for them."""

    run_inline = True  # in order, and in the context of what it hears of

    def __init__(self, put: Callable[[Part], None], subgraphs: bool, ns: tuple[str, ...]) -> None:
        self.put = put
        self.subgraphs = subgraphs
        self.ns = ns

    def visible(self, metadata: Mapping[str, Any] | None, tags: Sequence[str] | None) -> tuple[str, ...] | None:
        """The namespace of the graph in which something happens; None where it is not to be shown."""
        if not metadata or (tags and not _SILENT.isdisjoint(tags)):
            return None
        ns = graph_ns(metadata)
        return ns if self.subgraphs or not ns or ns == self.ns else None


def graph_ns(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The namespace of the graph whose node is running. A task called by a node has its graph's, not the node's."""
    place: str = metadata.get("langgraph_checkpoint_ns", "")
    task: TaskContext | None = current_task.get()
    if task is not None and task.task.ns == place:
        return task.env.path
    return ns_path(place)[:-1]


class StreamMessages(PartsHandler):
    """Puts messages on the stream: each once, by its id."""

    def __init__(self, put: Callable[[Part], None], subgraphs: bool, ns: tuple[str, ...]) -> None:
        super().__init__(put, subgraphs, ns)
        self.places: dict[UUID, Place] = {}  # of runs under way
        self.seen: set[str] = set()

    # LangChain's models stream when somebody among their handlers has these two.

    def tap_output_aiter(self, run_id: UUID, output: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The output as it is."""
        return output

    def tap_output_iter(self, run_id: UUID, output: Iterator[Any]) -> Iterator[Any]:
        """The output as it is."""
        return output

    # showing

    def show(self, place: Place, message: BaseMessage, once: bool = True) -> None:
        """Put a message on the stream; `once`: unless it, or one with its id, was shown or put in before."""
        if once and message.id in self.seen:
            return
        if message.id is None:
            message.id = str(uuid4())
        self.seen.add(message.id)
        ns, metadata = place
        self.put(Part(ns, "messages", (message, metadata)))

    def push(self, context: TaskContext, message: BaseMessage) -> None:
        """Show a message that a node pushes while it runs."""
        metadata: dict[str, Any] = context.config["metadata"]
        if (ns := self.visible(metadata, None)) is not None:
            self.show((ns, metadata), message, once=False)

    # models

    def on_chat_model_start(
        self,
        serialized: Any,
        messages: Any,
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A model starts: note where."""
        if (ns := self.visible(metadata, tags)) is not None:
            shown = [tag for tag in tags or () if not tag.startswith("seq:step")]
            self.places[run_id] = ns, {**(metadata or {}), **({"tags": shown} if shown else {})}

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **kwargs: Any) -> None:
        """A token."""
        if isinstance(chunk, ChatGenerationChunk) and (place := self.places.get(run_id)) is not None:
            self.show(place, chunk.message, once=False)

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """The whole message, unless it came token by token."""
        if (place := self.places.pop(run_id, None)) is not None:
            for generation in (one for several in response.generations for one in several):
                if isinstance(generation, ChatGeneration):
                    self.show(place, generation.message)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """The model failed."""
        self.places.pop(run_id, None)

    # nodes

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A node starts: what it gets is not new when it returns it."""
        if not metadata or kwargs.get("name") != metadata.get("langgraph_node") or TAG_HIDDEN in (tags or ()):
            return
        if (ns := self.visible(metadata, None)) is not None:
            self.places[run_id] = ns, metadata
            self.seen.update(message.id for message in messages_in(inputs) if message.id is not None)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """The messages that a node returns."""
        if (place := self.places.pop(run_id, None)) is not None:
            for message in returned_messages(outputs):
                self.show(place, message)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """The node failed."""
        self.places.pop(run_id, None)


def returned_messages(output: Any) -> Iterator[BaseMessage]:
    """The messages in what a node returned."""
    if isinstance(output, Command):
        yield from messages_in(output.update)
    elif isinstance(output, list | tuple) and any(isinstance(item, Command) for item in output):
        for item in output:
            yield from returned_messages(item)
    else:
        yield from messages_in(output)


def messages_in(value: Any) -> Iterator[BaseMessage]:
    """The messages in a value: itself, in a list, or in the fields of a state."""
    if isinstance(value, BaseMessage):
        yield value
    elif isinstance(value, list | tuple):
        yield from (item for item in value if isinstance(item, BaseMessage))
    elif (fields := _fields_of(value)) is not None:
        for field in fields:
            if isinstance(field, BaseMessage):
                yield field
            elif isinstance(field, list | tuple):
                yield from (item for item in field if isinstance(item, BaseMessage))


def _fields_of(state: Any) -> list[Any] | None:
    if isinstance(state, Mapping):
        return list(state.values())
    if dataclasses.is_dataclass(state) and not isinstance(state, type):
        return [getattr(state, field.name, None) for field in dataclasses.fields(state)]
    names = getattr(type(state), "model_fields", None)
    return None if names is None else [getattr(state, name, None) for name in names]


def push(context: TaskContext, message: BaseMessage) -> None:
    """Show a message to everybody who streams messages and may see this node."""
    callbacks = context.config.get("callbacks")
    for handler in getattr(callbacks, "handlers", ()):
        if isinstance(handler, StreamMessages):
            handler.push(context, message)
