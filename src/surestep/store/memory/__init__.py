"""A store in the memory of the process, with search by meaning."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from surestep.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from surestep.store.base._match import matches_filter, page_of_namespaces
from surestep.store.base._nearness import best
from surestep.store.base._ops import copied
from surestep.store.base._plan import Index, Namespace, Plan, Vector, Vectors, plan

__all__ = ("InMemoryStore",)


class InMemoryStore(BaseStore):
    """A store that is gone with the process: for tests, for scripts, and as the model of what a store does.

    index: makes `search(query=...)` find by meaning, see IndexConfig; without it `query` is ignored. Items
    without a vector come after those that have one. Values are copied in and out, so changing one changes
    nothing stored. Safe to use from several threads and event loops.
    """

    __slots__ = ("_data", "_index", "_lock", "_vectors", "embeddings", "index_config")

    def __init__(self, *, index: IndexConfig | None = None) -> None:
        self._data: dict[Namespace, dict[str, Item]] = {}
        self._vectors: dict[Namespace, dict[str, dict[str, Vector]]] = defaultdict(dict)
        self._lock = threading.RLock()
        self.index_config = index
        self._index = None if index is None else Index(index)
        self.embeddings = None if self._index is None else self._index.embeddings

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the operations; their results, in order."""
        planned = plan(ops, self._index)
        return self._run(planned, planned.embed())

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the operations; their results, in order."""
        planned = plan(ops, self._index)
        return self._run(planned, await planned.aembed())

    def _run(self, planned: Plan, vectors: Vectors) -> list[Result]:
        with self._lock:
            results = [self._read(op, vectors) for op in planned.ops]
            for (namespace, key), op in planned.puts.items():
                self._write(namespace, key, op)
            for (namespace, key, path), vector in zip(planned.places, vectors.texts, strict=True):
                self._vectors[namespace].setdefault(key, {})[path] = vector
        return results

    def _read(self, op: Op, vectors: Vectors) -> Result:
        if isinstance(op, GetOp):
            item = self._data.get(tuple(op.namespace), {}).get(op.key)
            return None if item is None else _copy_of(item)
        if isinstance(op, SearchOp):
            return self._search(op, vectors.of(op))
        if isinstance(op, ListNamespacesOp):
            return page_of_namespaces(self._data, op.match_conditions, op.max_depth, op.limit, op.offset)
        return None

    def _write(self, namespace: Namespace, key: str, op: PutOp) -> None:
        items = self._data.setdefault(namespace, {})
        self._vectors.get(namespace, {}).pop(key, None)
        if op.value is None:
            items.pop(key, None)
            if not items:
                del self._data[namespace]
                self._vectors.pop(namespace, None)
            return
        before, now = items.get(key), datetime.now(UTC)
        items[key] = Item(
            value=copied(dict(op.value)),
            key=key,
            namespace=namespace,
            created_at=now if before is None else before.created_at,
            updated_at=now,
        )

    def _search(self, op: SearchOp, query: Vector | None) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)
        found = [
            item
            for namespace, items in self._data.items()
            if namespace[: len(prefix)] == prefix
            for item in items.values()
            if matches_filter(item.value, op.filter)
        ]
        scores: list[float | None] = [None] * len(found)
        if query is not None:
            scores = self._scores(found, query)
            # Stable, so that equal scores keep the order of insertion; items without a vector come last.
            order = sorted(range(len(found)), key=lambda i: (scores[i] is None, -(scores[i] or 0.0)))
            found, scores = [found[i] for i in order], [scores[i] for i in order]
        page = slice(op.offset, op.offset + op.limit)
        return [
            SearchItem(i.namespace, i.key, copied(i.value), i.created_at, i.updated_at, score)
            for i, score in zip(found[page], scores[page], strict=True)
        ]

    def _scores(self, items: Sequence[Item], query: Vector) -> list[float | None]:
        vectors = [[*self._vectors.get(item.namespace, {}).get(item.key, {}).values()] for item in items]
        return best(query, vectors)


def _copy_of(item: Item) -> Item:
    return Item(
        value=copied(item.value),
        key=item.key,
        namespace=item.namespace,
        created_at=item.created_at,
        updated_at=item.updated_at,
    )
