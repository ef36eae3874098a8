"""A compiled graph as Mermaid text, and that as a picture."""

from __future__ import annotations

import socket
import struct
import sys
from typing import Any, Literal, TypedDict

import pytest

from surestep.errors import NodeError
from surestep.func import entrypoint
from surestep.graph import END, START, StateGraph
from surestep.pregel.draw import mermaid_ascii, mermaid_png, mermaid_text
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


def test_a_default_error_handler_is_a_node_of_the_drawing() -> None:
    builder = graph("a").add_edge(START, "a").set_node_defaults(error_handler=idle)
    text = mermaid_text(builder.compile())
    assert '    __default_error_handler__["__default_error_handler__"]' in text
    assert '    a -.->|"error"| __default_error_handler__' in text


def test_text_that_mermaid_would_take_for_markup() -> None:
    builder = graph("<b> & `c` #quot;").add_edge(START, "<b> & `c` #quot;")
    assert '["#60;b#62; #38; #96;c#96; #35;quot;"]' in mermaid_text(builder.compile())


def test_a_node_whose_name_is_the_word_for_the_unknown() -> None:
    builder = graph("unknown1").add_edge(START, "unknown1").add_conditional_edges("unknown1", lambda state: "b")
    assert "    unknown1 -.-> unknown1_{{?}}" in mermaid_text(builder.compile())


def boxes() -> Any:
    """a, in b, in c, in the graph."""
    deep = graph("a").add_edge(START, "a").add_edge("a", END)
    middle = StateGraph(State).add_node("b", deep.compile()).add_edge(START, "b").add_edge("b", END)
    return StateGraph(State).add_node("c", middle.compile()).add_edge(START, "c").add_edge("c", END).compile()


def test_graphs_inside_of_a_graph_are_boxes_with_a_way_in_and_a_way_out() -> None:
    assert mermaid_text(boxes(), xray=1).splitlines() == [
        "flowchart TD",
        "    __start__([start])",
        '    subgraph c ["c"]',
        "        c___start__([start])",
        '        c_b["b"]',
        "        c___end__([end])",
        "    end",
        "    __end__([end])",
        "    c___start__ --> c_b",
        "    c_b --> c___end__",
        "    __start__ --> c___start__",
        "    c___end__ --> __end__",
    ]


def test_how_deep_it_looks() -> None:
    assert "subgraph" not in mermaid_text(boxes())
    assert mermaid_text(boxes(), xray=0) == mermaid_text(boxes())
    assert mermaid_text(boxes(), xray=2) == mermaid_text(boxes(), xray=True)
    assert '            c_b_a["a"]' in mermaid_text(boxes(), xray=True)


def test_a_graph_without_a_builder_is_drawn_as_its_channels_lead() -> None:
    @entrypoint()
    def flow(n: int) -> int:
        return n

    text = mermaid_text(flow)
    assert '    flow["flow"]' in text and "    __start__ --> flow" in text


def size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", png[16:24])


def test_a_png_is_made_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("it opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    wide, high = size(mermaid_png(boxes(), scale=1.0))
    assert high > wide > 50  # start, c and end, one below the other
    assert size(mermaid_png(boxes(), scale=3.0)) == pytest.approx((3 * wide, 3 * high), abs=3)
    assert size(mermaid_png(boxes(), xray=True, scale=1.0))[1] > 2 * high


def test_ascii_art_shows_every_node() -> None:
    art = mermaid_ascii(boxes(), xray=True)
    assert art.isascii()
    assert all(f" {name} " in art for name in ("start", "a", "b", "c", "end"))


@pytest.mark.parametrize(("draw", "package"), [(mermaid_png, "mermaidx"), (mermaid_ascii, "termaid")])
def test_a_drawing_without_its_package(draw: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{package}: pip install 'surestep\[draw\]'"):
        draw(boxes())
