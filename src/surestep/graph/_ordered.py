"""A set that remembers the order in which its elements were added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import Any, TypeVar

T = TypeVar("T")


class OrderedSet(MutableSet[T]):
    """Equal to any set with the same elements; iterates in insertion order, the same in every process."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, value: T) -> None:
        """Add `value` at the end, unless it is there already."""
        self._items[value] = None

    def discard(self, value: T) -> None:
        """Remove `value` if it is there."""
        self._items.pop(value, None)

    def update(self, *others: Iterable[T]) -> None:
        """Add the elements of `others`."""
        for other in others:
            self._items.update(dict.fromkeys(other))

    def copy(self) -> OrderedSet[T]:
        """A set with the same elements in the same order."""
        return OrderedSet(self._items)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self._items))}}}" if self._items else "set()"

    __hash__: Any = None
