"""A cache in an SQLite file: several threads and processes share it, and it outlives them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surestep.cache.base import BaseCache, FullKey, Namespace, ValueT
from surestep.cache.base._names import joined

if TYPE_CHECKING:
    from surestep.checkpoint.serde.base import SerializerProtocol

__all__ = ("SqliteCache",)

WAIT = 30.0  # seconds that a statement waits for another process to finish its own

_SCHEMA = """
CREATE TABLE IF NOT EXISTS cache (
    ns TEXT NOT NULL,
    key TEXT NOT NULL,
    expiry REAL,
    encoding TEXT NOT NULL,
    val BLOB NOT NULL,
    PRIMARY KEY (ns, key)
) WITHOUT ROWID
"""


class _File:
    """The file of a cache, closed with the last cache that uses it."""

    def __init__(self, path: str) -> None:
        import sqlite3

        self.lock = threading.Lock()
        self.connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=NORMAL")  # what a crash may lose is worked out again
        self.connection.execute(_SCHEMA)

    def write(self, statements: Sequence[tuple[str, Iterable[Any]]]) -> None:
        """All of it in one transaction, or nothing."""
        with self.lock, self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            for statement, rows in statements:
                self.connection.executemany(statement, rows)

    def __del__(self) -> None:
        if hasattr(self, "connection"):
            self.connection.close()


class SqliteCache(BaseCache[ValueT]):
    """A cache in the file `path` (":memory:": in this process). Safe between threads and between processes.

    What has expired is not found any more, and is deleted when the next entries are stored.
    """

    def __init__(self, *, path: str, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._file = _File(path)

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """The values of those keys that are there and have not expired."""
        now, file = time.time(), self._file
        found: dict[FullKey, tuple[str, bytes]] = {}
        with file.lock:
            for namespace, key in keys:
                row = file.connection.execute(
                    "SELECT encoding, val FROM cache WHERE ns = ? AND key = ? AND (expiry IS NULL OR expiry > ?)",
                    (_text(namespace), key, now),
                ).fetchone()
                if row is not None:
                    found[namespace, key] = row
        return {full: self.serde.loads_typed(stored) for full, stored in found.items()}

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """As `get`, in a thread."""
        return await _in_thread(self.get, keys)  # type: ignore[no-any-return]

    def set(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Store values, each with its seconds to live (None: for ever)."""
        now = time.time()
        rows = [
            (_text(namespace), key, None if ttl is None else now + ttl, *self.serde.dumps_typed(value))
            for (namespace, key), (value, ttl) in pairs.items()
        ]
        self._file.write(
            [
                ("DELETE FROM cache WHERE expiry <= ?", [(now,)]),
                ("INSERT OR REPLACE INTO cache (ns, key, expiry, encoding, val) VALUES (?, ?, ?, ?, ?)", rows),
            ]
        )

    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """As `set`, in a thread."""
        await _in_thread(self.set, pairs)

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is in these namespaces; everything for None."""
        if namespaces is None:
            self._file.write([("DELETE FROM cache", [()])])
        else:
            self._file.write([("DELETE FROM cache WHERE ns = ?", [(_text(namespace),) for namespace in namespaces])])

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """As `clear`, in a thread."""
        await _in_thread(self.clear, namespaces)


def _text(namespace: Namespace) -> str:
    return joined(namespace, ",")


async def _in_thread(function: Any, argument: Any) -> Any:
    import asyncio

    return await asyncio.to_thread(function, argument)
