"""Shapes of what a run streams. Import them from `surestep.types`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NotRequired, TypeAlias, TypedDict, TypeVar, Union

if TYPE_CHECKING:
    from surestep.checkpoint.base import CheckpointMetadata
    from surestep.types import Interrupt, RunnableConfig, StateSnapshot

# Without the bounds of surestep.typing: the output of a graph may be anything.
StateT = TypeVar("StateT")
OutputT = TypeVar("OutputT")


class TaskPayload(TypedDict):
    """A task that starts (mode "tasks")."""

    id: str
    name: str
    input: Any
    triggers: list[str]
    metadata: NotRequired[dict[str, Any]]


class TaskResultPayload(TypedDict):
    """A task that ended (mode "tasks"). A live stream carries the exception object in `error`."""

    id: str
    name: str
    error: str | None
    interrupts: list[dict[str, Any]]
    result: dict[str, Any]


class CheckpointTask(TypedDict):
    """A task as a checkpoint shows it; `state` leads to the nested graph it runs, if any."""

    id: str
    name: str
    error: NotRequired[str | None]
    result: NotRequired[Any]
    interrupts: NotRequired[list[dict[str, Any]]]
    state: StateSnapshot | RunnableConfig | None


class CheckpointPayload(TypedDict, Generic[StateT]):
    """A checkpoint that was made (mode "checkpoints")."""

    config: RunnableConfig | None
    metadata: CheckpointMetadata
    values: StateT
    next: list[str]
    parent_config: RunnableConfig | None
    tasks: list[CheckpointTask]


class _DebugCheckpoint(TypedDict, Generic[StateT]):
    step: int
    timestamp: str
    type: Literal["checkpoint"]
    payload: CheckpointPayload[StateT]


class _DebugTask(TypedDict):
    step: int
    timestamp: str
    type: Literal["task"]
    payload: TaskPayload


class _DebugTaskResult(TypedDict):
    step: int
    timestamp: str
    type: Literal["task_result"]
    payload: TaskResultPayload


# Union and not |: a generic TypedDict is not a class that | knows at run time.
DebugPayload: TypeAlias = Union[_DebugCheckpoint[StateT], _DebugTask, _DebugTaskResult]  # noqa: UP007
"""What mode "debug" yields: checkpoints and tasks with the step and the time."""


class ValuesStreamPart(TypedDict, Generic[OutputT]):
    """`data` is the whole state after a step."""

    type: Literal["values"]
    ns: tuple[str, ...]
    data: OutputT
    interrupts: tuple[Interrupt[Any], ...]


class UpdatesStreamPart(TypedDict):
    """`data` maps the node to what it wrote."""

    type: Literal["updates"]
    ns: tuple[str, ...]
    data: dict[str, Any]


class MessagesStreamPart(TypedDict):
    """`data` is a message (or a chunk of one) with the metadata of the task it comes from."""

    type: Literal["messages"]
    ns: tuple[str, ...]
    data: tuple[Any, dict[str, Any]]


class CustomStreamPart(TypedDict):
    """`data` is what a node gave to its stream writer."""

    type: Literal["custom"]
    ns: tuple[str, ...]
    data: Any


class CheckpointStreamPart(TypedDict, Generic[StateT]):
    """`data` is a checkpoint that was made."""

    type: Literal["checkpoints"]
    ns: tuple[str, ...]
    data: CheckpointPayload[StateT]


class TasksStreamPart(TypedDict):
    """`data` is the start or the end of a task."""

    type: Literal["tasks"]
    ns: tuple[str, ...]
    data: TaskPayload | TaskResultPayload


class DebugStreamPart(TypedDict, Generic[StateT]):
    """`data` is a checkpoint or a task with the step and the time."""

    type: Literal["debug"]
    ns: tuple[str, ...]
    data: DebugPayload[StateT]


StreamPart: TypeAlias = Union[  # noqa: UP007
    CheckpointStreamPart[StateT],
    DebugStreamPart[StateT],
    ValuesStreamPart[OutputT],
    UpdatesStreamPart,
    MessagesStreamPart,
    CustomStreamPart,
    TasksStreamPart,
]
"""What `stream(..., version="v2")` yields, told apart by `type`; `ns` is the namespace of the graph it comes
from."""
