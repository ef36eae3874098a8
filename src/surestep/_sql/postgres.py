"""Who runs statements on PostgreSQL: on a connection of psycopg, or on one that a pool lends for each
transaction.

Statements come with `?` for their parameters, as for SQLite; psycopg writes them `%s`.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from surestep._calls import Calls, adriven, driven, itself
from surestep._sql.migrate import Schema
from surestep._sql.run import Done, begun, settled, started, turns
from surestep._sql.statement import Each, Many, Rows, Statement, Steps

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from psycopg import AsyncConnection, Connection, IsolationLevel
    from psycopg_pool import AsyncConnectionPool, ConnectionPool

R = TypeVar("R")

SETTINGS: Mapping[str, Any] = {"autocommit": True, "prepare_threshold": None}
"""How our own connections are made: without prepared statements they work behind any pooler."""


class PoolConfig(TypedDict, total=False):
    """A pool of connections: how many there are at least (1) and at most (as many), and what else
    `psycopg.connect` is given."""

    min_size: int
    max_size: int | None
    kwargs: dict[str, Any]


@lru_cache(512)
def _psycopgs(sql: str) -> tuple[str, bool]:
    """The statement as psycopg writes it, and whether it has rows: in a pipeline the cursor can't tell yet."""
    has_rows = sql.lstrip().startswith("SELECT") or "RETURNING" in sql
    return sql.replace("%", "%%").replace("?", "%s"), has_rows


def _fetched(cursor: Any, statement: Statement) -> Calls[Rows]:
    """The rows of a statement; yields what the cursor's methods give, a result or something to await."""
    sql, has_rows = _psycopgs(statement[0])
    if isinstance(statement, Each):
        return (yield from _rows_of_each(cursor, sql, statement))
    if isinstance(statement, Many):
        if statement.params:
            yield cursor.executemany(sql, statement.params)
        return ()
    yield cursor.execute(sql, statement[1])
    return (yield cursor.fetchall()) if has_rows else ()


def _rows_of_each(cursor: Any, sql: str, statement: Each) -> Calls[Rows]:
    if not statement.params:
        return ()
    yield cursor.executemany(sql, statement.params, returning=True)
    rows = [*(yield cursor.fetchall())]
    while cursor.nextset():
        rows += yield cursor.fetchall()
    return rows


def _together(cursor: Any, steps: Steps[R], statement: Statement) -> Calls[R]:
    """What steps come to whose first statement this is."""
    try:
        while True:
            statement = steps.send((yield from _fetched(cursor, statement)))
    except StopIteration as stop:
        return cast(R, stop.value)


def _told(error: Exception) -> None:
    """Add to an error what can be done about it."""
    if type(error).__name__ == "UndefinedTable":
        error.add_note("The tables are made by `setup()`, which has to be called once for a database.")


class PostgresRunner:
    """Runs statements on a psycopg connection, one transaction at a time, or on a pool's, several at once.

    On a connection with a transaction open, what is done becomes part of that transaction.
    """

    def __init__(self, conn: Connection[Any] | ConnectionPool[Any], schema: Schema) -> None:
        self.conn = conn
        self.schema = schema
        self._lock: threading.RLock | None = None if _is_pool(conn) else turns(conn, threading.RLock)
        self._workers: ThreadPoolExecutor | None = None
        self._making = threading.Lock()

    def read(self, steps: Steps[R]) -> R:
        """What the generator returns, from one consistent view of the database."""
        return self._run(*started(steps), reads=True)

    def write(self, steps: Steps[R]) -> R:
        """What the generator returns, after all of it is stored; nothing is if it raises."""
        return self._run(*started(steps))

    async def aread(self, steps: Steps[R]) -> R:
        """`read`, in a thread."""
        return await self._in_worker(self._run, *started(steps), True)

    async def awrite(self, steps: Steps[R]) -> R:
        """`write`, in a thread. When the caller is cancelled it has either happened or never will."""
        return await self._in_worker(self._run, *started(steps))

    def setup(self) -> None:
        """Bring the schema up to date."""
        if not self._run(*begun(self.schema.is_current())):
            self._run(*begun(self.schema.update()))

    async def asetup(self) -> None:
        """`setup`, in a thread."""
        await self._in_worker(self.setup)

    def close(self) -> None:
        """End the worker threads."""
        if self._workers is not None:
            self._workers.shutdown()

    def _run(self, steps: Steps[R], statement: Statement | Done, reads: bool = False) -> R:
        if isinstance(statement, Done):
            return cast(R, statement.result)
        with self.cursor(reads=reads) as cursor:
            return driven(_together(cursor, steps, statement), itself)

    @contextmanager
    def cursor(self, *, reads: bool = False, **options: Any) -> Iterator[Any]:
        """A cursor in a transaction of its own, while nobody else uses the connection; `reads`: with one view
        of the database from beginning to end."""
        from psycopg.rows import tuple_row

        options.setdefault("row_factory", tuple_row)
        with self._lent() as conn:
            before = conn.isolation_level
            once = reads and _is_idle(conn)
            try:
                if once:
                    conn.isolation_level = _one_view()
                with conn.transaction(), conn.cursor(**options) as cursor:
                    yield cursor
            except Exception as error:
                _told(error)
                raise
            finally:
                if once and _is_idle(conn):
                    conn.isolation_level = before

    def _lent(self) -> AbstractContextManager[Connection[Any]]:
        if self._lock is None:
            return cast("ConnectionPool[Any]", self.conn).connection()
        return _held(self._lock, cast("Connection[Any]", self.conn))

    async def _in_worker(self, call: Callable[..., R], *args: Any) -> R:
        with self._making:
            if self._workers is None:
                from concurrent.futures import ThreadPoolExecutor

                size = 1 if self._lock is not None else getattr(self.conn, "max_size", 4)
                self._workers = ThreadPoolExecutor(size, "surestep-postgres")
        return await settled(self._workers.submit(call, *args))


