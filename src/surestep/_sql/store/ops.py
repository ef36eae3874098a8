"""What a store does, as generators of statements. Written once for every database, and for sync and async
callers.

Rules:
1. An item that has expired is not there, whether it was swept or not: nothing reads it, nothing revives it,
   and what is put in its place is new.
2. Rows are written in the order of their keys, so that two batches never wait for each other in a circle.
3. What was read in a batch and is to live on is refreshed afterwards, in a transaction of its own: a read
   takes no write lock for items that live for ever.
4. Vectors belong to an item's present value: they go when it is overwritten, by whichever store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Any, NamedTuple

from surestep._sql.statement import Each, Many, Steps
from surestep._sql.store.dialect import Condition, StoreDialect, sql_of
from surestep._sql.store.filters import narrowed
from surestep._sql.store.values import dumps, moment
from surestep._sql.store.vectors import Key, Ranking
from surestep.store.base import GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp
from surestep.store.base._match import matches_filter, page_of_namespaces
from surestep.store.base._plan import Namespace, Plan, Vector, Vectors


class Tools(NamedTuple):
    """What a store's operations need to know of it."""

    dialect: StoreDialect
    loads: Callable[[Any], dict[str, Any]]
    ranking: Ranking | None


class Answers(NamedTuple):
    """The results of a batch, in order, and the rows whose time to live starts anew because it read them."""

    results: list[Result]
    due: list[Key]


class Row(NamedTuple):
    """An item as it is stored."""

    prefix: str
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    has_ttl: bool

    @property
    def place(self) -> Key:
        return self.prefix, self.key


def prefix_of(namespace: Sequence[str]) -> str:
    """A namespace as it is stored: no label has a dot."""
    return ".".join(namespace)


def _namespace(prefix: str) -> Namespace:
    return tuple(prefix.split(".")) if prefix else ()


# ---- a batch ----


def batch(tools: Tools, plan: Plan, vectors: Vectors) -> Steps[Answers]:
    """Do all operations of a batch: first what reads, then what writes."""
    puts = sorted(((prefix_of(namespace), key), op) for (namespace, key), op in plan.puts.items())
    in_jsonb = tools.dialect.json == "jsonb"
    texts = [(key, dumps(op.value, in_jsonb=in_jsonb), op) for key, op in puts if op.value is not None]
    reading = _Reading(tools, vectors)
    results = yield from reading.all(plan.ops)
    dialect = tools.dialect
    if puts:
        if tools.ranking is not None or (yield (dialect.has_vectors, ())):
            yield Many(FORGET_VECTORS, [key for key, _ in puts])
        gone = [key for key, op in puts if op.value is None]
        if gone:
            yield Many(DELETE, gone)
    if texts:
        rows = [(*key, text, *dialect.stamp_params(), op.ttl) for key, text, op in texts]
        yield Many(_put(dialect), rows)
    if plan.places and tools.ranking is not None:
        rows = [
            (prefix_of(namespace), key, path, vector)
            for (namespace, key, path), vector in zip(plan.places, vectors.texts, strict=True)
        ]
        yield tools.ranking.store(sorted(rows, key=lambda row: row[:3]))
    return Answers(results, sorted(reading.due - {key for key, _ in puts}))


