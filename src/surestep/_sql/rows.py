"""Between columns of the database and what they hold: typed values, and writes that ride in a checkpoint's row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import ormsgpack

from surestep.checkpoint.base._shared import Typed

PAGE_TAG = "surestep:page"
"""The tag of a write's value that is a reference to pages."""

Row = tuple[str, int, str, bytes, str]
"""A write as it is stored: task id, index, channel, typed value, task path. A negative index replaces an earlier row
of its (task, index), any other is stored once."""


def join(typed: Typed) -> bytes:
    """A typed value as one column."""
    tag, data = typed
    return b"\0" + data if tag == "msgpack" else tag.encode() + b"\0" + data


def split(column: bytes) -> Typed:
    """The typed value in a column."""
    if column[0] == 0:
        return "msgpack", column[1:]
    tag, _, data = column.partition(b"\0")
    return tag.decode(), data


EMPTY = join(("empty", b""))
"""The value of a channel that got a new version by losing its value."""


def pack_writes(rows: Sequence[Row]) -> bytes:
    """The column `led_here`: msgpack of [[task id, path, index, channel, value, index, channel, value, ...], ...]."""
    if len({row[:2] for row in rows}) < len(rows):
        rows = list(_by_key({}, rows).values())
    packed = []
    for (task, path), of_task in groupby(rows, lambda row: (row[0], row[4])):
        entry: list[Any] = [short(task), path]
        for _, idx, channel, value, _ in of_task:
            entry += (idx, channel, value)
        packed.append(entry)
    return ormsgpack.packb(packed)


def unpack_writes(data: bytes) -> list[Row]:
    """What `pack_writes` was given."""
    rows: list[Row] = []
    for task, path, *entry in ormsgpack.unpackb(data):
        id = long(task)
        rows += [(id, *entry[i : i + 3], path) for i in range(0, len(entry), 3)]
    return rows


def short(id: str) -> str | bytes:
    """An id as it takes least room: the 16 bytes of a UUID."""
    if len(id) == 36 and id[8] == id[13] == id[18] == id[23] == "-":
        try:
            data = bytes.fromhex(id.replace("-", ""))
        except ValueError:
            return id
        return data if long(data) == id else id
    return id


def long(id: str | bytes) -> str:
    """What `short` was given."""
    if isinstance(id, str):
        return id
    text = id.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def merge_writes(stored: Iterable[Row], led: Iterable[Row]) -> list[Row]:
    """All writes of a checkpoint in replay order.

    `led` came with the next checkpoint, at a time when no row of the same key was stored: such a row is
    later.
    """
    rows = _by_key(_by_key({}, led), stored)
    return sorted(rows.values(), key=lambda row: (row[4], row[0], row[1]))


def _by_key(rows: dict[tuple[str, int], Row], later: Iterable[Row]) -> dict[tuple[str, int], Row]:
    """`rows` and the later ones: errors, interrupts and answers replace, anything else is stored once."""
    for row in later:
        key = row[:2]
        if row[1] < 0 or key not in rows:
            rows[key] = row
    return rows
