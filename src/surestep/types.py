"""The words of the API: Command, Send, interrupt, policies, snapshots, and the shapes of what a run
streams."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    TypeAlias,
    TypedDict,
    TypeVar,
    Union,
    final,
    overload,
)

from surestep import _policies
from surestep._context import current_task
from surestep._fields import attribute_updates
from surestep._policies import (
    CacheKey as CacheKey,
)
from surestep._policies import (
    CachePolicy,
    RetryPolicy,
    TimeoutPolicy,
    TracePolicy,
    omit_payload,
)
from surestep._policies import (
    default_cache_key as default_cache_key,
)
from surestep._policies import (
    default_retry_on as default_retry_on,
)
from surestep.integrations.tool_output import ToolOutput, join_tool_outputs
from surestep.warnings import LangGraphDeprecatedSinceV10, LangGraphDeprecatedSinceV11

if TYPE_CHECKING:
    from datetime import timedelta
    from uuid import UUID

    from surestep._executable import PregelExecutableTask
    from surestep._records import EffectRecord
    from surestep._stream_types import (
        CheckpointPayload,
        CheckpointStreamPart,
        CheckpointTask,
        CustomStreamPart,
        DebugPayload,
        DebugStreamPart,
        MessagesStreamPart,
        StreamPart,
        TaskPayload,
        TaskResultPayload,
        TasksStreamPart,
        UpdatesStreamPart,
        ValuesStreamPart,
    )
    from surestep.checkpoint.base import BaseCheckpointSaver, CheckpointMetadata

    Checkpointer: TypeAlias = bool | BaseCheckpointSaver[Any] | None
    """None: the parent's saver, if any. True (nested graphs): the parent's saver, and state is kept from call
    to call. False: never saved."""

__all__ = (
    "All",
    "CachePolicy",
    "CheckpointPayload",
    "CheckpointStreamPart",
    "CheckpointTask",
    "Checkpointer",
    "Command",
    "CustomStreamPart",
    "DebugPayload",
    "DebugStreamPart",
    "Durability",
    "GraphOutput",
    "Interrupt",
    "MessagesStreamPart",
    "Overwrite",
    "PregelExecutableTask",
    "PregelTask",
    "RetryPolicy",
    "RunnableConfig",
    "Send",
    "StateSnapshot",
    "StateUpdate",
    "StreamMode",
    "StreamPart",
    "StreamWriter",
    "TaskPayload",
    "TaskResultPayload",
    "TasksStreamPart",
    "TimeoutPolicy",
    "TracePolicy",
    "UpdatesStreamPart",
    "ValuesStreamPart",
    "ensure_valid_checkpointer",
    "interrupt",
    "omit_payload",
)

# These classes are public here; stored values and error messages name them by this module.
for _policy in (CacheKey, CachePolicy, RetryPolicy, TimeoutPolicy, TracePolicy):
    _policy.__module__ = __name__
del _policies, _policy

All = Literal["*"]
"""Every node."""

Durability = Literal["sync", "async", "exit"]
"""When a step is saved: before the next one starts, beside it, or once when the run ends."""

StreamMode = Literal["values", "updates", "checkpoints", "tasks", "debug", "messages", "custom"]
"""What a stream yields; several may be asked for at once."""

StreamWriter = Callable[[Any], None]
"""A function that puts its argument on the custom stream."""

T = TypeVar("T")
N = TypeVar("N", bound=Hashable)
ResponseT = TypeVar("ResponseT")
OutputT = TypeVar("OutputT")

_PLACEHOLDER_ID = "placeholder-id"


class RunnableConfig(TypedDict, total=False):
    """The settings of a call. `configurable` has thread_id and whatever the graph's own nodes read from
    it."""

    tags: list[str]
    metadata: dict[str, Any]
    callbacks: Any
    run_name: str
    max_concurrency: int | None
    recursion_limit: int
    configurable: dict[str, Any]
    run_id: UUID | None


@dataclass(slots=True)
class Overwrite:
    """A write that replaces the value of a key with a reducer. At most one a step for each key."""

    value: Any
    type: Literal["__overwrite__"] = "__overwrite__"


@final
@dataclass(init=False, slots=True)
class Interrupt(Generic[ResponseT]):
    """A question that a run waits on: what `interrupt()` was called with, the id to answer it by, and the
    JSON schema of the answer, if any."""

    value: Any
    id: str
    response_schema: type[ResponseT] | dict[str, Any] | None

    def __init__(
        self,
        value: Any,
        id: str = _PLACEHOLDER_ID,
        *,
        response_schema: type[ResponseT] | dict[str, Any] | None = None,
        **deprecated_kwargs: Any,
    ) -> None:
        ns = deprecated_kwargs.pop("ns", None)
        # Old stored interrupts have them; they say nothing that the id does not say.
        deprecated_kwargs.pop("resumable", None)
        deprecated_kwargs.pop("when", None)
        if deprecated_kwargs:
            raise TypeError(f"Interrupt() got unexpected arguments: {', '.join(map(repr, deprecated_kwargs))}")
        self.value = value
        self.id = _digest("|".join(ns)) if ns and id == _PLACEHOLDER_ID else id
        self.response_schema = response_schema

    @classmethod
    def from_ns(
        cls, value: Any, ns: str, *, response_schema: type[ResponseT] | dict[str, Any] | None = None
    ) -> Interrupt[ResponseT]:
        """The interrupt of the task with namespace `ns`: its id is the xxh3-128 hex digest of it."""
        return cls(value, _digest(ns), response_schema=response_schema)

    @property
    def interrupt_id(self) -> str:
        """Deprecated name of `id`."""
        _warn("`interrupt_id` is deprecated. Use `id` instead.", LangGraphDeprecatedSinceV10)
        return self.id


def _digest(text: str) -> str:
    from xxhash import xxh3_128_hexdigest

    return xxh3_128_hexdigest(text.encode())


def _warn(message: str, category: type[Warning]) -> None:
    """Warn at the caller of the function that calls this."""
    from warnings import warn

    warn(message, category, stacklevel=3)


_ACCESS = (
    "Accessing GraphOutput via `{}` is deprecated. "
    "Use `result.value` for the output, or `result.interrupts` for interrupts."
)


@dataclass(frozen=True)
class GraphOutput(Generic[OutputT]):
    """What `invoke(..., version="v2")` returns: the output and the interrupts that the run stopped at."""

    value: OutputT
    interrupts: tuple[Interrupt[Any], ...] = ()

    def __getitem__(self, key: str) -> Any:
        """Deprecated: the output's `key`, or the interrupts for "__interrupt__"."""
        _warn(_ACCESS.format("result[key]"), LangGraphDeprecatedSinceV11)
        if key == "__interrupt__":
            return self.interrupts
        if isinstance(self.value, dict):
            return self.value[key]
        try:
            return getattr(self.value, key)
        except AttributeError:
            raise KeyError(key) from None

    def __contains__(self, key: str) -> bool:
        """Deprecated: whether the output has `key`; "__interrupt__" stands for the interrupts."""
        _warn(_ACCESS.format("key in result"), LangGraphDeprecatedSinceV11)
        if key == "__interrupt__":
            return bool(self.interrupts)
        return key in self.value if isinstance(self.value, dict) else hasattr(self.value, key)


