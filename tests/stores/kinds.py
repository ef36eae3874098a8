"""Every store behind one synchronous face, so that a test is written once for all of them, sync and async."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from surestep.store.base import BaseStore
from surestep.store.memory import InMemoryStore
from surestep.store.postgres import AsyncPostgresStore, PostgresStore
from surestep.store.sqlite import AsyncSqliteStore, SqliteStore

AWAITED = {"get", "put", "delete", "search", "list_namespaces", "batch", "sweep_ttl", "setup"}

MEMORY = ("memory", "memory-async")
SQLITE = ("sqlite", "sqlite-awaited", "sqlite-async", "sqlite-aiosqlite")
POSTGRES = ("postgres", "postgres-awaited", "postgres-pool", "postgres-async", "postgres-async-pool")
KINDS = (*MEMORY, *SQLITE, *POSTGRES)


class Face:
    """A store, its async methods called by the names of the sync ones where `runner` is given.

    `sql` runs a statement on the store's database, past the store.
    """

    def __init__(
        self, store: BaseStore, runner: asyncio.Runner | None = None, sql: Callable[[str], Sequence[Any]] | None = None
    ) -> None:
        self.store = store
        self.runner = runner
        self.sql = sql

    def __getattr__(self, name: str) -> Any:
        if self.runner is None or name not in AWAITED:
            return getattr(self.store, name)
        method = getattr(self.store, name if name in ("sweep_ttl", "setup") else f"a{name}")
        return lambda *args, **kwargs: self.run(method, *args, **kwargs)

    def run(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What the method gives, awaited where it must be."""
        assert self.runner is not None

        async def call() -> Any:
            answer = method(*args, **kwargs)
            return await answer if asyncio.iscoroutine(answer) else answer

        return self.runner.run(call())

    @property
    def lasts(self) -> bool:
        """Whether the store is a database's: what is written last comes first, values are JSON, items may
        have a time to live."""
        return self.sql is not None

    def age(self, minutes: float) -> None:
        """Let that much time go by for what lives for a time."""
        assert self.sql is not None
        if "Sqlite" in type(self.store).__name__:
            self.sql(f"UPDATE store SET expires_at = strftime('%Y-%m-%d %H:%M:%f', expires_at, '-{minutes} minutes')")
        else:
            self.sql(f"UPDATE store SET expires_at = expires_at - {minutes} * interval '1 minute'")

    def clear(self) -> None:
        """Forget everything."""
        if self.sql is not None:
            self.sql("DELETE FROM store")
        else:
            for item in self.search((), limit=10**6):
                self.delete(item.namespace, item.key)


def _sqlite(path: Path) -> Callable[[str], Sequence[Any]]:
    def run(sql: str) -> Sequence[Any]:
        conn = sqlite3.connect(path)
        try:
            with conn:
                return conn.execute(sql).fetchall()
        finally:
            conn.close()

    return run


@contextmanager
def opened(kind: str, place: Any, **config: Any) -> Iterator[Face]:
    """A store of that kind, set up; `place` is a folder for its file, or a connection string. `config`: index
    and ttl."""
    if kind in POSTGRES:
        with _postgres(kind, place, config) as face:
            yield face
        return
    if kind in MEMORY:
        config.pop("ttl", None)
    path = place / "store.db"
    if kind == "memory":
        yield Face(InMemoryStore(**config))
    elif kind == "sqlite":
        with SqliteStore.from_conn_string(str(path), **config) as store:
            store.setup()
            yield Face(store, sql=_sqlite(path))
    else:
        with asyncio.Runner() as runner:
            if kind == "memory-async":
                yield Face(InMemoryStore(**config), runner)
            elif kind == "sqlite-awaited":
                with SqliteStore.from_conn_string(str(path), **config) as store:
                    store.setup()
                    yield Face(store, runner, _sqlite(path))
            else:
                with _entered(runner, _aiosqlite(path, config) if "aio" in kind else _async(path, config)) as made:
                    face = Face(made, runner, _sqlite(path))
                    face.setup()
                    yield face


@contextmanager
def _entered(runner: asyncio.Runner, context: Any) -> Iterator[Any]:
    entered = runner.run(context.__aenter__())
    try:
        yield entered
    finally:
        runner.run(context.__aexit__(None, None, None))


def _async(path: Path, config: Any) -> Any:
    return AsyncSqliteStore.from_conn_string(str(path), **config)


class _aiosqlite:
    """A store on a connection of the aiosqlite package."""

    def __init__(self, path: Path, config: Any) -> None:
        self.path, self.config = path, config

    async def __aenter__(self) -> AsyncSqliteStore:
        import aiosqlite

        self.conn = await aiosqlite.connect(self.path)
        try:
            self.store = AsyncSqliteStore(self.conn, **self.config)
        except BaseException:
            await self.conn.close()
            raise
        return self.store

    async def __aexit__(self, *error: Any) -> None:
        await self.store.stop()
        await self.conn.close()


def _psycopg(conn_string: str) -> Callable[[str], Sequence[Any]]:
    def run(sql: str) -> Sequence[Any]:
        with psycopg.connect(conn_string, autocommit=True) as conn:
            cursor = conn.execute(sql)
            return cursor.fetchall() if cursor.description else ()

    return run


@contextmanager
def _postgres(kind: str, conn_string: str, config: Any) -> Iterator[Face]:
    if kind.endswith("-pool"):
        config["pool_config"] = {"min_size": 1, "max_size": 3}
    sql = _psycopg(conn_string)
    if kind in ("postgres", "postgres-pool"):
        with PostgresStore.from_conn_string(conn_string, **config) as store:
            store.setup()
            yield Face(store, sql=sql)
        return
    with asyncio.Runner() as runner:
        if kind == "postgres-awaited":
            with PostgresStore.from_conn_string(conn_string, **config) as store:
                store.setup()
                yield Face(store, runner, sql)
        else:
            with _entered(runner, AsyncPostgresStore.from_conn_string(conn_string, **config)) as made:
                face = Face(made, runner, sql)
                face.setup()
                yield face
