"""LangGraph's conformance kit for savers, with every capability it knows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from savers.kinds import ring

from surestep.checkpoint.memory import InMemorySaver
from surestep.checkpoint.sqlite import SqliteSaver
from surestep.checkpoint.sqlite.aio import AsyncSqliteSaver

EVERYTHING = {
    *("put", "put_writes", "get_tuple", "list", "delete_thread"),
    *("delete_for_runs", "copy_thread", "prune"),
}


@pytest.mark.parametrize("kind", ["memory", "sqlite", "sqlite-encrypted", "sqlite-async", "sqlite-aiosqlite"])
async def test_the_conformance_kit(kind: str, tmp_path: Path) -> None:
    from langgraph.checkpoint.conformance import checkpointer_test, validate

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

    report = await validate(made)
    failures = {name: result.failures for name, result in report.results.items() if result.failures}
    assert not failures
    assert {name for name, result in report.results.items() if result.passed} >= EVERYTHING
