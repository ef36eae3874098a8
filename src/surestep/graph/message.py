"""Message lists as state: the reducer that merges them by id, and a state that uses it.

With LangChain installed messages are LangChain's, and whatever it can convert is converted. Without it they
are plain dicts with "role", "content" and "id"; a string is a user's message, a pair is (role, content), and
{"role": "remove", "id": ...} takes a message away.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypedDict, cast

from surestep._context import current_task
from surestep.graph._by_id import merged_by_id

if TYPE_CHECKING:
    from types import ModuleType

    from langchain_core.messages import AnyMessage, MessageLikeRepresentation

    from surestep.graph.state import StateGraph

    Messages: TypeAlias = list[MessageLikeRepresentation] | MessageLikeRepresentation

    class MessageGraph(StateGraph[Any, None, Any, Any]):
        """Deprecated graph whose whole state is a list of messages; use a StateGraph with MessagesState."""

        def __init__(self) -> None: ...

else:
    AnyMessage = Messages = Any  # what annotations mean at run time: messages of either kind

__all__ = ("REMOVE_ALL_MESSAGES", "MessageGraph", "MessagesState", "add_messages")

_FEW = 3  # new messages are looked for among the known ones one by one
REMOVE_ALL_MESSAGES = "__remove_all__"
"""The id of a removal that takes away every message before it."""


def add_messages(
    left: Messages | None = None,
    right: Messages | None = None,
    *,
    format: Literal["langchain-openai"] | None = None,
) -> Any:
    """The messages of `left` with those of `right` merged in by id: a known id is replaced in its place, a
    new one comes last, a removal takes its message away.

    Messages without an id get one (a random UUID). A removal with the id REMOVE_ALL_MESSAGES leaves only what
    follows it. `format="langchain-openai"` puts the contents into OpenAI's form and needs LangChain. Called
    without messages it returns the reducer with that format, for `Annotated[list, add_messages(format=...)]`.

    Raises ValueError for the removal of an id that is not there, for an unknown format, and for one side
    only.
    """
    if left is None and right is None:
        return functools.partial(add_messages, format=format)
    if left is None or right is None:
        given = "left" if right is None else "right"
        raise ValueError(
            "Must specify non-null arguments for both 'left' and 'right'. "
            f"Only received: '{given}'. Pass [] for no messages."
        )
    kind = _Kind.of(left, right)
    merged = _merge(kind.with_ids(kind.coerce(left)), kind.with_ids(kind.coerce(right)), kind)
    if format is None:
        return merged
    if format != "langchain-openai":
        raise ValueError(f"Unrecognized format={format!r}. Expected one of 'langchain-openai', None.")
    return _langchain(f"add_messages(format={format!r})").convert_to_messages(
        _langchain("").convert_to_openai_messages(merged)
    )


Identified = tuple[list[Any], list[str]]  # messages, and the ids of each


def _merge(left: Identified, right: Identified, kind: type[_Kind]) -> list[Any]:
    messages, ids = left
    news, new_ids = right
    if len(news) <= _FEW and not any(kind.is_removal(new) for new in news) and _all_new(ids, new_ids):
        return [*messages, *news]  # what nearly every step does; it costs little, however long the list is
    news, cleared = _after_clear(news, kind)
    if cleared:
        return news
    return merged_by_id(
        messages,
        ids,
        news,
        id_of=kind.id_of,
        is_removal=kind.is_removal,
        unknown="Attempting to delete a message with an ID that doesn't exist ({id!r}): "
        "use the id of a message that is in the state, or REMOVE_ALL_MESSAGES.",
    )


def _all_new(ids: list[str], new: list[str]) -> bool:
    return len(set(new)) == len(new) and not any(id in ids for id in new)


def _after_clear(messages: list[Any], kind: type[_Kind]) -> tuple[list[Any], bool]:
    """What follows the last removal of everything, and whether there is one."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if kind.is_removal(message) and kind.id_of(message) == REMOVE_ALL_MESSAGES:
            return messages[index + 1 :], True
    return messages, False


def _messages_delta_reducer(state: Any, writes: Sequence[Any]) -> list[Any]:
    """The reducer for a DeltaChannel of messages: all writes of a step (messages, or lists of them) merged by
    id.

    Messages keep the id they have, none included, and the removal of an unknown id does nothing: a replay
    must give what the run gave.
    """
    flat = [message for write in writes for message in (write if isinstance(write, list) else [write])]
    kind = _Kind.of(state, flat)
    new, cleared = _after_clear(kind.coerce(flat), kind)
    merged: list[Any] = [] if cleared else list(kind.coerce(state))
    positions = {kind.id_of(message): index for index, message in enumerate(merged)}
    positions.pop(None, None)
    gone: set[int] = set()
    for message in new:
        id = kind.id_of(message)
        if kind.is_removal(message):
            if id in positions:
                gone.add(positions.pop(id))
        elif id in positions:
            merged[positions[id]] = message
        else:
            if id is not None:
                positions[id] = len(merged)
            merged.append(message)
    return [message for index, message in enumerate(merged) if index not in gone] if gone else merged


