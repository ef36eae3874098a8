"""Checkpoints in an SQLite file: the embedded default. Several threads and processes can share one file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from surestep._sql.dialect import SQLITE
from surestep._sql.run import SqliteRunner, connect
from surestep._sql.saver import SqlSaver

if TYPE_CHECKING:
    import sqlite3

    from surestep.checkpoint.serde.base import SerializerProtocol

__all__ = ("SqliteSaver",)


class SqliteSaver(SqlSaver):
    """Checkpoints in SQLite. Durable when a method returns; safe to use from several threads, loops and
    processes.

    `conn`: a connection made with `check_same_thread=False`, which the saver needs for itself. Its database
    is switched to write-ahead logging; its `synchronous` setting stays (FULL by default: a power cut loses
    nothing that was reported as saved). The tables are called `surestep_...`; others in the file,
    LangGraph's too, are left alone. The async methods work as well, in a thread.
    """

    _runner: SqliteRunner

    def __init__(self, conn: sqlite3.Connection, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(SqliteRunner(conn), SQLITE, serde)
        self.conn = conn

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str) -> Iterator[SqliteSaver]:
        """A saver on the file (or ":memory:", or a "file:" URI), closed at the end of the `with` block."""
        saver = cls(connect(conn_string))
        try:
            yield saver
        finally:
            saver._runner.close()

    def setup(self) -> None:
        """Create or update the tables. Called by the first operation; safe to call at any time."""
        self._runner.setup()

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """A cursor on the saver's connection, which waits meanwhile; with `transaction`, in one that is
        committed."""
        with self._runner.exclusive(transaction) as cursor:
            yield cursor
