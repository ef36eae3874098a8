"""Channels that hold the last value written: at once, or only when everything else has finished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NoReturn

from surestep.channels.base import MISSING, Value, ValueChannel
from surestep.errors import EmptyChannelError, ErrorCode, InvalidUpdateError, create_error_message

__all__ = ("LastValue", "LastValueAfterFinish")


class LastValue(ValueChannel[Value], Generic[Value]):
    """Holds the last value. Two writes in one step are an InvalidUpdateError: nothing says which should
    win."""

    __slots__ = ()

    reacts_to_silence = False

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def copy(self) -> LastValue[Value]:
        """A channel with the same value."""
        return self.from_checkpoint(self.value)

    def from_checkpoint(self, checkpoint: Any) -> LastValue[Value]:
        """A new channel with the saved value."""
        cls = type(self)
        channel = cls.__new__(cls)  # a graph makes one for each key in every run, and __init__ has nothing to add
        channel.typ = self.typ
        channel.key = self.key
        channel.value = checkpoint
        return channel

    def update(self, values: Sequence[Value]) -> bool:
        """Take the one value; False without any. Raises InvalidUpdateError for more than one."""
        if len(values) == 1:
            self.value = values[0]
            return True
        if not values:
            return False
        self._refuse(values)

    def _refuse(self, values: Sequence[Value]) -> NoReturn:
        raise InvalidUpdateError(
            create_error_message(
                message=(
                    f"At key {self.key!r}: {len(values)} values were written in one step, and this key takes "
                    "one. Give it a reducer (Annotated[..., reducer]) to combine them, or let only one node "
                    "write it."
                ),
                error_code=ErrorCode.INVALID_CONCURRENT_GRAPH_UPDATE,
            ),
            channel=self.key,
        )


class LastValueAfterFinish(ValueChannel[Value], Generic[Value]):
    """Holds the last value back until the run has nothing else to do, then gives it once. Deferred nodes wait
    on it."""

    __slots__ = ("finished",)

    reacts_to_silence = False
    reacts_to_finish = True

    finished: bool

    def __init__(self, typ: Any, key: str = "") -> None:
        super().__init__(typ, key)
        self.finished = False

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def checkpoint(self) -> Any:
        """The value and whether it may be read, or MISSING."""
        return MISSING if self.value is MISSING else (self.value, self.finished)

    def from_checkpoint(self, checkpoint: Any) -> LastValueAfterFinish[Value]:
        """A new channel with the saved value."""
        channel = type(self)(self.typ, self.key)
        if checkpoint is not MISSING:
            channel.value, channel.finished = checkpoint
        return channel

    def update(self, values: Sequence[Value]) -> bool:
        """Take the last of the values and hold it back again."""
        if not values:
            return False
        self.value = values[-1]
        self.finished = False
        return True

    def consume(self) -> bool:
        """Forget a value that was given."""
        if not self.finished:
            return False
        self.finished = False
        self.value = MISSING
        return True

    def finish(self) -> bool:
        """Give the value from now on."""
        if self.finished or self.value is MISSING:
            return False
        self.finished = True
        return True

    def get(self) -> Value:
        """The value. Raises EmptyChannelError while it is held back."""
        if not self.finished:
            raise EmptyChannelError()
        return self.value  # type: ignore[no-any-return]

    def is_available(self) -> bool:
        """Whether the value is given."""
        return self.finished