class _Kind:
    """Plain messages: what the merge needs to know about a dict. Never instantiated."""

    @staticmethod
    def of(left: Any, right: Any) -> type[_Kind]:
        if not left and not right:
            return _Kind  # nothing to convert, so nothing to import
        return _Kind if _langchain() is None else _LangChainKind

    @classmethod
    def coerce(cls, messages: Any) -> list[Any]:
        """The messages as a list in which each is a message."""
        return [cls._message(message) for message in (messages if isinstance(messages, list) else [messages])]

    @staticmethod
    def _message(value: Any) -> dict[str, Any]:
        if isinstance(value, str):
            return {"role": "user", "content": value}
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
            return {"role": value[0], "content": value[1]}
        if isinstance(value, dict) and ("role" in value or "type" in value):
            return value
        raise TypeError(
            f"Not a message: {value!r}. Without LangChain a message is a dict with 'role' and 'content', a "
            "pair (role, content) or a string; pip install langchain-core for message objects."
        )

    @staticmethod
    def with_ids(messages: list[Any]) -> Identified:
        """The messages, each with an id, and these; those that have none are copied, for they belong to the node."""
        found = [message if message.get("id") is not None else {**message, "id": _new_id()} for message in messages]
        return found, [message["id"] for message in found]

    @staticmethod
    def id_of(message: Any) -> str | None:
        id: str | None = message.get("id")
        return id

    @staticmethod
    def is_removal(message: Any) -> bool:
        return bool(message.get("role", message.get("type")) == "remove")


_whole: set[type] = set()  # LangChain's classes of messages that are no chunks, as far as they were met


class _LangChainKind(_Kind):
    """LangChain's messages."""

    @classmethod
    def coerce(cls, messages: Any) -> list[Any]:
        if not isinstance(messages, list):
            messages = [messages]
        if _whole.issuperset(map(type, messages)):
            return cast("list[Any]", messages)
        langchain = _langchain("messages")
        for kind in set(map(type, messages)):
            if issubclass(kind, langchain.BaseMessage) and not issubclass(kind, langchain.BaseMessageChunk):
                _whole.add(kind)
        if _whole.issuperset(map(type, messages)):
            return cast("list[Any]", messages)
        return [langchain.message_chunk_to_message(m) for m in langchain.convert_to_messages(messages)]

    @staticmethod
    def with_ids(messages: list[Any]) -> Identified:
        ids = [message.__dict__["id"] for message in messages]  # pydantic makes a detour of `message.id`
        if None in ids:
            # In place, as LangGraph does: whoever holds the message sees the id it has in the state.
            for index, message in enumerate(messages):
                if ids[index] is None:
                    message.id = ids[index] = message.id or _new_id()
        return messages, ids

    @staticmethod
    def id_of(message: Any) -> str | None:
        id: str | None = message.id
        return id

    @staticmethod
    def is_removal(message: Any) -> bool:
        kind: str = message.type
        return kind == "remove"


def _new_id() -> str:
    from uuid import uuid4

    return str(uuid4())


@functools.cache
def _langchain(needed_by: str = "") -> ModuleType | Any:
    """LangChain's messages; None when it is not installed and nothing in particular needs it."""
    try:
        from langchain_core import messages
    except ImportError as error:
        if not needed_by:
            return None
        raise ImportError(f"{needed_by} needs LangChain: pip install langchain-core") from error
    return messages


class MessagesState(TypedDict):
    """A state with the key `messages`, merged by `add_messages`."""

    messages: Annotated[list[AnyMessage], add_messages]


def spelled_out(hint: Any) -> Any:
    """The annotation of a key with LangChain's message classes, if it is a list of messages and LangChain is there."""
    origin, metadata = getattr(hint, "__origin__", None), getattr(hint, "__metadata__", ())
    if origin != list[Any] or not any(getattr(item, "func", item) is add_messages for item in metadata):
        return hint
    try:
        from langchain_core.messages import AnyMessage as Message
    except ImportError:
        return hint
    return Annotated[list[Message], *metadata]


def push_message(message: MessageLikeRepresentation, *, state_key: str | None = "messages") -> AnyMessage:
    """Show a message to who streams "messages" before the node returns, and write it to `state_key` (None:
    only show it); the message as it was shown.

    Raises ValueError for a message without an id, and RuntimeError outside of a node.
    """
    task = current_task.get()
    if task is None:
        raise RuntimeError(
            "Called get_config outside of a runnable context: push_message adds to what a node writes, so "
            "call it inside a node or a task."
        )
    kind = _Kind.of(None, [message])
    converted = message if _is_message_object(message) else kind.coerce([message])[0]
    if not kind.id_of(converted):
        raise ValueError("Message ID is required: whoever streams the message must recognize it in the state.")
    # The streaming of messages is an extra of the engine; a run that shows none has no such method.
    show: Callable[[Any], None] | None = getattr(task, "show_message", None)
    if show is not None:
        show(converted)
    if state_key:
        task.send([(state_key, converted)])
    return cast("AnyMessage", converted)


def _is_message_object(message: Any) -> bool:
    langchain = _langchain()
    return langchain is not None and isinstance(message, langchain.BaseMessage)


def __getattr__(name: str) -> Any:
    if name == "MessageGraph":
        return _message_graph()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def _message_graph() -> Any:
    # Made when asked for: the module of StateGraph imports this one.
    from surestep.graph.state import StateGraph

    class MessageGraph(StateGraph):  # type: ignore[type-arg]
        """Deprecated graph whose whole state is a list of messages; use a StateGraph with MessagesState."""

        def __init__(self) -> None:
            from warnings import warn

            from surestep.warnings import LangGraphDeprecatedSinceV10

            warn(
                "MessageGraph is deprecated in LangGraph v1.0.0, to be removed in v2.0.0. "
                "Please use StateGraph with a `messages` key instead.",
                LangGraphDeprecatedSinceV10,
                stacklevel=2,
            )
            super().__init__(cast("Any", Annotated[list[AnyMessage], add_messages]))

    MessageGraph.__qualname__ = "MessageGraph"
    return MessageGraph
