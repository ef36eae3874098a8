"""Items in an SQLite file, for programs on an event loop: statements run in a thread of the store's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

from surestep._sql.run import SqliteRunner, connect
from surestep._sql.store.sweep import AsyncSwept
from surestep.store.base import TTLConfig
from surestep.store.base.batch import AsyncBatchedBaseStore
from surestep.store.sqlite.base import BaseSqliteStore, SqliteIndexConfig

if TYPE_CHECKING:
    import sqlite3

__all__ = ("AsyncSqliteStore",)


class AsyncSqliteStore(AsyncBatchedBaseStore, BaseSqliteStore, AsyncSwept):
    """A store in SQLite, like SqliteStore; what concurrent calls ask for is done in one transaction.

    conn: a connection of the aiosqlite package, or a sqlite3 one made with `check_same_thread=False`. The
        store belongs to the event loop that it is made on; from other threads the sync methods work too.
    The other parameters are those of SqliteStore.
    """

    def __init__(
        self,
        conn: sqlite3.Connection | Any,
        *,
        deserializer: Callable[[bytes | str], dict[str, Any]] | None = None,
        index: SqliteIndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        self._on(conn, deserializer, index, ttl)

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls, conn_string: str, *, index: SqliteIndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> AsyncIterator[AsyncSqliteStore]:
        """A store on the file (or ":memory:", or a "file:" URI), closed at the end of the `async with`
        block."""
        with closing(connect(conn_string)) as conn:
            store = cls(conn, index=index, ttl=ttl)
            try:
                yield store
            finally:
                await store._aclose()

    async def _aclose(self) -> None:
        await self.stop_ttl_sweeper()
        await self.stop()
        assert isinstance(self._runner, SqliteRunner)
        self._runner.close()

    async def setup(self) -> None:
        """Create or update the tables. Called by the first operation; safe to call at any time."""
        await self._runner.asetup()
