"""A channel whose value lives for one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from surestep.channels.base import MISSING, Value, ValueChannel
from surestep.errors import InvalidUpdateError

__all__ = ("EphemeralValue",)


class EphemeralValue(ValueChannel[Value], Generic[Value]):
    """Holds the value of the step before, and is empty after a step without writes.

    With `guard` more than one write a step is an InvalidUpdateError; without, the last one wins.
    """

    __slots__ = ("guard",)

    guard: bool

    def __init__(self, typ: Any, guard: bool = True) -> None:
        super().__init__(typ)
        self.guard = guard

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EphemeralValue) and type(other) is type(self) and other.guard == self.guard

    def copy(self) -> EphemeralValue[Value]:
        """A channel with the same value."""
        return self.from_checkpoint(self.value)

    def from_checkpoint(self, checkpoint: Any) -> EphemeralValue[Value]:
        """A new channel with the saved value."""
        channel = type(self)(self.typ, self.guard)
        channel.key = self.key
        channel.value = checkpoint
        return channel

    def update(self, values: Sequence[Value]) -> bool:
        """Take the last value; without any, forget the one from before."""
        if not values:
            if self.value is MISSING:
                return False
            self.value = MISSING
            return True
        if self.guard and len(values) != 1:
            raise one_value_only(self.key, "EphemeralValue", len(values))
        self.value = values[-1]
        return True


def one_value_only(key: str, kind: str, count: int) -> InvalidUpdateError:
    """The error of a guarded channel that was written `count` times in a step."""
    return InvalidUpdateError(
        f"At key {key!r}: {count} values were written in one step, and {kind}(guard=True) takes one. "
        "Use guard=False to keep the last of them.",
        channel=key,
    )
