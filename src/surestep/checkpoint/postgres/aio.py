"""Checkpoints in a PostgreSQL database, for programs on an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Union

from surestep._sql.postgres.connect import PoolConfig, aopened
from surestep._sql.postgres.run import AsyncPostgresRunner
from surestep.checkpoint.postgres.base import BasePostgresSaver

if TYPE_CHECKING:
    from psycopg import AsyncConnection, AsyncPipeline
    from psycopg_pool import AsyncConnectionPool

    from surestep.checkpoint.serde.base import SerializerProtocol

__all__ = ("AsyncPostgresSaver", "Conn")

Conn = Union["AsyncConnection[Any]", "AsyncConnectionPool[Any]"]
"""What a saver works on."""


class AsyncPostgresSaver(BasePostgresSaver):
    """Checkpoints in PostgreSQL, like PostgresSaver. A cancelled caller is held until its write has happened or never
    will.

    conn: an AsyncConnection of psycopg, or an AsyncConnectionPool. The saver belongs to the event loop that it is made
        on; from other threads the sync methods work too.
    The other parameters are those of PostgresSaver.
    """

    _runner: AsyncPostgresRunner
    _runs = AsyncPostgresRunner

    def __init__(
        self,
        conn: Conn,
        pipe: AsyncPipeline | None = None,
        serde: SerializerProtocol | None = None,
        *,
        schema: str | None = None,
        tenant: str | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._on(conn, pipe, schema, tenant)

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,
        serde: SerializerProtocol | None = None,
        schema: str | None = None,
        tenant: str | None = None,
        pool_config: PoolConfig | None = None,
        prepare_threshold: int | None = None,
    ) -> AsyncIterator[AsyncPostgresSaver]:
        """A saver on a connection of its own, or with `pool_config` on a pool; see PostgresSaver."""
        async with aopened(conn_string, pool_config, prepare_threshold=prepare_threshold) as (conn, connect):
            saver = cls._made(conn, connect, serde, schema=schema, tenant=tenant)
            try:
                yield saver
            finally:
                await saver._runner.aclose()

    async def setup(self) -> None:
        """Create or update the tables, as PostgresSaver does."""
        await self._runner.asetup()
