"""Random graphs as plain data, and how to build and run one on either engine."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypedDict

from compat.registry import MODES
from harness.engine import Engine
from hypothesis import strategies as st

STEPS = 11
"""The step limit of a run: a random loop need not end, and running into the limit is a result as well."""


@dataclass(frozen=True)
class Node:
    """A node: what it writes besides its line in the log, and what else it does."""

    name: str
    writes: frozenset[str] = frozenset()
    questions: int = 0
    twice: bool = False
    goto: tuple[str, ...] = ()
    defer: bool = False
    inner: Graph | None = None


@dataclass(frozen=True)
class Router:
    """A conditional edge: `kind` says how it chooses among its targets, by the length of the log."""

    source: str
    targets: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Graph:
    nodes: tuple[Node, ...]
    edges: frozenset[tuple[str, str]]
    barriers: tuple[tuple[tuple[str, ...], str], ...] = ()
    routers: tuple[Router, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shown = [f"nodes={list(self.nodes)}", f"edges={sorted(self.edges)}"]
        shown += [
            f"{name}={value}" for name in ("barriers", "routers", "before", "after") if (value := getattr(self, name))
        ]
        return f"Graph({', '.join(shown)})"


# -- drawing ----------------------------------------------------------------------------------------------------


@st.composite
def graphs(draw: Any, inner: bool = True, most: int = 5) -> Graph:
    names = [f"n{i}" for i in range(draw(st.integers(1, most)))]
    name = st.sampled_from(names)
    some = st.lists(name, unique=True, max_size=3).map(tuple)
    inside = st.none() | graphs(inner=False, most=3).map(forward) if inner else st.none()
    nodes = tuple(draw(_node(found, some, inside)) for found in names)
    edges = draw(
        st.frozensets(st.tuples(st.sampled_from(["START", *names]), st.sampled_from([*names, "END"])), max_size=7)
    )
    edges = frozenset(edge for edge in edges if edge != ("START", "END")) | {("START", draw(name))}
    sources = st.lists(name, min_size=2, max_size=3, unique=True).map(tuple)
    barriers = draw(st.lists(st.tuples(sources, name), max_size=2, unique=True)) if len(names) > 1 else []
    targets = st.lists(st.sampled_from([*names, "END"]), min_size=1, max_size=3, unique=True).map(tuple)
    kinds = st.sampled_from(["one", "all", "sends", "none or one", "map"])
    routers = draw(
        st.lists(
            st.builds(Router, st.sampled_from(["START", *names]), targets, kinds),
            max_size=2,
            unique_by=lambda r: r.source,
        )
    )
    before, after = (draw(st.lists(name, max_size=1).map(tuple)) if inner else () for _ in range(2))
    return Graph(nodes, edges, tuple(barriers), tuple(routers), before, after)


def forward(graph: Graph) -> Graph:
    """The graph without the ways that lead back, and without a key that two nodes could clash on.

    An inner graph must not fail: what becomes of the siblings of a task that fails is a matter of time.
    """

    def ahead(source: str, target: str) -> bool:
        return source == "START" or target == "END" or source < target

    return Graph(
        tuple(
            replace(n, writes=n.writes - {"last"}, goto=tuple(t for t in n.goto if ahead(n.name, t)))
            for n in graph.nodes
        ),
        frozenset(edge for edge in graph.edges if ahead(*edge)),
        tuple(b for b in graph.barriers if all(source < b[1] for source in b[0])),
        tuple(r for r in graph.routers if all(ahead(r.source, target) for target in r.targets)),
    )


def _node(name: str, some: Any, inside: Any) -> Any:
    channels = st.frozensets(st.sampled_from(["text", "best", "topic", "now", "once", "last", "table"]), max_size=2)
    rarely = st.integers(0, 5).map(lambda n: n == 0)
    questions = st.integers(0, 7).map(lambda n: max(0, n - 5))
    gotos = st.just(()) | st.just(()) | some
    return st.builds(Node, st.just(name), channels, questions, rarely, gotos, rarely, inside)


# -- building ---------------------------------------------------------------------------------------------------


def schema(E: Engine) -> Any:
    """A state with a channel of every kind; `log` shows who ran, in which order, and what each one saw."""
    return TypedDict(
        "State",
        {
            # An inner graph gives its parent's lines back: without a limit the log would double step by step.
            "log": Annotated[list, lambda a, b: [*a, *b][-30:]],
            "text": Annotated[str, lambda a, b: f"({a[-8:]}{b})"],
            "best": Annotated[int, lambda a, b: max(a, b)],
            "topic": Annotated[list, E.Topic(str, accumulate=True)],
            "now": Annotated[list, E.Topic(str)],
            "once": Annotated[str, E.EphemeralValue(str, guard=False)],
            "table": Annotated[dict, operator.or_],
            "last": str,
        },
    )


def build(E: Engine, graph: Graph, **options: Any) -> Any:
    state = schema(E)
    bodies: dict[str, Any] = {}
    for node in graph.nodes:
        body = build(E, node.inner) if node.inner else _body(E, node)
        bodies[node.name] = (body, {"defer": node.defer, "destinations": node.goto or None})
    g = E.graph(state, bodies, *(f"{a} > {b}" for a, b in sorted(graph.edges)))
    for sources, end in graph.barriers:
        g.add_edge(list(sources), end)
    for router in graph.routers:
        g.add_conditional_edges(E._name(router.source), E.node(_path(E, router)), *_path_map(E, router))
    return g.compile(interrupt_before=list(graph.before) or None, interrupt_after=list(graph.after) or None, **options)


def _body(E: Engine, node: Node) -> Any:
    def body(state: Any) -> Any:
        log = state.get("log") or ["-"]
        seen = f"{node.name}:{len(log)}:{log[-1][:6]}:{state.get('text', '')[-3:]}:{state.get('once', '')}"
        # Two tasks of one node ask different questions: interrupts of one text would have no order.
        answers = [E.interrupt(f"{seen}?{n}") for n in range(node.questions)]
        values = {"best": len(seen), "topic": node.name, "now": [node.name], "table": {node.name: seen}}
        update = {"log": [seen, *answers]} | {key: values.get(key, node.name) for key in sorted(node.writes)}
        commands = [E.Command(update=update, goto=list(node.goto))] if node.goto else [update]
        return [*commands, E.Command(update={"log": ["again"]})] if node.twice else commands[0]

    return body


def _path(E: Engine, router: Router) -> Any:
    def path(state: Any) -> Any:
        n = len(state.get("log", ()))
        chosen = router.targets[n % len(router.targets)]
        if router.kind == "map":
            return n % len(router.targets)
        if router.kind == "all":
            return [E._name(target) for target in router.targets]
        if router.kind == "none or one":
            return [] if n % 2 else [E._name(chosen)]
        if router.kind == "sends" and chosen != "END":
            return [E.Send(chosen, {"log": ["sent", str(i)]}) for i in range(1 + n % 3)]
        return E._name(chosen)

    return path


def _path_map(E: Engine, router: Router) -> list[Any]:
    if router.kind == "map":
        return [{i: E._name(target) for i, target in enumerate(router.targets)}]
    return [[E._name(target) for target in router.targets]]


# -- running ----------------------------------------------------------------------------------------------------


def play(E: Engine, graph: Graph, turns: int = 2, modes: Any = MODES) -> Any:
    """Two turns on one thread: questions are answered all at once, breakpoints passed; and what is stored."""
    app = build(E, graph, checkpointer=E.saver())
    runs = list(_turns(E, app, turns, modes))
    # What has an order of its own comes first: ids are numbered as they appear.
    failed = isinstance(runs[-1], Exception)
    past = None if failed else E.history(app, E.config())
    return {"1 rows": E.rows(app.checkpointer, E.config()), "2 history": past, "3 runs": runs}


def _turns(E: Engine, app: Any, turns: int, modes: Any) -> Iterator[Any]:
    config = {**E.config(), "recursion_limit": STEPS}
    # With `async` the reference hands containers to its saver that the next step still changes.
    durability = "sync" if E.root == "langgraph" else "async"
    for turn in range(turns):
        given: Any = {"log": [f"turn {turn}"], "text": "t"}
        for round_ in range(4):
            yield (chunks := E.attempt(E.stream, app, given, config, stream_mode=modes, durability=durability))
            if isinstance(chunks, Exception):
                return
            state = E.state(app, E.config())
            # Whether a value that lives for one step is there between two steps is nobody's promise.
            yield state._replace(values={k: v for k, v in state.values.items() if k not in ("now", "once")})
            if not state.next:
                break
            answers = {i.id: f"{i.value}!{round_}" for i in state.interrupts}
            given = E.Command(resume=answers) if answers else None
