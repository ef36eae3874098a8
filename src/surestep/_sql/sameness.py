"""Whether a list still has the very same things in it, all the way down, without serializing them.

A print of some items remembers the leaves that were in them (strings, numbers and the like, which never change) and
the shape of what holds those: containers, messages, models, dataclasses. Items that have the same leaves in
the same shape have the same content, whether they are the same objects or copies of them. Made and
compared level by level, with functions that loop in C: this is done with all items of a conversation at
every step.

A print says "the same" only of what it understands; for anything else there is none.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Iterable, Sequence
from itertools import chain, compress
from operator import attrgetter, is_
from typing import Any, NamedTuple

LEAF, DICT, SEQUENCE, OBJECT, MODEL, UNKNOWN = range(6)
_DEPTH = 12  # deeper than this, or round in a circle: not understood
_MAX_KINDS = 4096

_LEAVES: tuple[type, ...] = (str, int, float, bool, type(None), bytes, complex, uuid.UUID, decimal.Decimal)
_LEAVES += (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone)
_BUILT_IN = {**dict.fromkeys(_LEAVES, LEAF), dict: DICT, list: SEQUENCE, tuple: SEQUENCE}
_kinds: dict[type, int] = {**_BUILT_IN}

_dict_of = attrgetter("__dict__")
_parts_of_model = attrgetter("__pydantic_extra__"), attrgetter("__pydantic_private__")


def _kind_of(cls: type) -> int:
    """What objects of a class are made of; worked out once."""
    if len(_kinds) > _MAX_KINDS:
        _kinds.clear()
        _kinds.update(_BUILT_IN)
    kind = UNKNOWN
    if issubclass(cls, enum.Enum):
        kind = LEAF
    elif hasattr(cls, "__pydantic_private__") and hasattr(cls, "__pydantic_extra__") and hasattr(cls, "model_dump"):
        kind = MODEL
    elif hasattr(cls, "__dataclass_fields__") and not any("__slots__" in base.__dict__ for base in cls.__mro__):
        kind = OBJECT
    _kinds[cls] = kind
    return kind


class _Level(NamedTuple):
    """The values at one depth, in the order in which they are met."""

    leaf: bytes  # for each value: 1 if it is a leaf
    leaves: list[Any]
    groups: list[tuple[int, bytes, list[type]]]  # of those that are none: a kind, which values, their classes
    lengths: list[list[int]]  # how much is in each, by group
    keys: list[list[str]]  # of dicts and objects, by group


class Print(NamedTuple):
    """What some items had in them."""

    levels: list[_Level]

    def same(self, items: Sequence[Any]) -> bool:
        """Whether these have the same in them."""
        values: Sequence[Any] = items
        for level in self.levels:
            if len(values) != len(level.leaf) or not all(map(is_, compress(values, level.leaf), level.leaves)):
                return False
            inside: list[Any] = []
            for (kind, which, classes), lengths, keys in zip(level.groups, level.lengths, level.keys, strict=True):
                holders = list(compress(values, which))
                if list(map(type, holders)) != classes or _open(kind, holders, inside) != (lengths, keys):
                    return False
            values = inside
        return not values


def print_of(items: Sequence[Any]) -> Print | None:
    """The print of some items; None if there is something in them that isn't understood."""
    levels: list[_Level] = []
    values: Sequence[Any] = items
    while values:
        if len(levels) == _DEPTH:
            return None
        classes = list(map(type, values))
        kinds = [_kinds.get(cls, UNKNOWN) for cls in classes]
        if UNKNOWN in kinds:
            kinds = [kind if kind != UNKNOWN else _kind_of(cls) for kind, cls in zip(kinds, classes, strict=True)]
            if UNKNOWN in kinds:
                return None
        leaf = bytes([kind == LEAF for kind in kinds])
        level = _Level(leaf, list(compress(values, leaf)), [], [], [])
        inside: list[Any] = []
        for kind in sorted({*kinds} - {LEAF}):
            which = bytes([found == kind for found in kinds])
            lengths, keys = _open(kind, list(compress(values, which)), inside)
            if not all(type(key) is str for key in keys):
                return None
            level.groups.append((kind, which, list(compress(classes, which))))
            level.lengths.append(lengths)
            level.keys.append(keys)
        levels.append(level)
        values = inside
    return Print(levels)


def _open(kind: int, holders: list[Any], inside: list[Any]) -> tuple[list[int], list[str]]:
    """How much is in each of these, and under which keys; what is in them is added to `inside`."""
    if kind == SEQUENCE:
        inside += chain.from_iterable(holders)
        return list(map(len, holders)), []
    if kind == OBJECT:
        holders = list(map(_dict_of, holders))
    elif kind == MODEL:
        for part_of in _parts_of_model:
            parts = list(map(part_of, holders))
            if parts.count(None) < len(parts):  # a rare thing
                inside += parts
        holders = list(map(_dict_of, holders))
    inside += chain.from_iterable(map(dict.values, holders))
    return list(map(len, holders)), list(chain.from_iterable(holders))


class Chunk(NamedTuple):
    """Some pages in a row whose items can be recognized together."""

    units: int
    items: int
    print: Print | None


def by_first_unit(chunks: Iterable[Chunk]) -> dict[int, Chunk]:
    """The chunks by the first unit of each."""
    found, unit = {}, 0
    for chunk in chunks:
        found[unit] = chunk
        unit += chunk.units
    return found


def chunked(chunks: Sequence[Chunk], items: Sequence[Any]) -> list[Chunk]:
    """The chunks with prints for those that have none, and small ones put together: about log n of n items."""
    made: list[Chunk] = []
    at = 0
    for chunk in chunks:
        at += chunk.items
        made.append(chunk)
        while len(made) > 1 and (made[-1].print is made[-2].print is None or 2 * made[-1].items >= made[-2].items):
            last, other = made.pop(), made.pop()
            made.append(Chunk(other.units + last.units, other.items + last.items, None))
    at, found = 0, []
    for chunk in made:
        found.append(chunk if chunk.print else chunk._replace(print=print_of(items[at : at + chunk.items])))
        at += chunk.items
    return found
