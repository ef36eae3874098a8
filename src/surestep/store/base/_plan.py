"""What a batch comes to: checked, without the writes that don't count, with its texts and their vectors.

Stores share this, so that they refuse the same and embed the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from surestep.store.base._match import check_filter
from surestep.store.base._ops import GetOp, ListNamespacesOp, Op, PutOp, SearchOp
from surestep.store.base.embed import Embeddings, ensure_embeddings, get_text_at_path, tokenize_path

if TYPE_CHECKING:
    from surestep.store.base import IndexConfig

Namespace = tuple[str, ...]
Place = tuple[Namespace, str]
Vector = Sequence[float]


class Index:
    """How a store finds by meaning, worked out from its config: who embeds, and which fields."""

    def __init__(self, config: IndexConfig) -> None:
        self.embeddings: Embeddings = ensure_embeddings(config.get("embed"))
        self.dims: int = config.get("dims", 0)
        # LangGraph's SQLite store reads its paths from `text_fields`.
        paths: Any = config.get("fields") or config.get("text_fields") or ["$"]
        self._fields = _tokenized(paths)

    def texts(self, op: PutOp) -> list[tuple[str, str]]:
        """What of an item is to be found by its meaning, each text with its path."""
        if op.index is False or op.value is None:
            return []
        texts = []
        for path, tokens in self._fields if op.index is None else _tokenized(op.index):
            found = get_text_at_path(op.value, tokens)
            texts += [(path if len(found) == 1 else f"{path}.{i}", text) for i, text in enumerate(found)]
        return texts


def _tokenized(paths: Iterable[str]) -> list[tuple[str, list[str] | str]]:
    return [(path, path if path == "$" else tokenize_path(path)) for path in paths]


@dataclass(slots=True)
class Plan:
    """A batch: all operations, the writes that count, and the texts that need a vector first."""

    ops: list[Op]
    index: Index | None
    puts: dict[Place, PutOp] = field(default_factory=dict)
    queries: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    places: list[tuple[Namespace, str, str]] = field(default_factory=list)

    def embed(self) -> Vectors:
        """The vectors of the queries and of the texts."""
        if self.index is None:
            return Vectors(self, [], [])
        embeddings = self.index.embeddings
        queries = [embeddings.embed_query(query) for query in self.queries]
        return Vectors(self, queries, embeddings.embed_documents(self.texts) if self.texts else [])

    async def aembed(self) -> Vectors:
        """The vectors of the queries and of the texts, worked out side by side."""
        if self.index is None or not (self.queries or self.texts):
            return Vectors(self, [], [])
        import asyncio

        embeddings = self.index.embeddings
        queries = await asyncio.gather(*[embeddings.aembed_query(query) for query in self.queries])
        return Vectors(self, queries, await embeddings.aembed_documents(self.texts) if self.texts else [])


class Vectors:
    """The vectors of a plan. Raises ValueError when they are not as many or not as long as they should be."""

    def __init__(self, plan: Plan, queries: Sequence[Vector], texts: Sequence[Vector]) -> None:
        if len(texts) != len(plan.texts):
            raise ValueError(
                f"The embed function gave {len(texts)} vectors for {len(plan.texts)} texts; one each is due."
            )
        dims = plan.index.dims if plan.index is not None else 0
        for vector in texts:
            if dims and len(vector) != dims:
                raise ValueError(
                    f"The embed function gave a vector of {len(vector)} numbers, and the index has dims={dims}."
                )
        self.queries: dict[str, Vector] = dict(zip(plan.queries, queries, strict=True))
        self.texts = texts

    def of(self, op: SearchOp) -> Vector | None:
        """The vector to search with, if the operation asks by meaning and the store can."""
        return self.queries.get(op.query) if op.query else None


def plan(ops: Iterable[Op], index: Index | None) -> Plan:
    """Check and order a batch. Raises ValueError for what is no operation, for a negative limit or offset and
    for a filter with an unknown operator."""
    made = Plan(list(ops), index)
    for op in made.ops:
        if isinstance(op, PutOp):
            made.puts[tuple(op.namespace), op.key] = op
        elif isinstance(op, SearchOp):
            _check_page(op)
            check_filter(op.filter)
            if op.query and index is not None and op.query not in made.queries:
                made.queries.append(op.query)
        elif isinstance(op, ListNamespacesOp):
            _check_page(op)
        elif not isinstance(op, GetOp):
            raise ValueError(
                f"Unknown operation type: {type(op)}. A store does GetOp, PutOp, SearchOp and ListNamespacesOp."
            )
    if index is not None:
        for (namespace, key), op in made.puts.items():
            for path, text in index.texts(op):
                made.texts.append(text)
                made.places.append((namespace, key, path))
    return made


def _check_page(op: SearchOp | ListNamespacesOp) -> None:
    if op.limit < 0 or op.offset < 0:
        raise ValueError(f"limit and offset cannot be negative, got limit={op.limit}, offset={op.offset}")
