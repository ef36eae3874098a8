"""A cache in Redis or Valkey: several machines share it. Needs a client: pip install "surestep[redis]"."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from surestep._calls import Calls, adriven, driven, itself
from surestep.cache.base import BaseCache, FullKey, Namespace, ValueT
from surestep.cache.base._names import joined

if TYPE_CHECKING:
    from surestep.checkpoint.serde.base import SerializerProtocol

__all__ = ("RedisCache",)

R = TypeVar("R")

SCANNED = 1000  # keys that the server looks at in one go when a namespace is cleared

log = logging.getLogger(__name__)


class RedisCache(BaseCache[ValueT]):
    """A cache in Redis. What it holds is forgotten by the server when its time is over.

    redis: a client of the `redis` or `valkey` package, which must not decode responses. With a synchronous
        client the async methods work in a thread; a client of `redis.asyncio` has the async methods only.
    prefix: what the keys begin with. Caches with different prefixes don't see each other.

    A server that cannot be reached is as good as empty: nothing is found, nothing is stored, and a warning is
    logged. An entry that cannot be read is not found. Values are as safe as the server: whoever can write to
    it chooses what is found.
    """

    def __init__(
        self, redis: Any, *, serde: SerializerProtocol | None = None, prefix: str = "langgraph:cache:"
    ) -> None:
        super().__init__(serde=serde)
        pool = getattr(redis, "connection_pool", None)
        if getattr(pool, "connection_kwargs", {}).get("decode_responses"):
            raise ValueError(
                "This client decodes responses, and what a cache stores is bytes. Make it with decode_responses=False."
            )
        self.redis = redis
        self.prefix = prefix
        self._is_async = inspect.iscoroutinefunction(getattr(redis, "execute_command", None))

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """The values of those keys that are there and have not expired."""
        return self._driven(self._get(keys), {})

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """The values of those keys that are there and have not expired."""
        return await self._adriven(self._get(keys), {})

    def set(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Store values, each with its seconds to live (None: for ever)."""
        self._driven(self._set(self._entries(pairs)), None)

    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Store values, each with its seconds to live (None: for ever)."""
        await self._adriven(self._set(self._entries(pairs)), None)

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is in these namespaces; everything with this prefix for None."""
        self._driven(self._clear(namespaces), None)

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is in these namespaces; everything with this prefix for None."""
        await self._adriven(self._clear(namespaces), None)

    # ---- what is said to the server ----
    # Generators that yield what the client's methods give: a result, or something to await.

    def _make_key(self, namespace: Namespace, key: str) -> str:
        return self.prefix + joined([*namespace, key], ":")

    def _get(self, keys: Sequence[FullKey]) -> Calls[dict[FullKey, ValueT]]:
        if not keys:
            return {}
        stored = yield self.redis.mget([self._make_key(*full) for full in keys])
        found = {}
        for full, data in zip(keys, stored, strict=True):
            if data is None:
                continue
            tag, _, value = data.partition(b":")
            try:
                found[full] = self.serde.loads_typed((tag.decode(), value))
            except Exception:
                log.warning("An entry of the cache cannot be read and counts as not there: %s", full, exc_info=True)
        return found

    def _entries(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> list[tuple[str, bytes, int | None]]:
        entries = []
        for full, (value, ttl) in pairs.items():
            tag, data = self.serde.dumps_typed(value)
            entries.append((self._make_key(*full), b"%b:%b" % (tag.encode(), data), ttl))
        return entries

    def _set(self, entries: Sequence[tuple[str, bytes, int | None]]) -> Calls[None]:
        if not entries:
            return
        pipeline = self.redis.pipeline(transaction=False)
        for key, data, ttl in entries:
            if ttl is None:
                pipeline.set(key, data)
            elif ttl > 0:
                pipeline.set(key, data, px=max(1, int(ttl * 1000)))
            else:
                pipeline.delete(key)
        yield pipeline.execute()

    def _clear(self, namespaces: Sequence[Namespace] | None) -> Calls[None]:
        if namespaces is None:
            yield from self._forget(self.prefix, whole=True)
            return
        for namespace in namespaces:
            # A key has no ":" of its own: what has one more lies in a namespace below.
            yield from self._forget(self._make_key(namespace, "")[:-1], whole=False)

    def _forget(self, start: str, *, whole: bool) -> Calls[None]:
        pattern, cursor, begin = re.sub(r"([*?\[\]\\^-])", r"\\\1", start) + "*", 0, start.encode()
        while True:
            cursor, keys = yield self.redis.scan(cursor, match=pattern, count=SCANNED)
            doomed = [key for key in keys if whole or b":" not in key.removeprefix(begin)]
            if doomed:
                yield self.redis.unlink(*doomed)
            if not int(cursor):
                return

    # ---- who says it ----

    def _driven(self, calls: Calls[R], otherwise: R) -> R:
        if self._is_async:
            raise TypeError(
                "This cache has a client of redis.asyncio, which only the async methods can use. Use aget, aset and "
                "aclear, or give the cache a redis.Redis."
            )
        return driven(self._guarded(calls, otherwise), itself)

    async def _adriven(self, calls: Calls[R], otherwise: R) -> R:
        if not self._is_async:
            import asyncio

            return await asyncio.to_thread(self._driven, calls, otherwise)
        return await adriven(self._guarded(calls, otherwise), itself)

    def _guarded(self, calls: Calls[R], otherwise: R) -> Calls[R]:
        """The calls, with a server that cannot be reached counted as an empty one."""
        try:
            return (yield from calls)
        except Exception as error:
            names = {kind.__name__ for kind in type(error).__mro__}
            if not names & {"RedisError", "ValkeyError", "OSError"}:
                raise
            log.warning("The cache's server cannot be used: %s", error)
            return otherwise
