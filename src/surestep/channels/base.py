"""The contract of a channel, and MISSING, the value of a channel that has none.

Rules that the engine relies on:
1. A channel belongs to one run: the engine makes it with `from_checkpoint` and calls it from one thread at a
   time.
2. `update` is called once a step with all writes of the step, in the order of their tasks; an error leaves
   the value
   as it was.
3. What `checkpoint` handed out is never changed by a later update.
4. `reacts_to_silence` and `reacts_to_finish` are promises: False means that `update([])` or `finish()` never
   changes
   the channel, so that the engine need not call it. The defaults promise nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar, final

from surestep.errors import EmptyChannelError

__all__ = ("MISSING", "BaseChannel")

Value = TypeVar("Value")
Update = TypeVar("Update")
Checkpoint = TypeVar("Checkpoint")


@final
class MissingType:
    """The type of MISSING, of which there is one object."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Any = MissingType()
"""No value; not the same as None, which is one."""


class BaseChannel(ABC, Generic[Value, Update, Checkpoint]):
    """A cell of the state. `typ` is the type of its value, `key` the name it has in the graph."""

    __slots__ = ("key", "typ")

    reacts_to_silence: bool = True
    """Whether a step in which nobody wrote the channel (`update([])`) may change it."""

    reacts_to_finish: bool = True
    """Whether `finish()` may change it."""

    typ: Any
    key: str

    def __init__(self, typ: Any, key: str = "") -> None:
        self.typ = typ
        self.key = key

    @property
    @abstractmethod
    def ValueType(self) -> Any:
        """The type of what `get` returns."""

    @property
    @abstractmethod
    def UpdateType(self) -> Any:
        """The type of one write."""

    def copy(self) -> BaseChannel[Value, Update, Checkpoint]:
        """A channel with the same value that changes on its own."""
        return self.from_checkpoint(self.checkpoint())

    def checkpoint(self) -> Checkpoint | Any:
        """What to save: the value by default, MISSING when there is nothing to save."""
        try:
            return self.get()
        except EmptyChannelError:
            return MISSING

    @abstractmethod
    def from_checkpoint(self, checkpoint: Checkpoint | Any) -> BaseChannel[Value, Update, Checkpoint]:
        """A new channel of this kind with what `checkpoint()` saved; an empty one for MISSING."""

    @abstractmethod
    def get(self) -> Value:
        """The value. Raises EmptyChannelError when there is none."""

    def is_available(self) -> bool:
        """Whether `get` would return a value."""
        try:
            self.get()
        except EmptyChannelError:
            return False
        return True

    @abstractmethod
    def update(self, values: Sequence[Update]) -> bool:
        """Take the writes of a step; whether the channel changed. Raises InvalidUpdateError when it
        cannot."""

    def consume(self) -> bool:
        """Told when a task that this channel triggered was applied; whether the channel changed."""
        return False

    def finish(self) -> bool:
        """Told when a step looks like the last one of the run; whether the channel changed."""
        return False


class OneType(BaseChannel[Value, Value, Checkpoint], Generic[Value, Checkpoint]):
    """A channel whose value and whose writes are of the type given."""

    __slots__ = ()

    @property
    def ValueType(self) -> Any:
        """The type given."""
        return self.typ

    @property
    def UpdateType(self) -> Any:
        """The type given."""
        return self.typ


class ValueChannel(OneType[Value, Value]):
    """What the channels that hold one value have in common: the slot and reading it."""

    __slots__ = ("value",)

    reacts_to_finish = False

    value: Any

    def __init__(self, typ: Any, key: str = "") -> None:
        self.typ = typ
        self.key = key
        self.value = MISSING

    def get(self) -> Value:
        """The value. Raises EmptyChannelError when there is none."""
        value = self.value
        if value is MISSING:
            raise EmptyChannelError()
        return value  # type: ignore[no-any-return]

    def is_available(self) -> bool:
        """Whether there is a value."""
        return self.value is not MISSING

    def checkpoint(self) -> Any:
        """The value, or MISSING."""
        return self.value
