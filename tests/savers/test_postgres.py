"""Savers in PostgreSQL: setting up, schemas, tenants, pools and poolers, connections of the caller's, backends that are
killed."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from harness import postgres as harness
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from savers.history import LARGE, Thread, at, everything
from savers.neighbour import PASSWORD, granted, run

from surestep.checkpoint.base import HEAD_KEY
from surestep.checkpoint.postgres import PostgresSaver, setup_sql
from surestep.checkpoint.postgres.aio import AsyncPostgresSaver
from surestep.errors import ThreadConflict
from surestep.graph import START, StateGraph

ODD = """it's "odd" 100% ?"""


def as_role(conn_string: str, role: str) -> str:
    return make_conninfo(**{**conninfo_to_dict(conn_string), "user": role, "password": PASSWORD})


@pytest.fixture
def role() -> str:
    return f"surestep_{uuid.uuid4().hex[:12]}"


def is_set_up(conn_string: str) -> bool:
    with PostgresSaver.from_conn_string(conn_string) as saver:
        Thread(saver).put({"n": 1})
        return saver.get(at("t")) is not None


# ---- setting up ----


def test_many_set_up_at_once(postgres: str) -> None:
    start = threading.Barrier(8)

    def set_up(number: int) -> None:
        with psycopg.connect(postgres, autocommit=bool(number % 2)) as conn:
            start.wait()
            PostgresSaver(conn).setup()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(set_up, range(8)))
    assert is_set_up(postgres)


def test_setting_up_is_part_of_the_callers_transaction(postgres: str) -> None:
    with psycopg.connect(postgres) as conn:
        conn.execute("SELECT 1")
        PostgresSaver(conn).setup()
        conn.rollback()
        with pytest.raises(psycopg.errors.UndefinedTable) as raised:
            PostgresSaver(conn).get(at("t"))
        assert any("setup()" in note for note in raised.value.__notes__)
        conn.rollback()
        with conn.transaction():
            PostgresSaver(conn).setup()
    assert is_set_up(postgres)


def test_somebody_else_sets_up(postgres: str, role: str) -> None:
    run(postgres, setup_sql())
    with granted(postgres, role), PostgresSaver.from_conn_string(as_role(postgres, role)) as saver:
        saver.setup()  # nothing is left to do, and there would be no right to do it
        Thread(saver).put({"n": LARGE})
        assert saver.get(at("t"))["channel_values"] == {"n": LARGE}  # type: ignore[index]
    assert setup_sql(since=1).count("CREATE") == 0


def test_setting_up_once_more_locks_nothing(postgres: str) -> None:
    with PostgresSaver.from_conn_string(postgres) as saver, psycopg.connect(postgres) as other:
        saver.setup()
        other.execute("LOCK TABLE surestep_all_checkpoints, surestep_migrations IN ROW EXCLUSIVE MODE")
        saver.setup()


def test_a_later_release_set_up(postgres: str) -> None:
    with PostgresSaver.from_conn_string(postgres) as saver:
        saver.setup()
        run(postgres, "INSERT INTO surestep_migrations (number) VALUES (1000)")
        with pytest.raises(RuntimeError, match="version 1000"):
            saver.setup()


@pytest.mark.parametrize("tenant", [None, ODD])
def test_a_schema(postgres: str, tenant: str | None) -> None:
    schema = f"{ODD} {uuid.uuid4().hex[:6]}"
    try:
        with PostgresSaver.from_conn_string(postgres, schema=schema, tenant=tenant) as saver:
            saver.setup()
            saver.setup()
            first = Thread(saver).put({"n": 1, "log": [LARGE]})
            Thread(saver).put({"n": 2})
            saver.pin(at("t", first), ODD)
            saver.prune(["t"])
            assert len(list(saver.list(None))) == 2
        with PostgresSaver.from_conn_string(postgres) as other, pytest.raises(psycopg.errors.UndefinedTable):
            other.get(at("t"))
    finally:
        run(postgres, psycopg.sql.SQL("DROP SCHEMA {} CASCADE").format(psycopg.sql.Identifier(schema)).as_string())


