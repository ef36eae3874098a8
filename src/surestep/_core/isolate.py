"""Copies that keep one holder's in-place changes from another.

Containers are copied, to any depth; what they hold is shared. A node that appends to a list it was given changes
its own copy, not the channel, its siblings or an older checkpoint. An object of a class of the user's own
(a message, a model) stays the same object: whoever changes its attributes changes it for all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import is_
from typing import Any

Maker = Callable[[], Any]
CONTAINERS = (list, dict, set, deque, bytearray)
COPIED = frozenset({*CONTAINERS, tuple})
PLAIN = frozenset({int, str, float, bool, type(None), bytes, complex, frozenset})


def isolate(value: Any) -> Any:
    """The value, with containers of the exact built-in types copied."""
    kind = type(value)
    if kind not in COPIED:
        return value
    if kind is list:
        if COPIED.isdisjoint(map(type, value)):  # the usual case, and at every step as long as the list is
            return value.copy()
        return [isolate(item) if type(item) in COPIED else item for item in value]
    if kind is dict:
        if COPIED.isdisjoint(map(type, value.values())):
            return value.copy()
        return {key: isolate(item) if type(item) in COPIED else item for key, item in value.items()}
    if kind is tuple:
        return tuple([isolate(item) for item in value])
    if kind is deque:
        return deque(map(isolate, value), value.maxlen)
    return value.copy()


def needs_isolation(value: Any) -> bool:
    """Whether a holder could change it in place through its container."""
    kind = type(value)
    return kind in CONTAINERS or (kind is tuple and any(needs_isolation(item) for item in value))


class ListCopies:
    """Copies of a list that grows, as lists of messages do: how its items are copied is worked out once for each.

    It relies on rule 3 of channels: what a channel has handed out it does not change.
    """

    __slots__ = ("items", "makers")

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.makers: list[Maker] = []  # of each item: what makes a copy of it

    def take(self, value: list[Any]) -> None:
        """From now on copies are those of this list; what it has in common with the last one is known."""
        common = self._in_common(value)
        del self.items[common:], self.makers[common:]
        new = value[common:]
        self.items += new
        self.makers += map(maker, new)

    def copy(self) -> list[Any]:
        """The list, isolated."""
        return [make() for make in self.makers]

    def copy_of(self, value: list[Any]) -> list[Any]:
        """Another list, isolated. Nothing is noted: several threads may ask."""
        common = self._in_common(value)
        return [*[make() for make in self.makers[:common]], *map(isolate, value[common:])]

    def _in_common(self, value: list[Any]) -> int:
        items = self.items
        if len(items) <= len(value) and all(map(is_, items, value)):
            return len(items)
        return next((at for at, same in enumerate(map(is_, items, value)) if not same), len(value))


def maker(value: Any) -> Maker:
    """What makes isolated copies of a value that does not change."""
    kind = type(value)
    if kind is dict:
        copy: Maker = value.copy
        parts = [(key, maker(item)) for key, item in value.items() if type(item) in COPIED]
        return _dict_maker(copy, parts) if parts else copy
    if kind is list:
        if COPIED.isdisjoint(map(type, value)):
            copy = value.copy
            return copy
        makers = [maker(item) for item in value]
        return lambda: [make() for make in makers]
    return (lambda: isolate(value)) if kind in COPIED else (lambda: value)


def _dict_maker(copy: Maker, parts: list[tuple[Any, Maker]]) -> Maker:
    def make() -> Any:
        made = copy()
        for key, make_part in parts:
            made[key] = make_part()
        return made

    return make