class AsyncPostgresRunner:
    """The same on an event loop: on an AsyncConnection, or an AsyncConnectionPool."""

    def __init__(self, conn: AsyncConnection[Any] | AsyncConnectionPool[Any], schema: Schema) -> None:
        import asyncio

        self.conn = conn
        self.schema = schema
        self._lock: asyncio.Lock | None = None if _is_pool(conn) else turns(conn, asyncio.Lock)

    async def aread(self, steps: Steps[R]) -> R:
        """What the generator returns, from one consistent view of the database."""
        return await self._run(*started(steps), reads=True)

    async def awrite(self, steps: Steps[R]) -> R:
        """What the generator returns, after all of it is stored; nothing is if it raises."""
        return await self._run(*started(steps))

    def read(self, steps: Steps[R]) -> R:
        """Not on an event loop."""
        raise NotImplementedError("This runner belongs to an event loop; use aread.")

    def write(self, steps: Steps[R]) -> R:
        """Not on an event loop."""
        raise NotImplementedError("This runner belongs to an event loop; use awrite.")

    async def asetup(self) -> None:
        """Bring the schema up to date."""
        if not await self._run(*begun(self.schema.is_current())):
            await self._run(*begun(self.schema.update()))

    async def _run(self, steps: Steps[R], statement: Statement | Done, reads: bool = False) -> R:
        if isinstance(statement, Done):
            return cast(R, statement.result)
        async with self.cursor(reads=reads) as cursor:
            return await adriven(_together(cursor, steps, statement), itself)

    @asynccontextmanager
    async def cursor(self, *, reads: bool = False, **options: Any) -> AsyncIterator[Any]:
        """A cursor in a transaction of its own, as that of the sync runner."""
        from psycopg.rows import tuple_row

        options.setdefault("row_factory", tuple_row)
        within = AsyncExitStack()
        try:
            async with within:
                conn = await within.enter_async_context(self._lent())
                if reads and _is_idle(conn):
                    within.push_async_callback(_set_back, conn, conn.isolation_level)
                    await conn.set_isolation_level(_one_view())
                await within.enter_async_context(conn.transaction())
                yield await within.enter_async_context(conn.cursor(**options))
        except Exception as error:
            _told(error)
            raise

    def _lent(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        if self._lock is None:
            return cast("AsyncConnectionPool[Any]", self.conn).connection()
        return _aheld(self._lock, cast("AsyncConnection[Any]", self.conn))


def _is_idle(conn: Any) -> bool:
    """Whether the connection is usable and in no transaction, so that the next one may be told how to be.

    In a pipeline nobody knows.
    """
    return not conn.closed and conn.info.transaction_status.name == "IDLE" and not conn.pgconn.pipeline_status


async def _set_back(conn: AsyncConnection[Any], level: IsolationLevel | None) -> None:
    if _is_idle(conn):
        await conn.set_isolation_level(level)


def _one_view() -> IsolationLevel:
    from psycopg import IsolationLevel

    return IsolationLevel.REPEATABLE_READ


def _is_pool(conn: Any) -> bool:
    return not hasattr(conn, "transaction") and hasattr(conn, "connection")


@contextmanager
def _held(lock: threading.RLock, conn: Connection[Any]) -> Iterator[Connection[Any]]:
    with lock:
        yield conn


@asynccontextmanager
async def _aheld(lock: asyncio.Lock, conn: AsyncConnection[Any]) -> AsyncIterator[AsyncConnection[Any]]:
    async with lock:
        yield conn


# ---- connections of our own ----


@contextmanager
def connected(conn_string: str, pool: PoolConfig | None, *, pipeline: bool) -> Iterator[Any]:
    """A connection to the database, or a pool of them; closed at the end."""
    from psycopg import Connection

    if pool is not None:
        from psycopg_pool import ConnectionPool

        with ConnectionPool(conn_string, **_pool_of(pool), check=ConnectionPool.check_connection) as made:
            yield made
        return
    with Connection.connect(conn_string, **SETTINGS) as conn, conn.pipeline() if pipeline else nullcontext():
        yield conn


@asynccontextmanager
async def aconnected(conn_string: str, pool: PoolConfig | None, *, pipeline: bool) -> AsyncIterator[Any]:
    """A connection of an event loop, or a pool of them; closed at the end."""
    from psycopg import AsyncConnection

    stack = AsyncExitStack()
    async with stack:
        if pool is not None:
            from psycopg_pool import AsyncConnectionPool as Pool

            made = Pool(conn_string, **_pool_of(pool), check=Pool.check_connection)
            yield await stack.enter_async_context(made)
        else:
            conn = await stack.enter_async_context(await AsyncConnection.connect(conn_string, **SETTINGS))
            if pipeline:
                await stack.enter_async_context(conn.pipeline())
            yield conn


def _pool_of(config: PoolConfig) -> dict[str, Any]:
    rest = {**config}
    kwargs = {**SETTINGS, **cast("dict[str, Any]", rest.pop("kwargs", None) or {})}
    return {"min_size": 1, **rest, "kwargs": kwargs, "open": False}
