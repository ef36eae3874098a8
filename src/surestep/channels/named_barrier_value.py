"""Channels that wait until each of several names has been written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from surestep.channels.base import MISSING, OneType, Value
from surestep.errors import EmptyChannelError, InvalidUpdateError

__all__ = ("NamedBarrierValue", "NamedBarrierValueAfterFinish")


class _Barrier(OneType[Value, Any], Generic[Value]):
    """The names to wait for, and those seen so far."""

    __slots__ = ("names", "seen")

    reacts_to_silence = False
    reacts_to_finish = False

    names: set[Value]
    seen: set[Value]

    def __init__(self, typ: type[Value], names: set[Value]) -> None:
        self.typ = typ
        self.key = ""
        self.names = names
        self.seen = set()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Barrier) and type(other) is type(self) and other.names == self.names

    def update(self, values: Sequence[Value]) -> bool:
        """Note the names; whether one of them is new. Raises InvalidUpdateError for a name not waited for."""
        if self.seen.issuperset(values):
            return False
        if not self.names.issuperset(values):
            unknown = next(value for value in values if value not in self.names)
            raise InvalidUpdateError(
                f"At key {self.key!r}: {unknown!r} is not a name this barrier waits for: {self.names}.",
                channel=self.key,
            )
        # A new set each time: the old one was handed out by checkpoint() and must stay as it was.
        self.seen = self.seen.union(values)
        return True

    def get(self) -> Value:
        """None once the barrier is open. Raises EmptyChannelError until then."""
        if not self.is_available():
            raise EmptyChannelError()
        return None  # type: ignore[return-value]


class NamedBarrierValue(_Barrier[Value], Generic[Value]):
    """Opens when every name has been written, and closes again when it was consumed."""

    __slots__ = ()

    def copy(self) -> NamedBarrierValue[Value]:
        """A channel that has seen the same names."""
        return self.from_checkpoint(self.seen)

    def checkpoint(self) -> set[Value]:
        """The names seen, even when there are none."""
        return self.seen

    def from_checkpoint(self, checkpoint: Any) -> NamedBarrierValue[Value]:
        """A new channel that has seen the saved names."""
        channel = type(self)(self.typ, self.names)
        channel.key = self.key
        if checkpoint is not MISSING:
            channel.seen = set(checkpoint)
        return channel

    def is_available(self) -> bool:
        """Whether every name was written."""
        return self.seen == self.names

    def consume(self) -> bool:
        """Close an open barrier."""
        if self.seen != self.names:
            return False
        self.seen = set()
        return True


class NamedBarrierValueAfterFinish(_Barrier[Value], Generic[Value]):
    """Opens when every name has been written and the run has nothing else to do. Deferred nodes wait on
    it."""

    __slots__ = ("finished",)

    reacts_to_finish = True

    finished: bool

    def __init__(self, typ: type[Value], names: set[Value]) -> None:
        super().__init__(typ, names)
        self.finished = False

    def copy(self) -> NamedBarrierValueAfterFinish[Value]:
        """A channel in the same state."""
        return self.from_checkpoint((self.seen, self.finished))

    def checkpoint(self) -> tuple[set[Value], bool]:
        """The names seen, and whether the barrier is open."""
        return self.seen, self.finished

    def from_checkpoint(self, checkpoint: Any) -> NamedBarrierValueAfterFinish[Value]:
        """A new channel in the saved state."""
        channel = type(self)(self.typ, self.names)
        channel.key = self.key
        if checkpoint is not MISSING:
            seen, channel.finished = checkpoint
            channel.seen = set(seen)
        return channel

    def is_available(self) -> bool:
        """Whether the barrier is open."""
        return self.finished

    def consume(self) -> bool:
        """Close an open barrier."""
        if not (self.finished and self.seen == self.names):
            return False
        self.finished = False
        self.seen = set()
        return True

    def finish(self) -> bool:
        """Open a barrier that has seen every name."""
        if self.finished or self.seen != self.names:
            return False
        self.finished = True
        return True
