"""Numbered kill points: the process passes them one after the other, and dies at the one it was told to.

Three kinds, none of which knows the engine's insides:

* `body`: where a node's body starts and ends;
* `call`: before and after each `put`, `put_writes` (and `commit`) of the saver: a subclass that overrides the
  saver's contract. Such a subclass sees every call, so the engine must use the plain contract with it;
* `statement`: before and after each SQL statement that writes, and each commit: a class of connections that
  the standard library makes; with PostgreSQL before and after each time that psycopg speaks to the server. The saver is
  the one that people use.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from typing import Any


class Points:
    """Counts the points of one kind. Kills the process at number `deadly`; 0 kills never."""

    def __init__(self, kind: str, deadly: int = 0) -> None:
        self.kind, self.deadly, self.passed = kind, deadly, 0
        self._lock = threading.Lock()

    def pass_by(self, kind: str, what: str = "") -> None:
        if kind != self.kind:
            return
        # The lock makes the number of a point its own; the process that dies takes it along.
        with self._lock:
            self.passed += 1
            if self.passed == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)


def watch_statements(points: Points) -> None:
    """From now on every SQLite connection of this process passes the points of kind `statement`."""
    connect = sqlite3.connect

    class Cursor(sqlite3.Cursor):
        def execute(self, sql: str, *args: Any) -> Any:
            return around(sql, super().execute, sql, *args)

        def executemany(self, sql: str, *args: Any) -> Any:
            return around(sql, super().executemany, sql, *args)

        def executescript(self, sql: str) -> Any:
            return around(sql, super().executescript, sql)

    class Connection(sqlite3.Connection):
        def cursor(self, factory: Any = Cursor) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, *args: Any) -> Any:
            return self.cursor().execute(sql, *args)

        def executemany(self, sql: str, *args: Any) -> Any:
            return self.cursor().executemany(sql, *args)

        def commit(self) -> None:
            around("COMMIT", super().commit)

        def __exit__(self, *exc: Any) -> Any:
            return around("COMMIT", super().__exit__, *exc)

    def around(sql: str, method: Any, *args: Any) -> Any:
        if sql.lstrip()[:6].upper() in ("SELECT", "PRAGMA", "WITH"):
            return method(*args)
        points.pass_by("statement", f"before {sql[:40]}")
        result = method(*args)
        points.pass_by("statement", f"after {sql[:40]}")
        return result

    def watched(*args: Any, **kwargs: Any) -> Any:
        return connect(*args, **{"factory": Connection, **kwargs})

    sqlite3.connect = watched  # type: ignore[assignment]


def watch_conversations(points: Points) -> None:
    """From now on every psycopg connection of this process passes the points of kind `statement`."""
    import psycopg

    wait, await_ = psycopg.Connection.wait, psycopg.AsyncConnection.wait

    def waiting(self: Any, gen: Any, *args: Any, **kwargs: Any) -> Any:
        points.pass_by("statement", "before psycopg waits")
        result = wait(self, gen, *args, **kwargs)
        points.pass_by("statement", "after psycopg waited")
        return result

    async def awaiting(self: Any, gen: Any, *args: Any, **kwargs: Any) -> Any:
        points.pass_by("statement", "before psycopg waits")
        result = await await_(self, gen, *args, **kwargs)
        points.pass_by("statement", "after psycopg waited")
        return result

    psycopg.Connection.wait = waiting  # type: ignore[method-assign]
    psycopg.AsyncConnection.wait = awaiting  # type: ignore[method-assign]


def watched_saver(base: type, points: Points, note: Any) -> type:
    """A subclass of `base` whose calls pass the points of kind `call`, and are noted once they are durable."""

    def keys(writes: Any) -> list[str]:
        return [key for channel, value in writes if channel == "log" for key in value if key != "in"]

    class Watched(base):  # type: ignore[misc]
        def put(self, config: Any, checkpoint: Any, metadata: Any, new: Any) -> Any:
            points.pass_by("call", "before put")
            note("put", metadata["source"], metadata["step"])
            result = super().put(config, checkpoint, metadata, new)
            points.pass_by("call", "after put")
            return result

        def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            points.pass_by("call", "before put_writes")
            super().put_writes(config, writes, task_id, task_path)
            note("stored", *keys(writes))
            points.pass_by("call", "after put_writes")

        async def aput(self, config: Any, checkpoint: Any, metadata: Any, new: Any) -> Any:
            points.pass_by("call", "before aput")
            note("put", metadata["source"], metadata["step"])
            result = await super().aput(config, checkpoint, metadata, new)
            points.pass_by("call", "after aput")
            return result

        async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            points.pass_by("call", "before aput_writes")
            await super().aput_writes(config, writes, task_id, task_path)
            note("stored", *keys(writes))
            points.pass_by("call", "after aput_writes")

    return Watched