# ---- tenants ----


def test_a_tenant_is_out_of_reach_of_another(postgres: str) -> None:
    def opened(tenant: str | None) -> Any:
        return PostgresSaver.from_conn_string(postgres, tenant=tenant)

    with opened("a") as a, opened("b") as b, opened(None) as nobody:
        a.setup()
        id = Thread(a).put({"n": 1})
        a.put_writes(at("t", id), [("x", 1)], "task")
        a.pin(at("t", id), "pin")
        before = everything(a)
        for other in (b, nobody):
            assert other.get_tuple(at("t", id)) is None and list(other.list(None)) == list(other.pins("t")) == []
            other.prune(["t"], strategy="delete")
            other.delete_for_runs(["r"])
            other.copy_thread("t", "u")
            other.delete_thread("t")
            Thread(other).put({"n": 2}, id=id)
            assert len(list(other.list(None))) == 1
        assert everything(a) == before and a.pins("t")


def test_a_role_is_bound_to_its_tenant(postgres: str, role: str) -> None:
    with PostgresSaver.from_conn_string(postgres, tenant="b") as theirs:
        theirs.setup()
        Thread(theirs).put({"n": "theirs"})
        before = everything(theirs)
        with granted(postgres, role, tenant="a"):
            own = as_role(postgres, role)
            with PostgresSaver.from_conn_string(own) as bound, PostgresSaver.from_conn_string(own, tenant="b") as liar:
                Thread(bound).put({"n": 1})
                assert list(liar.list(None)) == []
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    Thread(liar).put({"n": 2})
                liar.delete_thread("t")
                with psycopg.connect(own, autocommit=True) as conn:  # past the saver
                    conn.execute("SET surestep.tenant = 'b'")
                    assert conn.execute("SELECT * FROM surestep_all_checkpoints").fetchall() == []
                    assert conn.execute("DELETE FROM surestep_all_checkpoints").rowcount == 0
                assert [found.checkpoint["channel_values"] for found in bound.list(None)] == [{"n": 1}]
            with PostgresSaver.from_conn_string(postgres, tenant="a") as same:
                assert len(list(same.list(None))) == 1
        assert everything(theirs) == before


def test_a_connection_of_the_callers_keeps_its_tenant(postgres: str) -> None:
    with psycopg.connect(postgres) as conn:
        PostgresSaver(conn).setup()
        conn.execute("SET LOCAL surestep.tenant = 'mine'")
        Thread(PostgresSaver(conn, tenant="a")).put({"n": 1})
        assert conn.execute("SELECT current_setting('surestep.tenant')").fetchone() == ("mine",)
        assert list(PostgresSaver(conn).list(None)) == []


# ---- pools and poolers ----


def test_threads_use_the_connections_of_a_pool(postgres: str) -> None:
    """All wait for each other in the middle of a transaction: with fewer connections nobody would go on."""
    meet = threading.Barrier(3)

    config: Any = {"max_size": 3, "min_size": 3, "max_idle": 60, "max_lifetime": 600, "timeout": 30}
    with PostgresSaver.from_conn_string(postgres, pool_config=config) as saver:
        saver.setup()

        def pause() -> Iterator[Any]:
            yield ("SELECT 1", ())
            meet.wait(30)
            yield ("SELECT 1", ())

        with ThreadPoolExecutor(3) as threads:
            list(threads.map(lambda _: saver._runner.write(pause()), range(3)))  # type: ignore[arg-type]
        assert saver.conn.max_idle == 60 and saver.conn.max_lifetime == 600 and saver.conn.timeout == 30