class StateUpdate(NamedTuple):
    """One update of `bulk_update_state`: the values, the node they count as written by, and the task id, if
    any."""

    values: dict[str, Any] | None
    as_node: str | None = None
    task_id: str | None = None


class PregelTask(NamedTuple):
    """A task as a snapshot shows it: what is planned, and what is known of it (error, interrupts, result,
    nested state)."""

    id: str
    name: str
    path: tuple[str | int | tuple[Any, ...], ...]
    error: Exception | None = None
    interrupts: tuple[Interrupt[Any], ...] = ()
    state: RunnableConfig | StateSnapshot | None = None
    result: Any | None = None

    @property
    def effects(self) -> tuple[EffectRecord, ...]:
        """Its effects that are held: they start after the decision that the thread waits for."""
        return ()


class HeldTask(PregelTask):
    """A task that is held at effects."""

    held: tuple[EffectRecord, ...] = ()

    @property
    def effects(self) -> tuple[EffectRecord, ...]:
        return self.held


class StateSnapshot(NamedTuple):
    """The state of a thread at a checkpoint: values, the nodes that run next, and what they wait for."""

    values: dict[str, Any] | Any
    next: tuple[str, ...]
    config: RunnableConfig
    metadata: CheckpointMetadata | None
    created_at: str | None
    parent_config: RunnableConfig | None
    tasks: tuple[PregelTask, ...]
    interrupts: tuple[Interrupt[Any], ...]


