"""Runs that stop in the middle, start in the middle, or reach over several graphs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from cases.shared import Bodies, Log, ids, say
from harness.engine import Engine


@pytest.mark.parametrize("kind", ["flat", "nested", "in a node", "three deep"])
def test_a_finished_task_of_an_inner_graph_is_not_run_again(E: Engine, kind: str) -> None:
    """langgraph#6792, #6050"""
    runs: list[int] = []

    @E.task
    def charge() -> int:
        runs.append(1)
        return len(runs)

    def ask_after(x: Any) -> Any:
        return [charge().result(), E.interrupt("?")]

    def flow(inner: Any, **options: Any) -> Any:
        """An entrypoint around `inner`, which is a function or a graph."""

        @E.entrypoint(**options)
        def top(x: Any) -> Any:
            return inner(x) if inner is ask_after else inner.invoke(x)

        return top

    saver, given = E.saver(), {"log": []}
    if kind == "flat":
        app = flow(ask_after, checkpointer=saver)
    elif kind == "nested":
        app = flow(flow(ask_after), checkpointer=saver)
    elif kind == "three deep":
        app = flow(flow(flow(ask_after)), checkpointer=saver)
    else:
        inner = E.StateGraph(Log).add_node("n", lambda s: {"log": ask_after(s)}).add_edge(E.START, "n").compile()
        app = E.graph(Log, {"sub": inner}, "START > sub").compile(checkpointer=saver)
    E.invoke(app, given, E.config())
    end = E.invoke(app, E.Command(resume="ok"), E.config())
    assert (end["log"] if isinstance(end, dict) else end) == [1, "ok"]
    assert len(runs) == 1


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("start", ["b", "c", "ask"])
def test_a_run_goes_on_inside_an_inner_graph(E: Engine, levels: int, start: str) -> None:
    """langgraph#8458: addressed at a checkpoint inside a subgraph it started the subgraph over."""
    bodies = Bodies(E)
    nodes = {n: bodies.say(n) for n in "abc"} | {"ask": bodies.ask("ask")}
    graph = E.graph(Log, nodes, "START > a > b > c > ask")
    for _ in range(levels):
        graph = E.graph(Log, {"sub": graph.compile()}, "START > sub")
    app = graph.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    state = E.state(app, E.config(), subgraphs=True)
    for _ in range(levels):
        state = state.tasks[0].state
    past = E.history(app, E.config(checkpoint_ns=state.config["configurable"]["checkpoint_ns"]))
    target = next(snapshot for snapshot in past if snapshot.next == (start,))
    bodies.runs.clear()
    paused = E.invoke(app, None, target.config)
    assert list(bodies.runs) == ["a", "b", "c", "ask"][["a", "b", "c", "ask"].index(start) :]
    assert list(ids(paused)) == ["ask?"]
    assert E.invoke(app, E.Command(resume="y"), E.config())["log"] == ["a", "b", "c", "ask=y"]


@pytest.mark.parametrize("where", ["first", "middle", "last"])
@pytest.mark.parametrize("levels", [0, 1, 2])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_drained_run_does_exactly_the_rest(E: Engine, where: str, levels: int, durability: str) -> None:
    if levels and durability == "exit":
        durability = "async"  # with `exit` an inner graph that was drained is kept too; the outer cases show it
    bodies, names = Bodies(E), ["a", "b", "c"]
    drained_in = {"first": "a", "middle": "b", "last": "c"}[where]

    def body(name: str) -> Any:
        def run(state, runtime):
            bodies.start(name)
            if name == drained_in and bodies.runs[name] == 1:
                runtime.control.request_drain("deploy")
            return {"log": [name]}

        return run

    graph = E.graph(Log, {n: body(n) for n in names}, "START > a > b > c")
    for _ in range(levels):
        nodes = {"pre": bodies.say("pre"), "sub": graph.compile(), "post": bodies.say("post")}
        graph = E.graph(Log, nodes, "START > sub > post")
        graph = E.graph(Log, {"sub": nodes["sub"]}, "START > sub")
    app = graph.compile(checkpointer=E.saver())
    result = E.attempt(E.invoke, app, {"log": []}, E.config(), durability=durability, control=E.RunControl())
    if where == "last":
        assert result == {"log": names}, "nothing was left to drain"
    else:
        assert isinstance(result, E.GraphDrained) and result.reason == "deploy"
        assert E.state(app, E.config()).next
        assert E.invoke(app, None, E.config(), durability=durability) == {"log": names}
    assert bodies.runs == dict.fromkeys(names, 1)


