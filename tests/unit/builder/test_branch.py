"""Conditional edges: what the path function sees, and what becomes of its answer."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel
from unit.builder.engines import ours, theirs

from surestep.errors import InvalidUpdateError
from surestep.types import Command, Send


class State(TypedDict):
    x: Annotated[list, operator.add]
    y: int


class Part(TypedDict):
    y: int


class Model(BaseModel):
    x: list
    y: int = 3


@dataclass
class Data:
    x: list
    y: int = 3


def graph(E: Any, path: Any, path_map: Any = None, *, schema: Any = State, node: Any = None) -> Any:
    builder = E.StateGraph(schema).add_node("n", node or (lambda s: {"x": [1], "unknown": 5}))
    builder.add_node("b", lambda s: None).add_node("c", lambda s: None).add_edge("__start__", "n")
    return builder.add_conditional_edges("n", path, path_map).compile()


def seen(E: Any, annotation: Any = None, **settings: Any) -> Any:
    found: list[Any] = []

    def path(state):
        found.append(state)
        return "__end__"

    if annotation is not None:
        path.__annotations__["state"] = annotation
    graph(E, path, **settings).invoke({"x": ["in"]})
    return found


@pytest.mark.parametrize("annotation", [None, State, Part, Model, Data, dict], ids=str)
def test_a_path_sees_the_same(annotation: Any) -> None:
    assert seen(ours, annotation) == seen(theirs, annotation)


@pytest.mark.parametrize("schema", [Model, Data], ids=str)
def test_a_path_sees_the_same_of_a_model(schema: Any) -> None:
    assert seen(ours, schema=schema) == seen(theirs, schema=schema)


def node_of_part(state: Part) -> Any:
    return {"x": ["out"]}


def test_a_path_sees_what_its_node_reads_and_returned() -> None:
    assert seen(ours, node=node_of_part) == seen(theirs, node=node_of_part) == [{"x": ["out"]}]


def test_a_path_from_the_start(engine: Any) -> None:
    found = []
    builder = engine.StateGraph(State, input_schema=TypedDict("In", {"x": list})).add_node("n", lambda s: None)
    builder.add_conditional_edges("__start__", lambda state: found.append(state) or "n")
    builder.compile().invoke({"x": ["in"], "more": 1})
    assert found == [{"x": ["in"], "more": 1}]


def router(path_map: Any = None) -> Any:
    return graph(ours, lambda state: None, path_map).nodes["n"].writers[1]


ANSWERS: list[Any] = [
    ("b", None, [("branch:to:b", None)]),
    ("__end__", None, []),
    ([], None, []),
    (["b", "c"], None, [("branch:to:b", None), ("branch:to:c", None)]),
    (("b", "b"), None, [("branch:to:b", None), ("branch:to:b", None)]),
    (Send("b", 3), None, [("__pregel_tasks", Send("b", 3))]),
    ([Send("b", 3), "c"], None, [("__pregel_tasks", Send("b", 3)), ("branch:to:c", None)]),
    (True, {True: "b", False: "__end__"}, [("branch:to:b", None)]),
    (False, {True: "b", False: "__end__"}, []),
    (None, {None: "c"}, [("branch:to:c", None)]),
    (Send("c", 1), {True: "b"}, [("__pregel_tasks", Send("c", 1))]),
    (["b"], ["b", "c"], [("branch:to:b", None)]),
    ("c", ("b", "c"), [("branch:to:c", None)]),
]


@pytest.mark.parametrize(("answer", "path_map", "writes"), ANSWERS)
def test_an_answer_starts_nodes(answer: Any, path_map: Any, writes: Any) -> None:
    assert list(router(path_map).route(answer)) == writes


@pytest.mark.parametrize("answer", [None, [None], "__start__"], ids=str)
def test_no_answer_is_an_error(answer: Any) -> None:
    with pytest.raises(
        ValueError, match="Branch did not return a valid destination: the branch 'condition' of node 'n'"
    ):
        router().route(answer)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("bb", "Unknown destination 'bb': the branch 'condition' of node 'n'.* Did you mean 'b'?"),
        (3, "Unknown destination 3"),
        ({"b"}, "Unknown destination {'b'}"),
        (Send("bb", 1), "Unknown destination Send"),
        (Send("__end__", 1), "Cannot send a packet to the END node"),
        (Command(goto="b"), "a Command is what a node returns"),
    ],
)
def test_an_unknown_answer_is_an_error(answer: Any, says: str) -> None:
    with pytest.raises(InvalidUpdateError, match=says):
        router().route(answer)


@pytest.mark.parametrize("answer", ["maybe", {"un": "hashable"}], ids=str)
def test_an_answer_that_is_not_in_the_map(answer: Any) -> None:
    with pytest.raises(KeyError, match=r"its path map doesn't have.*return one of: 'yes', 'no'"):
        router({"yes": "b", "no": "c"}).route(answer)
    with pytest.raises(InvalidUpdateError):
        router({"yes": "b", "no": "c"}).route(answer)


async def test_an_async_path_needs_an_async_run(engine: Any) -> None:
    async def path(state: Any) -> str:
        return "b"

    app = graph(engine, path)
    assert await app.ainvoke({"x": []}) == {"x": [1]}
    with pytest.raises(TypeError, match='No synchronous function provided to "path"'):
        app.invoke({"x": []})


def test_branches_have_names(engine: Any) -> None:
    def named(state: Any) -> str:
        return "b"

    builder = engine.StateGraph(State).add_node("n", lambda s: None)
    builder.add_conditional_edges("n", named, ["b"]).add_conditional_edges("n", lambda s: "c")
    assert list(builder.branches["n"]) == ["named", "condition"]
    with pytest.raises(ValueError, match="Branch with name `named` already exists for node `n`"):
        builder.add_conditional_edges("n", named)
