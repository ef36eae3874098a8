"""Which graph a node is seen to run, the same as LangGraph sees, and a little more."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, TypedDict
from unittest.mock import Mock

import pytest
from langchain_core.runnables import RunnableLambda
from unit.builder.engines import ours, theirs


class State(TypedDict):
    x: int


def inner(E: Any, name: str, **settings: Any) -> Any:
    graph = E.StateGraph(State).add_node("m", lambda s: None).add_edge("__start__", "m").compile(**settings)
    graph.name = name
    return graph


def detected(E: Any, node: Any) -> list[str]:
    builder = E.StateGraph(State).add_node("n", node).add_edge("__start__", "n")
    return [graph.name for graph in builder.compile().nodes["n"].subgraphs]


GRAPHS = {E.root: inner(E, "global") for E in (ours, theirs)}
HOLDERS = {E.root: SimpleNamespace(deep=SimpleNamespace(graph=inner(E, "held"))) for E in (ours, theirs)}
OURS, THEIRS = GRAPHS["surestep"], GRAPHS["langgraph"]
OUR_HOLDER, THEIR_HOLDER = HOLDERS["surestep"], HOLDERS["langgraph"]


def itself(E: Any) -> Any:
    return inner(E, "itself")


def without_saver(E: Any) -> Any:
    return inner(E, "none", checkpointer=False)


def closure(E: Any) -> Any:
    graph = inner(E, "closed over")
    return lambda state: graph.invoke(state)


def a_global(E: Any) -> Any:
    return (lambda state: OURS.invoke(state)) if E is ours else (lambda state: THEIRS.invoke(state))


def attributes(E: Any) -> Any:
    if E is ours:
        return lambda state: OUR_HOLDER.deep.graph.invoke(state)
    return lambda state: THEIR_HOLDER.deep.graph.invoke(state)


def attribute_of_an_attribute_that_is_not_there(E: Any) -> Any:
    holder = SimpleNamespace(deep=SimpleNamespace())
    return lambda state: holder.deep.graph.invoke(state)


def inside_of_an_inner_function(E: Any) -> Any:
    holder = SimpleNamespace(graph=inner(E, "further in"))

    def node(state: Any) -> Any:
        return (lambda: holder.graph.invoke(state))()

    return node


def the_first_of_two(E: Any) -> Any:
    none, graph = inner(E, "none", checkpointer=False), inner(E, "second")
    return lambda state: (none.invoke(state), graph.invoke(state))


def wrapped(E: Any) -> Any:
    graph = inner(E, "wrapped")

    def node(state: Any) -> Any:
        return graph.invoke(state)

    def wrapper(state: Any) -> Any: ...

    wrapper.__wrapped__ = node  # type: ignore[attr-defined]
    return wrapper


def generator(E: Any) -> Any:
    graph = inner(E, "generator")

    def node(state: Any) -> Any:
        yield graph.invoke(state)

    return node


def coroutine(E: Any) -> Any:
    graph = inner(E, "coroutine")

    async def node(state: Any) -> Any:
        return await graph.ainvoke(state)

    return node


def in_a_list(E: Any) -> Any:
    graphs = [inner(E, "listed")]
    return lambda state: graphs[0].invoke(state)


def not_yet_assigned(E: Any) -> Any:
    def node(state: Any) -> Any:
        return later

    return node
    later = 1


def nothing(E: Any) -> Any:
    return lambda state: {"x": len("abc")}


SHAPES = [
    itself, without_saver, closure, a_global, attributes, attribute_of_an_attribute_that_is_not_there,
    inside_of_an_inner_function, the_first_of_two, wrapped, generator, coroutine, in_a_list, not_yet_assigned, nothing,
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_the_same_graph_is_found(shape: Any) -> None:
    assert detected(ours, shape(ours)) == detected(theirs, shape(theirs))


def test_partials_objects_and_parts_are_looked_into() -> None:
    graph = inner(ours, "found")

    class Node:
        def __call__(self, state: Any) -> Any:
            return graph.invoke(state)

    for node in (functools.partial(lambda state, k: graph.invoke(state), k=1), Node(), {"a": len, "b": graph}):
        assert detected(ours, node) == ["found"]


def test_a_property_that_raises_ends_the_search_there() -> None:
    class Holder:
        @property
        def graph(self) -> Any:
            raise RuntimeError("not now")

    holder = Holder()
    assert detected(ours, lambda state: holder.graph.invoke(state)) == []


def test_mocks_and_runnables_hold_what_they_hold() -> None:
    graph = inner(ours, "in a Runnable")
    run = RunnableLambda(lambda state: graph.invoke(state))
    for node in (run, RunnableLambda(len) | run):
        assert detected(ours, node) == ["in a Runnable"]
    assert detected(ours, Mock(return_value=None)) == []
