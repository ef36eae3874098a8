"""Between rows of the database and checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import ormsgpack

from surestep.checkpoint.base._shared import Typed, WriteRow

SMALL_VALUE = 512
SMALL_VALUES = 4096
"""A channel value of up to SMALL_VALUE bytes is repeated in every checkpoint that has it, as long as these
stay below SMALL_VALUES bytes in all: a row of its own would cost more."""

Version = str | int | float


def pack_small(values: Mapping[str, Typed]) -> bytes:
    """The column `small`."""
    return ormsgpack.packb(values)


def unpack_small(data: bytes) -> dict[str, Typed]:
    """What `pack_small` was given, with lists for the pairs."""
    return cast("dict[str, Typed]", ormsgpack.unpackb(data))


def pack_writes(rows: Sequence[WriteRow]) -> bytes:
    """The column `led_here`."""
    if len({row[:2] for row in rows}) < len(rows):
        rows = list(_by_key({}, rows).values())
    return ormsgpack.packb(rows)


def unpack_writes(data: bytes) -> list[WriteRow]:
    """What `pack_writes` was given."""
    return [
        (task, idx, channel, (tag, value), path) for task, idx, channel, (tag, value), path in ormsgpack.unpackb(data)
    ]


def merge_writes(stored: Iterable[WriteRow], led: Iterable[WriteRow]) -> list[WriteRow]:
    """All writes of a checkpoint in replay order.

    `led` came with the next checkpoint, at a time when no row of the same key was stored: such a row is
    later.
    """
    rows = _by_key(_by_key({}, led), stored)
    return sorted(rows.values(), key=lambda row: (row[4], row[0], row[1]))


def _by_key(rows: dict[tuple[str, int], WriteRow], later: Iterable[WriteRow]) -> dict[tuple[str, int], WriteRow]:
    """`rows` and the later ones: errors, interrupts and answers replace, anything else is stored once."""
    for row in later:
        key = row[:2]
        if row[1] < 0 or key not in rows:
            rows[key] = row
    return rows


def divide(
    versions: Mapping[str, Version],
    new_versions: Mapping[str, Version],
    new: Sequence[tuple[str, Version, Typed]],
    inherited: Mapping[str, Typed],
) -> tuple[dict[str, Typed], list[tuple[str, Version, Typed]]]:
    """The channel values of a checkpoint as (those in its row, those that get a row of their own).

    `versions`: of all its channels; `new_versions`: of those that changed, whose values `new` has.
    `inherited`: the values in its parent's row.
    """
    small = {
        channel: value for channel, value in inherited.items() if channel not in new_versions and channel in versions
    }
    large: list[tuple[str, Version, Typed]] = []
    if len(small) + len(new) > SMALL_VALUES // SMALL_VALUE:
        new = [*((channel, versions[channel], value) for channel, value in small.items()), *new]
        small = {}
    room = SMALL_VALUES
    for channel, version, value in new:
        length = len(value[1]) + len(channel)
        if length <= SMALL_VALUE and length <= room:
            room -= length
            small[channel] = value
        elif value[0] != "empty":
            large.append((channel, version, value))
    return small, large
