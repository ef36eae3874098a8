"""Merging lists of things with ids: what messages and elements of a user interface have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def merged_by_id(
    known: list[T],
    ids: Iterable[Any],
    news: Iterable[T],
    *,
    id_of: Callable[[T], Any],
    is_removal: Callable[[T], bool],
    unknown: str,
    replacing: Callable[[T, T], T] = lambda before, new: new,
) -> list[T]:
    """`known`, whose ids are `ids`, with `news` merged in: a known id is replaced in its place, a new one comes last, a
    removal takes its element away.

    Raises ValueError(`unknown`, with its {id!r}) for the removal of an id that is not there.
    """
    merged = list(known)
    positions = {id: index for index, id in enumerate(ids)}
    removed = set()
    for new in news:
        id = id_of(new)
        position = positions.get(id)
        if is_removal(new):
            if position is None:
                raise ValueError(unknown.format(id=id))
            removed.add(id)
        elif position is None:
            positions[id] = len(merged)
            merged.append(new)
        else:
            removed.discard(id)
            merged[position] = replacing(merged[position], new)
    return [element for element in merged if id_of(element) not in removed] if removed else merged
