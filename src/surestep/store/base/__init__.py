"""The contract of a store, and the words it is spoken to with.

Rules for every store:
1. `batch` answers the operations in their order; what it reads it reads before it writes, and of several
   writes to a
   key the last one counts.
2. A filter compares by type: numbers as numbers, text as text, and a comparison of anything else, or with a
   missing
   field, is false. A missing field equals None. A dict as a value means "contains": each of its keys is a
   filter.
3. An item that is overwritten keeps its `created_at`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, cast, final

from surestep.store.base._ops import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    NamespaceMatchType,
    NamespacePath,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from surestep.store.base.embed import Embeddings, ensure_embeddings, get_text_at_path, tokenize_path

if TYPE_CHECKING:
    from surestep.store.base.embed import AEmbeddingsFunc, EmbeddingsFunc

__all__ = [
    "BaseStore",
    "Embeddings",
    "GetOp",
    "IndexConfig",
    "InvalidNamespaceError",
    "Item",
    "ListNamespacesOp",
    "MatchCondition",
    "NamespaceMatchType",
    "NamespacePath",
    "NotProvided",
    "Op",
    "PutOp",
    "Result",
    "SearchItem",
    "SearchOp",
    "TTLConfig",
    "ensure_embeddings",
    "get_text_at_path",
    "tokenize_path",
    "validate_op_namespace",
]

for _class in (GetOp, Item, ListNamespacesOp, MatchCondition, PutOp, SearchItem, SearchOp):
    _class.__module__ = __name__
del _class


@final
class NotProvided:
    """The type of NOT_PROVIDED: a time to live that was left out, which is not the same as None (for
    ever)."""

    __slots__ = ()

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_PROVIDED: Final = NotProvided()
NOT_GIVEN: Final = NOT_PROVIDED


class TTLConfig(TypedDict, total=False):
    """How long items live: `default_ttl` in minutes, whether reading starts it anew (`refresh_on_read`,
    True), whether expired items are hidden before they are swept (`omit_expired`), and how often to sweep
    (minutes)."""

    refresh_on_read: bool
    omit_expired: bool
    default_ttl: float | None
    sweep_interval_minutes: int | None


class IndexConfig(TypedDict, total=False):
    """How items are found by meaning: `embed` makes vectors of `dims` numbers of the texts at `fields`.

    embed: an Embeddings, a function of a list of texts (sync or async), or "provider:model" (needs
    langchain).
    fields: paths as in `get_text_at_path`; the whole item by default.
    """

    dims: int
    embed: Embeddings | EmbeddingsFunc | AEmbeddingsFunc | str
    fields: list[str] | None


class InvalidNamespaceError(ValueError):
    """Raised when a namespace cannot be used: labels are non-empty text without "." and NUL, and an item
    needs at least one, the first not "langgraph"."""


class BaseStore(ABC):
    """A store of items under namespaces. Subclasses implement `batch` and `abatch`; all else is said with
    these."""

    __slots__ = ("__weakref__",)

    supports_ttl: bool = False
    """Whether items may have a time to live."""

    ttl_config: TTLConfig | None = None

    @abstractmethod
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the operations; their results, in order. See the rules at the top of the module."""

    @abstractmethod
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the operations; their results, in order."""

    def _do(self, op: Op) -> Any:
        return self.batch([op])[0]

    async def _ado(self, op: Op) -> Any:
        return (await self.abatch([op]))[0]

    def get(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """The item, or None. `refresh_ttl`: start its time to live anew (None: as the store is
        configured)."""
        return cast("Item | None", self._do(self._get_op(namespace, key, refresh_ttl)))

    async def aget(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """The item, or None. `refresh_ttl`: start its time to live anew (None: as the store is
        configured)."""
        return cast("Item | None", await self._ado(self._get_op(namespace, key, refresh_ttl)))

    def search(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """The items at and below a namespace; () is all.

        filter: {field: value} or {field: {"$gt": value}} with $eq $ne $gt $gte $lt $lte; all must hold.
        query: nearest in meaning first, in a store with an index. Raises ValueError for an unknown operator.
        """
        op = self._search_op(namespace_prefix, filter, limit, offset, query, refresh_ttl)
        return cast("list[SearchItem]", self._do(op))

    async def asearch(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """The items at and below a namespace, as `search` finds them."""
        op = self._search_op(namespace_prefix, filter, limit, offset, query, refresh_ttl)
        return cast("list[SearchItem]", await self._ado(op))

    def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_GIVEN,
    ) -> None:
        """Store a value, in place of the one before.

        index: paths to embed for search, None for the store's own, False for none.
        ttl: minutes to live, None for ever; left out, the store's default. Raises InvalidNamespaceError, and
        NotImplementedError for a ttl in a store without.
        """
        self._do(self._put_op(namespace, key, value, index, ttl))

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_GIVEN,
    ) -> None:
        """Store a value, in place of the one before, as `put` does."""
        await self._ado(self._put_op(namespace, key, value, index, ttl))

    def delete(self, namespace: tuple[str, ...], key: str) -> None:
        """Delete the item, if it is there."""
        self._do(PutOp(_namespace(namespace), str(key), None))

    async def adelete(self, namespace: tuple[str, ...], key: str) -> None:
        """Delete the item, if it is there."""
        await self._ado(PutOp(_namespace(namespace), str(key), None))

    def list_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """The namespaces that hold items, sorted, each once. "*" in `prefix` and `suffix` stands for any
        label; `max_depth` cuts longer ones."""
        op = _list_op(prefix, suffix, max_depth, limit, offset)
        return cast("list[tuple[str, ...]]", self._do(op))

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """The namespaces that hold items, as `list_namespaces` lists them."""
        op = _list_op(prefix, suffix, max_depth, limit, offset)
        return cast("list[tuple[str, ...]]", await self._ado(op))

    def _refresh(self, refresh_ttl: bool | None) -> bool:
        if refresh_ttl is not None:
            return refresh_ttl
        return (self.ttl_config or {}).get("refresh_on_read", True)

    def _get_op(self, namespace: tuple[str, ...], key: str, refresh_ttl: bool | None) -> GetOp:
        return GetOp(_namespace(namespace), str(key), self._refresh(refresh_ttl))

    def _search_op(
        self,
        prefix: tuple[str, ...],
        filter: dict[str, Any] | None,
        limit: int,
        offset: int,
        query: str | None,
        refresh_ttl: bool | None,
    ) -> SearchOp:
        return SearchOp(_namespace(prefix), filter, limit, offset, query, self._refresh(refresh_ttl))

    def _put_op(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None,
        ttl: float | NotProvided | None,
    ) -> PutOp:
        namespace = _namespace(namespace)
        if not namespace:
            raise InvalidNamespaceError("Namespace cannot be empty: an item needs at least one label.")
        if namespace[0] == "langgraph":
            raise InvalidNamespaceError(f'The first label cannot be "langgraph", which is reserved: {namespace}')
        if isinstance(ttl, NotProvided):
            ttl = (self.ttl_config or {}).get("default_ttl")
        elif ttl is not None and not self.supports_ttl:
            raise NotImplementedError(
                f"TTL is not supported by {type(self).__name__}. Use a store that supports it, or ttl=None."
            )
        return PutOp(namespace, str(key), value, index, ttl)


def _list_op(
    prefix: NamespacePath | None,
    suffix: NamespacePath | None,
    max_depth: int | None,
    limit: int,
    offset: int,
) -> ListNamespacesOp:
    conditions = []
    if prefix:
        conditions.append(MatchCondition("prefix", _namespace(prefix)))
    if suffix:
        conditions.append(MatchCondition("suffix", _namespace(suffix)))
    return ListNamespacesOp(tuple(conditions), max_depth, limit, offset)


def validate_op_namespace(op: Op) -> None:
    """Raise InvalidNamespaceError when a namespace in `op` has a label that cannot be one."""
    if isinstance(op, (GetOp, PutOp)):
        _namespace(op.namespace)
    elif isinstance(op, SearchOp):
        _namespace(op.namespace_prefix)
    elif isinstance(op, ListNamespacesOp):
        for condition in op.match_conditions or ():
            _namespace(condition.path)


def _namespace(namespace: tuple[str, ...]) -> tuple[str, ...]:
    """`namespace` as a tuple of labels, each of which may be one."""
    if isinstance(namespace, str):
        raise InvalidNamespaceError(f"A namespace is a tuple of labels, got text: write ({namespace!r},)")
    for label in namespace:
        if not isinstance(label, str):
            problem = f"must be text, got {type(label).__name__}"
        elif not label:
            problem = "cannot be empty"
        elif "." in label:
            problem = "cannot contain periods ('.')"
        elif "\0" in label:
            problem = "cannot contain NUL"
        else:
            continue
        raise InvalidNamespaceError(f"Invalid namespace label {label!r} in {tuple(namespace)}: labels {problem}.")
    return tuple(namespace)
