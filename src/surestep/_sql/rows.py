"""Between rows of the database and checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

import ormsgpack

from surestep.checkpoint.base._shared import Typed, WriteRow
from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer

if TYPE_CHECKING:
    from surestep.checkpoint.serde.base import SerializerProtocol

SMALL_VALUE = 512
SMALL_VALUES = 4096
"""A channel value of up to SMALL_VALUE bytes is repeated in every checkpoint that has it, as long as these
stay below SMALL_VALUES bytes in all: a row of its own would cost more."""

Version = str | int | float

_json = json.JSONEncoder(separators=(",", ":")).encode


def dump_metadata(serde: SerializerProtocol, metadata: Mapping[str, Any]) -> tuple[str, str | bytes]:
    """Metadata as ("json", text) when JSON gives it back unchanged and it may be readable, else by the
    serializer."""
    if isinstance(serde, JsonPlusSerializer) and _is_json(metadata):
        return "json", _json(metadata)
    return serde.dumps_typed(metadata)


def load_metadata(serde: SerializerProtocol, type: str, data: str | bytes) -> dict[str, Any]:
    """What `dump_metadata` was given."""
    if type == "json":
        return cast("dict[str, Any]", json.loads(data))
    return cast("dict[str, Any]", serde.loads_typed((type, cast(bytes, data))))


def _is_json(value: Any) -> bool:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is dict:
        return all(type(key) is str and _is_json(item) for key, item in value.items())
    if kind is list:
        return all(map(_is_json, value))
    return kind is float and isfinite(value)


def pack_small(values: Mapping[str, Typed]) -> bytes:
    """The column `small`."""
    return ormsgpack.packb(values)


def unpack_small(data: bytes) -> dict[str, Typed]:
    """What `pack_small` was given, with lists for the pairs."""
    return cast("dict[str, Typed]", ormsgpack.unpackb(data))


def pack_writes(rows: Iterable[WriteRow]) -> bytes:
    """The column `led_here`."""
    return ormsgpack.packb([(task, idx, channel, *value, path) for task, idx, channel, value, path in rows])


def unpack_writes(data: bytes) -> list[WriteRow]:
    """What `pack_writes` was given."""
    return [
        (task, idx, channel, (tag, value), path) for task, idx, channel, tag, value, path in ormsgpack.unpackb(data)
    ]


def merge_writes(stored: Iterable[WriteRow], led: Iterable[WriteRow]) -> list[WriteRow]:
    """All writes of a checkpoint in replay order.

    `led` came with the next checkpoint, at a time when no row of the same key was stored; so such a row is
    later, and replaces the other if it is an error, an interrupt or an answer, and is ignored otherwise.
    """
    rows = {(row[0], row[1]): row for row in led}
    for row in stored:
        if row[1] < 0 or (row[0], row[1]) not in rows:
            rows[row[0], row[1]] = row
    return sorted(rows.values(), key=lambda row: (row[4], row[0], row[1]))


def divide(
    new: Iterable[tuple[str, Version, Typed]], carried: Iterable[tuple[str, Version, Typed]]
) -> tuple[dict[str, Typed], list[tuple[str, Version, Typed]]]:
    """The channel values of a checkpoint as (those in its row, those that get a row of their own).

    `new` changed with this checkpoint; `carried` were in its parent's row.
    """
    small: dict[str, Typed] = {}
    large: list[tuple[str, Version, Typed]] = []
    size = 0
    for values in (carried, new):
        for channel, version, value in values:
            length = len(value[1]) + len(channel)
            if length <= SMALL_VALUE and size + length <= SMALL_VALUES:
                size += length
                small[channel] = value
            elif value[0] != "empty":
                large.append((channel, version, value))
    return small, large
