"""A channel that collects: every value of a step, or every value there ever was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from surestep.channels.base import MISSING, BaseChannel, Value
from surestep.errors import EmptyChannelError

__all__ = ("Topic",)


class Topic(BaseChannel[Sequence[Value], Value | list[Value], list[Value]], Generic[Value]):
    """Holds the list of a step's values, in order; with `accumulate` those of all steps. A list that is
    written counts as its elements."""

    __slots__ = ("accumulate", "reacts_to_silence", "values")

    reacts_to_finish = False

    values: list[Value]
    accumulate: bool

    def __init__(self, typ: type[Value], accumulate: bool = False) -> None:
        self.typ = typ
        self.key = ""
        self.accumulate = accumulate
        self.reacts_to_silence = not accumulate
        self.values = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topic) and type(other) is type(self) and other.accumulate == self.accumulate

    @property
    def ValueType(self) -> Any:
        """Sequence of the type given."""
        return Sequence[self.typ]  # type: ignore[name-defined]

    @property
    def UpdateType(self) -> Any:
        """The type given, or a list of it."""
        return self.typ | list[self.typ]  # type: ignore[name-defined]

    def copy(self) -> Topic[Value]:
        """A channel with the same values."""
        return self.from_checkpoint(self.values)

    def checkpoint(self) -> list[Value]:
        """The values; an empty list when there are none."""
        return self.values

    def from_checkpoint(self, checkpoint: Any) -> Topic[Value]:
        """A new channel with the saved values."""
        channel = type(self)(self.typ, self.accumulate)
        channel.key = self.key
        if checkpoint is not MISSING and checkpoint is not None:
            # Very old checkpoints have (seen, values).
            channel.values = checkpoint[1] if isinstance(checkpoint, tuple) else checkpoint
        return channel

    def update(self, values: Sequence[Value | list[Value]]) -> bool:
        """Collect the values; without `accumulate` those of the step before are dropped."""
        new: list[Value] = []
        for value in values:
            if isinstance(value, list):
                new.extend(value)
            else:
                new.append(value)
        # A new list each time: the old one was handed out by checkpoint() and must stay as it was.
        if self.accumulate:
            if new:
                self.values = [*self.values, *new]
            return bool(new)
        changed = bool(new or self.values)
        self.values = new
        return changed

    def get(self) -> Sequence[Value]:
        """A list of the values. Raises EmptyChannelError when there are none."""
        if not self.values:
            raise EmptyChannelError()
        return list(self.values)

    def is_available(self) -> bool:
        """Whether there are any values."""
        return bool(self.values)
