"""Context variables, concurrency limits, deep and wide graphs, calls from other threads and loops."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest
from cases.shared import Log, say
from harness.engine import Engine

USER: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


def test_nodes_see_the_callers_context_variables(E: Engine) -> None:
    def see(state: Any) -> Any:
        return {"log": [USER.get()]}

    nodes = {n: see for n in "abc"}
    app = E.graph(Log, nodes, "START > a", "START > b", "a > c").compile()

    def call() -> Any:
        USER.set("ann")
        return E.invoke(app, {"log": []})["log"]

    assert contextvars.copy_context().run(call) == ["ann"] * 3


def test_a_node_cannot_change_the_context_of_others(E: Engine) -> None:
    def change(state: Any) -> Any:
        USER.set("mallory")
        return {"log": [USER.get()]}

    async def see(state: Any) -> Any:
        await E.sleep(0.01)
        return {"log": [USER.get()]}

    app = E.graph(Log, {"a": change, "b": see, "c": see}, "START > a > c", "START > b").compile()
    assert E.invoke(app, {"log": []})["log"] == ["mallory", "nobody", "nobody"]
    assert USER.get() == "nobody"


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize("kind", ["nodes", "sends"])
def test_no_more_tasks_at_once_than_allowed(E: Engine, limit: int, kind: str) -> None:
    now, most, lock = [0], [0], threading.Lock()

    async def body(state: Any) -> Any:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        await E.sleep(0.005)
        with lock:
            now[0] -= 1
        return {"log": ["x"]}

    if kind == "nodes":
        g = E.graph(Log, {f"n{i}": body for i in range(8)}, *(f"START > n{i}" for i in range(8)))
    else:

        def route(state: Any) -> Any:
            return [E.Send("w", {}) for _ in range(8)]

        g = E.graph(Log, {"w": body}, ("START", route, ["w"]))
    config = {"max_concurrency": limit}
    assert E.invoke(g.compile(), {"log": []}, config)["log"] == ["x"] * 8
    assert most[0] <= limit


def test_a_limit_of_one_does_not_block_inner_graphs(E: Engine) -> None:
    inner = E.graph(Log, {n: say(n) for n in "xy"}, "START > x", "START > y").compile()

    async def call(state: Any) -> Any:
        return await E.inner(inner, {"log": []})

    app = E.graph(Log, {"a": inner, "b": call, "c": call}, "START > a", "START > b", "START > c").compile()
    assert E.invoke(app, {"log": []}, {"max_concurrency": 1})["log"] == ["x", "y"] * 3


def test_a_limit_of_one_does_not_block_called_tasks(E: Engine) -> None:
    """The slot of whoever waits for a task is free."""
    if E.driver == "async":

        @E.task
        async def double(n: int) -> int:
            return 2 * n

        async def node(state: Any) -> Any:
            return {"log": [await double(n) for n in range(3)]}

    else:

        @E.task
        def double(n: int) -> int:
            return 2 * n

        def node(state: Any) -> Any:
            return {"log": [f.result() for f in [double(n) for n in range(3)]]}

    nodes = {"a": node, "b": node}
    app = E.graph(Log, nodes, "START > a", "START > b").compile()
    assert E.invoke(app, {"log": []}, {"max_concurrency": 1})["log"] == [0, 2, 4] * 2


def test_a_thousand_sends(E: Engine) -> None:
    def route(state: Any) -> Any:
        return [E.Send("w", {"n": n}) for n in range(1000)]

    app = E.graph(Log, {"w": lambda packet: {"log": [packet["n"]]}}, ("START", route, ["w"])).compile(
        checkpointer=E.saver()
    )
    assert E.invoke(app, {"log": []}, E.config())["log"] == list(range(1000))


def test_a_long_loop(E: Engine) -> None:
    def again(state: Any) -> str:
        return "a" if len(state["log"]) < 1500 else E.END

    app = E.graph(Log, {"a": say("a")}, "START > a", ("a", again)).compile()
    assert len(E.invoke(app, {"log": []})["log"]) == 1500


def test_graphs_in_graphs_twenty_deep(E: Engine) -> None:
    graph = E.graph(Log, {"leaf": lambda s: {"log": [E.interrupt("?")]}}, "START > leaf")
    for _ in range(20):
        graph = E.graph(Log, {"sub": graph.compile()}, "START > sub")
    app = graph.compile(checkpointer=E.saver())
    paused = E.invoke(app, {"log": []}, E.config())
    assert [i.value for i in paused["__interrupt__"]] == ["?"]
    assert E.invoke(app, E.Command(resume="!"), E.config())["log"] == ["!"]


def test_one_app_in_many_threads_at_once(E: Engine) -> None:
    app = E.graph(Log, {n: say(n) for n in "abc"}, "START > a > b > c").compile(checkpointer=E.saver())
    results: dict[int, Any] = {}

    def run(n: int) -> None:
        if E.is_async:
            results[n] = asyncio.run(app.ainvoke({"log": [n]}, E.config(str(n))))
        else:
            results[n] = app.invoke({"log": [n]}, E.config(str(n)))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: result["log"] for n, result in results.items()} == {n: [n, "a", "b", "c"] for n in range(8)}


def test_sync_runs_inside_of_a_running_loop(E: Engine) -> None:
    """In a notebook there is a loop in every thread that people type into."""
    app = E.graph(Log, {n: lambda s, n=n: {"log": [n]} for n in "ab"}, "START > a", "START > b").compile(
        checkpointer=E.saver()
    )
    if E.driver == "async":
        return  # its nodes are coroutines, which a sync run refuses

    async def cell() -> Any:
        return app.invoke({"log": []}, E.config())["log"]

    assert asyncio.run(cell()) == ["a", "b"]


def test_a_plain_node_does_not_hold_up_the_loop() -> None:
    with Engine("surestep", "mixed") as E:
        gate = threading.Event()

        def blocks(state: Any) -> Any:
            return {"log": [gate.wait(10)]}

        app = E.graph(Log, {"blocks": blocks}, "START > blocks").compile()

        async def both() -> Any:
            run = asyncio.create_task(app.ainvoke({"log": []}))
            await asyncio.sleep(0.02)
            gate.set()
            return await run

        assert E.wait(both())["log"] == [True]


def test_nothing_is_left_on_the_loop(E: Engine) -> None:
    if not E.is_async:
        return
    app = E.graph(Log, {n: say(n) for n in "abc"}, "START > a", "START > b", "a, b > c").compile(checkpointer=E.saver())

    async def run() -> Any:
        before = asyncio.all_tasks()
        await app.ainvoke({"log": []}, E.config(), durability="async")
        return asyncio.all_tasks() - before

    assert E.wait(run()) == set()
