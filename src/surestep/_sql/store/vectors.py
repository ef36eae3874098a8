"""The vectors of items, and which items are nearest to a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Protocol

from surestep._sql.statement import Many, Steps
from surestep._sql.store.dialect import StoreDialect
from surestep.store.base._nearness import DISTANCES, Packed, nearness, packed
from surestep.store.base._plan import Vector

Key = tuple[str, str]
"""Where a row lies: the namespace's labels with dots between them, and the key."""


class Ranking(Protocol):
    """How a store keeps vectors and compares them. `has_shortcut`: whether `nearest` finds the nearest without
    comparing all."""

    @property
    def has_shortcut(self) -> bool: ...

    def store(self, rows: Sequence[tuple[str, str, str, Vector]]) -> Many: ...

    def scores(self, prefix: str, query: Vector) -> Steps[Mapping[Key, float]]: ...

    def nearest(self, prefix: str, query: Vector, count: int) -> Steps[Mapping[Key, float]]: ...


class InProcess:
    """Vectors as bytes in the database (32-bit floats, as sqlite-vec has them), compared in this process.

    No extension is needed, and the answers are those of the store in memory.
    """

    has_shortcut = False

    def __init__(self, dialect: StoreDialect, distance: str) -> None:
        self._dialect = dialect
        self._distance = checked(distance)

    def store(self, rows: Sequence[tuple[str, str, str, Vector]]) -> Many:
        """The statement that stores them: (prefix, key, path, vector)."""
        sql = "INSERT OR REPLACE INTO store_vectors (prefix, key, field_name, embedding) VALUES (?, ?, ?, ?)"
        return Many(sql, [(prefix, key, path, packed(vector)) for prefix, key, path, vector in rows])

    def scores(self, prefix: str, query: Vector) -> Steps[Mapping[Key, float]]:
        """How near the rows below `prefix` that have a vector are to the query."""
        where, params = self._dialect.below(prefix) if prefix else ("1", [])
        found = yield (f"SELECT prefix, key, embedding FROM store_vectors WHERE {where}", params)
        # Vectors of another length are from before the index was changed.
        found = [row for row in found if len(row[2]) == 4 * len(query)]
        vectors = Packed(b"".join(row[2] for row in found), len(query))
        scores: dict[Key, float] = {}
        for (at, key, _), score in zip(found, nearness(query, vectors, self._distance), strict=True):
            scores[at, key] = max(score, scores.get((at, key), -inf))
        return scores

    def nearest(self, prefix: str, query: Vector, count: int) -> Steps[Mapping[Key, float]]:
        """Compares all."""
        return self.scores(prefix, query)


def checked(distance: Any) -> str:
    """The name of a distance. Raises ValueError for one that there isn't."""
    if distance not in DISTANCES:
        raise ValueError(f"Unknown distance_type {distance!r}. Use one of: {', '.join(DISTANCES)}.")
    return str(distance)


# From this version on, a search by index goes on until it has found enough that lies below the prefix.
_KEEP_LOOKING = """
SELECT set_config('hnsw.iterative_scan', 'strict_order', true),
       set_config('ivfflat.iterative_scan', 'relaxed_order', true)
FROM pg_extension WHERE extname = 'vector' AND string_to_array(extversion, '.')::int[] >= ARRAY[0, 8]"""


