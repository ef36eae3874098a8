"""Every saver behind one synchronous face, so that a test is written once for all of them, sync and async."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surestep.checkpoint.base import BaseCheckpointSaver
from surestep.checkpoint.memory import InMemorySaver
from surestep.checkpoint.serde.encrypted import EncryptedSerializer, KeyRing
from surestep.checkpoint.sqlite import SqliteSaver
from surestep.checkpoint.sqlite.aio import AsyncSqliteSaver

AWAITED = {
    *("put", "commit", "put_writes", "get", "get_tuple", "get_delta_channel_history"),
    *("delete_thread", "delete_for_runs", "copy_thread", "prune"),
    *("pin", "unpin", "pins", "sweep"),
    *("move_effects", "get_effects", "decide", "get_decisions"),
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


KINDS = ("memory", "memory-async", "sqlite", "sqlite-encrypted", "sqlite-awaited", "sqlite-async", "sqlite-aiosqlite")


def ring(**more: Any) -> EncryptedSerializer:
    """A serializer with an AES key, and with more that only decrypt."""
    return EncryptedSerializer(KeyRing({"now": b"k" * 32, **more}, current="now"))


@contextmanager
def opened(kind: str, path: Path) -> Iterator[Any]:
    """A saver of that kind; one on SQLite keeps its file at `path`."""
    if kind == "memory":
        yield InMemorySaver()
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


def _awaited(kind: str, path: Path, runner: asyncio.Runner) -> Iterator[Awaited]:
    if kind == "memory-async":
        yield Awaited(InMemorySaver(), runner)
    elif kind == "sqlite-awaited":
        with SqliteSaver.from_conn_string(str(path)) as saver:
            yield Awaited(saver, runner)
    elif kind == "sqlite-async":
        context = AsyncSqliteSaver.from_conn_string(str(path))
        yield Awaited(runner.run(context.__aenter__()), runner)
        runner.run(context.__aexit__(None, None, None))
    else:
        import aiosqlite

        async def connect() -> tuple[Any, AsyncSqliteSaver]:
            conn = await aiosqlite.connect(path)
            return conn, AsyncSqliteSaver(conn)

        conn, saver = runner.run(connect())
        yield Awaited(saver, runner)
        runner.run(conn.close())