class Send:
    """A task for the next step: run `node` with `arg` as its input, instead of the state.

    Return it from a path function or in `Command(goto=...)`. `timeout` (seconds, timedelta or TimeoutPolicy)
    overrides the node's own. Raises ValueError for a timeout that is not greater than 0.
    """

    # Annotations stay out of the class body: a class with annotations is a state update when a node returns
    # it.
    __slots__ = ("arg", "node", "timeout")

    # `timeout` by position too: that is how the serializer of LangGraph's savers makes it again.
    def __init__(self, /, node: str, arg: Any, timeout: float | timedelta | TimeoutPolicy | None = None) -> None:
        self.node: str = node
        self.arg: Any = arg
        self.timeout: TimeoutPolicy | None = None if timeout is None else TimeoutPolicy.coerce(timeout)

    def __hash__(self) -> int:
        return hash((self.node, self.arg, self.timeout))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Send)
            and self.node == other.node
            and self.arg == other.arg
            and self.timeout == other.timeout
        )

    def __repr__(self) -> str:
        timeout = "" if self.timeout is None else f", timeout={self.timeout!r}"
        return f"Send(node={self.node!r}, arg={self.arg!r}{timeout})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Command(Generic[N], ToolOutput):
    """What a node returns to update the state and choose where to go, and what a caller passes to resume a
    run.

    graph: None for the graph of the node, `Command.PARENT` for the one around it.
    update: as a node's return value.
    resume: an answer for the interrupt that waits, or a dict from interrupt id to answer.
    goto: a node, a Send, or a sequence of them.
    """

    graph: str | None = None
    update: Any | None = None
    resume: dict[str, Any] | Any | None = None
    goto: Send | Sequence[Send | N] | N = ()

    PARENT = "__parent__"

    def __post_init__(self) -> None:
        join_tool_outputs(Command)

    def __repr__(self) -> str:
        given = ((name, getattr(self, name)) for name in ("graph", "update", "resume", "goto"))
        return f"Command({', '.join(f'{name}={value!r}' for name, value in given if value)})"

    def _update_as_tuples(self) -> Sequence[tuple[str, Any]]:
        """The update as (key, value) pairs; one that has no keys is written to "__root__"."""
        update = self.update
        if update is None:
            return []
        if isinstance(update, dict):
            return list(update.items())
        if isinstance(update, (list, tuple)) and all(
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in update
        ):
            return update
        pairs = attribute_updates(update)
        return [("__root__", update)] if pairs is None else pairs


@overload
def interrupt(value: Any, *, response_schema: type[T]) -> T: ...
@overload
def interrupt(value: Any, *, response_schema: dict[str, Any] | None = None) -> Any: ...
def interrupt(value: Any, *, response_schema: dict[str, Any] | type | None = None) -> Any:
    """Pause the run with a question and return the answer once the run is resumed with it.

    The first call raises GraphInterrupt, which surfaces `value` to the caller. When the thread is resumed
    with `Command(resume=answer)` the node starts from its beginning and this call returns the answer. A node
    may ask
    several times: answers are matched by the order of the calls.

    response_schema: a pydantic model, TypedDict or dataclass that the answer is parsed with (the caller sees
    its JSON schema), or a JSON schema that is passed on as it is. An answer that does not fit raises
    pydantic.ValidationError to whoever resumed, and the question still waits.

    Raises RuntimeError outside of a node.
    """
    task = current_task.get()
    if task is None:
        raise RuntimeError(
            "Called get_config outside of a runnable context: interrupt() pauses the graph that runs it, so "
            "it must be called inside a node or a task."
        )
    return task.interrupt(value, response_schema)


def ensure_valid_checkpointer(checkpointer: Checkpointer) -> Checkpointer:
    """`checkpointer` itself; TypeError unless it is None, a bool or a saver."""
    if checkpointer is None or checkpointer is True or checkpointer is False:
        return checkpointer
    # LangGraph's own savers are welcome, and share no class with ours.
    methods = ("get_tuple", "put", "put_writes", "get_next_version")
    if not isinstance(checkpointer, type) and all(hasattr(checkpointer, method) for method in methods):
        return checkpointer
    raise TypeError(
        "Invalid checkpointer provided. Expected a saver (a BaseCheckpointSaver such as InMemorySaver), True, False "
        f"or None, got {type(checkpointer).__name__}."
    )


def __getattr__(name: str) -> Any:
    # What few programs look at is made when it is asked for; importing this module is part of every start.
    if name == "Checkpointer":
        from surestep.checkpoint.base import BaseCheckpointSaver

        return Union[None, bool, BaseCheckpointSaver]  # noqa: UP007
    if name in __all__:
        from surestep import _executable, _stream_types

        module = _executable if name == "PregelExecutableTask" else _stream_types
        value = globals()[name] = getattr(module, name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
