"""A channel that is never saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from surestep.channels.base import MISSING, Value, ValueChannel
from surestep.channels.ephemeral_value import one_value_only

__all__ = ("UntrackedValue",)


class UntrackedValue(ValueChannel[Value], Generic[Value]):
    """Holds the last value for the rest of the run and never saves it: for handles, counters, secrets.

    With `guard` more than one write a step is an InvalidUpdateError; without, the last one wins.
    """

    __slots__ = ("guard",)

    reacts_to_silence = False

    guard: bool

    def __init__(self, typ: type[Value], guard: bool = True) -> None:
        super().__init__(typ)
        self.guard = guard

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntrackedValue) and type(other) is type(self) and other.guard == self.guard

    def copy(self) -> UntrackedValue[Value]:
        """A channel with the same value."""
        channel = self.from_checkpoint(MISSING)
        channel.value = self.value
        return channel

    def checkpoint(self) -> Any:
        """MISSING: the value is not for storage."""
        return MISSING

    def from_checkpoint(self, checkpoint: Any) -> UntrackedValue[Value]:
        """A new, empty channel, whatever was saved."""
        channel = type(self)(self.typ, self.guard)
        channel.key = self.key
        return channel

    def update(self, values: Sequence[Value]) -> bool:
        """Take the last value; False without any."""
        if not values:
            return False
        if self.guard and len(values) != 1:
            raise one_value_only(self.key, "UntrackedValue", len(values))
        self.value = values[-1]
        return True
