"""What a child process does: runs the graph, dies on the way or not; or looks at what is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from crash.plan import INPUT, Calls, build
from crash.points import Points, watch_conversations, watch_statements, watched_saver

CONFIG = {"configurable": {"thread_id": "t"}}


def run(db: str, log: str, driver: str, durability: str, kind: str = "none", deadly: int = 0) -> Any:
    """Runs the thread to its end: from its beginning if nothing of it is on disk, else from where it stopped.

    Returns the final log, and how many points of `kind` were passed.
    """
    points, calls = Points(kind, deadly), Calls(log)
    if kind == "statement":
        watch_statements(points)
        watch_conversations(points)
    work = _work(db, points, calls, driver, durability)
    return {"log": asyncio.run(work) if driver == "async" else _now(work), "points": points.passed}


async def _work(db: str, points: Points, calls: Calls, driver: str, durability: str) -> Any:
    async with saver_on(db, points, calls, driver) as saver:
        app = build(calls, points, saver, driver)
        if driver == "async":
            there = await saver.aget_tuple(CONFIG)
            return (await app.ainvoke(None if there else INPUT, CONFIG, durability=durability))["log"]
        there = saver.get_tuple(CONFIG)
        return app.invoke(None if there else INPUT, CONFIG, durability=durability)["log"]


@asynccontextmanager
async def saver_on(db: str, points: Points, calls: Calls, driver: str) -> AsyncIterator[Any]:
    """The saver of the driver, in an SQLite file or a PostgreSQL database; it passes the points of kind `call` if it is
    asked to."""

    def kind_of(base: type) -> Any:
        return watched_saver(base, points, calls) if points.kind == "call" else base

    sync, awaited = savers_of(db)
    if driver == "async":
        async with kind_of(awaited).from_conn_string(db) as saver:
            yield saver
    else:
        with kind_of(sync).from_conn_string(db) as saver:
            yield saver


def savers_of(db: str) -> tuple[Any, Any]:
    """The sync and the async saver for that database."""
    if "dbname=" in db:
        from surestep.checkpoint.postgres import PostgresSaver
        from surestep.checkpoint.postgres.aio import AsyncPostgresSaver

        return PostgresSaver, AsyncPostgresSaver
    from surestep.checkpoint.sqlite import SqliteSaver
    from surestep.checkpoint.sqlite.aio import AsyncSqliteSaver

    return SqliteSaver, AsyncSqliteSaver


def _now(coroutine: Any) -> Any:
    """The result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the sync driver waited")


def on_disk(db: str) -> Any:
    """Which keys are on disk, in any checkpoint or pending write of any namespace, and the chain of the root."""
    keys: set[str] = set()
    root: set[str] = set()
    ids: set[str] = set()
    chain = []
    with savers_of(db)[0].from_conn_string(db) as saver:
        for row in saver.list(CONFIG):
            space = row.config["configurable"]["checkpoint_ns"]
            found = list(row.checkpoint["channel_values"].get("log") or [])
            for _, channel, value in row.pending_writes or []:
                found += value if channel == "log" else []
            keys.update(found)
            root.update(found if not space else [])
            parent = row.parent_config and row.parent_config["configurable"]["checkpoint_id"]
            ids.add(row.config["configurable"]["checkpoint_id"])
            chain.append((space, row.metadata["step"], parent))
    missing = [parent for _, _, parent in chain if parent and parent not in ids]
    return {"keys": sorted(keys), "root": sorted(root), "checkpoints": len(chain), "missing parents": missing}
