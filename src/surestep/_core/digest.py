"""A fingerprint of any value: equal for equal values, in every process and whatever the order of sets and dicts.

Rules:
1. What a value says is what counts: its type's name, and its content, to any depth.
2. Functions, classes and modules count by name: their code may change with a release.
3. An object counts by what it would be pickled from. One that can't be pickled (a client, a lock) counts by its type:
   it says nothing that would be the same in another process.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from typing import Any

from xxhash import xxh3_128_digest

_NAMED = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
_SCALARS = frozenset({int, float, bool, complex, type(None)})


def digest(value: Any) -> str:
    """32 hexadecimal digits."""
    return xxh3_128_digest(_Digester().of(value)).hex()


class _Digester:
    """One value's digest on its way: what was met before is not walked again, and a ring ends."""

    __slots__ = ("met",)

    def __init__(self) -> None:
        self.met: dict[int, tuple[Any, bytes]] = {}  # id -> the object (kept: its id must stay its own), its digest

    def of(self, value: Any) -> bytes:
        kind = type(value)
        if isinstance(value, str) and kind is str:  # no enum
            return b"s" + value.encode("utf-8", "surrogatepass")
        if kind in _SCALARS:
            return b"v" + repr(value).encode()
        if kind is bytes:
            return b"b" + bytes(value)
        if isinstance(value, _NAMED):
            return b"n" + _name(value).encode()
        if (known := self.met.get(id(value))) is not None:
            return known[1]
        self.met[id(value)] = value, b"ring"
        found = self._walked(value, kind)
        self.met[id(value)] = value, found
        return found

    def _walked(self, value: Any, kind: type) -> bytes:
        if kind is list or kind is tuple:
            return _joined(kind.__name__, [self.of(item) for item in value])
        if kind is set or kind is frozenset:
            return _joined(kind.__name__, sorted([self.of(item) for item in value]))
        if kind is dict:
            return _joined("dict", self._pairs(value))
        if hasattr(kind, "model_fields"):  # pydantic: which fields were set is bookkeeping
            fields = {**vars(value), **(getattr(value, "__pydantic_extra__", None) or {})}
            return _joined(_name(kind), self._pairs(fields))
        return _joined(_name(kind), self._pickled_from(value))

    def _pickled_from(self, value: Any) -> Iterable[bytes]:
        try:
            parts = value.__reduce_ex__(4)
        except Exception:
            return ()
        if isinstance(parts, str):
            return (parts.encode(),)
        function, arguments, *rest = parts  # then state, items of a list, items of a dict
        return [self.of(part) for part in (function, arguments, *map(_listed, rest))]

    def _pairs(self, mapping: Mapping[Any, Any]) -> list[bytes]:
        return sorted([_joined("", [self.of(key), self.of(value)]) for key, value in mapping.items()])


def _listed(part: Any) -> Any:
    """Items that come as an iterator, as a list."""
    return list(part) if hasattr(part, "__next__") else part


def _joined(kind: str, parts: Iterable[bytes]) -> bytes:
    """Parts with their lengths, so that no two lists of parts run into one text, as a digest of their own."""
    return xxh3_128_digest(b"".join([kind.encode(), b"(", *[b"%d:%b" % (len(part), part) for part in parts]]))


def _name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', getattr(thing, '__name__', ''))}"
