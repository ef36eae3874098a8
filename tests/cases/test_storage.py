"""What is stored, when, and what happens if it cannot be."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import operator
import os
import sqlite3
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pydantic
import pytest
from cases.shared import Bodies, Log, say
from harness.engine import Boom, Engine
from harness.forge import Forge

DURABILITIES = ("sync", "async", "exit")


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    with Forge("cases.jobs", "surestep.checkpoint.sqlite", "surestep.checkpoint.sqlite.aio", "asyncio") as forge:
        yield forge


def failing(E: Engine, method: str, when: Any, error: type[Exception] = OSError) -> Any:
    """A memory saver whose `put` or `put_writes` fails when `when(...)` says so."""

    class Failing(E.InMemorySaver):  # type: ignore[misc]
        broken = True

        def put(self, config: Any, checkpoint: Any, metadata: Any, new: Any) -> Any:
            if method == "put" and self.broken and when(metadata["step"]):
                raise error("disk full")
            return super().put(config, checkpoint, metadata, new)

        def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            if method == "put_writes" and self.broken and when([channel for channel, _ in writes]):
                raise error("disk full")
            super().put_writes(config, writes, task_id, task_path)

        async def aput(self, config: Any, checkpoint: Any, metadata: Any, new: Any) -> Any:
            return self.put(config, checkpoint, metadata, new)

        async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            self.put_writes(config, writes, task_id, task_path)

    return Failing()


@pytest.mark.parametrize("gone", ["class", "module"])
@pytest.mark.parametrize("kind", ["dataclass", "pydantic"])
def test_a_class_that_moved_is_an_error_and_not_none(gone: str, kind: str, monkeypatch: Any) -> None:
    """langgraph#6970"""
    E = Engine()
    module = types.ModuleType("app_models")
    monkeypatch.setitem(sys.modules, "app_models", module)
    if kind == "dataclass":
        order = dataclasses.make_dataclass("Order", [("n", int)])
    else:
        order = pydantic.create_model("Order", n=(int, ...))
    order.__module__, order.__qualname__, module.Order = "app_models", "Order", order  # type: ignore[attr-defined]
    serde = E.JsonPlusSerializer(allowed_msgpack_modules=[("app_models", "Order")])
    stored = serde.dumps_typed({"order": order(n=5)})
    assert serde.loads_typed(stored) == {"order": order(n=5)}
    if gone == "class":
        del module.Order  # type: ignore[attr-defined]
    else:
        monkeypatch.setitem(sys.modules, "app_models", None)
    error = E.attempt(serde.loads_typed, stored)
    assert isinstance(error, Exception) and "app_models" in str(error) and "Order" in str(error)


@pytest.mark.parametrize("limit", [0, 1, 2, None, -1])
def test_a_limit_means_the_same_to_all_savers(limit: int | None) -> None:
    """langgraph#8656"""
    found = {}
    for driver in ("sync", "async"):
        for savers in ("memory", "sqlite"):
            with Engine("surestep", driver, savers) as E:
                app = E.graph(Log, {"a": say("a")}, "START > a").compile(checkpointer=E.saver())
                E.invoke(app, {"log": []}, E.config())
                rows = E.attempt(E.rows, app.checkpointer, E.config(), limit=limit)
                states = E.attempt(E.history, app, E.config(), limit=limit)
                counts = [type(x) if isinstance(x, Exception) else len(x) for x in (rows, states)]
                found[driver, savers] = counts
    expected = ValueError if limit == -1 else 3 if limit is None else limit
    assert set(map(tuple, found.values())) == {(expected, expected)}, found


def test_a_thread_with_a_wrong_value_can_still_be_used(E: Engine) -> None:
    """langgraph#6491: it could be neither read nor continued."""

    class State(pydantic.BaseModel):
        tags: list[str] = []

    wrong = [True]
    nodes = {"w": lambda s: {"tags": None if wrong[0] else ["ok"]}, "r": lambda s: {}}
    app = E.graph(State, nodes, "START > w > r").compile(checkpointer=E.saver())
    assert isinstance(E.attempt(E.invoke, app, {"tags": []}, E.config()), pydantic.ValidationError)
    wrong[0] = False
    assert E.state(app, E.config()).values == {"tags": None}
    assert len(E.history(app, E.config())) == 3
    assert E.invoke(app, {"tags": ["x"]}, E.config()) == {"tags": ["ok"]}
    wrong[0] = True
    E.attempt(E.invoke, app, {"tags": []}, E.config())
    E.update(app, E.config(), {"tags": ["mended"]}, as_node="w")
    assert E.invoke(app, None, E.config()) == {"tags": ["mended"]}


