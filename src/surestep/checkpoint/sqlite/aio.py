"""Checkpoints in an SQLite file, for programs on an event loop: statements run in a thread of the saver's
own."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from surestep._sql.dialect import SQLITE
from surestep._sql.run import AiosqliteRunner, SqliteRunner, connect
from surestep._sql.saver import SqlSaver

if TYPE_CHECKING:
    from surestep.checkpoint.serde.base import SerializerProtocol

__all__ = ("AsyncSqliteSaver",)


class AsyncSqliteSaver(SqlSaver):
    """Checkpoints in SQLite, like SqliteSaver. A cancelled caller is held until its write has happened or
    never will.

    `conn`: a sqlite3 connection made with `check_same_thread=False`, or one of the aiosqlite package (then
    everything runs on the event loop that the saver was made on). The synchronous methods work too; on an
    aiosqlite connection only from other threads than the loop's.
    """

    def __init__(self, conn: sqlite3.Connection | Any, *, serde: SerializerProtocol | None = None) -> None:
        own = isinstance(conn, sqlite3.Connection)
        super().__init__(SqliteRunner(conn) if own else AiosqliteRunner(conn), SQLITE, serde)
        self.conn = conn

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, conn_string: str) -> AsyncIterator[AsyncSqliteSaver]:
        """A saver on the file (or ":memory:", or a "file:" URI), closed at the end of the `async with`
        block."""
        runner = SqliteRunner(connect(conn_string))
        saver = cls(runner.conn)
        saver._runner = runner
        try:
            yield saver
        finally:
            runner.close()

    async def setup(self) -> None:
        """Create or update the tables. Called by the first operation; safe to call at any time."""
        await self._runner.asetup()
