"""Who runs statements: a generator of them (see `statement`) is driven by a runner, inside one transaction.

One runner for connections of the sqlite3 module, one for those of aiosqlite. Savers call `read` and
`write`, or `aread` and `awrite`.
"""

from __future__ import annotations

import random
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from surestep._sql.dialect import SQLITE
from surestep._sql.migrate import SQLITE_SAVER, Schema
from surestep._sql.statement import Each, Many, Rows, Statement, Steps

if TYPE_CHECKING:
    import asyncio
    import sqlite3
    from concurrent.futures import Future, ThreadPoolExecutor

R = TypeVar("R")
T = TypeVar("T")

BUSY_SECONDS = 60.0
"""How long a write waits for other processes to let it in before it fails with "database is locked"."""


class Done(NamedTuple):
    """The result of a generator that had nothing to say to the database."""

    result: Any


def started(steps: Steps[R]) -> tuple[Steps[R], Statement | Done]:
    """The generator, and its first statement."""
    try:
        return steps, next(steps)
    except StopIteration as stop:
        return steps, Done(stop.value)


def begun(steps: Steps[R]) -> tuple[Steps[R], Statement]:
    """The same for a generator that has something to say."""
    return steps, next(steps)


_turns: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_turns_lock = threading.Lock()


def turns(conn: Any, kind: Callable[[], T]) -> T:
    """The lock that all who use this connection take in turn: a saver and a store may have been given the
    same.

    By the connection's id, for it may not be weakly referable: whoever holds the lock holds the connection.
    """
    with _turns_lock:
        lock: T | None = _turns.get(id(conn))
        if lock is None:
            lock = _turns[id(conn)] = kind()
        return lock


class Runner(Protocol):
    """Runs generators of statements against one database, each in a transaction."""

    def read(self, steps: Steps[R]) -> R: ...

    def write(self, steps: Steps[R]) -> R: ...

    async def aread(self, steps: Steps[R]) -> R: ...

    async def awrite(self, steps: Steps[R]) -> R: ...

    async def asetup(self) -> None: ...


