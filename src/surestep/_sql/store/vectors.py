"""The vectors of items, and which items are nearest to a query."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import Any, Protocol

from surestep._sql.statement import Many, Steps
from surestep._sql.store.dialect import StoreDialect
from surestep.store.base._nearness import DISTANCES, best
from surestep.store.base._plan import Vector

Key = tuple[str, str]

Ranked = list[tuple[Key, float | None]]
"""Rows with their scores, the nearest first; those without a vector come last."""


class Ranking(Protocol):
    """How a store keeps vectors and compares them."""

    def store(self, rows: Sequence[tuple[str, str, str, Vector]]) -> Many: ...

    def ranked(self, prefix: str, candidates: Sequence[Key], query: Vector) -> Steps[Ranked]: ...


class InProcess:
    """Vectors as bytes in the database (32-bit floats, as sqlite-vec has them), compared in this process.

    No extension is needed, and the answers are those of the store in memory.
    """

    def __init__(self, dialect: StoreDialect, distance: str) -> None:
        self._dialect = dialect
        self._distance = checked(distance)

    def store(self, rows: Sequence[tuple[str, str, str, Vector]]) -> Many:
        """The statement that stores them: (prefix, key, path, vector)."""
        sql = "INSERT OR REPLACE INTO store_vectors (prefix, key, field_name, embedding) VALUES (?, ?, ?, ?)"
        return Many(sql, [(prefix, key, path, _packed(vector)) for prefix, key, path, vector in rows])

    def ranked(self, prefix: str, candidates: Sequence[Key], query: Vector) -> Steps[Ranked]:
        """The candidates by their nearness; equally near ones keep their order."""
        where, params = self._dialect.below(prefix) if prefix else ("1", [])
        found = yield (f"SELECT prefix, key, embedding FROM store_vectors WHERE {where}", params)
        vectors: dict[Key, list[Vector]] = {place: [] for place in candidates}
        for at, key, packed in found:
            if (at, key) in vectors:
                vectors[at, key].append(_unpacked(packed))
        scores = best(query, [*vectors.values()], self._distance)
        return in_order(list(zip(candidates, scores, strict=True)))


def in_order(ranked: Ranked) -> Ranked:
    """The nearest first; a stable sort, rows without a score last."""
    return sorted(ranked, key=lambda row: (row[1] is None, -(row[1] or 0.0)))


def checked(distance: Any) -> str:
    """The name of a distance. Raises ValueError for one that there isn't."""
    if distance not in DISTANCES:
        raise ValueError(f"Unknown distance_type {distance!r}. Use one of: {', '.join(DISTANCES)}.")
    return str(distance)


def _packed(vector: Vector) -> bytes:
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _unpacked(packed: bytes) -> Vector:
    numbers = array("f", packed)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
