"""Who runs statements on PostgreSQL: on a connection of psycopg, or on one that a pool lends for each
transaction.

Rules
1. A transaction of our own is a Talk: few round trips. On a connection that is in a transaction, in a pipeline, or
   doesn't commit by itself, we are guests: what is done becomes part of what is going on there.
2. When a connection turns out to be cut, the conversation begins again on another one, if it may (rule 5 of talk).
3. A cancelled caller is held until his transaction has happened or never will.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from surestep._calls import Calls, adriven, driven, itself
from surestep._sql.migrate import Schema
from surestep._sql.postgres.connect import Connect
from surestep._sql.postgres.group import Group
from surestep._sql.postgres.talk import Answers, Talk, received, sent, set_tenant
from surestep._sql.postgres.words import Phrase, Words
from surestep._sql.run import Done, begun, settled, started, turns
from surestep._sql.statement import Many, Rows, Statement, Steps, Whole

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from psycopg import AsyncConnection, Connection, IsolationLevel
    from psycopg_pool import AsyncConnectionPool, ConnectionPool

R = TypeVar("R")
T = TypeVar("T")

PLAIN = Words()


class PostgresRunner:
    """Runs statements on a psycopg connection, one transaction at a time, or on a pool's, several at once.

    On a connection with a transaction open, what is done becomes part of that transaction.
    """

    def __init__(
        self,
        conn: Connection[Any] | ConnectionPool[Any],
        schema: Schema,
        words: Words = PLAIN,
    ) -> None:
        self.conn = conn
        self.schema = schema
        self.words = words
        self._connect: Connect | None = None
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
            self._run(*begun(self.schema.update()), one_by_one=True)

    async def asetup(self) -> None:
        """`setup`, in a thread."""
        await self._in_worker(self.setup)

    def reconnects_by(self, connect: Connect | None) -> None:
        """The connection is the runner's own, and made again by this when it was cut. None: it is somebody else's."""
        self._connect = connect
        if connect is not None:  # nobody else takes turns with it, and it will not always be the same
            self._lock = threading.RLock()

    def close(self) -> None:
        """End the worker threads, and a connection that is the runner's own."""
        if self._workers is not None:
            self._workers.shutdown()
        if self._connect is not None and self._lock is not None:
            with self._lock:
                self.conn.close()

    def _run(self, steps: Steps[R], statement: Statement | Done, reads: bool = False, one_by_one: bool = False) -> R:
        if isinstance(statement, Done):
            return cast(R, statement.result)
        talk = Talk(self.words, steps, statement, reads, one_by_one)
        return driven(attempts(talk, _tries(self.conn, self._connect)), self._attempt)

    def _attempt(self, talk: Talk[R]) -> R:
        with self._lent() as conn:
            if _is_ours(conn):
                return driven(talk.held(), partial(self._exchanged, conn))
            with self._within(conn, reads=talk.reads) as cursor:
                return driven(_as_guest(cursor, talk), itself)

    def _exchanged(self, conn: Connection[Any], phrases: Sequence[Phrase]) -> Answers:
        with conn.pipeline() if _are_several(phrases) else nullcontext():
            cursors = driven(sent(conn, phrases, self.words.binary), itself)
        return driven(received(cursors), itself)

    @contextmanager
    def cursor(self, *, reads: bool = False, **options: Any) -> Iterator[Any]:
        """A cursor in a transaction of its own, while nobody else uses the connection; `reads`: with one view
        of the database from beginning to end."""
        with self._lent() as conn, self._within(conn, reads=reads, **options) as cursor:
            yield cursor

    @contextmanager
    def _within(self, conn: Connection[Any], *, reads: bool = False, **options: Any) -> Iterator[Any]:
        from psycopg.rows import tuple_row

        options.setdefault("row_factory", tuple_row)
        before = conn.isolation_level
        once = reads and _is_idle(conn)
        try:
            if once:
                conn.isolation_level = _one_view()
            with conn.transaction(), conn.cursor(**options) as cursor:
                yield cursor
        finally:
            if once and _is_idle(conn):
                conn.isolation_level = before

    def _lent(self) -> AbstractContextManager[Connection[Any]]:
        if self._lock is None:
            return cast("ConnectionPool[Any]", self.conn).connection()
        return self._held(self._lock)

    @contextmanager
    def _held(self, lock: threading.RLock) -> Iterator[Connection[Any]]:
        with lock:
            if self._connect is not None:
                self.conn = driven(_usable(self.conn, self._connect), itself)
            yield cast("Connection[Any]", self.conn)

    async def _in_worker(self, call: Callable[..., R], *args: Any) -> R:
        with self._making:
            if self._workers is None:
                from concurrent.futures import ThreadPoolExecutor

                size = 1 if self._lock is not None else _size(self.conn)
                self._workers = ThreadPoolExecutor(size, "surestep-postgres")
        return await settled(self._workers.submit(call, *args))


