"""A store in the memory of the process, with search by meaning."""

from __future__ import annotations

import operator
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from math import sqrt
from typing import Any, TypedDict, cast

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
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)
from surestep.store.base._match import matches_filter, matches_namespace

__all__ = ("InMemoryStore",)

Namespace = tuple[str, ...]
Vector = list[float]


@dataclass(slots=True)
class _Plan:
    """A batch: all operations, the writes that count, and the texts that need a vector first."""

    ops: list[Op]
    puts: dict[tuple[Namespace, str], PutOp] = field(default_factory=dict)
    queries: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    places: list[tuple[Namespace, str, str]] = field(default_factory=list)


class _Index(TypedDict):
    """The index of a store as it was worked out from its config."""

    dims: int
    fields: list[tuple[str, list[str] | str]]


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
        self.embeddings = None if index is None else ensure_embeddings(index.get("embed"))
        self._index: _Index | None = None
        if index is not None:
            paths = index.get("fields") or ["$"]
            fields = [(path, tokenize_path(path) if path != "$" else path) for path in paths]
            self._index = {"dims": index.get("dims", 0), "fields": fields}

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the operations; their results, in order."""
        plan = self._plan(ops)
        return self._run(plan, *self._embed(plan))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the operations; their results, in order."""
        plan = self._plan(ops)
        return self._run(plan, *await self._aembed(plan))

    def _embed(self, plan: _Plan) -> tuple[list[Vector], list[Vector]]:
        """The vectors of the queries, and those of the texts to store."""
        if self.embeddings is None:
            return [], []
        queries = [self.embeddings.embed_query(query) for query in plan.queries]
        return queries, self.embeddings.embed_documents(plan.texts) if plan.texts else []

    async def _aembed(self, plan: _Plan) -> tuple[list[Vector], list[Vector]]:
        if self.embeddings is None or not (plan.queries or plan.texts):
            return [], []
        import asyncio

        asked = [self.embeddings.aembed_query(query) for query in plan.queries]
        queries = list(await asyncio.gather(*asked))
        return queries, await self.embeddings.aembed_documents(plan.texts) if plan.texts else []

    def _plan(self, ops: Iterable[Op]) -> _Plan:
        plan = _Plan(list(ops))
        for op in plan.ops:
            if isinstance(op, PutOp):
                plan.puts[tuple(op.namespace), op.key] = op
            elif isinstance(op, SearchOp):
                if op.query and self._index is not None and op.query not in plan.queries:
                    plan.queries.append(op.query)
            elif not isinstance(op, (GetOp, ListNamespacesOp)):
                raise ValueError(
                    f"Unknown operation type: {type(op)}. A store does GetOp, PutOp, SearchOp and ListNamespacesOp."
                )
        for (namespace, key), op in plan.puts.items():
            for path, text in self._texts(op):
                plan.texts.append(text)
                plan.places.append((namespace, key, path))
        return plan

    def _texts(self, op: PutOp) -> list[tuple[str, str]]:
        """What of an item is to be found by its meaning, each text with its path."""
        if self._index is None or op.index is False or op.value is None:
            return []
        fields = self._index["fields"] if op.index is None else [(p, tokenize_path(p)) for p in op.index]
        texts = []
        for path, tokens in fields:
            found = get_text_at_path(op.value, "$" if path == "$" else tokens)
            texts += [(path if len(found) == 1 else f"{path}.{i}", text) for i, text in enumerate(found)]
        return texts

    def _run(self, plan: _Plan, queries: list[Vector], vectors: list[Vector]) -> list[Result]:
        self._check(vectors, plan.texts)
        nearest_to = dict(zip(plan.queries, queries, strict=True))
        with self._lock:
            results = [self._read(op, nearest_to) for op in plan.ops]
            for (namespace, key), op in plan.puts.items():
                self._write(namespace, key, op)
            for (namespace, key, path), vector in zip(plan.places, vectors, strict=True):
                self._vectors[namespace].setdefault(key, {})[path] = vector
        return results

    def _check(self, vectors: list[Vector], texts: list[str]) -> None:
        if len(vectors) != len(texts):
            raise ValueError(f"The embed function gave {len(vectors)} vectors for {len(texts)} texts; one each is due.")
        dims = self._index["dims"] if self._index is not None else 0
        for vector in vectors:
            if dims and len(vector) != dims:
                raise ValueError(
                    f"The embed function gave a vector of {len(vector)} numbers, and the index has dims={dims}."
                )

    def _read(self, op: Op, queries: dict[str, Vector]) -> Result:
        if isinstance(op, GetOp):
            item = self._data.get(tuple(op.namespace), {}).get(op.key)
            return None if item is None else _copy_of(item)
        if isinstance(op, SearchOp):
            return self._search(op, queries.get(op.query) if op.query else None)
        if isinstance(op, ListNamespacesOp):
            return self._list(op)
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
            value=_copied(dict(op.value)),
            key=key,
            namespace=namespace,
            created_at=now if before is None else before.created_at,
            updated_at=now,
        )

    def _search(self, op: SearchOp, query: Vector | None) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)
        _check_page(op.limit, op.offset)
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
            SearchItem(i.namespace, i.key, _copied(i.value), i.created_at, i.updated_at, score)
            for i, score in zip(found[page], scores[page], strict=True)
        ]

    def _scores(self, items: Sequence[Item], query: Vector) -> list[float | None]:
        """How near each item is: the best of its vectors, None without any."""
        vectors = [self._vectors.get(item.namespace, {}).get(item.key, {}).values() for item in items]
        similarities = iter(_cosine(query, [vector for some in vectors for vector in some]))
        return [max((next(similarities) for _ in some), default=None) for some in vectors]

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        _check_page(op.limit, op.offset)
        found = (ns for ns in self._data if matches_namespace(ns, op.match_conditions or ()))
        cut = {namespace if op.max_depth is None else namespace[: op.max_depth] for namespace in found}
        return sorted(cut)[op.offset : op.offset + op.limit]