@pytest.mark.parametrize("driver", ["sync", "async"])
@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("inside", [False, True])
def test_an_accepted_run_leaves_a_trace(
    forge: Forge, tmp_path: Path, driver: str, durability: str, inside: bool
) -> None:
    """langgraph#8764: the process dies inside the first node. `exit` promises nothing."""
    db = str(tmp_path / "db")
    outcome = forge.run("cases.jobs:die_in_the_first_node", db=db, driver=driver, durability=durability, inside=inside)
    assert outcome.killed
    with Engine("surestep", "sync") as E, E.SqliteSaver.from_conn_string(db) as saver:
        rows = list(saver.list({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}))
        assert rows and rows[-1].metadata["source"] == "input"
        assert rows[-1].checkpoint["channel_values"]["__start__"] == {"log": ["order"]}


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_finished_node_is_stored_before_its_checkpoint(E: Engine, step: int) -> None:
    """langgraph#8039: the write of the checkpoint fails, the node that led to it must not run again."""
    bodies = Bodies(E)
    saver = failing(E, "put", lambda found: found == step)
    app = E.graph(Log, {n: bodies.say(n) for n in "abc"}, "START > a > b > c").compile(checkpointer=saver)
    assert isinstance(E.attempt(E.invoke, app, {"log": []}, E.config(), durability="sync"), OSError)
    assert list(bodies.runs) == list("abc")[:step], "the next node must not start"
    saver.broken = False
    assert E.invoke(app, None, E.config(), durability="sync")["log"] == ["a", "b", "c"]
    assert set(bodies.runs.values()) == {1}


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("method", ["put", "put_writes"])
def test_a_saver_that_fails_is_never_overlooked(E: Engine, durability: str, method: str) -> None:
    bodies = Bodies(E)
    when = (lambda step: step == 1) if method == "put" else (lambda channels: "log" in channels)
    saver = failing(E, method, when)
    app = E.graph(Log, {n: bodies.say(n) for n in "ab"}, "START > a > b").compile(checkpointer=saver)
    result = E.attempt(E.invoke, app, {"log": []}, E.config(), durability=durability)
    if durability == "exit":  # one checkpoint of step 2, and no writes of tasks
        assert result == {"log": ["a", "b"]}
        return
    assert isinstance(result, OSError), result
    if durability == "sync":
        assert bodies.runs["b"] == 0
    saver.broken = False
    assert E.invoke(app, None, E.config())["log"] == ["a", "b"]


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("where", ["alone", "beside a sibling"])
def test_a_value_that_cannot_be_stored_is_named(E: Engine, durability: str, where: str) -> None:
    """... and the thread goes on once the node gives something better."""
    bodies, bad = Bodies(E), [True]
    state = TypedDict("S", {"lock": object, "log": Annotated[list, operator.add]})
    nodes = {"a": lambda s: {"lock": threading.Lock() if bad[0] else "fine"}, "b": bodies.say("b")}
    edges = ["START > a"] + (["START > b"] if where != "alone" else [])
    app = E.graph(state, nodes, *edges).compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, {"log": []}, E.config(), durability=durability)
    assert isinstance(error, Exception) and "lock" in str(error).lower()
    bad[0] = False
    again = None if E.rows(app.checkpointer, E.config()) else {"log": []}
    end = E.invoke(app, again, E.config(), durability=durability)
    assert end["lock"] == "fine"


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_slow_saver_does_not_keep_every_state_alive(durability: str) -> None:
    """langgraph#7094: with `async` every superstep's state lived until the run ended."""

    class Big:
        alive = 0

        def __init__(self) -> None:
            Big.alive += 1

        def __del__(self) -> None:
            Big.alive -= 1

    with Engine("surestep", "async") as E:

        class Slow(E.InMemorySaver):  # type: ignore[misc]
            async def aput(self, config: Any, checkpoint: Any, metadata: Any, new: Any) -> Any:
                await asyncio.sleep(0.01)
                return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}

            async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
                return None

        most = [0]

        def step(s: Any) -> Any:
            gc.collect()
            most[0] = max(most[0], Big.alive)
            return {"n": s["n"] + 1, "big": Big()}

        state = TypedDict("S", {"n": int, "big": object})
        g = E.graph(state, {"step": step}, "START > step", ("step", lambda s: "step" if s["n"] < 40 else E.END))
        app = g.compile(checkpointer=Slow())
        E.invoke(app, {"n": 0, "big": None}, {**E.config(), "recursion_limit": 100}, durability=durability)
        assert most[0] < 20