class AsyncPostgresRunner:
    """The same on an event loop: on an AsyncConnection, or an AsyncConnectionPool. From other threads the sync methods
    work too."""

    def __init__(
        self,
        conn: AsyncConnection[Any] | AsyncConnectionPool[Any],
        schema: Schema,
        words: Words = PLAIN,
    ) -> None:
        import asyncio

        self.conn = conn
        self.schema = schema
        self.words = words
        self._connect: Connect | None = None
        self._loop = asyncio.get_running_loop()
        self._lock: asyncio.Lock | None = None if _is_pool(conn) else turns(conn, asyncio.Lock)
        # Two: while one waits for the disk the next is got ready.
        self._group = Group(self._together, 2 if self._lock is None and _size(conn) > 2 else 1)

    async def aread(self, steps: Steps[R]) -> R:
        """What the generator returns, from one consistent view of the database."""
        return await undisturbed(self._run(*started(steps), reads=True))

    async def awrite(self, steps: Steps[R]) -> R:
        """What the generator returns, after all of it is stored; nothing is if it raises."""
        steps, statement = started(steps)
        if not isinstance(statement, Whole):
            return await undisturbed(self._run(steps, statement))
        talk = Talk(self.words, steps, statement, reads=False)
        rows = await undisturbed(self._group.say(talk))
        if rows is not None:
            talk.tell(rows)
            if talk.statement is None:
                return cast(R, talk.result)
        return await undisturbed(self._talked(talk))

    def read(self, steps: Steps[R]) -> R:
        """`aread`, from another thread than the loop's."""
        return self._from_outside(self.aread(steps))

    def write(self, steps: Steps[R]) -> R:
        """`awrite`, from another thread than the loop's."""
        return self._from_outside(self.awrite(steps))

    async def asetup(self) -> None:
        """Bring the schema up to date."""
        if not await self._run(*begun(self.schema.is_current())):
            await self._run(*begun(self.schema.update()), one_by_one=True)

    def reconnects_by(self, connect: Connect | None) -> None:
        """The connection is the runner's own, and made again by this when it was cut. None: it is somebody else's."""
        import asyncio

        self._connect = connect
        if connect is not None:  # nobody else takes turns with it, and it will not always be the same
            self._lock = asyncio.Lock()

    async def aclose(self) -> None:
        """Close a connection that is the runner's own."""
        if self._connect is not None and self._lock is not None:
            async with self._lock:
                await self.conn.close()

    async def _run(
        self, steps: Steps[R], statement: Statement | Done, reads: bool = False, one_by_one: bool = False
    ) -> R:
        if isinstance(statement, Done):
            return cast(R, statement.result)
        return await self._talked(Talk(self.words, steps, statement, reads, one_by_one))

    async def _talked(self, talk: Talk[R]) -> R:
        return await adriven(attempts(talk, _tries(self.conn, self._connect)), self._attempt)

    async def _together(self, phrases: Sequence[Phrase]) -> Answers | None:
        async with self._lent() as conn:
            if not _is_ours(conn):
                return None
            try:
                return await self._exchanged(conn, phrases)
            except Exception:
                if not conn.closed:
                    await conn.rollback()
                raise

    async def _attempt(self, talk: Talk[R]) -> R:
        async with self._lent() as conn:
            if _is_ours(conn):
                return await adriven(talk.held(), partial(self._exchanged, conn))
            async with self._within(conn, reads=talk.reads) as cursor:
                return await adriven(_as_guest(cursor, talk), itself)

    async def _exchanged(self, conn: AsyncConnection[Any], phrases: Sequence[Phrase]) -> Answers:
        async with conn.pipeline() if _are_several(phrases) else nullcontext():
            cursors = await adriven(sent(conn, phrases, self.words.binary), itself)
        return await adriven(received(cursors), itself)

    @asynccontextmanager
    async def cursor(self, *, reads: bool = False, **options: Any) -> AsyncIterator[Any]:
        """A cursor in a transaction of its own, as that of the sync runner."""
        async with self._lent() as conn, self._within(conn, reads=reads, **options) as cursor:
            yield cursor

    @asynccontextmanager
    async def _within(self, conn: AsyncConnection[Any], *, reads: bool = False, **options: Any) -> AsyncIterator[Any]:
        from psycopg.rows import tuple_row

        options.setdefault("row_factory", tuple_row)
        async with AsyncExitStack() as within:
            if reads and _is_idle(conn):
                within.push_async_callback(_set_back, conn, conn.isolation_level)
                await conn.set_isolation_level(_one_view())
            await within.enter_async_context(conn.transaction())
            yield await within.enter_async_context(conn.cursor(**options))

    def _lent(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        if self._lock is None:
            return cast("AsyncConnectionPool[Any]", self.conn).connection()
        return self._held(self._lock)

    @asynccontextmanager
    async def _held(self, lock: asyncio.Lock) -> AsyncIterator[AsyncConnection[Any]]:
        async with lock:
            if self._connect is not None:
                self.conn = await adriven(_usable(self.conn, self._connect), itself)
            yield cast("AsyncConnection[Any]", self.conn)

    def _from_outside(self, work: Coroutine[Any, Any, R]) -> R:
        import asyncio

        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop or not self._loop.is_running():
            work.close()
            raise asyncio.InvalidStateError(
                "A synchronous method needs the event loop of the connection to run, in another thread than this. Use "
                "the async method (aget_tuple, aput, alist, ...), or a PostgresSaver."
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def undisturbed(work: Awaitable[T]) -> T:
    """Finish what was begun when the caller is cancelled in the middle of it."""
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
            task.exception()  # seen: what it raised is of no interest any more
        raise


# ---- cut connections ----


def _usable(conn: Any, connect: Connect) -> Calls[Any]:
    """The connection, or another one in its place; without what somebody who was interrupted has left open."""
    if conn.closed:
        return (yield connect())
    if not _is_idle(conn):
        yield conn.rollback()
    return conn


def attempts(talk: Talk[R], tries: int) -> Calls[R]:
    """What the talk comes to; yields it to be held on one connection after the other."""
    while True:
        tries -= 1
        try:
            return cast(R, (yield talk))
        except Exception as error:
            if not _is_cut(error):
                if type(error).__name__ in ("UndefinedTable", "UndefinedFunction"):
                    error.add_note("The tables are made by `setup()`, which has to be called once for a database.")
                raise
            if talk.reads and talk.statement is None:
                return cast(R, talk.result)  # all was heard
            if not (tries and talk.may_go_again):
                error.add_note(_NOT_READ if talk.reads else _UNKNOWN if talk.committing else _NOT_STORED)
                raise


_UNKNOWN = "The connection was cut while this was being stored: nobody knows whether it is."
_NOT_READ = "The connection was cut in the middle of a conversation. It can be begun again."
_NOT_STORED = "The connection was cut before this was stored: it is not."


def _is_cut(error: Exception) -> bool:
    """Whether the server said goodbye, or the client says that it has lost it."""
    from psycopg import OperationalError

    if not isinstance(error, OperationalError) or type(error).__name__ in ("PoolTimeout", "PoolClosed"):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(("57P", "08"))


# ---- guests ----


def _as_guest(cursor: Any, talk: Talk[R]) -> Calls[R]:
    """What the steps come to, statement by statement in somebody's transaction, whose tenant stays what it is."""
    tenant, before = talk.words.tenant, None
    if tenant is not None:
        yield cursor.execute("SELECT current_setting('surestep.tenant', true)")
        ((before,),) = yield cursor.fetchall()
        yield cursor.execute(*_only(set_tenant(tenant)))
    statement: Statement | None = talk.statement
    try:
        while statement is not None:
            statement = talk.steps.send((yield from _fetched(cursor, talk.words.phrase(statement), statement)))
    except StopIteration as stop:
        if tenant is not None:
            yield cursor.execute(*_only(set_tenant(before or "")))
        return cast(R, stop.value)
    raise AssertionError


def _only(phrase: Phrase) -> tuple[str, Sequence[Any]]:
    return phrase.sql, phrase.params[0]


def _fetched(cursor: Any, phrase: Phrase, statement: Statement) -> Calls[Rows]:
    """The rows of a statement; yields what the cursor's methods give, a result or something to await."""
    rows: list[Any] = []
    if isinstance(statement, Many):
        if phrase.params:
            yield cursor.executemany(phrase.sql, phrase.params)
        return ()
    for params in phrase.params:
        yield cursor.execute(phrase.sql, params)
        if phrase.has_rows:
            rows += yield cursor.fetchall()
    return rows


# ---- connections ----


def _is_ours(conn: Any) -> bool:
    """Rule 1. One that is closed is ours, too: it will fail, and another one be made."""
    return conn.closed or (conn.autocommit and _is_idle(conn))


def _is_idle(conn: Any) -> bool:
    """Whether the connection is usable and in no transaction, so that the next one may be told how to be.

    In a pipeline nobody knows.
    """
    return not conn.closed and conn.info.transaction_status.name == "IDLE" and not conn.pgconn.pipeline_status


def _are_several(phrases: Sequence[Phrase]) -> bool:
    return len(phrases) > 1 or len(phrases[0].params) > 1


def _tries(conn: Any, connect: Connect | None) -> int:
    """On how many connections a conversation may be begun: all of a pool may have been cut."""
    if _is_pool(conn):
        return _size(conn) + 1
    return 2 if connect is not None else 1


def _size(pool: Any) -> int:
    return int(getattr(pool, "max_size", 0) or 4)


async def _set_back(conn: AsyncConnection[Any], level: IsolationLevel | None) -> None:
    if _is_idle(conn):
        await conn.set_isolation_level(level)


def _one_view() -> IsolationLevel:
    from psycopg import IsolationLevel

    return IsolationLevel.REPEATABLE_READ


def _is_pool(conn: Any) -> bool:
    return not hasattr(conn, "transaction") and hasattr(conn, "connection")