class Pgvector:
    """Vectors as pgvector has them, compared by the server: every one, or those that an index leads to, if the store
    was asked to make one. Such answers are near, and now and then not the nearest."""

    # How a distance is written, which operators an index is made for, and how near a distance is.
    _SAYS: Mapping[str, tuple[str, str, str]] = {
        "cosine": ("<=>", "cosine", "1 - {}"),
        "l2": ("<->", "l2", "-{}"),
        "inner_product": ("<#>", "ip", "-{}"),
    }

    def __init__(self, dialect: StoreDialect, config: Mapping[str, Any]) -> None:
        self._dialect = dialect
        self._distance = checked(config.get("distance_type") or "cosine")
        ann = config.get("ann_index_config") or {}
        self._kind = ann.get("vector_type") or "vector"
        if self._kind not in ("vector", "halfvec"):
            raise ValueError(f"Unknown vector_type {self._kind!r}. Use 'vector' or 'halfvec'.")
        self._ann: Mapping[str, Any] = ann
        self._dims = int(config.get("dims") or 0)
        self.has_shortcut = (ann.get("kind") or "flat") != "flat"

    def statements(self) -> list[str]:
        """What makes the table and its index."""
        size = f"({self._dims})" if self._dims else ""
        table = f"""CREATE TABLE IF NOT EXISTS store_vectors (
    prefix      text NOT NULL,
    key         text NOT NULL,
    field_name  text NOT NULL,  -- the path of the text in the item
    embedding   {self._kind}{size},
    created_at  timestamptz DEFAULT CURRENT_TIMESTAMP,
    updated_at  timestamptz DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (prefix, key, field_name),
    FOREIGN KEY (prefix, key) REFERENCES store (prefix, key) ON DELETE CASCADE
)"""
        return ["CREATE EXTENSION IF NOT EXISTS vector", table, *self._index()]

    def _index(self) -> list[str]:
        kind = self._ann.get("kind") or "flat"
        options = {"hnsw": {"m": "m", "ef_construction": "ef_construction"}, "ivfflat": {"nlist": "lists"}}
        if kind == "flat":
            return []
        if kind not in options:
            raise ValueError(f"Unknown kind of index {kind!r}. Use 'hnsw', 'ivfflat' or 'flat'.")
        chosen = {name: int(self._ann[key]) for key, name in options[kind].items() if self._ann.get(key) is not None}
        given = f" WITH ({', '.join(f'{name} = {value}' for name, value in chosen.items())})" if chosen else ""
        operators = f"{self._kind}_{self._SAYS[self._distance][1]}_ops"
        sql = f"ON store_vectors USING {kind} (embedding {operators}){given}"
        return [f"CREATE INDEX IF NOT EXISTS store_vectors_embedding_idx {sql}"]

    def store(self, rows: Sequence[tuple[str, str, str, Vector]]) -> Many:
        """The statement that stores them: (prefix, key, path, vector)."""
        sql = (
            "INSERT INTO store_vectors (prefix, key, field_name, embedding) "
            f"VALUES (?, ?, ?, CAST(? AS {self._kind})) "
            "ON CONFLICT (prefix, key, field_name) DO UPDATE SET embedding = excluded.embedding"
        )
        return Many(sql, [(prefix, key, path, _listed(vector)) for prefix, key, path, vector in rows])

    def scores(self, prefix: str, query: Vector) -> Steps[Mapping[Key, float]]:
        """How near the rows below `prefix` that have a vector are to the query."""
        sign, _, nearness = self._SAYS[self._distance]
        where, params = self._dialect.below(prefix) if prefix else ("true", [])
        distance = f"min(nullif(embedding {sign} CAST(? AS {self._kind}), 'NaN'))"
        found = yield (
            f"SELECT prefix, key, {nearness.format(distance)} FROM store_vectors WHERE {where} GROUP BY prefix, key",
            [_listed(query), *params],
        )
        # No cosine: a vector of zeros has no direction.
        return {(at, key): 0.0 if score is None else score for at, key, score in found}

    def nearest(self, prefix: str, query: Vector, count: int) -> Steps[Mapping[Key, float]]:
        """How near those rows are that have the `count` nearest vectors, as far as the index finds them."""
        yield (_KEEP_LOOKING, ())
        sign, _, nearness = self._SAYS[self._distance]
        where, params = self._dialect.below(prefix) if prefix else ("true", [])
        distance = f"embedding {sign} CAST(? AS {self._kind})"
        found = yield (
            f"SELECT prefix, key, {nearness.format(f'({distance})')} FROM store_vectors WHERE {where} "
            f"ORDER BY {distance} LIMIT ?",
            [_listed(query), *params, _listed(query), count],
        )
        scores: dict[Key, float] = {}
        for at, key, score in found:
            if score == score:  # a vector of zeros has no direction
                scores[at, key] = max(score, scores.get((at, key), -inf))
        return scores


def _listed(vector: Vector) -> str:
    return f"[{','.join(map(repr, map(float, vector)))}]"
