"""Values that are shared, folded, copied, or never come together."""

from __future__ import annotations

import logging
import operator
import time
import warnings
from typing import Annotated, Any, TypedDict

import pytest
from cases.shared import Log, ids, say
from harness.engine import Engine


def fold(value: Any, writes: Any) -> Any:
    return [*(value or []), *(item for write in writes for item in write)]


def delta(E: Engine, **options: Any) -> Any:
    return TypedDict("S", {"log": Annotated[list, E.DeltaChannel(fold, **options)]})


@pytest.mark.parametrize("frequency", [1, 3, 100])
def test_branches_of_a_thread_do_not_mix_in_a_delta_channel(E: Engine, frequency: int) -> None:
    """langgraph#8443, #8551"""
    schema = delta(E, snapshot_frequency=frequency)
    app = E.graph(schema, {"n": lambda s: {"log": [f"out{len(s['log'])}"]}}, "START > n").compile(
        checkpointer=E.saver()
    )
    E.invoke(app, {"log": ["q1"]}, E.config())
    base = E.state(app, E.config()).config
    E.invoke(app, {"log": ["q2"]}, E.config())
    main = E.state(app, E.config()).config
    E.invoke(app, {"log": ["q3"]}, base)
    fork = E.state(app, E.config()).config
    E.update(app, base, {"log": ["patch"]}, as_node="n")
    patched = E.state(app, E.config()).config
    E.invoke(app, {"log": ["q4"]}, fork)
    states = [E.state(app, config).values["log"] for config in (base, main, fork, patched)]
    start = ["q1", "out1"]
    assert states == [start, [*start, "q2", "out3"], [*start, "q3", "out3"], [*start, "patch"]]
    assert E.state(app, E.config()).values["log"] == [*start, "q3", "out3", "q4", "out5"]


@pytest.mark.parametrize("kind", ["delta", "reducer", "topic"])
def test_order_live_and_order_on_disk_agree(E: Engine, kind: str) -> None:
    """langgraph#8382: for parallel writers that end in any order."""
    channel = {"delta": E.DeltaChannel(fold), "reducer": operator.add, "topic": E.Topic(str, accumulate=True)}[kind]
    schema = TypedDict("S", {"log": Annotated[list, channel]})

    def late(name: str, seconds: float) -> Any:
        async def body(state: Any) -> Any:
            await E.sleep(seconds)
            return {"log": [name]}

        return body

    for seed in range(3):
        nodes = {name: late(name, ((i * 37 + seed * 13) % 8) / 400) for i, name in enumerate("hgfedcba")}
        app = E.graph(schema, nodes, *(f"START > {n}" for n in nodes)).compile(checkpointer=E.saver())
        live = E.invoke(app, {"log": ["in"]}, E.config())["log"]
        assert live == ["in", *"abcdefgh"] == E.state(app, E.config()).values["log"]


def test_a_delta_channel_of_a_paused_inner_graph_is_read(E: Engine) -> None:
    """langgraph#8470"""
    schema = delta(E)
    inner = E.graph(schema, {"one": say("one"), "a": lambda s: {"log": [E.interrupt("?")]}}, "START > one > a")
    app = E.graph(schema, {"sub": inner.compile()}, "START > sub").compile(checkpointer=E.saver())
    E.invoke(app, {"log": ["in"]}, E.config())
    state = E.state(app, E.config(), subgraphs=True)
    assert state.tasks[0].state.values["log"] == ["in", "one"] and state.values["log"] == ["in"]
    assert E.invoke(app, E.Command(resume="!"), E.config())["log"] == ["in", "in", "one", "!"]


@pytest.mark.parametrize("schema", ["plain", "reducer"])
def test_a_node_that_changes_its_input_changes_only_that(E: Engine, schema: str) -> None:
    """langgraph#8314: neither the caller's object, nor a sibling's input, nor the stored past."""
    kind = list if schema == "plain" else Annotated[list, operator.add]
    state = TypedDict("S", {"items": kind, "deep": dict, "saw": Annotated[list, operator.add]})

    def change(s: Any) -> Any:
        s["items"].append("MUT")
        s["deep"]["list"].append("MUT")
        s["new"] = 1
        return {"saw": []}

    async def sibling(s: Any) -> Any:
        await E.sleep(0.02)
        return {"saw": [list(s["items"]), list(s["deep"]["list"])]}

    def after(s: Any) -> Any:
        return {"saw": [list(s["items"]), list(s["deep"]["list"])]}

    app = E.graph(state, {"a": change, "b": sibling, "c": after}, "START > a > c", "START > b")
    app = app.compile(checkpointer=E.saver())
    mine: dict[str, Any] = {"items": ["in"], "deep": {"list": ["in"]}}
    end = E.invoke(app, mine, E.config())
    assert mine == {"items": ["in"], "deep": {"list": ["in"]}}
    assert end["saw"] == [["in"]] * 4
    for snapshot in E.history(app, E.config()):
        assert snapshot.values.get("items") in (["in"], [], None)
    assert E.state(app, E.config()).values == end


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_checkpoint_in_the_making_is_not_changed_by_the_next_step(durability: str) -> None:
    """langgraph#8748: a slow saver must see the containers as they were."""
    for driver in ("sync", "async"):
        with Engine("surestep", driver) as E:
            history = _history_of_a_slow_saver(E, durability)
            lengths = [len(values or []) for values in history]
            assert lengths == sorted(set(lengths)), history


