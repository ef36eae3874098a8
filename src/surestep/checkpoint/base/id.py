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


def _time_of(id: str) -> int:
    """The time in the text of a UUID of version 6; 0 for any other text."""
    try:
        return int(id[0:8] + id[9:13] + id[15:18], 16) if len(id) == 36 else 0
    except ValueError:
        return 0


def _text(now: int, clock_seq: int, node: int) -> str:
    high = f"{now:015x}"
    return f"{high[:8]}-{high[8:12]}-6{high[12:]}-{0x8000 | clock_seq & 0x3FFF:04x}-{node:012x}"


def next_checkpoint_id(step: int, after: str | None) -> str:
    """The id of the checkpoint of `step` (-1 for the input's) that follows `after`: greater than it, as
    text too."""
    global _last
    parent = _time_of(after) if after else 0
    with _lock:
        now = max(time_ns() // 100 + _EPOCH, _last + 1, parent + 1)
        id = _text(now, step, getrandbits(48))
        if after and id <= after:
            # Ids of another version in the thread: equal in the first 48 bits, so go on to the next value
            # of those.
            now = (now >> 12) + 1 << 12
            id = _text(now, step, getrandbits(48))
        _last = now
    return id


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
