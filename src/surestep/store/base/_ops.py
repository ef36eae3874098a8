"""What a store holds and what it is asked to do. Import these names from `surestep.store.base`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

NamespacePath: TypeAlias = tuple[str | Literal["*"], ...]
"""A namespace pattern: "*" stands for any one label."""

NamespaceMatchType: TypeAlias = Literal["prefix", "suffix"]
"""Which end of a namespace a pattern is held to."""

# By another name, because Item has a method called dict.
_Dict: TypeAlias = dict[str, Any]


class Item:
    """A stored value with its place and its times (UTC)."""

    __slots__ = ("created_at", "key", "namespace", "updated_at", "value")

    def __init__(
        self,
        *,
        value: _Dict,
        key: str,
        namespace: tuple[str, ...],
        created_at: datetime,
        updated_at: datetime,
    ) -> None:
        self.value = value
        self.key = key
        self.namespace = tuple(namespace)
        self.created_at = _moment(created_at)
        self.updated_at = _moment(updated_at)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and (
            self.value == other.value
            and self.key == other.key
            and self.namespace == other.namespace
            and self.created_at == other.created_at
            and self.updated_at == other.updated_at
        )

    def __hash__(self) -> int:
        return hash((self.namespace, self.key))

    def dict(self) -> _Dict:
        """The item as JSON-able data: the namespace as a list, the times as ISO 8601 text."""
        return {
            "namespace": list(self.namespace),
            "key": self.key,
            "value": self.value,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.dict().items())
        return f"{type(self).__name__}({fields})"


def _moment(value: datetime | str) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


class SearchItem(Item):
    """An item that a search found. `score` says how near it is to the query, higher is nearer; None without
    one."""

    __slots__ = ("score",)

    def __init__(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: _Dict,
        created_at: datetime,
        updated_at: datetime,
        score: float | None = None,
    ) -> None:
        super().__init__(value=value, key=key, namespace=namespace, created_at=created_at, updated_at=updated_at)
        self.score = score

    def dict(self) -> _Dict:
        """The item as JSON-able data, with its score."""
        return {**super().dict(), "score": self.score}


class GetOp(NamedTuple):
    """Read one item. `refresh_ttl`: whether reading it starts its time to live anew."""

    namespace: tuple[str, ...]
    key: str
    refresh_ttl: bool = True


class SearchOp(NamedTuple):
    """Find items below a namespace: `filter` by their values, `query` by nearness of their meaning."""

    namespace_prefix: tuple[str, ...]
    filter: dict[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    query: str | None = None
    refresh_ttl: bool = True


class PutOp(NamedTuple):
    """Write an item, or delete it (value None). `index`: paths to embed for search, None for the store's own,
    False for none. `ttl`: minutes to live, None for ever."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    index: Literal[False] | list[str] | None = None  # type: ignore[assignment]
    ttl: float | None = None


class MatchCondition(NamedTuple):
    """A pattern for the beginning ("prefix") or the end ("suffix") of a namespace."""

    match_type: NamespaceMatchType
    path: NamespacePath


class ListNamespacesOp(NamedTuple):
    """List namespaces that meet every condition, cut to `max_depth` labels."""

    match_conditions: tuple[MatchCondition, ...] | None = None
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


Op: TypeAlias = GetOp | SearchOp | PutOp | ListNamespacesOp
"""Anything a store can be asked to do."""

Result: TypeAlias = Item | list[Item] | list[SearchItem] | list[tuple[str, ...]] | None
"""What an operation gives: GetOp an Item or None, SearchOp SearchItems, ListNamespacesOp namespaces, PutOp
None."""


def copied(value: Any) -> Any:
    """`value` with containers of its own; what they hold is shared, for it may be anything."""
    if type(value) is dict:
        return {key: copied(part) for key, part in value.items()}
    if type(value) is list:
        return [copied(part) for part in value]
    return value
