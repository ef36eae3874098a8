"""Checkpoint ids: UUIDs of version 6, whose text sorts by time and then by step.

Rules
1. In one process every id is greater than every id before it.
2. The id of a checkpoint is greater than its parent's, whatever the clock of this machine says: the time in
   an id is a Lamport clock that starts from the wall clock.
"""

from __future__ import annotations

from random import getrandbits
from threading import Lock
from time import time_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uuid import UUID

__all__ = ("UUID", "next_checkpoint_id", "uuid6")

# 100 ns intervals between the start of the Gregorian calendar (as UUIDs count) and 1970.
_EPOCH = 0x01B21DD213814000
_lock = Lock()
_last = 0
_last_id = ""
_high: tuple[int, str] = (0, "")  # the upper bits of the time last written out, and their text


def _time_of(id: str) -> int:
    """The time in the text of a UUID of version 6; 0 for any other text."""
    try:
        return int(id[0:8] + id[9:13] + id[15:18], 16) if len(id) == 36 else 0
    except ValueError:
        return 0


def seconds_of(id: str) -> float | None:
    """When a checkpoint of this id was made, in seconds since 1970; None for an id that says nothing about it."""
    return (_time_of(id) - _EPOCH) / 1e7 if id[14:15] == "6" and _time_of(id) else None


def _text(now: int, clock_seq: int, node: int) -> str:
    """The id as text. Called once for every step: the part that seldom changes is kept, and there is no f-string."""
    global _high
    upper, text = _high
    if now >> 12 != upper:
        upper = now >> 12
        text = "%08x-%04x-6" % (upper >> 16, upper & 0xFFFF)  # noqa: UP031
        _high = upper, text
    return "%s%03x-%04x-%012x" % (text, now & 0xFFF, 0x8000 | clock_seq & 0x3FFF, node)  # noqa: UP031


def next_checkpoint_id(step: int, after: str | None) -> str:
    """The id of the checkpoint of `step` (-1 for the input's) that follows `after`: greater than it, as
    text too."""
    global _last, _last_id
    with _lock:
        now = time_ns() // 100 + _EPOCH
        if now <= _last:
            now = _last + 1
        if after is not None and after > _last_id:  # not from this process, or its clock is ahead of ours
            parent = _time_of(after)
            if now <= parent:
                now = parent + 1
            if now >> 12 == parent >> 12:
                # The version digit stands between these bits and the lower ones, and it may not be a 6 there.
                now = (now >> 12) + 1 << 12
        _last = now
        _last_id = _text(now, step, getrandbits(48))
        return _last_id


def uuid6(node: int | None = None, clock_seq: int | None = None) -> UUID:
    """A time-ordered UUID. `clock_seq` (14 bits) carries the step; `node` (48 bits) is random by default."""
    from uuid import UUID  # here: the engine makes its ids as text and doesn't need the module

    id = next_checkpoint_id(getrandbits(14) if clock_seq is None else clock_seq, None)
    return UUID(id if node is None else f"{id[:24]}{node & 0xFFFFFFFFFFFF:012x}")


def __getattr__(name: str) -> Any:
    if name == "UUID":
        from uuid import UUID

        return UUID
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