class _Reading:
    """The reading half of a batch, and which rows it gave to somebody who wants them to live on."""

    def __init__(self, tools: Tools, vectors: Vectors) -> None:
        self._tools, self._vectors = tools, vectors
        self.due: set[Key] = set()

    def all(self, ops: Sequence[Op]) -> Steps[list[Result]]:
        """The results of the operations; None for writes."""
        stored = yield from self._stored({(prefix_of(op.namespace), op.key) for op in ops if isinstance(op, GetOp)})
        results: list[Result] = []
        for op in ops:
            if isinstance(op, GetOp):
                results.append(self._item(op, stored.get((prefix_of(op.namespace), op.key))))
            elif isinstance(op, SearchOp):
                results.append((yield from self._search(op)))
            elif isinstance(op, ListNamespacesOp):
                results.append((yield from _list_namespaces(self._tools.dialect, op)))
            else:
                results.append(None)
        return results

    def _item(self, op: GetOp, columns: Sequence[Any] | None) -> Item | None:
        if columns is None:
            return None
        row = self._row(columns)
        self._given(op, [row])
        return Item(
            value=row.value,
            key=row.key,
            namespace=_namespace(row.prefix),
            created_at=row.created_at,
            updated_at=row.updated_at,
        )

    def _given(self, op: GetOp | SearchOp, rows: Sequence[Row]) -> None:
        if op.refresh_ttl:
            self.due.update(row.place for row in rows if row.has_ttl)

    def _stored(self, keys: set[Key]) -> Steps[dict[Key, Sequence[Any]]]:
        found = (yield Each(_get(self._tools.dialect), sorted(keys))) if keys else ()
        return {(prefix, key): (prefix, key, *rest) for prefix, key, *rest in found}

    def _row(self, columns: Sequence[Any]) -> Row:
        prefix, key, value, created_at, updated_at, ttl = columns
        loaded = self._tools.loads(value)
        return Row(prefix, key, loaded, moment(created_at), moment(updated_at), ttl is not None)

    def _search(self, op: SearchOp) -> Steps[list[SearchItem]]:
        query, ranking = self._vectors.of(op), self._tools.ranking
        if query is None or ranking is None:
            rows = yield from self._matching(op, op.limit, op.offset)
            scores: Mapping[Key, float] = {}
        else:
            rows, scores = yield from self._ranked(op, ranking, query)
        self._given(op, rows)
        return [
            SearchItem(
                _namespace(row.prefix), row.key, row.value, row.created_at, row.updated_at, scores.get(row.place)
            )
            for row in rows
        ]

    def _ranked(self, op: SearchOp, ranking: Ranking, query: Vector) -> Steps[tuple[list[Row], Mapping[Key, float]]]:
        """A page of what matches, the nearest first, and how near that is."""
        prefix = prefix_of(op.namespace_prefix)
        if ranking.has_shortcut and not op.filter:
            # Twice as many as wanted, for an item may have several vectors, and may have expired.
            scores = yield from ranking.nearest(prefix, query, 2 * (op.offset + op.limit) + 1)
            stored = yield from self._stored({*scores})
            page = _page_by_score(op, stored, scores)
            if len(page) == op.limit:
                return [self._row(stored[place]) for place in page], scores
        scores = yield from ranking.scores(prefix, query)
        return (yield from self._nearest(op, scores)), scores

    def _nearest(self, op: SearchOp, scores: Mapping[Key, float]) -> Steps[list[Row]]:
        """A page of what matches, the nearest first; what has no score comes last."""
        if op.filter:
            matching = {row.place: row for row in (yield from self._matching(op, None, 0))}
            return [matching[place] for place in _page_by_score(op, matching, scores)]
        places = yield _search(self._tools.dialect, op, None, 0, "prefix, key")
        page = _page_by_score(op, [(prefix, key) for prefix, key in places], scores)
        stored = yield from self._stored({*page})
        return [self._row(stored[place]) for place in page if place in stored]

    def _matching(self, op: SearchOp, limit: int | None, offset: int) -> Steps[list[Row]]:
        """What lies below the namespace and meets the filter, last written first."""
        if not op.filter:
            found = yield _search(self._tools.dialect, op, limit, offset)
            return [*map(self._row, found)]
        if limit is not None:
            # Most filters are such that the database finds just what matches; then this is all.
            wanted = offset + limit
            rows = [*map(self._row, (yield _search(self._tools.dialect, op, wanted, 0)))]
            good = [row for row in rows if matches_filter(row.value, op.filter)]
            if len(good) == len(rows) or len(rows) < wanted:
                return good[offset:]
        found = yield _search(self._tools.dialect, op, None, 0)
        good = [row for row in map(self._row, found) if matches_filter(row.value, op.filter)]
        return good if limit is None else good[offset : offset + limit]


def _page_by_score(op: SearchOp, places: Iterable[Key], scores: Mapping[Key, float]) -> list[Key]:
    # The sort is stable: equally near ones keep their order.
    ordered = sorted(places, key=lambda place: -scores.get(place, -inf))
    return ordered[op.offset : op.offset + op.limit]