def _check_page(limit: int, offset: int) -> None:
    if limit < 0 or offset < 0:
        raise ValueError(f"limit and offset cannot be negative, got limit={limit}, offset={offset}")


def _copy_of(item: Item) -> Item:
    return Item(
        value=_copied(item.value),
        key=item.key,
        namespace=item.namespace,
        created_at=item.created_at,
        updated_at=item.updated_at,
    )


def _copied(value: Any) -> Any:
    """`value` with containers of its own; what they hold is shared, for it may be anything."""
    if type(value) is dict:
        return {key: _copied(part) for key, part in value.items()}
    if type(value) is list:
        return [_copied(part) for part in value]
    return value


def _cosine(query: Vector, vectors: list[Vector]) -> list[float]:
    """The cosine of the angle between the query and each vector; 0 where one of them has no direction."""
    if not vectors:
        return []
    try:
        numpy = import_module("numpy")  # many times faster, and nothing that has to be installed
    except ImportError:
        return _plain_cosine(query, vectors)
    matrix, target = numpy.array(vectors, dtype=float), numpy.array(query, dtype=float)
    lengths = numpy.linalg.norm(matrix, axis=1) * numpy.linalg.norm(target)
    products = matrix @ target
    cosines = numpy.divide(products, lengths, out=numpy.zeros_like(products), where=lengths > 0)
    return cast("list[float]", cosines.tolist())


def _plain_cosine(query: Vector, vectors: list[Vector]) -> list[float]:
    norm = sqrt(sum(map(operator.mul, query, query)))
    cosines = []
    for vector in vectors:
        length = norm * sqrt(sum(map(operator.mul, vector, vector)))
        cosines.append(sum(map(operator.mul, query, vector)) / length if length else 0.0)
    return cosines
