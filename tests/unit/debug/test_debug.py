"""Payloads of debug streams, held against LangGraph's."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any, TypedDict

import pytest

ERROR, INTERRUPT, RETURN = "__error__", "__interrupt__", "__return__"
BOOM = ValueError("boom")


class State(TypedDict):
    x: int


@pytest.fixture(params=["surestep", "langgraph"])
def E(request: pytest.FixtureRequest) -> Any:
    """One engine's debug module, and what is needed to feed it."""

    def module(path: str) -> Any:
        return importlib.import_module(f"{request.param}.{path}")

    names = vars(module("pregel.debug")) | vars(module("types")) | vars(module("channels")) | vars(module("graph"))
    return SimpleNamespace(**names)


def task(**changes: Any) -> Any:
    """What the helpers read of a task."""
    known = {"id": "t1", "name": "a", "path": ("__pregel_pull", "a"), "input": {"x": 1}, "triggers": ("in",)}
    return SimpleNamespace(**{**known, "config": None, "writes": [], "subgraphs": (), **changes})


def test_starts(E: Any) -> None:
    metadata = {"mine": 1, "langgraph_step": 3, "thread_id": "7", "checkpoint_ns": "", "ls_integration": "x"}
    tasks = [
        task(config={"metadata": metadata, "tags": ["seq:step:2", "graph:step:1", "tag"]}),
        task(name="hidden", config={"tags": ["langsmith:hidden"]}),
        task(config={"metadata": {"langgraph_node": "a"}, "tags": []}),
    ]
    bare = {"id": "t1", "name": "a", "input": {"x": 1}, "triggers": ("in",)}
    shown = {"mine": 1, "ls_integration": "x", "tags": ["graph:step:1", "tag"]}
    assert list(E.map_debug_tasks(tasks)) == [{**bare, "metadata": shown}, bare]


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        ([("x", 1), ("y", 2), ("branch:to:b", None)], {"result": {"x": 1, "y": 2}}),
        ([("x", 1), ("x", 2)], {"result": {"x": {"$writes": [1, 2]}}}),
        ([(RETURN, 5)], {"result": {RETURN: 5}}),
        ([(ERROR, BOOM)], {"error": BOOM}),
        ([], {}),
    ],
)
def test_results(E: Any, writes: Any, expected: Any) -> None:
    (payload,) = E.map_debug_task_results((task(), writes), ["x", "y"])
    assert payload == {"id": "t1", "name": "a", "error": None, "result": {}, "interrupts": [], **expected}


def test_a_result_with_questions(E: Any) -> None:
    (payload,) = E.map_debug_task_results((task(), [(INTERRUPT, [E.Interrupt("why?", id="q1")])]), "x")
    assert payload["interrupts"] == [{"value": "why?", "id": "q1", "response_schema": None}]


def test_writes_as_a_dict(E: Any) -> None:
    assert E.map_task_result_writes([("a", 1), ("b", 2), ("a", 3), ("a", 4)]) == {"a": {"$writes": [1, 3, 4]}, "b": 2}
    values = [{"$writes": [1]}, {"$writes": [1], "more": 1}, {"$writes": 1}, {"a": 1}, 3]
    assert [E.is_multiple_channel_write(value) for value in values] == [True, True, False, False, False]


def test_configs_without_the_engines_keys(E: Any) -> None:
    config = {"configurable": {"thread_id": "1", "__pregel_task_id": "x", "__mine": 2}, "tags": ["t"]}
    assert E.rm_pregel_keys(config) == {"configurable": {"thread_id": "1", "__mine": 2}}
    assert E.rm_pregel_keys({}) == {"configurable": {}}
    assert E.rm_pregel_keys(None) is None


def checkpoint(E: Any, stream_channels: Any, tasks: Any, pending: Any, ns: str = "") -> Any:
    channel = E.LastValue(int)
    channel.update([5])
    config = {"configurable": {"thread_id": "1", "checkpoint_ns": ns, "checkpoint_id": "c", "__pregel_x": 1}}
    parent = {"configurable": {"thread_id": "1", "checkpoint_id": "p"}, "metadata": {}}
    channels = {"x": channel, "empty": E.LastValue(int)}
    metadata = {"source": "loop", "step": 1, "parents": {}}
    (payload,) = E.map_debug_checkpoint(config, channels, stream_channels, metadata, tasks, pending, parent, ["x"])
    return payload


