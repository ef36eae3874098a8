"""What is particular to SQLite: the file, its tables, connections, cancellation."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from savers.history import LARGE, TASK, Thread, at, everything, ids
from savers.walk import check_pages

from surestep._sql.run import SqliteRunner
from surestep.checkpoint.base import HEAD_KEY, TaskWrites
from surestep.checkpoint.serde.encrypted import EncryptedSerializer
from surestep.checkpoint.sqlite import SqliteSaver, connect
from surestep.checkpoint.sqlite.aio import AsyncSqliteSaver
from surestep.graph import START, MessagesState, StateGraph

TABLES = ("surestep_checkpoints", "surestep_pages", "surestep_writes")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoints.sqlite")


def count(saver: SqliteSaver, table: str) -> int:
    found: int = saver.conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return found


def fill(saver: Any, id: str = "t", steps: int = 3) -> Thread:
    thread = Thread(saver, id)
    for number in range(steps):
        writes = [TaskWrites(TASK, "~p", [("n", number), ("large", LARGE)])] if number else None
        thread.put({"n": number, "large": [LARGE, number]}, writes=writes)
    return thread


def test_what_was_written_is_there_for_the_next_process(path: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        fill(saver)
        before = everything(saver)
    with SqliteSaver.from_conn_string(path) as again:
        assert everything(again) == before
    with pytest.raises(sqlite3.ProgrammingError):
        saver.get_tuple(at("t"))


def test_a_step_is_one_row(path: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        thread = Thread(saver)
        thread.put({"n": 0})
        for number in range(1, 5):
            thread.put({"n": number, "next": None}, writes=[TaskWrites(TASK, "~p", [("n", number), ("next", None)])])
        assert [count(saver, table) for table in TABLES] == [5, 0, 0]


def test_a_large_value_is_stored_once(path: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        thread = Thread(saver)
        thread.put({"large": LARGE, "n": 0})
        for number in range(5):
            thread.put({"n": number})
        assert count(saver, "surestep_pages") == 1


def test_a_checkpoint_stores_what_it_changes(path: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        thread = Thread(saver)
        for number in range(200):
            thread.put({f"c{number}": "x" * 300})
        lengths = [length for (length,) in saver.conn.execute("SELECT length(state) FROM surestep_checkpoints")]
        assert sum(lengths) < 3 * 200 * 400  # now and then there is a whole one
        assert thread.get().checkpoint["channel_values"] == thread.values[thread.head or ""]  # type: ignore[union-attr]


@pytest.mark.parametrize("ids", [True, False])
def test_a_dialogue_stores_its_turns_whether_its_messages_come_with_ids_or_not(path: str, ids: bool) -> None:
    """A reducer that gives ids makes other items of those in the input."""
    from langchain_core.messages import AIMessage, HumanMessage

    sizes = []
    with SqliteSaver.from_conn_string(path) as saver:
        builder = StateGraph(MessagesState).add_node("n", lambda state: {"messages": [AIMessage("a" * 600)]})
        app = builder.add_edge(START, "n").compile(checkpointer=saver)
        for turn in range(90):
            asked = HumanMessage("q" * 600, id=str(turn) if ids else None)
            app.invoke({"messages": [asked]}, {"configurable": {"thread_id": "t"}})
            if turn in (29, 89):
                check_pages(saver)
                pages = "SELECT sum(length(data)) FROM surestep_pages"
                sql = f"SELECT sum(length(state)), ({pages}) FROM surestep_checkpoints"
                sizes.append(saver.conn.execute(sql).fetchone())
    (states, items), (more_states, more_items) = sizes
    assert more_states < 3.3 * states and more_items < 3.3 * items


def test_pruning_and_deleting_leave_no_orphan(path: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        thread = fill(saver, steps=6)
        saver.prune(["t"])
        assert [count(saver, table) for table in TABLES] == [1, 1, 0]
        found = thread.get()
        assert found is not None and found.checkpoint["channel_values"]["large"] == [LARGE, 5]
        saver.delete_thread("t")
        assert [count(saver, table) for table in TABLES] == [0, 0, 0]


def test_the_settings_of_the_file(path: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        saver.setup()
        saver.setup()
        assert saver.conn.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert saver.conn.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_uri_works() -> None:
    with SqliteSaver.from_conn_string("file:shared?mode=memory&cache=shared") as saver:
        assert fill(saver).get()


def test_the_cursor_shares_the_connection(path: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        with saver.cursor() as cursor:
            cursor.execute("CREATE TABLE mine (x)")
        with pytest.raises(ZeroDivisionError), saver.cursor() as cursor:
            cursor.execute("INSERT INTO mine VALUES (1)")
            1 / 0  # noqa: B018
        with saver.cursor(transaction=False) as cursor:
            assert cursor.execute("SELECT count(*) FROM mine").fetchone() == (0,)


def test_langgraphs_tables_in_the_same_file_are_left_alone(path: str) -> None:
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.sqlite import SqliteSaver as Theirs

    checkpoint: Any = {**empty_checkpoint(), "channel_values": {"a": 1}, "channel_versions": {"a": "1"}}
    config: Any = at("t")
    with Theirs.from_conn_string(path) as theirs:
        theirs.put(config, checkpoint, {}, {"a": "1"})
    with SqliteSaver.from_conn_string(path) as ours:
        assert list(ours.list(None)) == []
        fill(ours)
        ours.delete_thread("t")
        fill(ours)
    with Theirs.from_conn_string(path) as theirs:
        assert theirs.get(config)["channel_values"] == {"a": 1}  # type: ignore[index]
        assert len(list(theirs.list(config))) == 1


def test_a_database_of_a_later_version_is_refused(path: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        saver.setup()
        saver.conn.executescript("DROP VIEW surestep_schema; CREATE VIEW surestep_schema AS SELECT 9 AS version")
    with SqliteSaver.from_conn_string(path) as saver, pytest.raises(RuntimeError, match="version 9"):
        saver.get_tuple(at("t"))


def test_a_connection_of_the_callers(path: str) -> None:
    conn = sqlite3.connect(path, check_same_thread=False)
    saver = SqliteSaver(conn)
    thread = fill(saver)
    conn.execute("CREATE TABLE mine (x)")
    conn.execute("INSERT INTO mine VALUES (1)")
    with pytest.raises(RuntimeError, match="transaction of your own"):
        thread.put({"n": 9})
    conn.commit()
    thread.put({"n": 9})
    assert len(everything(saver)) == 4
    conn.close()


def test_an_error_in_the_middle_undoes_all_of_it(path: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        thread = fill(saver)
        before = everything(saver)
        saver.conn.execute("ALTER TABLE surestep_pages RENAME TO elsewhere")
        with pytest.raises(sqlite3.OperationalError):
            thread.put({"large": LARGE}, writes=[TaskWrites(TASK, "~p", [("n", 9)])])
        saver.conn.execute("ALTER TABLE elsewhere RENAME TO surestep_pages")
        assert everything(saver) == before
        assert not saver.conn.in_transaction


def test_nothing_readable_is_in_an_encrypted_file(path: str, tmp_path: Path) -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    conn = connect(path)
    saver = SqliteSaver(conn, serde=serde)
    thread = Thread(saver)
    thread.put({"iban": "SECRET-1", "large": "SECRET-2" * 200}, metadata={"who": "SECRET-3"})
    thread.put({"n": 1}, writes=[TaskWrites(TASK, "~p", [("iban", "SECRET-4")])])
    saver.put_writes(at("t", thread.head), [("iban", "SECRET-5")], TASK)
    assert b"SECRET" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert "SECRET-5" in repr(everything(saver))
    conn.close()


# ---- waiting for others ----


def test_a_write_waits_until_it_is_let_in(path: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        thread = fill(saver)
        saver.conn.execute("PRAGMA busy_timeout = 0")  # so that the saver's own patience is what waits
        other = connect(path)
        other.execute("BEGIN IMMEDIATE")
        waiting = threading.Event()
        sleep = saver._runner._sleep
        saver._runner._sleep = lambda: (waiting.set(), sleep())  # type: ignore[assignment, func-returns-value]
        writer = threading.Thread(target=thread.put, args=({"n": 7},))
        writer.start()
        assert waiting.wait(60)
        other.execute("COMMIT")
        writer.join()
        other.close()
        assert thread.get().checkpoint["channel_values"]["n"] == 7  # type: ignore[union-attr]


def test_a_read_waits_for_whoever_has_the_file_to_himself(path: str) -> None:
    """As the last one to close it has, while the write-ahead log is cleared away."""
    with SqliteSaver.from_conn_string(path) as saver:
        fill(saver)
    other = connect(path)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("CREATE TABLE mine (x)")
    with SqliteSaver.from_conn_string(path) as saver:
        saver.conn.execute("PRAGMA busy_timeout = 0")  # so that the saver's own patience is what waits
        saver._runner._ready = True  # type: ignore[attr-defined]  # the database is
        waited: list[bool] = []
        saver._runner._sleep = lambda: (waited.append(True), other.close())  # type: ignore[assignment, func-returns-value]
        assert len(ids(saver.list(at("t")))) == 3
        assert waited == [True]


def test_patience_ends(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surestep._sql.run.BUSY_SECONDS", 0.0)
    with SqliteSaver.from_conn_string(path) as saver:
        fill(saver)
        saver.conn.execute("PRAGMA busy_timeout = 0")
        other = connect(path)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            saver.put_writes(at("t", "1"), [("x", 1)], TASK)
        assert len(ids(saver.list(at("t")))) == 3  # readers don't wait
        other.close()


# ---- async ----


class Gate:
    """A lock that says when somebody is inside, and holds them there."""

    def __init__(self) -> None:
        self.inside, self.go_on = threading.Event(), threading.Event()

    def __enter__(self) -> None:
        self.inside.set()
        assert self.go_on.wait(60)

    def __exit__(self, *error: object) -> None: ...


async def test_a_cancelled_write_has_happened_or_never_will(path: str) -> None:
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        await saver.setup()
        watcher = SqliteSaver(connect(path))
        thread = Thread(watcher)
        first = thread.put({})
        inside, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            inside.set()
            assert go_on.wait(60)

        runner = saver._runner
        assert isinstance(runner, SqliteRunner)
        runner._submit(hold)  # the worker is busy, so one write is under way and another one waits for its turn
        assert inside.wait(60)
        queued = asyncio.create_task(saver.aput_writes(at("t", first), [("queued", 1)], TASK))
        await asyncio.sleep(0)
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued
        go_on.set()
        await saver.aget_tuple(at("t"))  # everything before this in the worker's queue is over
        assert thread.writes(first) == []

        gate = Gate()
        runner.lock = gate  # type: ignore[assignment]
        begun = asyncio.create_task(saver.aput_writes(at("t", first), [("begun", 1)], TASK))
        await asyncio.to_thread(gate.inside.wait, 60)
        begun.cancel()
        await asyncio.sleep(0)
        begun.cancel()  # whoever is impatient waits as well
        await asyncio.sleep(0)
        assert not begun.done()
        gate.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await begun
        assert thread.writes(first) == [(TASK, "begun", 1)]
        watcher.conn.close()


async def test_several_loops_use_one_saver(path: str) -> None:
    async with AsyncSqliteSaver.from_conn_string(path) as saver:

        def elsewhere(name: str) -> None:
            async def steps() -> None:
                for number in range(10):
                    await saver.aput(at(name), {**checkpoint(), "id": f"{number}"}, {}, {})

            asyncio.run(steps())

        await asyncio.gather(*(asyncio.to_thread(elsewhere, f"t{i}") for i in range(3)))
        assert len([found async for found in saver.alist(None)]) == 30
        assert len(list(saver.list(None))) == 30  # the sync methods work too


def checkpoint() -> Any:
    return {
        "v": 4,
        "ts": "",
        "channel_values": {},
        "channel_versions": {},
        "versions_seen": {},
        "updated_channels": None,
    }


async def test_an_aiosqlite_connection(path: str) -> None:
    import aiosqlite

    async with aiosqlite.connect(path) as conn:
        saver = AsyncSqliteSaver(conn)
        await saver.setup()
        await asyncio.gather(*(saver.aput(at(f"t{i}"), {**checkpoint(), "id": "1"}, {}, {}) for i in range(20)))
        config: Any = at("t1", **{HEAD_KEY: None})
        with pytest.raises(Exception, match="was moved by another run"):
            await saver.aput(config, {**checkpoint(), "id": "2"}, {}, {})
        assert len([found async for found in saver.alist(None)]) == 20
        assert len(await asyncio.to_thread(lambda: list(saver.list(None)))) == 20
        with pytest.raises(asyncio.InvalidStateError, match="aget_tuple"):
            saver.get_tuple(at("t1"))
        task = asyncio.create_task(saver.aput(at("t0"), {**checkpoint(), "id": "3"}, {}, {}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        found = await saver.aget_tuple(at("t0"))
        assert found is not None
        await asyncio.sleep(0)
        assert await saver.aget_tuple(at("t0")) == found
