"""Names and shapes that savers and serializers know about the engine, without importing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar, runtime_checkable

__all__ = (
    "ERROR",
    "INTERRUPT",
    "RESUME",
    "SCHEDULED",
    "TASKS",
    "ChannelProtocol",
    "SendProtocol",
)

ERROR: Final = "__error__"
SCHEDULED: Final = "__scheduled__"
INTERRUPT: Final = "__interrupt__"
RESUME: Final = "__resume__"
TASKS: Final = "__pregel_tasks"

Value = TypeVar("Value", covariant=True)
Update = TypeVar("Update", contravariant=True)
C = TypeVar("C")


class _DeltaSnapshot(NamedTuple):
    """The whole value of a delta channel, as a checkpoint stores it."""

    value: Any


@runtime_checkable
class ChannelProtocol(Protocol[Value, Update, C]):
    """A channel as far as `create_checkpoint` needs it: something that hands out its stored form."""

    @property
    def ValueType(self) -> Any: ...

    @property
    def UpdateType(self) -> Any: ...

    def checkpoint(self) -> C | None: ...

    def from_checkpoint(self, checkpoint: C | None) -> Any: ...

    def update(self, values: Sequence[Update]) -> bool: ...

    def get(self) -> Value: ...

    def consume(self) -> bool: ...


@runtime_checkable
class SendProtocol(Protocol):
    """A message to a node: anything with a node name and an argument that compares by value."""

    node: str
    arg: Any

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

    def __eq__(self, value: object) -> bool: ...
