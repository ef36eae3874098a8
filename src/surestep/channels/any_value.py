"""A channel for several writers that agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from surestep.channels.base import MISSING, Value, ValueChannel

__all__ = ("AnyValue",)


class AnyValue(ValueChannel[Value], Generic[Value]):
    """Holds the last of a step's values, trusting that they are equal; empty after a step without writes."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def copy(self) -> AnyValue[Value]:
        """A channel with the same value."""
        return self.from_checkpoint(self.value)

    def from_checkpoint(self, checkpoint: Any) -> AnyValue[Value]:
        """A new channel with the saved value."""
        channel = type(self)(self.typ, self.key)
        channel.value = checkpoint
        return channel

    def update(self, values: Sequence[Value]) -> bool:
        """Take the last value; without any, forget the one from before."""
        if values:
            self.value = values[-1]
            return True
        if self.value is MISSING:
            return False
        self.value = MISSING
        return True