def test_checkpoints(E: Any) -> None:
    pending = [("t1", "x", 1), ("t2", ERROR, "boom"), ("t3", INTERRUPT, [E.Interrupt("why?", id="q1")])]
    tasks = [task(id=f"t{n}", name=name) for n, name in enumerate("abcd", 1)]
    question = {"value": "why?", "id": "q1", "response_schema": None}
    assert checkpoint(E, ["x", "empty"], tasks, pending) == {
        "config": {"configurable": {"thread_id": "1", "checkpoint_ns": "", "checkpoint_id": "c"}},
        "parent_config": {"configurable": {"thread_id": "1", "checkpoint_id": "p"}},
        "values": {"x": 5},
        "metadata": {"source": "loop", "step": 1, "parents": {}},
        "next": ["a", "b", "c", "d"],
        "tasks": [
            {"id": "t1", "name": "a", "result": {"x": 1}, "interrupts": (), "state": None},
            {"id": "t2", "name": "b", "error": "boom", "state": None},
            {"id": "t3", "name": "c", "interrupts": (question,), "state": None},
            {"id": "t4", "name": "d", "interrupts": (), "state": None},
        ],
    }
    assert checkpoint(E, "x", [], [])["values"] == 5


@pytest.mark.parametrize(("ns", "inner"), [("", "a:t1"), ("p:9", "p:9|a:t1")])
def test_a_graph_inside_a_task_has_an_address(E: Any, ns: str, inner: str) -> None:
    graph = E.StateGraph(State).add_node("n", lambda state: None).add_edge("__start__", "n").compile()
    payload = checkpoint(E, "x", [task(subgraphs=[graph])], [], ns)
    assert payload["tasks"][0]["state"] == {"configurable": {"thread_id": "1", "checkpoint_ns": inner}}


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("x", 1)], {"result": {"x": 1}}),
        ([("x", 1), ("x", 2)], {"result": {"x": {"$writes": [1, 2]}}}),
        ([("__no_writes__", None)], {"result": {}}),
        ([(RETURN, 7)], {"result": 7}),
        ([(ERROR, "boom")], {"error": "boom"}),
        ([], {}),
    ],
)
def test_tasks_of_a_state(E: Any, rows: Any, expected: Any, live: bool) -> None:
    pending = [("t1", channel, value) for channel, value in rows] + [("t2", "x", 9)]
    planned = [E.PregelTask("t1", "a", ("__pregel_pull", "a"))]
    (shown,) = E.tasks_w_writes(planned, pending, {"t1": {"configurable": {}}}, ["x"], live=live)
    fields = {"error": None, "interrupts": (), "state": {"configurable": {}}, "result": None, **expected}
    assert shown == E.PregelTask("t1", "a", ("__pregel_pull", "a"), **fields)


def test_answered_questions_of_a_state(E: Any) -> None:
    question = E.Interrupt("why?", id="q1")
    pending = [("t1", INTERRUPT, [question]), ("t1", "__resume__", ["so"]), ("t1", "x", 1)]
    planned = [E.PregelTask("t1", "a", ("__pregel_pull", "a"))]
    assert E.tasks_w_writes(planned, pending, None, "x")[0].interrupts == (question,)
    assert E.tasks_w_writes(planned, pending, None, "x", live=True)[0].interrupts == ()
    assert E.tasks_w_writes(planned, None, None, "x")[0].interrupts == ()


def test_text_for_a_terminal(E: Any) -> None:
    assert E.get_colored_text("x", "blue") == "\033[1;30;34mx\033[0m"
    assert E.get_colored_text("x", "gray") == "\033[1;31;30mx\033[0m"
    assert E.get_bolded_text("x") == "\033[1mx\033[0m"
    with pytest.raises(KeyError):
        E.get_colored_text("x", "sky")
