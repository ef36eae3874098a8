"""A compiled graph as Mermaid text."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from surestep.errors import NodeError
from surestep.graph import END, START, StateGraph
from surestep.pregel.draw import mermaid_text
from surestep.types import Command


class State(TypedDict, total=False):
    n: int


def idle(state: State) -> State:
    return {}


def graph(*names: str) -> StateGraph[Any]:
    builder = StateGraph(State)
    for name in names:
        builder.add_node(name, idle)
    return builder


def test_edges_that_always_fire_are_solid() -> None:
    builder = graph("a", "b").add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
    assert mermaid_text(builder.compile()).splitlines() == [
        "flowchart TD",
        "    __start__([start])",
        '    a["a"]',
        '    b["b"]',
        "    __end__([end])",
        "    __start__ --> a",
        "    a --> b",
        "    b --> __end__",
    ]


def test_a_join_has_an_edge_from_each_of_its_sources() -> None:
    builder = graph("a", "b", "c").add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")
    text = mermaid_text(builder.compile())
    assert "    a --> c" in text and "    b --> c" in text


def test_conditional_edges_are_dotted_and_labelled_where_the_answer_is_not_the_node() -> None:
    builder = graph("a", "b", "c").add_edge(START, "a")
    builder.add_conditional_edges("a", lambda state: "yes", {"yes": "b", "c": "c"})
    text = mermaid_text(builder.compile())
    assert '    a -.->|"yes"| b' in text and "    a -.-> c" in text


def test_a_conditional_edge_without_known_targets_leads_to_a_question_mark() -> None:
    builder = graph("a", "b").add_edge(START, "a").add_conditional_edges("a", lambda state: "b")
    assert "    a -.-> unknown1{{?}}" in mermaid_text(builder.compile())


def test_destinations_of_a_command_are_dotted() -> None:
    def choose(state: State) -> Command[Literal["b"]]:
        return Command(goto="b")

    builder = graph("b").add_node(choose).add_edge(START, "choose")
    assert "    choose -.-> b" in mermaid_text(builder.compile())


def test_an_error_handler_hangs_from_its_node() -> None:
    def rescue(state: State, error: NodeError) -> State:
        return {}

    builder = StateGraph(State).add_node("a", idle, error_handler=rescue).add_edge(START, "a")
    assert '    a -.->|"error"| __error_handler__a' in mermaid_text(builder.compile())


def test_names_that_mermaid_would_misread() -> None:
    builder = graph("end", "2nd", "a b", "a-b", 'say "hi"').add_edge(START, "end")
    for start, end in (("end", "2nd"), ("2nd", "a b"), ("a b", "a-b"), ("a-b", 'say "hi"')):
        builder.add_edge(start, end)
    text = mermaid_text(builder.compile())
    assert '    n_end["end"]' in text
    assert '    n_2nd["2nd"]' in text
    assert '    a_b["a b"]' in text and '    a_b_["a-b"]' in text
    assert '    say__hi_["say #quot;hi#quot;"]' in text
    assert "    a_b --> a_b_" in text