def test_a_deleted_thread_leaves_nothing(E: Engine) -> None:
    bodies = Bodies(E)
    inner = E.graph(Log, {"x": bodies.say("x"), "a": bodies.ask("a")}, "START > x > a").compile()
    saver = E.saver()
    app = E.graph(Log, {"sub": inner}, "START > sub").compile(checkpointer=saver)
    for thread in ("gone", "kept"):
        E.invoke(app, {"log": []}, E.config(thread))
    if E.is_async:
        E.wait(saver.adelete_thread("gone"))
    else:
        saver.delete_thread("gone")
    assert E.rows(saver, E.config("gone")) == [] and E.state(app, E.config("gone")).values == {}
    for name in ("storage", "writes", "blobs"):
        left = [key for key in getattr(saver, name, ()) if "gone" in key]
        assert not left
    assert E.invoke(app, E.Command(resume="y"), E.config("kept"))["log"] == ["x", "a=y"]


def test_no_table_keeps_a_deleted_thread(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with Engine() as E, E.SqliteSaver.from_conn_string(path) as saver:
        bodies = Bodies(E)
        inner = E.graph(Log, {"a": bodies.ask("a")}, "START > a").compile()
        app = E.graph(Log, {"sub": inner}, "START > sub").compile(checkpointer=saver)
        saver.setup()
        empty = rows_by_table(path)
        E.invoke(app, {"log": []}, E.config())
        assert rows_by_table(path) != empty
        saver.delete_thread("1")
        assert rows_by_table(path) == empty


def rows_by_table(path: str) -> dict[str, int]:
    with sqlite3.connect(path) as conn:
        tables = [name for (name,) in conn.execute("select name from sqlite_master where type = 'table'")]
        counts = {name: conn.execute(f'select count(*) from "{name}"').fetchone()[0] for name in tables}
    conn.close()
    return counts


@pytest.mark.parametrize("driver", ["sync", "async"])
def test_several_processes_share_one_file(forge: Forge, tmp_path: Path, driver: str) -> None:
    """langgraph#8136: `database is locked`."""
    db = str(tmp_path / "db")
    jobs = [forge.start("cases.jobs:many_threads", db=db, driver=driver, who=who, count=25) for who in "abc"]
    outcomes = [forge.wait(job) for job in jobs]
    assert [(outcome.status, outcome.value) for outcome in outcomes] == [(0, 25)] * 3, outcomes
    with Engine() as E, E.SqliteSaver.from_conn_string(db) as saver:
        threads = {row.config["configurable"]["thread_id"] for row in saver.list(None)}
        assert len(threads) == 75


def test_a_breakpoint_is_passed_after_a_deploy_that_dropped_a_key(E: Engine) -> None:
    """langgraph#9001"""
    saver = E.saver()
    old = TypedDict("Old", {"log": Annotated[list, operator.add], "note": str})

    def build(schema: Any, **more: Any) -> Any:
        g = E.graph(schema, {"one": say("one"), "two": say("two")}, "START > one > two")
        if more:
            g = E.graph(schema, {"one": lambda s: {"log": ["one"], **more}, "two": say("two")}, "START > one > two")
        return g.compile(checkpointer=saver, interrupt_before=["two"])

    E.invoke(build(old, note="n"), {"log": []}, E.config())
    app = build(Log)
    assert E.invoke(app, None, E.config())["log"] == ["one", "two"]
    assert E.state(app, E.config()).next == ()


def test_the_process_may_die_between_any_two_turns(forge: Forge, tmp_path: Path) -> None:
    """A question asked by one process is answered by another, and the history is one chain."""
    db = str(tmp_path / "db")
    ids = forge.result("cases.jobs:ask", db=db)
    assert forge.result("cases.jobs:answer", db=db, answers={ids[0]: "A"}) == {"waiting": [ids[1]], "log": []}
    end = forge.result("cases.jobs:answer", db=db, answers={ids[1]: "B"})
    assert end == {"waiting": [], "log": ["a=A", "b=B"]}
    assert os.path.exists(db)


def test_boom_is_kept_as_text(E: Engine) -> None:
    def bad(state: Any) -> Any:
        raise Boom("in words")

    app = E.graph(Log, {"bad": bad}, "START > bad").compile(checkpointer=E.saver())
    E.attempt(E.invoke, app, {"log": []}, E.config())
    assert "in words" in str(E.state(app, E.config()).tasks[0].error)
