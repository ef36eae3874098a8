"""A channel with a reducer that takes all writes of a step at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Generic

from surestep.channels.base import MISSING, Value, ValueChannel
from surestep.channels.binop import _get_overwrite, concrete_type, same_function, two_overwrites
from surestep.checkpoint.serde.types import _DeltaSnapshot

if TYPE_CHECKING:
    from surestep.checkpoint.base import PendingWrite

__all__ = ("DeltaChannel",)


class DeltaChannel(ValueChannel[Value], Generic[Value]):
    """Folds a step's writes into the value with one call `reducer(value, writes)`.

    The value starts as `typ()`, a list by default. One Overwrite a step replaces it (None: with `typ()`); the
    other writes of that step are dropped. `snapshot_frequency` is how many updates may go by before the value
    is stored in full; the savers at hand store it in full with every change. Raises ValueError unless it is
    positive.
    """

    __slots__ = ("reducer", "snapshot_frequency")

    reacts_to_silence = False

    reducer: Callable[[Any, Sequence[Any]], Any]
    snapshot_frequency: int

    def __init__(
        self,
        reducer: Callable[[Any, Sequence[Any]], Any],
        typ: type[Value] | None = None,
        *,
        snapshot_frequency: int = 100,
    ) -> None:
        if snapshot_frequency <= 0:
            raise ValueError(f"snapshot_frequency must be a positive int, got {snapshot_frequency}")
        self.typ = list if typ is None else concrete_type(typ)
        self.key = ""
        self.reducer = reducer
        self.snapshot_frequency = snapshot_frequency
        self.value = MISSING

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DeltaChannel)
            and type(other) is type(self)
            and same_function(self.reducer, other.reducer)
            and self.snapshot_frequency == other.snapshot_frequency
        )

    def copy(self) -> DeltaChannel[Value]:
        """A channel with the same value."""
        return self._with(self.value)

    def checkpoint(self) -> Any:
        """The value in a `_DeltaSnapshot`, or MISSING."""
        return MISSING if self.value is MISSING else _DeltaSnapshot(self.value)

    def from_checkpoint(self, checkpoint: Any) -> DeltaChannel[Value]:
        """A new channel with the saved value: from a snapshot, or from a key that was a plain reducer when it
        was saved; `typ()` for MISSING."""
        if isinstance(checkpoint, _DeltaSnapshot):
            return self._with(checkpoint.value)
        return self._with(self.typ() if checkpoint is MISSING or checkpoint is None else checkpoint)

    def _with(self, value: Any) -> DeltaChannel[Value]:
        channel = type(self)(self.reducer, self.typ, snapshot_frequency=self.snapshot_frequency)
        channel.key = self.key
        channel.value = value
        return channel

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the values in; False without any. Raises InvalidUpdateError for two Overwrites in one step."""
        if not values:
            return False
        overwrites = [replacement for found, replacement in map(_get_overwrite, values) if found]
        if len(overwrites) > 1:
            raise two_overwrites(self.key)
        if overwrites:
            self.value = self._base(overwrites[0])
        else:
            self.value = self.reducer(self.typ() if self.value is MISSING else self.value, list(values))
        return True

    def replay_writes(self, writes: Sequence[PendingWrite]) -> None:
        """Fold stored writes (task id, channel, value) of several steps in: the last Overwrite among them is
        the base, and those after it are reduced in one call."""
        values = [write[2] for write in writes]
        for index in range(len(values) - 1, -1, -1):
            is_overwrite, replacement = _get_overwrite(values[index])
            if is_overwrite:
                self.value = self._base(replacement)
                values = values[index + 1 :]
                break
        if values:
            self.value = self.reducer(self.typ() if self.value is MISSING else self.value, values)

    def _base(self, replacement: Any) -> Any:
        # A copy: the writer keeps its object, and a reducer may change the value in place.
        return self.typ() if replacement is None else copy(replacement)