def test_nothing_stays_on_the_connections(postgres: str) -> None:
    """What a pooler that gives connections away after each transaction asks for."""
    with ConnectionPool(postgres, min_size=1, max_size=1, kwargs={"autocommit": True}) as pool:
        saver = PostgresSaver(pool, tenant="a")
        saver.setup()
        thread = Thread(saver)
        for number in range(10):
            thread.put({"n": number, "log": [LARGE] * number})
            saver.put_writes(at("t", thread.head), [("x", 1), ("y", 2)], "task")
            saver.get_tuple(at("t"))
        with pool.connection() as conn:
            assert conn.execute("SELECT current_setting('surestep.tenant', true)").fetchone() in [("",), (None,)]
            assert conn.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone() == (0,)


@pytest.mark.parametrize("threshold", [None, 0, 2])
def test_statements_are_prepared_when_asked_for(postgres: str, threshold: int | None) -> None:
    with PostgresSaver.from_conn_string(postgres, prepare_threshold=threshold) as saver:
        saver.setup()
        thread = Thread(saver)
        for number in range(10):
            thread.put({"n": number})
            saver.get_tuple(at("t"))
            with pytest.raises(ThreadConflict):
                thread.put({"n": 0}, parent=thread.head, guard="wrong")
        prepared = saver.conn.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
        assert (prepared == (0,)) is (threshold is None)


