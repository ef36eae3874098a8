"""Every saver behind one synchronous face, so that a test is written once for all of them, sync and async."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

from surestep.checkpoint.base import BaseCheckpointSaver
from surestep.checkpoint.memory import InMemorySaver
from surestep.checkpoint.postgres import PostgresSaver
from surestep.checkpoint.postgres.aio import AsyncPostgresSaver
from surestep.checkpoint.serde.encrypted import EncryptedSerializer, KeyRing
from surestep.checkpoint.sqlite import SqliteSaver
from surestep.checkpoint.sqlite.aio import AsyncSqliteSaver

AWAITED = {
    *("put", "commit", "put_writes", "get", "get_tuple", "get_delta_channel_history"),
    *("delete_thread", "delete_for_runs", "copy_thread", "prune"),
    *("pin", "unpin", "pins", "sweep"),
    *("move_effects", "get_effects", "decide", "get_decisions"),
    *("acquire", "renew", "release", "stop", "queue", "leave_queue", "get_lease"),
}


class Awaited:
    """A saver whose async methods are called by the names of the sync ones."""

    def __init__(self, saver: BaseCheckpointSaver[Any], runner: asyncio.Runner) -> None:
        self.saver = saver
        self.runner = runner

    def __getattr__(self, name: str) -> Any:
        if name not in AWAITED:
            return getattr(self.saver, name)
        return lambda *args, **kwargs: self.runner.run(getattr(self.saver, f"a{name}")(*args, **kwargs))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("saver", "runner"):
            super().__setattr__(name, value)
        else:
            setattr(self.saver, name, value)

    def list(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        async def all_of() -> list[Any]:
            return [found async for found in self.saver.alist(*args, **kwargs)]

        return iter(self.runner.run(all_of()))

    def with_allowlist(self, extra: Any) -> Awaited:
        return Awaited(self.saver.with_allowlist(extra), self.runner)


POSTGRES = ("postgres",)
"""Alone in its tables."""
TENANTS = (
    *("postgres-tenant", "postgres-encrypted", "postgres-pool"),
    *("postgres-awaited", "postgres-async", "postgres-async-pool"),
)
"""As a tenant of tables where another tenant has threads of the same names: see `Neighbour`."""
SQLITE = ("sqlite", "sqlite-encrypted", "sqlite-awaited", "sqlite-async", "sqlite-aiosqlite")
KINDS = ("memory", "memory-async", *SQLITE, *POSTGRES, *TENANTS)


def ring(**more: Any) -> EncryptedSerializer:
    """A serializer with an AES key, and with more that only decrypt."""
    return EncryptedSerializer(KeyRing({"now": b"k" * 32, **more}, current="now"))


@contextmanager
def opened(kind: str, path: Any) -> Iterator[Any]:
    """A saver of that kind; one on SQLite keeps its file at `path`, one on PostgreSQL its tables in the database that
    this conn string leads to."""
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "postgres":
        with PostgresSaver.from_conn_string(path) as saver:
            saver.setup()
            yield saver
    elif kind in ("postgres-tenant", "postgres-encrypted", "postgres-pool"):
        pool: Any = {"max_size": 3} if kind == "postgres-pool" else None
        serde = ring() if kind == "postgres-encrypted" else None
        with PostgresSaver.from_conn_string(path, serde=serde, tenant=fresh_tenant(), pool_config=pool) as saver:
            yield saver
    elif kind == "sqlite":
        with SqliteSaver.from_conn_string(str(path)) as saver:
            yield saver
    elif kind == "sqlite-encrypted":
        with SqliteSaver.from_conn_string(str(path)) as saver:
            saver.serde = ring()
            yield saver
    else:
        with asyncio.Runner() as runner:
            yield from _awaited(kind, path, runner)


def fresh_tenant() -> str:
    """A tenant that nobody has been yet."""
    return f"it's {uuid.uuid4().hex}"


def _awaited(kind: str, path: Any, runner: asyncio.Runner) -> Iterator[Awaited]:
    if kind == "memory-async":
        yield Awaited(InMemorySaver(), runner)
    elif kind == "postgres-awaited":
        with PostgresSaver.from_conn_string(path, tenant=fresh_tenant(), pool_config={"max_size": 2}) as saver:
            yield Awaited(saver, runner)
    elif kind in TENANTS:
        pool: Any = {"max_size": 3} if kind == "postgres-async-pool" else None
        yield from _entered(AsyncPostgresSaver.from_conn_string(path, tenant=fresh_tenant(), pool_config=pool), runner)
    elif kind == "sqlite-awaited":
        with SqliteSaver.from_conn_string(str(path)) as saver:
            yield Awaited(saver, runner)
    elif kind == "sqlite-async":
        yield from _entered(AsyncSqliteSaver.from_conn_string(str(path)), runner)
    else:
        import aiosqlite

        async def connect() -> tuple[Any, AsyncSqliteSaver]:
            conn = await aiosqlite.connect(path)
            return conn, AsyncSqliteSaver(conn)

        conn, saver = runner.run(connect())
        yield Awaited(saver, runner)
        runner.run(conn.close())


def _entered(context: AbstractAsyncContextManager[Any], runner: asyncio.Runner) -> Iterator[Awaited]:
    yield Awaited(runner.run(context.__aenter__()), runner)
    runner.run(context.__aexit__(None, None, None))
