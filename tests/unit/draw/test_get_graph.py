"""Graphs to draw: what is in them, and what happens without LangChain."""

from __future__ import annotations

import itertools
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnableSequence
from langchain_core.runnables.graph import CurveStyle, Graph, MermaidDrawMethod, NodeStyles

from surestep.channels import LastValue
from surestep.graph import END, START, StateGraph
from surestep.integrations.drawing import runnable_of
from surestep.pregel import NodeBuilder, Pregel
from surestep.pregel._outline import Edge, outline


class State(TypedDict, total=False):
    n: int


def idle(state: State) -> State:
    return {"n": 1}


def edges(graph: Any) -> list[tuple[str, str]]:
    return [edge[:2] for edge in outline(graph).edges]


def graph(*pairs: tuple[str, str], **settings: Any) -> StateGraph[Any]:
    builder = StateGraph(State)
    for name in dict.fromkeys(name for pair in pairs for name in pair if name not in (START, END)):
        builder.add_node(name, idle, **settings)
    for pair in pairs:
        builder.add_edge(*pair)
    return builder


def test_an_outline_names_what_each_node_runs() -> None:
    compiled = graph((START, "a")).compile()
    nodes = outline(compiled).nodes
    assert [node.name for node in nodes] == [START, "a", END]
    assert nodes[1].runs is compiled.nodes["a"].bound
    assert [node.placeholder for node in nodes] == [False, False, True]


def test_a_circle_is_left_where_it_is_after_so_many_rounds() -> None:
    assert outline(graph((START, "a"), ("a", "b"), ("b", "a")).compile()).edges[-1] == Edge("b", END, None, True)


def test_a_circle_that_a_choice_closes_is_gone_through_once() -> None:
    builder = graph((START, "agent"), ("tools", "agent"))
    builder.add_conditional_edges("agent", lambda state: "tools", ["tools"])
    assert outline(builder.compile()).edges[-1] == Edge("agent", END, None, True)


def test_a_long_chain_is_drawn_to_its_end() -> None:
    names = [START, *(f"n{k}" for k in range(400))]
    assert len(edges(graph(*itertools.pairwise(names)).compile())) == 401


def test_a_wide_graph_is_drawn_in_one_round_a_step() -> None:
    wide = [(START, f"n{k}") for k in range(300)] + [(f"n{k}", "end") for k in range(300)]
    assert len(edges(graph(*wide).compile())) == 601


def test_nothing_of_the_user_runs() -> None:
    def never(state: Any) -> Any:
        raise AssertionError("a drawing ran a node")

    builder = StateGraph(State).add_node("a", never).add_node("b", never).add_edge(START, "a")
    builder.add_conditional_edges("a", never, ["b"])
    assert edges(builder.compile()) == [(START, "a"), ("a", "b"), ("b", END)]


def test_hand_made_channels_lead_on() -> None:
    one = NodeBuilder().subscribe_to("x", "y").do(lambda x: 1).write_to("z")
    two = NodeBuilder().subscribe_only("z").do(lambda x: 1).write_to("out")
    channels = {name: LastValue(int) for name in ("x", "y", "z", "out")}
    made = Pregel(nodes={"one": one, "two": two}, channels=channels, input_channels=["x", "y"], output_channels="out")
    assert edges(made) == [(START, "one"), ("one", "two"), ("two", END)]


def test_a_graph_with_handlers_shows_them() -> None:
    builder = StateGraph(State).add_node("a", idle, error_handler=idle).add_edge(START, "a")
    names = [node.name for node in outline(builder.compile()).nodes]
    assert names == [START, "__error_handler__a", "a", END]


def test_tools_of_a_node_are_named() -> None:
    class Tools:
        def __init__(self) -> None:
            self.tools_by_name = {"search": 1, "read": 2}

        def __call__(self, state: State) -> State:
            return {}

    builder = StateGraph(State).add_node("tools", Tools(), metadata={"k": 1}).add_edge(START, "tools")
    assert outline(builder.compile()).nodes[1].metadata == {"k": 1, "__tools": ["search", "read"]}


