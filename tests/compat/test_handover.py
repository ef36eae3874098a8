"""A thread changes hands: one engine pauses it, the other reads it, goes on with it, and finishes it.

The savers are langgraph's, two on the same rows, so that nothing of ours is in between but the serializer: what
one engine's wrote, the other's reads. Task ids, namespaces and interrupt ids are compared as they are: for equal
checkpoints both engines must come to equal ones.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from compat.registry import Log, ask, nodes, say
from harness.engine import Boom, Engine
from harness.normal import normal


def line(E: Engine, broken: bool) -> Any:
    return E.graph(Log, nodes("ac", b=ask(E, "b?")), "START > a > b > c"), {}


def parallel(E: Engine, broken: bool) -> Any:
    g = E.graph(Log, nodes("cj", a=ask(E, "a?"), b=ask(E, "b?")), "START > a", "START > b", "START > c", "a, b, c > j")
    return g, {}


def sends(E: Engine, broken: bool) -> Any:
    def route(state: Any) -> Any:
        return [E.Send("w", {"n": n}) for n in range(3)]

    def w(packet: Any) -> Any:
        return {"log": [(packet["n"], E.interrupt(f"q{packet['n']}") if packet["n"] != 1 else "-")]}

    return E.graph(Log, nodes("r end", w=w), "START > r", ("r", route, ["w"]), "w > end"), {}


def tree(E: Engine, broken: bool) -> Any:
    low = E.graph(Log, {"l1": say("l1"), "l2": ask(E, "low?")}, "START > l1 > l2").compile()
    mid = E.graph(Log, {"m1": say("m1"), "m2": low, "m3": say("m3")}, "START > m1 > m2 > m3").compile()
    return E.graph(Log, {"t1": say("t1"), "t2": mid, "t3": say("t3")}, "START > t1 > t2 > t3"), {}


def memory(E: Engine, broken: bool) -> Any:
    sub = E.graph(Log, {"x": say("x"), "y": ask(E, "y?")}, "START > x > y").compile(checkpointer=True)
    return E.graph(Log, {"sub": sub, "z": say("z")}, "START > sub > z"), {}


def sequential(E: Engine, broken: bool) -> Any:
    def two(state: Any) -> Any:
        return {"log": [E.interrupt("first?"), E.interrupt("second?")]}

    return E.graph(Log, {"two": two, "z": say("z")}, "START > two > z"), {}


def breakpoints(E: Engine, broken: bool) -> Any:
    deferred = {"d": (say("d"), {"defer": True})}
    return E.graph(Log, nodes("abc", **deferred), "START > a > b > d", "a > c > d"), {"interrupt_before": ["b"]}


def failure(E: Engine, broken: bool) -> Any:
    async def bad(state: Any) -> Any:
        await E.sleep(0.02)
        if broken:
            raise Boom("down")
        return {"log": ["bad"]}

    return E.graph(Log, nodes("ab", bad=bad), "START > a", "START > bad", "a, bad > b"), {}


def handler(E: Engine, broken: bool) -> Any:
    def bad(state: Any) -> Any:
        raise Boom("bad")

    return E.graph(Log, nodes("b", bad=(bad, {"error_handler": ask(E, "what now?")})), "START > bad", "START > b"), {}


def kinds_of_values(E: Engine, broken: bool) -> Any:
    import datetime
    import decimal
    import uuid

    keys = {
        "log": Annotated[list, lambda a, b: [*a, *b]],
        "bag": set,
        "when": datetime.datetime,
        "sum": decimal.Decimal,
    }
    state = TypedDict("S", {**keys, "id": uuid.UUID, "raw": bytes, "table": dict})

    def a(s: Any) -> Any:
        when = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)
        values = {"bag": {1, 2}, "when": when, "sum": decimal.Decimal("1.10"), "id": uuid.UUID(int=7), "raw": b"\0\1"}
        return {"log": ["a"], "table": {"1": [None, True, 1.5, "é"]}, **values}

    def b(s: Any) -> Any:
        return {"log": [repr([s[key] for key in ("bag", "when", "sum", "id", "raw", "table")]), E.interrupt("?")]}

    return E.graph(state, {"a": a, "b": b}, "START > a > b"), {}


GRAPHS: list[Callable[[Engine, bool], Any]] = [
    line, parallel, sends, tree, memory, sequential, breakpoints, failure, kinds_of_values,
]  # fmt: skip
DIRECTIONS = [("langgraph", "surestep"), ("surestep", "langgraph")]
WAYS = [(driver, savers) for driver in ("sync", "async") for savers in ("ref-memory", "ref-sqlite")]


def twin(saver: Any, serde: Any) -> Any:
    """Another saver on the same rows, with another serializer."""
    other = copy.copy(saver)
    other.serde = serde
    return other


def app(E: Engine, graph: Any, saver: Any, broken: bool = False) -> Any:
    builder, options = graph(E, broken)
    return builder.compile(checkpointer=saver, **options)


def raw(snapshot: Any) -> Any:
    """A snapshot with nothing blanked: ids, namespaces, values."""
    if snapshot is None or isinstance(snapshot, dict):
        return snapshot and {key: value for key, value in snapshot["configurable"].items() if "__" not in key}
    tasks = [
        (
            t.id,
            t.name,
            list(t.path),
            [(i.id, i.value) for i in t.interrupts],
            normal(t.result),
            str(t.error),
            raw(t.state),
        )
        for t in snapshot.tasks
    ]
    return normal(snapshot.values), snapshot.next, raw(snapshot.config), snapshot.metadata, tasks


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("direction", DIRECTIONS, ids=">".join)
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_a_thread_changes_hands(graph: Any, direction: Any, way: Any, caplog: Any) -> None:
    caplog.set_level(logging.CRITICAL, "langgraph")  # it tells of types that it will not read some day
    first, second = direction
    driver, savers = way
    with Engine("langgraph", driver, savers) as ref, Engine("surestep", driver, savers) as ours:
        saver = ref.saver()
        ours._loop = ref.loop  # the saver belongs to it
        by = {"langgraph": ref, "surestep": ours}
        savers_of = {"langgraph": saver, "surestep": twin(saver, ours.JsonPlusSerializer())}
        apps = {root: app(E, graph, savers_of[root]) for root, E in by.items()}
        broken = app(by[first], graph, savers_of[first], broken=True)
        by[first].attempt(by[first].invoke, broken, {"log": ["in"]}, ref.config())
        same_view(by, apps)
        for _ in range(4):
            state = by[second].state(apps[second], ref.config())
            if not state.next:
                break
            answers = {i.id: f"<{i.value}>" for i in state.interrupts}
            given = by[second].Command(resume=answers) if answers else None
            by[second].invoke(apps[second], given, ref.config())
            same_view(by, apps)
            first, second = second, first  # and back again
        assert not by[second].state(apps[second], ref.config()).next
        ours._loop = None  # it is the other engine's, which closes it
        expected = alone(graph, driver)
        assert normal(ref.state(apps["langgraph"], ref.config()).values) == expected


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("direction", DIRECTIONS, ids=">".join)
def test_a_handler_that_asked_changes_hands(direction: Any, way: Any) -> None:
    """No snapshot shows its question, so it is answered by the id that the first engine gave it."""
    first, second = direction
    driver, savers = way
    with Engine("langgraph", driver, savers) as ref, Engine("surestep", driver, savers) as ours:
        ours._loop = ref.loop  # the saver belongs to it
        try:
            by = {"langgraph": ref, "surestep": ours}
            saver = ref.saver()
            savers_of = {"langgraph": saver, "surestep": twin(saver, ours.JsonPlusSerializer())}
            apps = {root: app(E, handler, savers_of[root]) for root, E in by.items()}
            (question,) = by[first].invoke(apps[first], {"log": ["in"]}, ref.config())["__interrupt__"]
            answer = by[second].Command(resume={question.id: "this"})
            assert by[second].invoke(apps[second], answer, ref.config()) == {"log": ["in", "b", "what now?=this"]}
        finally:
            ours._loop = None  # it is the other engine's, which closes it


def same_view(by: dict[str, Engine], apps: dict[str, Any]) -> None:
    """Both engines see the same thread: live, and in the past."""
    config = Engine.config()
    live = [raw(E.state(apps[root], config, subgraphs=True)) for root, E in by.items()]
    assert live[0] == live[1]
    past = [[raw(s)[:4] for s in E.history(apps[root], config)] for root, E in by.items()]
    assert past[0] == past[1]


def alone(graph: Any, driver: str) -> Any:
    """The values at the end when the reference does all of it."""
    with Engine("langgraph", driver) as E:
        whole = app(E, graph, E.saver())
        E.invoke(whole, {"log": ["in"]}, E.config())
        while (state := E.state(whole, E.config())).next:
            answers = {i.id: f"<{i.value}>" for i in state.interrupts}
            E.invoke(whole, E.Command(resume=answers) if answers else None, E.config())
        return normal(state.values)
