"""The contract of a cache: values under a namespace and a key, each for a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from typing import Self

    from surestep.checkpoint.serde.base import SerializerProtocol

__all__ = ("BaseCache", "FullKey", "Namespace", "ValueT")

ValueT = TypeVar("ValueT")

Namespace: TypeAlias = tuple[str, ...]
"""Where a family of entries lives."""

FullKey: TypeAlias = tuple[Namespace, str]
"""Where an entry lives: its namespace and its key."""


class BaseCache(ABC, Generic[ValueT]):
    """Base of caches. Values go through `serde`, by default a JsonPlusSerializer that never pickles."""

    serde: SerializerProtocol

    def __init__(self, *, serde: SerializerProtocol | None = None) -> None:
        if serde is None:
            from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer

            serde = JsonPlusSerializer(pickle_fallback=False)
        self.serde = serde

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...] | type]) -> Self:
        """The same cache with a serializer that revives these types too, if its serializer has such a list."""
        from copy import copy

        extend = getattr(self.serde, "with_msgpack_allowlist", None)
        serde = self.serde if extend is None else extend(extra_allowlist)
        if serde is self.serde:
            return self
        twin = copy(self)
        twin.serde = serde
        return twin

    @abstractmethod
    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """The values of those keys that are there and have not expired."""

    @abstractmethod
    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """The values of those keys that are there and have not expired."""

    @abstractmethod
    def set(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Store values, each with its seconds to live (None: for ever)."""

    @abstractmethod
    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Store values, each with its seconds to live (None: for ever)."""

    @abstractmethod
    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is in these namespaces; everything for None."""

    @abstractmethod
    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is in these namespaces; everything for None."""