def test_a_pipeline(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as conn:
        with conn.pipeline() as pipe:
            saver = PostgresSaver(conn, pipe)
            saver.setup()
            Thread(saver).put({"n": 1})
            assert saver.get(at("t"))["channel_values"] == {"n": 1}  # type: ignore[index]
        with ConnectionPool(postgres, open=False) as pool, pytest.raises(ValueError, match="pipeline"):
            PostgresSaver(pool, pipe)


# ---- the caller's transaction ----


def test_what_is_saved_is_part_of_the_callers_transaction(postgres: str) -> None:
    with psycopg.connect(postgres) as conn:
        saver = PostgresSaver(conn)
        saver.setup()
        conn.commit()
        Thread(saver).put({"n": 1})
        conn.execute("SELECT 1")
        Thread(saver).put({"n": 2})
        conn.rollback()
        assert len(list(saver.list(None))) == 1


def test_a_transaction_that_does_not_see_others_is_refused(postgres: str) -> None:
    with PostgresSaver.from_conn_string(postgres) as other, psycopg.connect(postgres) as conn:
        other.setup()
        head = Thread(other).put({"n": 1})
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with conn.transaction():
            saver = PostgresSaver(conn)
            assert saver.get(at("t")) is not None
            thread = Thread(other)
            thread.put({"n": 2}, parent=head)
            with pytest.raises(psycopg.errors.RaiseException, match="READ COMMITTED"):
                Thread(saver).put({"n": 3}, parent=head, guard=head)


def test_every_level_that_a_database_may_have_by_default(postgres: str) -> None:
    options = conninfo_to_dict(postgres)["options"]
    strict = make_conninfo(
        **{**conninfo_to_dict(postgres), "options": f"{options} -cdefault_transaction_isolation=serializable"}
    )
    with PostgresSaver.from_conn_string(strict) as saver:
        saver.setup()
        thread = Thread(saver)
        for number in range(3):
            thread.put({"n": number}, guard=thread.head)
        with pytest.raises(ThreadConflict):
            thread.put({"n": 9}, parent=thread.head, guard="wrong")


# ---- connections that end ----


def terminate(postgres: str) -> None:
    """End all other connections to the database."""
    run(
        postgres,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()",
    )


@pytest.mark.parametrize("pool", [None, {"min_size": 3, "max_size": 3}], ids=["connection", "pool"])
def test_connections_that_were_cut_while_idle(postgres: str, pool: Any) -> None:
    with PostgresSaver.from_conn_string(postgres, pool_config=pool) as saver:
        saver.setup()
        thread = Thread(saver)
        for number in range(3):
            thread.put({"n": number}, guard=thread.head)
            terminate(postgres)
            assert saver.get(at("t"))["channel_values"] == {"n": number}  # type: ignore[index]
            terminate(postgres)
        assert len(list(saver.list(None))) == 3


@pytest.mark.parametrize("pool", [None, {"min_size": 3, "max_size": 3}], ids=["connection", "pool"])
async def test_async_connections_that_were_cut_while_idle(postgres: str, pool: Any) -> None:
    async with AsyncPostgresSaver.from_conn_string(postgres, pool_config=pool) as saver:
        await saver.setup()
        for number in range(3):
            await asyncio.gather(*[asyncio.to_thread(Thread(saver, f"{number}{n}").put, {"n": n}) for n in range(4)])
            terminate(postgres)
            assert len([found async for found in saver.alist(None)]) == 4 * (number + 1)
            terminate(postgres)


def test_a_connection_of_the_callers_that_ended(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as conn:
        saver = PostgresSaver(conn)
        saver.setup()
        terminate(postgres)
        for _ in range(2):
            with pytest.raises(psycopg.OperationalError) as raised:
                saver.get(at("t"))
            assert raised.value.__notes__


@pytest.fixture(scope="module")
def own_server() -> Iterator[str]:
    with harness.own_server(synchronous_commit="on") as conn_string:
        yield conn_string


def test_a_backend_that_is_killed(own_server: str) -> None:
    """The server ends all connections then, and recovers: what was reported as stored is there."""

    with PostgresSaver.from_conn_string(own_server, pool_config={"max_size": 2}) as saver:
        saver.setup()
        thread = Thread(saver)
        for number in range(3):
            thread.put({"n": number, "log": [LARGE] * number}, guard=thread.head)
            with saver.conn.connection() as conn:
                (pid,) = conn.execute("SELECT pg_backend_pid()").fetchone()
            with suppress(ProcessLookupError):  # the server is still ending those that it had at the last kill
                os.kill(pid, signal.SIGKILL)
            found = patiently(lambda: saver.get(at("t")))
            assert found["channel_values"] == {"n": number, "log": [LARGE] * number}


def patiently(call: Callable[[], Any]) -> Any:
    """What the call gives once the server has recovered; until then it says clearly that it can't be reached."""
    while True:
        try:
            return call()
        except psycopg.OperationalError as error:
            assert str(error)


# ---- what can't be stored ----


def test_characters(postgres: str) -> None:
    with PostgresSaver.from_conn_string(postgres, tenant="a\\'é") as saver:
        saver.setup()
        values = {"text": "a\0b", "é": "é\0", "list": ["\0"] * 40}
        id = Thread(saver, "é ' %s ?").put(values, metadata={"note": "kept"})
        saver.put_writes(at("é ' %s ?", id), [("x", "\0" * 999)], "task")
        found = saver.get_tuple(at("é ' %s ?"))
        assert found is not None and found.checkpoint["channel_values"] == values
        assert found.pending_writes == [("task", "x", "\0" * 999)]
        with pytest.raises(psycopg.DataError, match="NUL"):
            Thread(saver, "a\0b").put({})
        Thread(saver).put({})


def test_a_run_on_each(postgres: str) -> None:
    """A graph's run, sync and async, with the head compared and set."""
    graph = StateGraph(dict).add_node("n", lambda state: {"n": state["n"] + 1}).add_edge(START, "n")
    with PostgresSaver.from_conn_string(postgres) as saver:
        saver.setup()
        app = graph.compile(checkpointer=saver)
        assert app.invoke({"n": 1}, at("t"))["n"] == 2
        assert HEAD_KEY not in repr(everything(saver))

    async def awaited() -> None:
        async with AsyncConnectionPool(postgres, open=False, kwargs={"autocommit": True}) as pool:
            app = graph.compile(checkpointer=AsyncPostgresSaver(pool))
            runs = [app.ainvoke({"n": n}, {"configurable": {"thread_id": f"{n}"}}) for n in range(20)]
            assert [state["n"] for state in await asyncio.gather(*runs)] == [*range(1, 21)]

    asyncio.run(awaited())