def _list_namespaces(dialect: StoreDialect, op: ListNamespacesOp) -> Steps[list[Namespace]]:
    conditions: list[Condition] = [(live(dialect), [])]
    for condition in op.match_conditions or ():
        literal = condition.path[: condition.path.index("*")] if "*" in condition.path else condition.path
        if condition.match_type == "prefix" and literal:
            conditions.append(dialect.below(prefix_of(literal)))
    where, params = sql_of(conditions)
    found = yield (f"SELECT DISTINCT prefix FROM store WHERE {where}", params)
    namespaces = [_namespace(prefix) for (prefix,) in found]
    return page_of_namespaces(namespaces, op.match_conditions, op.max_depth, op.limit, op.offset)


# ---- time ----


def refresh(dialect: StoreDialect, keys: Sequence[Key]) -> Steps[None]:
    """Start the time to live of these rows anew, of those that haven't expired meanwhile."""
    yield Many(
        f"UPDATE store SET expires_at = {dialect.expiry('ttl_minutes')} "
        f"WHERE prefix = ? AND key = ? AND ttl_minutes IS NOT NULL AND {live(dialect)}",
        keys,
    )


def sweep(dialect: StoreDialect) -> Steps[int]:
    """Delete what has expired; how many items that were."""
    gone = yield (f"DELETE FROM store WHERE expires_at <= {dialect.now} RETURNING prefix, key", ())
    if gone and (yield (dialect.has_vectors, ())):
        yield Many(FORGET_VECTORS, sorted((prefix, key) for prefix, key in gone))
    return len(gone)


# ---- statements ----

DELETE = "DELETE FROM store WHERE prefix = ? AND key = ?"

FORGET_VECTORS = "DELETE FROM store_vectors WHERE prefix = ? AND key = ?"


def live(dialect: StoreDialect) -> str:
    """The condition that a row has not expired."""
    return f"(expires_at IS NULL OR expires_at > {dialect.now})"


def _columns(dialect: StoreDialect) -> str:
    return f"prefix, key, {dialect.value}, created_at, updated_at, ttl_minutes"


def _get(dialect: StoreDialect) -> str:
    return f"SELECT {_columns(dialect)} FROM store WHERE prefix = ? AND key = ? AND {live(dialect)}"


def _put(dialect: StoreDialect) -> str:
    # WHERE true: or SQLite would take ON CONFLICT for a join's condition.
    return f"""
INSERT INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)
SELECT prefix, key, value, stamp, stamp, {dialect.expiry("ttl")}, ttl
FROM (SELECT CAST(? AS text) AS prefix, CAST(? AS text) AS key, CAST(? AS {dialect.json}) AS value,
      {dialect.stamp} AS stamp, CAST(? AS double precision) AS ttl) AS new
WHERE true
ON CONFLICT (prefix, key) DO UPDATE SET
    value = excluded.value, updated_at = excluded.updated_at,
    expires_at = excluded.expires_at, ttl_minutes = excluded.ttl_minutes,
    created_at = CASE WHEN store.expires_at <= {dialect.now} THEN excluded.created_at ELSE store.created_at END"""


def _search(
    dialect: StoreDialect, op: SearchOp, limit: int | None, offset: int, columns: str = ""
) -> tuple[str, Sequence[Any]]:
    conditions: list[Condition] = [(live(dialect), [])]
    if op.namespace_prefix:
        conditions.append(dialect.below(prefix_of(op.namespace_prefix)))
    where, params = sql_of([*conditions, *narrowed(dialect.fields, op.filter)])
    order = f"updated_at DESC, prefix{dialect.collate}, key{dialect.collate}"
    sql = f"SELECT {columns or _columns(dialect)} FROM store WHERE {where} ORDER BY {order}"
    if limit is not None:
        sql, params = f"{sql} LIMIT ? OFFSET ?", [*params, limit, offset]
    return sql, params


def is_write(plan: Plan) -> bool:
    """Whether a batch needs a transaction that writes."""
    return any(isinstance(op, PutOp) for op in plan.ops)