class SqliteRunner:
    """Runs statements on a connection of the sqlite3 module; from any thread, one transaction at a time."""

    def __init__(self, conn: sqlite3.Connection, schema: Schema = SQLITE_SAVER) -> None:
        self.conn = conn
        self.schema = schema
        self.lock: threading.RLock = turns(conn, threading.RLock)
        self._ready = False
        self._worker: ThreadPoolExecutor | None = None
        self._making = threading.Lock()

    def read(self, steps: Steps[R]) -> R:
        """What the generator returns, from one consistent view of the database."""
        return self._run(*started(steps), SQLITE.begin_read)

    def write(self, steps: Steps[R]) -> R:
        """What the generator returns, after all of it is durable; nothing is stored if it raises."""
        return self._run(*started(steps), SQLITE.begin_write)

    async def aread(self, steps: Steps[R]) -> R:
        """`read` in the worker thread."""
        return await self._in_worker(self._run, *started(steps), SQLITE.begin_read)

    async def awrite(self, steps: Steps[R]) -> R:
        """`write` in the worker thread. When the caller is cancelled it has either happened or never will."""
        return await self._in_worker(self._run, *started(steps), SQLITE.begin_write)

    def setup(self) -> None:
        """Bring the schema up to date, and switch a database file to write-ahead logging."""
        with self.lock:
            if not self._ready:
                self._patiently("PRAGMA journal_mode = WAL")
                if not self._together(*begun(self.schema.is_current()), SQLITE.begin_read):
                    self._together(*begun(self.schema.update()), SQLITE.begin_write)
                self._ready = True

    async def asetup(self) -> None:
        """`setup` in the worker thread."""
        await self._in_worker(self.setup)

    @contextmanager
    def exclusive(self, transaction: bool) -> Iterator[sqlite3.Cursor]:
        """A cursor while nobody else uses the connection; with `transaction`, in one that ends with the
        block."""
        with self.lock:
            self.setup()
            if transaction:
                self._patiently(SQLITE.begin_write)
            cursor = self.conn.cursor()
            try:
                yield cursor
            except BaseException:
                if transaction and self.conn.in_transaction:
                    self.conn.execute("ROLLBACK")
                raise
            else:
                if transaction and self.conn.in_transaction:
                    self.conn.execute("COMMIT")
            finally:
                cursor.close()

    def close(self) -> None:
        """Close the connection and end the worker thread."""
        if self._worker is not None:
            self._worker.shutdown()
        with self.lock:
            self.conn.close()

    def _run(self, steps: Steps[R], statement: Statement | Done, begin: str) -> R:
        if isinstance(statement, Done):
            return cast(R, statement.result)
        with self.lock:
            if not self._ready:
                self.setup()
            if self.conn.in_transaction:
                raise RuntimeError(
                    "The connection has a transaction of your own open, which storing something would have to "
                    "end. Commit it first, or give the saver or store a connection of its own."
                )
            return self._together(steps, statement, begin)

    def _together(self, steps: Steps[R], statement: Statement, begin: str) -> R:
        """The result of a generator whose first statement this is; all of them in one transaction."""
        execute, send = self.conn.execute, steps.send
        self._patiently(begin)
        try:
            try:
                if type(statement) is tuple:  # a read transaction begins with its first statement
                    statement = send(self._patiently(*statement).fetchall())
                while True:
                    if type(statement) is Many:
                        self.conn.executemany(*statement)
                        statement = send(())
                    elif type(statement) is Each:
                        sql, several = statement
                        statement = send([row for params in several for row in execute(sql, params)])
                    else:
                        statement = send(execute(*statement).fetchall())
            except StopIteration as stop:
                result: R = stop.value
            execute("COMMIT")
            return result
        except BaseException:
            if self.conn.in_transaction:
                execute("ROLLBACK")
            raise

    def _patiently(self, sql: str, params: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute a statement that may have to wait for other connections, longer than SQLite waits by
        itself."""
        deadline = 0.0
        while True:
            try:
                return self.conn.execute(sql, params)
            except Exception as error:
                if not getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                    raise
                deadline = deadline or time.monotonic() + BUSY_SECONDS
                if time.monotonic() > deadline:
                    raise
            self._sleep()

    def _sleep(self) -> None:
        # Never equally long, or two who collided would collide again.
        time.sleep(random.uniform(0.001, 0.01))

    async def _in_worker(self, call: Callable[..., T], *args: Any) -> T:
        return await settled(self._submit(call, *args))

    def _submit(self, call: Callable[..., T], *args: Any) -> Future[T]:
        """Have the worker thread call that, after what it was given before."""
        with self._making:
            if self._worker is None:
                from concurrent.futures import ThreadPoolExecutor

                self._worker = ThreadPoolExecutor(1, "surestep-sqlite")
        return self._worker.submit(call, *args)


async def settled(future: Future[T]) -> T:
    """The result of a `concurrent.futures.Future`. A cancelled caller gets its CancelledError only when the
    work has ended or is sure not to begin: afterwards nothing happens any more."""
    import asyncio

    waiting = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not future.cancel():
            while not waiting.done():
                try:
                    await asyncio.wait([waiting])
                except asyncio.CancelledError:
                    continue
            if not waiting.cancelled():
                waiting.exception()  # seen: what it raised is of no interest any more
        raise


def connect(conn_string: str) -> sqlite3.Connection:
    """A connection as savers and stores need it: usable from any thread, with transactions under their control."""
    import sqlite3

    return sqlite3.connect(
        conn_string,
        uri=conn_string.startswith("file:"),
        check_same_thread=False,
        isolation_level=None,
        cached_statements=256,
    )


class AiosqliteRunner:
    """Runs statements on a connection of the aiosqlite package, on the event loop that the connection
    belongs to.

    From other threads the sync methods work too, by way of that loop.
    """

    def __init__(self, conn: Any, schema: Schema = SQLITE_SAVER) -> None:
        import asyncio

        self.conn = conn
        self.schema = schema
        self._loop = asyncio.get_running_loop()
        self._lock: asyncio.Lock = turns(conn, asyncio.Lock)
        self._ready = False

    def read(self, steps: Steps[R]) -> R:
        """`aread`, from another thread than the loop's."""
        result: R = self._from_outside(self.aread(steps))
        return result

    def write(self, steps: Steps[R]) -> R:
        """`awrite`, from another thread than the loop's."""
        result: R = self._from_outside(self.awrite(steps))
        return result

    async def aread(self, steps: Steps[R]) -> R:
        """What the generator returns, from one consistent view of the database."""
        return await self._undisturbed(self._run(*started(steps), SQLITE.begin_read))

    async def awrite(self, steps: Steps[R]) -> R:
        """What the generator returns, after all of it is durable; nothing is stored if it raises."""
        return await self._undisturbed(self._run(*started(steps), SQLITE.begin_write))

    async def asetup(self) -> None:
        """Bring the schema up to date, and switch a database file to write-ahead logging."""
        async with self._lock:
            await self._setup()

    async def _setup(self) -> None:
        if self._ready:
            return
        await self._fetch(("PRAGMA journal_mode = WAL", ()))
        if not await self._together(*begun(self.schema.is_current()), SQLITE.begin_read):
            await self._together(*begun(self.schema.update()), SQLITE.begin_write)
        self._ready = True

    async def _run(self, steps: Steps[R], statement: Statement | Done, begin: str) -> R:
        if isinstance(statement, Done):
            return cast(R, statement.result)
        async with self._lock:
            await self._setup()
            return await self._together(steps, statement, begin)

    async def _together(self, steps: Steps[R], statement: Statement, begin: str) -> R:
        await self._fetch((begin, ()))
        try:
            try:
                while True:
                    statement = steps.send(await self._fetch(statement))
            except StopIteration as stop:
                result: R = stop.value
            await self._fetch(("COMMIT", ()))
            return result
        except BaseException:
            if self.conn.in_transaction:
                await self._fetch(("ROLLBACK", ()))
            raise

    async def _fetch(self, statement: Statement) -> Rows:
        if isinstance(statement, Each):
            return [row for params in statement.params for row in await self._fetch((statement.sql, params))]
        if isinstance(statement, Many):
            cursor = await self.conn.executemany(*statement)
        else:
            cursor = await self.conn.execute(*statement)
        rows: Rows = list(await cursor.fetchall())
        await cursor.close()
        return rows

    async def _undisturbed(self, work: Awaitable[T]) -> T:
        """Finish the transaction when the caller is cancelled in the middle of it."""
        import asyncio

        task = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            while not task.done():
                try:
                    await asyncio.wait([task])
                except asyncio.CancelledError:
                    continue
            if not task.cancelled():
                task.exception()
            raise

    def _from_outside(self, work: Any) -> Any:
        import asyncio

        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            work.close()
            raise asyncio.InvalidStateError(
                "A synchronous method on an aiosqlite connection would wait for the event loop that it blocks. "
                "Use the async method (aget_tuple, aput, alist, ...), or give a sqlite3 connection."
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