async def test_it_is_langchains_graph() -> None:
    compiled = graph((START, "a"), ("a", "b")).compile(interrupt_before=["b"])
    drawn = compiled.get_graph()
    assert isinstance(drawn, Graph)
    assert drawn.draw_mermaid(with_styles=False) == "graph TD;\n\t__start__ --> a;\n\ta --> b;\n\tb --> __end__;\n"
    assert (await compiled.aget_graph()).to_json() == drawn.to_json()
    assert drawn.to_json()["nodes"][2]["metadata"] == {"__interrupt": "before"}
    assert "text/vnd.mermaid" in compiled._repr_mimebundle_()


def test_nodes_hold_something_that_can_be_run() -> None:
    inner = graph((START, "x")).compile()
    nodes: dict[str, Any] = {
        "function": idle,
        "graph": inner,
        "runnable": RunnableLambda(lambda state: state),
        "parallel": {"n": lambda state: 2},
    }
    builder = StateGraph(State)
    for name, body in nodes.items():
        builder.add_node(name, body).add_edge(START, name)
    drawn = builder.compile().get_graph().nodes
    assert drawn["graph"].data is inner
    assert drawn["runnable"].data is nodes["runnable"]
    assert isinstance(drawn["parallel"].data, RunnableParallel)
    data: Any = drawn["function"].data
    assert data.invoke({}) == {"n": 1} and data.get_name() == "function"
    start: Any = drawn[START].data
    assert start.invoke({"n": 3}) == {"n": 3}
    chain = NodeBuilder().subscribe_only("x").do(lambda x: x + 1).do(lambda x: x * 2).build()
    run = runnable_of(chain.bound, "chain")
    assert isinstance(run, RunnableSequence) and run.invoke(1) == 4


@pytest.mark.parametrize("xray", [True, 1])
def test_a_graph_inside_takes_the_place_of_its_node(xray: int) -> None:
    inner = graph((START, "x"), ("x", "y")).compile()
    builder = StateGraph(State).add_node("in", inner).add_node("b", idle).add_edge(START, "in").add_edge("in", "b")
    drawn = builder.compile().get_graph(xray=xray)
    assert list(drawn.nodes) == [START, "b", END, "in:x", "in:y"]
    assert [edge[:2] for edge in drawn.edges] == [(START, "in:x"), ("in:y", "b"), ("b", END), ("in:x", "in:y")]


def test_a_graph_inside_without_one_way_in_stays_a_node() -> None:
    inner = graph((START, "x"), ("lost", "x")).compile()
    drawn = StateGraph(State).add_node("in", inner).add_edge(START, "in").compile().get_graph(xray=True)
    assert list(drawn.nodes) == [START, "in", END]


def test_without_langchain_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["langchain_core"] = None
from surestep.graph import StateGraph, START
from surestep.pregel.draw import mermaid_text
graph = StateGraph(dict).add_node("a", print).add_edge(START, "a").compile()
assert "a" in mermaid_text(graph)
try:
    graph.get_graph()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'surestep[langchain]'" in done.stdout and "mermaid_text" in done.stdout


def test_a_png_is_drawn_in_this_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("it opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    drawn = graph((START, "a"), ("a", END)).compile().get_graph()
    png = drawn.draw_mermaid_png(output_file_path=str(tmp_path / "graph.png"), max_retries=3)
    assert png.startswith(b"\x89PNG\r\n") and (tmp_path / "graph.png").read_bytes() == png
    assert drawn.draw_mermaid_png(background_color=None) != png
    assert drawn.draw_mermaid_png(curve_style=CurveStyle.BASIS, node_colors=NodeStyles(default="fill:#ff0000")) != png


@pytest.mark.parametrize(
    "settings",
    [{"draw_method": MermaidDrawMethod.PYPPETEER}, {"base_url": "http://here.example"}, {"proxies": {"http": "x"}}],
    ids=["browser", "server", "proxies"],
)
def test_who_asks_for_another_way_to_draw_gets_it(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(Graph, "draw_mermaid_png", lambda self, **given: asked.append(given))
    graph((START, "a")).compile().get_graph().draw_mermaid_png(**settings)
    assert len(asked) == 1 and settings.items() <= asked[0].items()


def test_without_the_extra_langchain_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(Graph, "draw_mermaid_png", lambda self, **given: asked.append(given))
    monkeypatch.setattr("surestep.integrations.drawing.find_spec", lambda name: None)
    graph((START, "a")).compile().get_graph().draw_mermaid_png()
    assert [given["draw_method"] for given in asked] == [MermaidDrawMethod.API]
