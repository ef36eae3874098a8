"""Graphs as drawings: nodes, edges, Mermaid text."""

from typing import Any, Literal

from compat.registry import Log, differs, nodes, program, say
from harness.engine import Engine


def drawn(graph: Any, **options: Any) -> Any:
    """What a drawing has in it, without the classes of what the nodes run."""
    found = graph.get_graph(**options)
    shown = [(node.id, node.name, node.data is None, node.metadata) for node in found.nodes.values()]
    return shown, [tuple(edge) for edge in found.edges], found.draw_mermaid()


def labelled(E: Engine) -> Any:
    def jump(state: Any) -> "E.Command[Literal['b', '__end__']]":  # type: ignore[name-defined]
        return None  # type: ignore[return-value]

    jump.__annotations__["return"] = E.Command[Literal["b", "__end__"]]
    inner = E.graph(Log, nodes(["inner"]), "START > inner").compile()
    g = E.StateGraph(Log)
    g.add_node("a", jump).add_node("b", inner).add_node("c", say("c"), defer=True, metadata={"k": [1]})
    g.add_edge(E.START, "a").add_conditional_edges("b", lambda s: "yes", {"yes": "c", "no": E.END})
    return g.compile(interrupt_before=["c"], interrupt_after=["b", "c"])


@program(drivers=("sync",))
def a_bit_of_everything(E: Engine) -> Any:
    return [drawn(labelled(E), xray=xray) for xray in (False, True, 1)]


SHAPES: list[tuple[str, list[Any]]] = [
    ("ab", ["START > a > b"]),
    ("ab", ["START > a > b > END"]),
    ("abc", ["START > a", "START > b", "a, b > c"]),
    ("ab", ["START > a > b > a"]),
    ("abc", ["START > a > b > c > a"]),
    ("ab", ["START > a > b", ("b", ["a", "END"])]),
    ("ab", ["START > a > b > a", "b > END"]),
    ("abt", ["START > a > b > a", "b > t"]),
    ("abc", ["START > a", ("a", {"yes": "b", "no": "c", "stop": "END"})]),
    ("abc", ["START > a > c", ("a", ["b", "c"])]),
    ("abc", ["START > a", ("a", None), "b > c"]),
    ("ab", [("START", None), "a > b"]),
    ("ab", [("START", {"one": "a", "two": "b"})]),
    ("a", ["START > a > a"]),
    ("ab", ["START > a", "START > b", "a > a", "b > b"]),
    ("abc", ["START > a", "b > c"]),
]


def shape(E: Engine, names: str, edges: list[Any]) -> Any:
    g = E.graph(Log, nodes(list(names)), *[edge for edge in edges if isinstance(edge, str)])
    for source, ends in [edge for edge in edges if not isinstance(edge, str)]:
        if isinstance(ends, dict):
            ends = {answer: E._name(end) for answer, end in ends.items()}
        elif ends is not None:
            ends = [E._name(end) for end in ends]
        g.add_conditional_edges(E._name(source), lambda s: "a", ends)
    return g.compile()


@program(drivers=("sync",))
def shapes(E: Engine) -> Any:
    return [drawn(shape(E, names, edges)) for names, edges in SHAPES]


def several_ways(E: Engine, ends: Any, path_map: Any) -> Any:
    g = E.StateGraph(Log)
    g.add_node("a", say("a"), destinations=ends).add_node("b", say("b")).add_node("c", say("c"))
    g.add_edge(E.START, "a").add_edge("a", "c").add_conditional_edges("a", lambda s: "b", path_map)
    return g.compile()


@program(drivers=("sync",))
def several_ways_to_one_place(E: Engine) -> Any:
    ways: list[Any] = [
        (("a", "c"), ["b", "__end__"]),
        ({"b": "to b", "c": "to c"}, {"z": "b", "q": "c"}),
        ({"b": "x", "c": "y"}, {"a": "b", "q": "b"}),
    ]
    return [drawn(several_ways(E, ends, path_map)) for ends, path_map in ways]


@program(drivers=("sync",))
def what_waits_for_the_end(E: Engine) -> Any:
    def late(*edges: str) -> Any:
        bodies = {name: say(name) for name in "abx"} | {"d": (say("d"), {"defer": True})}
        return drawn(E.graph(Log, bodies, *edges).compile())

    return [
        late("START > a > b > d", "a > d"),
        late("START > a > b", "a > d"),
        late("START > a", "START > b > x", "a > d"),
        late("START > a", "START > b > x", "a, b > d"),
    ]


@program(drivers=("sync",))
def graphs_in_graphs(E: Engine) -> Any:
    deep = E.graph(Log, nodes("xy"), "START > x", ("x", lambda s: "y", ["x", "y"])).compile()
    called = E.graph(Log, nodes("uv"), "START > u > v").compile()
    keeps_nothing = E.graph(Log, nodes("n"), "START > n").compile(checkpointer=False)

    def calls(state: Any) -> Any:
        return called.invoke(state)

    middle = E.graph(Log, {"deep": deep, "calls": calls, "none": keeps_nothing}, "START > deep > calls > none")
    app = E.graph(Log, {"a": say("a"), "middle": middle.compile()}, "START > a > middle").compile()
    return [drawn(app, xray=xray) for xray in (False, True, 1, 2, 3)]


@program(drivers=("sync",))
def hand_made_graphs(E: Engine) -> Any:
    channels = {name: E.LastValue(int) for name in ("in", "mid", "out")}
    one = E.NodeBuilder().subscribe_only("in").do(lambda x: x).write_to("mid")
    two = E.NodeBuilder().subscribe_only("mid").do(lambda x: x).write_to("out")
    again = E.NodeBuilder().subscribe_only("in").do(lambda x: x).write_to("in", "out")
    app = E.entrypoint()(E.node(lambda x: x))
    return [
        drawn(E.Pregel(nodes=made, channels=dict(channels), input_channels="in", output_channels="out"))
        for made in ({"one": one}, {"two": two, "One": one}, {"again": again})
    ] + [[edge[:2] for edge in drawn(app)[1]]]


@differs(
    "Ways with a label and without one, from one node to another, can be drawn.",
    ours=lambda got: ["a", "b", None, True] in [list(edge) for edge in got[1]],
    theirs=lambda got: got[0] == "error",
    drivers=("sync",),
)
def a_label_and_none(E: Engine) -> Any:
    return E.attempt(drawn, several_ways(E, ("c", "b"), {"z": "b", "q": "c"}))


@differs(
    "A graph of several input channels can be drawn.",
    ours=lambda got: len(got[1]) == 2,
    theirs=lambda got: got[0] == "error",
    drivers=("sync",),
)
def several_inputs(E: Engine) -> Any:
    def draw() -> Any:
        node = E.NodeBuilder().subscribe_to("x", "y").do(lambda x: 1).write_to("z")
        channels = {name: E.LastValue(int) for name in "xyz"}
        return drawn(E.Pregel(nodes={"n": node}, channels=channels, input_channels=["x", "y"], output_channels="z"))

    return E.attempt(draw)
