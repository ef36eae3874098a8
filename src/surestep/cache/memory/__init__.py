"""A cache in the memory of the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from surestep.cache.base import BaseCache, FullKey, Namespace, ValueT

if TYPE_CHECKING:
    from surestep.checkpoint.serde.base import SerializerProtocol

__all__ = ("InMemoryCache",)

FEW = 1000  # entries that need no sweeping


class InMemoryCache(BaseCache[ValueT]):
    """A cache that is gone with the process. Values are serialized, so nobody shares them. Safe between
    threads."""

    def __init__(self, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._cache: dict[Namespace, dict[str, tuple[str, bytes, float | None]]] = {}
        self._lock = threading.RLock()
        self._sweep_after = FEW  # so many more entries until what has expired is looked for

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """The values of those keys that are there and have not expired."""
        found = {}
        if keys:
            now = time.time()
            with self._lock:
                for namespace, key in keys:
                    entry = self._cache.get(namespace, {}).get(key)
                    if entry is None:
                        continue
                    kind, data, expires = entry
                    if expires is not None and expires <= now:
                        del self._cache[namespace][key]
                    else:
                        found[namespace, key] = (kind, data)
        return {full: self.serde.loads_typed(stored) for full, stored in found.items()}

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """The values of those keys that are there and have not expired."""
        return self.get(keys)

    def set(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Store values, each with its seconds to live (None: for ever)."""
        now = time.time()
        entries = {
            full: (*self.serde.dumps_typed(value), None if ttl is None else now + ttl)
            for full, (value, ttl) in pairs.items()
        }
        with self._lock:
            for (namespace, key), entry in entries.items():
                self._cache.setdefault(namespace, {})[key] = entry
            self._sweep_after -= len(entries)
            if self._sweep_after <= 0:
                self._sweep(now)

    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Store values, each with its seconds to live (None: for ever)."""
        self.set(pairs)

    def _sweep(self, now: float) -> None:
        """Forget what has expired and nobody has asked for. Done whenever there may be twice as much as after the last
        time, so that it costs little and what has expired never takes more room than what has not."""
        left = 0
        for namespace, entries in [*self._cache.items()]:
            for key in [key for key, (_, _, expires) in entries.items() if expires is not None and expires <= now]:
                del entries[key]
            left += len(entries)
            if not entries:
                del self._cache[namespace]
        self._sweep_after = max(FEW, left)

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is in these namespaces; everything for None."""
        with self._lock:
            if namespaces is None:
                self._cache.clear()
            else:
                for namespace in namespaces:
                    self._cache.pop(namespace, None)

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is in these namespaces; everything for None."""
        self.clear(namespaces)
