"""Stores in SQLite files: LangGraph's files, several threads and processes, connections that others use."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import langgraph.store.sqlite as theirs
import pytest
from stores import writer

from surestep.checkpoint.sqlite import SqliteSaver
from surestep.checkpoint.sqlite.aio import AsyncSqliteSaver
from surestep.store.base import GetOp, PutOp
from surestep.store.sqlite import AsyncSqliteStore, SqliteStore

VALUE = {"text": "é", "n": 1.5, "list": [1, {"a": None}]}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


# LangGraph's files


@pytest.mark.filterwarnings("ignore:The default datetime adapter")  # LangGraph uses it
def test_what_langgraph_stored(path: str) -> None:
    with theirs.SqliteStore.from_conn_string(path, ttl={"default_ttl": 10}) as their:
        their.setup()
        their.put(("u", "é"), "lives", VALUE)
        their.put(("u",), "ever", {"n": 2}, ttl=None)
        item = their.get(("u", "é"), "lives")
        assert item is not None
    with SqliteStore.from_conn_string(path) as store:
        read = store.get(("u", "é"), "lives", refresh_ttl=True)
        assert read is not None and read.value == VALUE
        assert read.created_at.replace(tzinfo=None) == item.created_at
        assert [found.key for found in store.search((), filter={"n": {"$lt": 2}})] == ["lives"]
        assert store.list_namespaces() == [("u",), ("u", "é")]
        store.put(("u", "é"), "lives", {"n": 3})
        again = store.get(("u", "é"), "lives")
        assert again is not None and again.created_at == read.created_at


def test_what_langgraph_reads(path: str) -> None:
    with SqliteStore.from_conn_string(path) as store:
        store.put(("u", "é"), "k", VALUE)
        store.put(("u", "é"), "gone", VALUE, ttl=-1)
    with theirs.SqliteStore.from_conn_string(path) as their:
        their.setup()
        item = their.get(("u", "é"), "k")
        assert item is not None and item.value == VALUE
        assert [found.key for found in their.search((), filter={"n": {"$gt": 1}, "text": "é"}) if found.key == "k"]
        their.put(("u", "é"), "k2", VALUE)
        assert their.sweep_ttl() == 1


def test_a_table_from_before_there_was_a_time_to_live(path: str) -> None:
    old = sqlite3.connect(path)
    old.execute(
        "CREATE TABLE store (prefix text, key text, value text, created_at, updated_at, PRIMARY KEY (prefix, key))"
    )
    old.execute("INSERT INTO store VALUES ('u', 'k', '{\"a\":1}', '2025-01-01 00:00:00', '2025-01-01 00:00:00')")
    old.commit()
    old.close()
    with SqliteStore.from_conn_string(path) as store:
        store.put(("u",), "new", {"a": 1}, ttl=1)
        assert {item.key for item in store.search((), filter={"a": 1})} == {"k", "new"}


def test_vectors_from_before_the_index_was_changed(path: str) -> None:
    def index(dims: int) -> Any:
        return {"dims": dims, "embed": lambda texts: [[1.0] * dims for _ in texts]}

    with SqliteStore.from_conn_string(path, index=index(2)) as store:
        store.put(("u",), "old", {"n": 1})
    with SqliteStore.from_conn_string(path, index=index(3)) as store:
        store.put(("u",), "new", {"n": 1})
        assert {item.key: item.score for item in store.search((), query="x")} == {"new": pytest.approx(1), "old": None}


# Several at once

WRITERS, ITEMS = 4, 15


def test_processes(path: str) -> None:
    outputs = writer.in_processes("sqlite", path, WRITERS, ITEMS)
    assert outputs == [(str(ITEMS), "")] * WRITERS


@pytest.mark.parametrize("one_each", [False, True], ids=["one store", "a store each"])
def test_threads(path: str, one_each: bool) -> None:
    start = threading.Barrier(WRITERS)

    def run(number: int) -> int:
        start.wait()
        if not one_each:
            return writer.work(shared, f"w{number}", ITEMS)
        with SqliteStore.from_conn_string(path) as own:
            return writer.work(own, f"w{number}", ITEMS)

    with SqliteStore.from_conn_string(path) as shared, ThreadPoolExecutor(WRITERS) as pool:
        assert list(pool.map(run, range(WRITERS))) == [ITEMS] * WRITERS


def test_a_saver_and_a_store_on_one_connection(path: str) -> None:
    conn = sqlite3.connect(path, check_same_thread=False)
    saver, store = SqliteSaver(conn), SqliteStore(conn)
    start = threading.Barrier(2)

    def save() -> None:
        start.wait()
        for number in range(50):
            config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": f"{number:03}"}}
            saver.put_writes(config, [("x", number)], "task")

    with ThreadPoolExecutor(2) as pool:
        saving = pool.submit(save)
        storing = pool.submit(lambda: (start.wait(), [store.put(("u",), str(n), {"n": n}) for n in range(50)]))
        saving.result()
        storing.result()
    assert len(store.search((), limit=100)) == 50
    conn.close()


async def test_an_async_saver_and_a_store_on_one_connection(path: str) -> None:
    import aiosqlite

    async with aiosqlite.connect(path) as conn:
        saver, store = AsyncSqliteSaver(conn), AsyncSqliteStore(conn)
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}}
        saves = [saver.aput_writes(config, [("x", n)], f"task{n}") for n in range(20)]
        await asyncio.gather(*saves, *[store.aput(("u",), str(n), {"n": n}) for n in range(20)])
        assert len(await store.asearch((), limit=100)) == 20
        await store.stop()


def test_a_transaction_of_the_callers_own_is_left_alone(path: str) -> None:
    conn = sqlite3.connect(path, check_same_thread=False)
    store = SqliteStore(conn)
    store.setup()
    conn.execute("CREATE TABLE mine (n)")
    conn.execute("INSERT INTO mine VALUES (1)")
    with pytest.raises(RuntimeError, match="transaction of your own"):
        store.put(("u",), "k", {})
    conn.rollback()
    store.put(("u",), "k", {})
    assert conn.execute("SELECT count(*) FROM mine").fetchone() == (0,)
    conn.close()


def test_reading_takes_no_lock_for_items_that_live_for_ever(path: str) -> None:
    with SqliteStore.from_conn_string(path) as store:
        store.put(("u",), "k", {"a": 1})
        store.put(("u",), "mortal", {"a": 1}, ttl=5)
        writing = sqlite3.connect(path, isolation_level=None)
        writing.execute("BEGIN IMMEDIATE")
        assert store.get(("u",), "k", refresh_ttl=True) is not None
        assert len(store.search((), filter={"a": 1})) == 2
        writing.execute("ROLLBACK")
        writing.close()


# On an event loop


async def test_a_cancelled_call_leaves_the_store_usable(path: str) -> None:
    async with AsyncSqliteStore.from_conn_string(path) as store:
        await store.aput(("u",), "k", {"n": 0})
        for number in range(5):
            tasks = [
                asyncio.create_task(store.aput(("u",), "k", {"n": number})),
                asyncio.create_task(store.asearch(())),
            ]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        item = await store.aget(("u",), "k")
        assert item is not None


async def test_a_call_that_fails_fails_alone(path: str) -> None:
    async with AsyncSqliteStore.from_conn_string(path) as store:
        results = await asyncio.gather(
            store.aput(("u",), "one", {"n": 1}),
            store.aput(("u",), "bad", {"n": object()}),
            store.asearch(("u",), filter={"n": {"$in": [1]}}),
            store.aput(("u",), "two", {"n": 2}),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [type(None), TypeError, ValueError, type(None)]
        assert {item.key for item in await store.asearch(("u",))} == {"one", "two"}


async def test_closing_waits_for_what_was_asked(path: str) -> None:
    async with AsyncSqliteStore.from_conn_string(path, ttl={"default_ttl": 1}) as store:
        await store.start_ttl_sweeper()
        asked = [asyncio.create_task(store.aput(("u",), str(n), {"n": n})) for n in range(10)]
        await asyncio.sleep(0)
    assert await asyncio.gather(*asked) == [None] * 10
    del store
    gc.collect()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with SqliteStore.from_conn_string(path) as reader:
        assert len(reader.search((), limit=100)) == 10


async def test_from_another_thread_and_from_the_loops_own(path: str) -> None:
    async with AsyncSqliteStore.from_conn_string(path) as store:
        await asyncio.to_thread(store.put, ("u",), "k", {"n": 1})
        got = await asyncio.to_thread(store.batch, [GetOp(("u",), "k")])
        assert got[0] is not None
        with pytest.raises(asyncio.InvalidStateError, match="in the thread of its event loop"):
            store.get(("u",), "k")


async def test_what_is_asked_at_once_is_one_transaction(path: str) -> None:
    async with AsyncSqliteStore.from_conn_string(path) as store:
        begun: list[str] = []
        await store.setup()
        store.conn.set_trace_callback(lambda sql: begun.append(sql) if sql.startswith("BEGIN") else None)
        await asyncio.gather(*[store.aput(("u",), str(n), {"n": n}) for n in range(10)])
        await asyncio.gather(*[store.aget(("u",), str(n)) for n in range(10)])
        assert begun == ["BEGIN IMMEDIATE", "BEGIN"]


# Sweeping


def test_the_sweeper(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with SqliteStore.from_conn_string(path, ttl={"default_ttl": 0, "sweep_interval_minutes": 0}) as store:  # type: ignore[typeddict-item]
        store.setup()
        swept, failures = threading.Event(), [RuntimeError("disk full")]
        sweep = store.sweep_ttl

        def watched() -> int:
            if failures:
                raise failures.pop()
            count = sweep()
            if count:
                swept.set()
            return count

        store.sweep_ttl = watched  # type: ignore[method-assign]
        store.put(("u",), "k", {})
        running = store.start_ttl_sweeper()
        assert store.start_ttl_sweeper() is running
        assert swept.wait(60)
        assert store.stop_ttl_sweeper(60) and store.stop_ttl_sweeper() and running.done()
    assert "could not be deleted" in caplog.text and "disk full" in caplog.text


def test_a_sweeper_whose_future_is_cancelled(path: str) -> None:
    with SqliteStore.from_conn_string(path, ttl={"default_ttl": 1}) as store:
        running = store.start_ttl_sweeper()
        assert running.cancel() and store.stop_ttl_sweeper(60)
        again = store.start_ttl_sweeper()
        assert again is not running and not again.done()
        again.cancel()


def test_nothing_to_sweep(path: str) -> None:
    with SqliteStore.from_conn_string(path) as store:
        assert store.start_ttl_sweeper().done() and store.stop_ttl_sweeper()


async def test_the_async_sweeper(path: str) -> None:
    ttl: Any = {"default_ttl": 0, "sweep_interval_minutes": 0}
    async with AsyncSqliteStore.from_conn_string(path, ttl=ttl) as store:
        await store.aput(("u",), "k", {})
        task = await store.start_ttl_sweeper()
        assert await store.start_ttl_sweeper() is task
        conn = sqlite3.connect(path)
        while conn.execute("SELECT count(*) FROM store").fetchone() != (0,):
            await asyncio.sleep(0.001)
        conn.close()
        assert await store.stop_ttl_sweeper() and task.cancelled()


# Odds and ends


def test_a_deserializer_of_ones_own(path: str) -> None:
    seen = []

    def loads(text: bytes | str) -> dict[str, Any]:
        seen.append(text)
        return {"loaded": True}

    conn = sqlite3.connect(path)
    store = SqliteStore(conn, deserializer=loads)
    store.put(("u",), "k", {"a": 1})
    item = store.get(("u",), "k")
    assert item is not None and item.value == {"loaded": True} and seen == ['{"a":1}']
    conn.close()


def test_a_batch_that_fails_in_the_database_is_undone(path: str) -> None:
    with SqliteStore.from_conn_string(path) as store:
        store.put(("u",), "k", {"n": 1})
        with pytest.raises(UnicodeError):
            store.batch([PutOp(("u",), "k", {"n": 2}), PutOp(("u",), "\ud800", {"n": 2})])
        assert store.get(("u",), "k").value == {"n": 1}  # type: ignore[union-attr]