def _history_of_a_slow_saver(E: Engine, durability: str) -> list[Any]:
    class Slow(E.InMemorySaver):  # type: ignore[misc]
        def put(self, *args: Any, **kwargs: Any) -> Any:
            time.sleep(0.03)
            return super().put(*args, **kwargs)

        async def aput(self, *args: Any, **kwargs: Any) -> Any:
            await E.sleep(0.03)
            return await super().aput(*args, **kwargs)

    schema = TypedDict("S", {"logs": Annotated[list, E.Topic(str, accumulate=True)]})
    nodes = {f"n{i}": (lambda s, i=i: {"logs": [f"n{i}"]}) for i in range(3)}
    app = E.graph(schema, nodes, "START > n0 > n1 > n2").compile(checkpointer=Slow())
    E.invoke(app, {"logs": ["in"]}, E.config(), durability=durability)
    return [snapshot.values.get("logs") for snapshot in reversed(E.history(app, E.config()))]


def test_a_barrier_in_the_making_is_not_changed_either(E: Engine) -> None:
    g = E.graph(Log, {n: say(n) for n in ("a", "b", "b2", "j")}, "START > a", "START > b > b2", "a, b2 > j")
    app = g.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config(), durability="async")
    rows = reversed(E.rows(app.checkpointer, E.config()))
    joins = [row.checkpoint["channel_values"].get("join:a+b2:j") for row in rows]
    assert [sorted(seen) for seen in joins if seen is not None and seen] == [["a"], ["a", "b2"]]


def test_a_join_that_cannot_fire_is_reported(E: Engine, caplog: Any) -> None:
    """langgraphjs#2666, langgraph#7727: somebody says so, and names the join."""
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        nodes = {n: say(n) for n in ("r", "A", "B", "join_ab")}
        g = E.graph(Log, nodes, "START > r", ("r", lambda s: ["A"], ["A", "B"]), "A, B > join_ab")
        app = g.compile(checkpointer=E.saver())
        assert E.invoke(app, {"log": []}, E.config())["log"] == ["r", "A"]
    said = [str(w.message) for w in caught] + [record.getMessage() for record in caplog.records]
    assert any("join_ab" in message for message in said), said


def test_a_join_that_fired_is_not_reported(E: Engine, caplog: Any) -> None:
    nodes = {n: say(n) for n in ("r", "A", "B", "j")}
    with caplog.at_level(logging.WARNING):
        app = E.graph(Log, nodes, "START > r > A", "r > B", "A, B > j").compile(checkpointer=E.saver())
        assert E.invoke(app, {"log": []}, E.config())["log"] == ["r", "A", "B", "j"]
    assert caplog.records == []


def test_a_join_that_waits_for_an_answer_is_not_reported(E: Engine, caplog: Any) -> None:
    nodes = {"a": say("a"), "b": lambda s: {"log": [E.interrupt("?")]}, "j": say("j")}
    with caplog.at_level(logging.WARNING):
        app = E.graph(Log, nodes, "START > a", "START > b", "a, b > j").compile(checkpointer=E.saver())
        assert list(ids(E.invoke(app, {"log": []}, E.config()))) == ["?"]
    assert caplog.records == []


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_router_sees_its_nodes_writes_and_the_reducer_runs_once_for_both(E: Engine, parallel: int) -> None:
    """Of several nodes each router sees its own node's writes alone; the state has all of them."""
    folds: list[Any] = []
    seen: dict[str, Any] = {}

    def fold(old: list[str], new: list[str]) -> list[str]:
        folds.append(new)
        return [*old, *new]

    def router(name: str) -> Any:
        def route(state: Any) -> Any:
            seen[name] = list(state["log"])
            state["log"].append("a router's own business")
            return E.END

        return route

    State = TypedDict("State", {"log": Annotated[list, fold]})
    names = [f"n{i}" for i in range(parallel)]
    nodes = {name: lambda state, name=name: {"log": [name]} for name in names}
    edges = [*(f"START > {name}" for name in names), *((name, router(name), [E.END]) for name in names)]
    app = E.graph(State, nodes, *edges).compile()
    assert E.invoke(app, {"log": ["in"]})["log"] == ["in", *names]
    assert seen == {name: ["in", name] for name in names}
    if parallel == 1:
        assert folds == [["in"], ["n0"]]


def test_a_message_has_the_id_that_the_router_saw(E: Engine) -> None:
    seen: list[Any] = []

    def route(state: Any) -> Any:
        seen.append(
            state["messages"][-1]["id"] if isinstance(state["messages"][-1], dict) else state["messages"][-1].id
        )
        return E.END

    def answer(state: Any) -> Any:
        return {"messages": [{"role": "assistant", "content": "hello"}]}

    app = E.graph(E.MessagesState, {"answer": answer}, "START > answer", ("answer", route, [E.END])).compile()
    last = E.invoke(app, {"messages": []})["messages"][-1]
    assert seen == [last["id"] if isinstance(last, dict) else last.id]
