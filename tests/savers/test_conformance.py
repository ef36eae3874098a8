"""LangGraph's conformance kit for savers, with every capability it knows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection
from savers.kinds import fresh_tenant, ring

from surestep.checkpoint.memory import InMemorySaver
from surestep.checkpoint.postgres import PostgresSaver
from surestep.checkpoint.postgres.aio import AsyncPostgresSaver
from surestep.checkpoint.sqlite import SqliteSaver
from surestep.checkpoint.sqlite.aio import AsyncSqliteSaver

EVERYTHING = {
    *("put", "put_writes", "get_tuple", "list", "delete_thread"),
    *("delete_for_runs", "copy_thread", "prune"),
}


@pytest.mark.parametrize("kind", ["memory", "sqlite", "sqlite-encrypted", "sqlite-async", "sqlite-aiosqlite"])
async def test_the_conformance_kit(kind: str, tmp_path: Path) -> None:
    from langgraph.checkpoint.conformance import checkpointer_test

    files = iter(range(10_000))

    @checkpointer_test(name=kind)
    async def made() -> AsyncIterator[Any]:
        path = str(tmp_path / f"{next(files)}.sqlite")
        if kind == "memory":
            yield InMemorySaver()
        elif kind == "sqlite":
            with SqliteSaver.from_conn_string(path) as saver:
                yield saver
        elif kind == "sqlite-encrypted":
            with SqliteSaver.from_conn_string(path) as saver:
                saver.serde = ring()
                yield saver
        elif kind == "sqlite-async":
            async with AsyncSqliteSaver.from_conn_string(path) as saver:
                yield saver
        else:
            import aiosqlite

            async with aiosqlite.connect(path) as conn:
                yield AsyncSqliteSaver(conn)

    await check(made)


@pytest.mark.parametrize("kind", ["postgres", "postgres-async", "postgres-pool", "postgres-connection"])
async def test_the_conformance_kit_on_postgres(kind: str, place: Callable[[str], Any]) -> None:
    """Each saver is a tenant of its own."""
    from langgraph.checkpoint.conformance import checkpointer_test

    conn_string = place("postgres-tenant")

    @checkpointer_test(name=kind)
    async def made() -> AsyncIterator[Any]:
        tenant = fresh_tenant()
        if kind == "postgres":
            with PostgresSaver.from_conn_string(conn_string, tenant=tenant) as saver:
                yield saver
        elif kind == "postgres-connection":
            async with await AsyncConnection.connect(conn_string) as conn:  # without autocommit
                yield AsyncPostgresSaver(conn, tenant=tenant)
        else:
            pool: Any = {"max_size": 2} if kind == "postgres-pool" else None
            async with AsyncPostgresSaver.from_conn_string(conn_string, tenant=tenant, pool_config=pool) as saver:
                yield saver

    await check(made)


async def check(made: Any) -> None:
    """Everything the kit knows holds."""
    from langgraph.checkpoint.conformance import validate

    report = await validate(made)
    failures = {name: result.failures for name, result in report.results.items() if result.failures}
    assert not failures
    assert {name for name, result in report.results.items() if result.passed} >= EVERYTHING
