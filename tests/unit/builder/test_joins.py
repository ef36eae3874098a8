"""A join that may wait for ever is reported when the graph is compiled; ordinary graphs are not."""

from __future__ import annotations

import operator
import warnings
from typing import Annotated, Any, Literal, TypedDict

import pytest

from surestep.graph import END, START, StateGraph
from surestep.graph._check import UnreachableJoinWarning
from surestep.types import Command


class State(TypedDict):
    log: Annotated[list, operator.add]


def graph(*names: str, edges: str = "", **nodes: Any) -> StateGraph:
    """`edges`: "a>b c>d" are edges, "a+b>c" is a join; `^` is START and `$` is END."""
    builder = StateGraph(State)
    for name in names:
        builder.add_node(name, lambda s, name=name: {"log": [name]})
    for name, node in nodes.items():
        builder.add_node(name, node)
    for edge in edges.split():
        start, _, end = edge.replace("^", START).replace("$", END).partition(">")
        builder.add_edge(start.split("+") if "+" in start else start, end)
    return builder


def choose(state: Any) -> Any:
    return []


def reports(builder: StateGraph) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        builder.compile()
    assert all(w.category is UnreachableJoinWarning and w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught]


def commanded(state: Any) -> Command[Literal["a", "b"]]:
    return Command(goto="a")


def commanded_to_one(state: Any) -> Command[Literal["b"]]:
    return Command(goto="b")


DEAD = {
    "one of two is chosen": graph("r", "a", "b", "j", edges="^>r a+b>j").add_conditional_edges("r", choose, ["a", "b"]),
    "one is chosen or nothing": graph("r", "a", "b", "j", edges="^>r r>a a+b>j").add_conditional_edges(
        "r", choose, ["b", END]
    ),
    "chosen from the start": graph("a", "b", "j", edges="^>a a+b>j").add_conditional_edges(START, choose, ["b", "a"]),
    "further down the way": graph("r", "x", "y", "a", "b", "j", edges="^>r x>a y>b a+b>j").add_conditional_edges(
        "r", choose, {True: "x", False: "y"}
    ),
    "by command": graph("a", "b", "j", edges="^>r a+b>j", r=commanded),
    "a join behind a join": graph("r", "a", "b", "c", "j", "k", edges="^>r r>a r>c a+b>j j+c>k").add_conditional_edges(
        "r", choose, ["b", END]
    ),
    "a loop behind the join": graph("r", "a", "b", "j", edges="^>r a+b>j j>r").add_conditional_edges(
        "r", choose, ["a", "b"]
    ),
}


@pytest.mark.parametrize("builder", DEAD.values(), ids=DEAD)
def test_a_join_that_may_never_fire(builder: StateGraph) -> None:
    found = reports(builder)
    assert found and all("may never fire" in text for text in found)


def test_what_the_report_says() -> None:
    (text,) = reports(DEAD["one of two is chosen"])
    assert "The join ['a', 'b'] -> 'j'" in text
    assert "when the branch 'choose' of 'r' goes to 'a' only, 'a' may run but 'b' does not" in text
    assert "defer=True" in text
    (text,) = reports(DEAD["by command"])
    assert "when the command of 'r' goes to 'a' only" in text


ALIVE = {
    "no join": graph("r", "a", "b", edges="^>r").add_conditional_edges("r", choose, ["a", "b"]),
    "always both": graph("r", "a", "b", "j", edges="^>r r>a r>b a+b>j"),
    "in different steps": graph("r", "a", "b", "c", "j", edges="^>r r>a r>b b>c a+c>j"),
    "both or none": graph("r", "x", "y", "a", "b", "j", edges="^>r x>a x>b a+b>j").add_conditional_edges(
        "r", choose, ["x", "y", END]
    ),
    "one way to go": graph("r", "a", "b", "j", edges="^>r r>a a+b>j").add_conditional_edges("r", choose, ["b"]),
    "one command": graph("a", "b", "j", edges="^>r r>a a+b>j", r=commanded_to_one),
    "anywhere": graph("r", "a", "b", "j", edges="^>r r>a a+b>j").add_conditional_edges("r", choose),
    "all ways lead there": graph("r", "x", "y", "a", "b", "j", edges="^>r r>a x>b y>b a+b>j").add_conditional_edges(
        "r", choose, ["x", "y"]
    ),
    "it comes round again": graph("r", "a", "b", "j", edges="^>r a>r b>r a+b>j").add_conditional_edges(
        "r", choose, ["a", "b", END]
    ),
    "a choice elsewhere": graph("r", "a", "b", "j", "x", "y", edges="^>r r>a r>b a+b>j").add_conditional_edges(
        "j", choose, ["x", "y"]
    ),
    "unreachable altogether": graph("r", "a", "b", "j", edges="^>r a+b>j"),
}


@pytest.mark.parametrize("builder", ALIVE.values(), ids=ALIVE)
def test_ordinary_graphs_are_not_reported(builder: StateGraph) -> None:
    assert reports(builder) == []


def test_a_default_route_through_an_error_handler_counts() -> None:
    builder = graph("a", "b", "j", edges="^>a ^>b a+b>j")
    builder.add_node("c", choose, error_handler=choose).add_edge("j", "c")
    assert reports(builder) == []


def test_validate_reports_at_the_callers_line() -> None:
    with pytest.warns(UnreachableJoinWarning) as caught:
        DEAD["one of two is chosen"].validate()
    assert caught[0].filename == __file__


def test_many_choices_are_checked_in_reasonable_time() -> None:
    names = [f"n{number}" for number in range(120)]
    builder = graph(*names, "j", edges=f"^>n0 {names[-1]}+{names[-2]}>j")
    for number in range(len(names) - 3):
        builder.add_conditional_edges(names[number], choose, names[number + 1 : number + 3])
    builder.add_edge(names[-3], names[-2]).add_edge(names[-3], names[-1])
    reports(builder)
