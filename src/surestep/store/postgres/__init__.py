"""Items in a PostgreSQL database. Needs psycopg: pip install "surestep[postgres]"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from surestep._sql.postgres.connect import PoolConfig, connected
from surestep._sql.postgres.run import PostgresRunner
from surestep._sql.store.sweep import Swept
from surestep.store.base import TTLConfig
from surestep.store.postgres.aio import AsyncPostgresStore
from surestep.store.postgres.base import BasePostgresStore, PostgresIndexConfig

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from psycopg import Connection, Pipeline
    from psycopg_pool import ConnectionPool

__all__ = ("AsyncPostgresStore", "PoolConfig", "PostgresStore")


class PostgresStore(BasePostgresStore, Swept):
    """A store in PostgreSQL, with time to live and search by meaning. Call `setup()` once for a database.

    conn: a psycopg connection (one transaction at a time) or a psycopg_pool pool (several at once).
    pipe: a pipeline that the connection is in, if any.
    deserializer: makes the value of the JSON text; `json.loads` by default.
    index: makes `search(query=...)` find by meaning; needs the extension pgvector on the server.
    ttl: see TTLConfig. An item that has expired is never given, whatever `omit_expired` says.
    """

    _runner: PostgresRunner
    _runs = PostgresRunner

    def __init__(
        self,
        conn: Connection[Any] | ConnectionPool[Any],
        *,
        pipe: Pipeline | None = None,
        deserializer: Callable[[bytes | str], dict[str, Any]] | None = None,
        index: PostgresIndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        self.pipe = pipe
        self._on(conn, deserializer, index, ttl)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,
        pool_config: PoolConfig | None = None,
        index: PostgresIndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> Iterator[PostgresStore]:
        """A store on a connection of its own, or with `pool_config` on a pool of them; closed at the end of
        the `with` block."""
        with connected(conn_string, pool_config, pipeline=pipeline) as conn:
            store = cls(conn, index=index, ttl=ttl)
            try:
                yield store
            finally:
                store._close()

    def _close(self) -> None:
        self.stop_ttl_sweeper()
        self._runner.close()

    def setup(self) -> None:
        """Create or update the tables. Two processes may do so at once. In a database that LangGraph has set
        up, the column `ttl_minutes` gets a type that holds fractions, for which the table is rewritten."""
        self._runner.setup()

    def _cursor(self, *, pipeline: bool = False) -> AbstractContextManager[Any]:
        from psycopg.rows import dict_row

        return self._runner.cursor(row_factory=dict_row)
