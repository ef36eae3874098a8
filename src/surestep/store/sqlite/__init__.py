"""Items in an SQLite file. Several threads and processes can share one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from surestep._sql.run import SqliteRunner, connect
from surestep._sql.store.sweep import Swept
from surestep.store.base import TTLConfig
from surestep.store.sqlite.aio import AsyncSqliteStore
from surestep.store.sqlite.base import BaseSqliteStore, SqliteIndexConfig

if TYPE_CHECKING:
    import sqlite3

__all__ = ("AsyncSqliteStore", "SqliteStore")


class SqliteStore(BaseSqliteStore, Swept):
    """A store in SQLite, with time to live and search by meaning. Durable when a method returns; safe to use
    from several threads, loops and processes.

    conn: a connection made with `check_same_thread=False`. A saver may use the same one. The async methods
        work as well, in a thread.
    deserializer: makes the value of the JSON text; `json.loads` by default.
    index: makes `search(query=...)` find by meaning; vectors are compared in this process, by numpy where it
        is there. No extension of SQLite is needed.
    ttl: see TTLConfig. An item that has expired is never given, whatever `omit_expired` says. Reading starts
        the time to live anew only where it is asked for: by `refresh_ttl=True`, or by
        {"refresh_on_read": True} here.
    """

    _runner: SqliteRunner

    def __init__(
        self,
        conn: sqlite3.Connection,
        *,
        deserializer: Callable[[bytes | str], dict[str, Any]] | None = None,
        index: SqliteIndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        self._on(conn, deserializer, index, ttl)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, index: SqliteIndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> Iterator[SqliteStore]:
        """A store on the file (or ":memory:", or a "file:" URI), closed at the end of the `with` block."""
        with closing(connect(conn_string)) as conn:
            store = cls(conn, index=index, ttl=ttl)
            try:
                yield store
            finally:
                store._close()

    def _close(self) -> None:
        self.stop_ttl_sweeper()
        self._runner.close()

    def setup(self) -> None:
        """Create or update the tables. Called by the first operation; safe to call at any time."""
        self._runner.setup()
