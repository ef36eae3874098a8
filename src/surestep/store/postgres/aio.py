"""Items in a PostgreSQL database, for programs on an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from surestep._sql.postgres.connect import PoolConfig, aconnected
from surestep._sql.postgres.run import AsyncPostgresRunner
from surestep._sql.store.sweep import AsyncSwept
from surestep.store.base import TTLConfig
from surestep.store.base.batch import AsyncBatchedBaseStore
from surestep.store.postgres.base import BasePostgresStore, PostgresIndexConfig

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from psycopg import AsyncConnection, AsyncPipeline
    from psycopg_pool import AsyncConnectionPool

__all__ = ("AsyncPostgresStore",)


class AsyncPostgresStore(AsyncBatchedBaseStore, BasePostgresStore, AsyncSwept):
    """A store in PostgreSQL, like PostgresStore; what concurrent calls ask for is done in one transaction.

    conn: an AsyncConnection of psycopg, or an AsyncConnectionPool. The store belongs to the event loop that it is
        made on; from other threads the sync methods work too.
    The other parameters are those of PostgresStore.
    """

    _runner: AsyncPostgresRunner
    _runs = AsyncPostgresRunner

    def __init__(
        self,
        conn: AsyncConnection[Any] | AsyncConnectionPool[Any],
        *,
        pipe: AsyncPipeline | None = None,
        deserializer: Callable[[bytes | str], dict[str, Any]] | None = None,
        index: PostgresIndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        self.pipe = pipe
        self._on(conn, deserializer, index, ttl)

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,
        pool_config: PoolConfig | None = None,
        index: PostgresIndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> AsyncIterator[AsyncPostgresStore]:
        """A store on a connection of its own, or with `pool_config` on a pool of them; closed at the end of
        the `async with` block."""
        async with aconnected(conn_string, pool_config, pipeline=pipeline) as conn:
            store = cls(conn, index=index, ttl=ttl)
            try:
                yield store
            finally:
                await store.stop_ttl_sweeper()
                await store.stop()

    async def setup(self) -> None:
        """Create or update the tables, as PostgresStore does."""
        await self._runner.asetup()

    def _cursor(self, *, pipeline: bool = False) -> AbstractAsyncContextManager[Any]:
        from psycopg.rows import dict_row

        return self._runner.cursor(row_factory=dict_row)