def test_a_drain_that_comes_from_outside(E: Engine) -> None:
    bodies, started, go = Bodies(E), threading.Event(), threading.Event()

    async def slow(state: Any) -> Any:
        started.set()
        while not go.is_set():
            await E.sleep(0.002)
        return {"log": ["slow"]}

    app = E.graph(Log, {"slow": slow, "next": bodies.say("next")}, "START > slow > next").compile(
        checkpointer=E.saver()
    )
    control = E.RunControl()

    def drain() -> None:
        started.wait(10)
        control.request_drain("sigterm")
        go.set()

    thread = threading.Thread(target=drain)
    thread.start()
    result = E.attempt(E.invoke, app, {"log": []}, E.config(), control=control)
    thread.join()
    assert isinstance(result, E.GraphDrained) and bodies.runs["next"] == 0
    assert E.invoke(app, None, E.config())["log"] == ["slow", "next"]


@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("mode", ["updates", "values", ["updates", "tasks"]])
def test_nothing_runs_behind_a_stream_that_was_left(E: Engine, chunks: int, mode: Any) -> None:
    bodies = Bodies(E)
    app = E.graph(Log, {n: bodies.say(n) for n in "abc"}, "START > a > b > c").compile(checkpointer=E.saver())

    def leave() -> None:
        stream = app.stream({"log": []}, E.config(), stream_mode=mode)
        for _ in range(chunks):
            next(stream)
        stream.close()

    async def aleave() -> None:
        stream = app.astream({"log": []}, E.config(), stream_mode=mode)
        for _ in range(chunks):
            await anext(stream)
        await stream.aclose()
        await asyncio.sleep(0.02)

    E.wait(aleave()) if E.is_async else leave()
    ran = dict(bodies.runs)
    assert "c" not in ran
    end = E.invoke(app, None, E.config())
    assert end["log"] == ["a", "b", "c"]
    assert bodies.runs["b"] == bodies.runs["c"] == 1 and bodies.runs["a"] == 1


@pytest.mark.parametrize("memory", [None, True])
def test_a_command_reaches_its_graph_turn_after_turn(E: Engine, memory: Any) -> None:
    """langgraph#3570, #6409"""

    def leaf(state: Any) -> Any:
        return E.Command(graph=E.Command.PARENT, goto="after", update={"log": ["leaf"]})

    inner = E.graph(Log, {"leaf": leaf}, "START > leaf").compile(checkpointer=memory)
    nodes = {"sub": (inner, {"destinations": ("after",)}), "after": say("after")}
    app = E.graph(Log, nodes, "START > sub").compile(checkpointer=E.saver())
    for turn in (1, 2, 3):
        assert E.invoke(app, {"log": []}, E.config())["log"] == ["leaf", "after"] * turn


@pytest.mark.parametrize("deep", [2, 3, 4])
def test_a_command_stops_at_the_nearest_graph_above(E: Engine, deep: int) -> None:
    def leaf(state: Any) -> Any:
        return E.Command(graph=E.Command.PARENT, goto="after", update={"log": ["leaf"]})

    graph = E.graph(Log, {"leaf": leaf}, "START > leaf")
    nodes = {"sub": (graph.compile(), {"destinations": ("after",)}), "after": say("after")}
    graph = E.graph(Log, nodes, "START > sub")
    for level in range(deep - 2):
        graph = E.graph(Log, {"sub": graph.compile(), f"end{level}": say(f"end{level}")}, f"START > sub > end{level}")
    app = graph.compile(checkpointer=E.saver())
    ends = [f"end{level}" for level in range(deep - 2)]
    assert E.invoke(app, {"log": []}, E.config())["log"] == ["leaf", "after", *ends]


def test_a_question_in_front_of_a_command_for_the_parent(E: Engine) -> None:
    def leaf(state: Any) -> Any:
        return E.Command(graph=E.Command.PARENT, goto=E.interrupt("where?"), update={"log": ["leaf"]})

    inner = E.graph(Log, {"leaf": leaf}, "START > leaf").compile()
    nodes = {"sub": (inner, {"destinations": ("x", "y")}), "x": say("x"), "y": say("y")}
    app = E.graph(Log, nodes, "START > sub").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert E.invoke(app, E.Command(resume="y"), E.config())["log"] == ["leaf", "y"]
