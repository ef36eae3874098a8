"""Checkpoints in a PostgreSQL database. Needs psycopg: pip install "surestep[postgres]"."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Union

from surestep._sql.postgres.connect import PoolConfig, opened
from surestep._sql.postgres.run import PostgresRunner
from surestep.checkpoint.postgres.base import BasePostgresSaver, grant_sql, setup_sql

if TYPE_CHECKING:
    from psycopg import Connection, Pipeline
    from psycopg_pool import ConnectionPool

    from surestep.checkpoint.serde.base import SerializerProtocol

__all__ = ("BasePostgresSaver", "Conn", "PoolConfig", "PostgresSaver", "grant_sql", "setup_sql")

Conn = Union["Connection[Any]", "ConnectionPool[Any]"]
"""What a saver works on."""


class PostgresSaver(BasePostgresSaver):
    """Checkpoints in PostgreSQL. Durable when a method returns; safe to use from several threads and processes. Call
    `setup()` once for a database.

    conn: a psycopg connection (one transaction at a time) or a psycopg_pool pool (as many as it has connections). On a
        connection with a transaction open, what is saved becomes part of it.
    pipe: a pipeline that the connection is in, if any.
    schema: the schema of the database where the tables are; by default found by the search path.
    tenant: whose rows these are; the rows of others are out of reach.

    The async methods work as well, in threads.
    """

    _runner: PostgresRunner
    _runs = PostgresRunner

    def __init__(
        self,
        conn: Conn,
        pipe: Pipeline | None = None,
        serde: SerializerProtocol | None = None,
        *,
        schema: str | None = None,
        tenant: str | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._on(conn, pipe, schema, tenant)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,
        serde: SerializerProtocol | None = None,
        schema: str | None = None,
        tenant: str | None = None,
        pool_config: PoolConfig | None = None,
        prepare_threshold: int | None = None,
    ) -> Iterator[PostgresSaver]:
        """A saver on a connection of its own, which is made again when it was cut, or with `pool_config` on a pool of
        them; closed at the end of the `with` block.

        pipeline: for LangGraph's sake; transactions are sent in as few round trips as possible anyway.
        prepare_threshold: after how many uses a statement is prepared on the server. None: never, as it must be behind
            a pooler that gives a server's connection to somebody else after each transaction.
        """
        with opened(conn_string, pool_config, prepare_threshold=prepare_threshold) as (conn, connect):
            saver = cls._made(conn, connect, serde, schema=schema, tenant=tenant)
            try:
                yield saver
            finally:
                saver._runner.close()

    def setup(self) -> None:
        """Create or update the tables. Several processes may do so at once, also within a transaction."""
        self._runner.setup()
