"""The graph that is killed: ten steps, with fans, Sends and a graph inside, and a log of calls outside of it."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from crash.points import Points

from surestep.graph import END, START, StateGraph
from surestep.types import Send

KEYS = frozenset("first a1 a2 a3 j1 w0 w1 w2 w3 j2 x y z b1 b2 j3 ninth tenth".split())
FINAL = "in first a1 a2 a3 j1 w0 w1 w2 w3 j2 x y z b1 b2 j3 ninth tenth".split()
INPUT = {"log": ["in"]}


class State(TypedDict):
    log: Annotated[list, operator.add]


class Told(TypedDict):
    told: list


class Inner(State, Told): ...


class Calls:
    """The log of calls: one line for the start and one for the end of each body. It survives a SIGKILL."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def __call__(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


def build(calls: Calls, points: Points, saver: Any, driver: str, **options: Any) -> Any:
    """The compiled graph; every body notes its key in `calls`, passes two kill points, and writes its key."""

    def node(key: str | None = None) -> Callable[..., Any]:
        def body(state: Any) -> Any:
            name = key or f"w{state['n']}"
            calls("start", name)
            points.pass_by("body", f"{name} starts")
            points.pass_by("body", f"{name} ends")
            return {"log": [name]}

        async def abody(state: Any) -> Any:
            return body(state)

        return body if driver == "sync" else abody

    def spread(state: Any) -> Any:
        return [Send("w", {"n": n}) for n in range(4)]

    # Takes nothing from its parent and gives back its own words alone, so that no word is doubled.
    inner = StateGraph(Inner, input_schema=Told, output_schema=State)
    for key in "xyz":
        inner.add_node(key, node(key))
    inner.add_edge(START, "x").add_edge("x", "y").add_edge("x", "z")

    g = StateGraph(State)
    for key in sorted(KEYS - set("x y z w0 w1 w2 w3".split())):
        g.add_node(key, node(key))
    g.add_node("w", node())
    g.add_node("sub", inner.compile())
    g.add_edge(START, "first")
    for key in ("a1", "a2", "a3"):
        g.add_edge("first", key)
    g.add_edge(["a1", "a2", "a3"], "j1").add_conditional_edges("j1", spread, ["w"])
    g.add_edge("w", "j2").add_edge("j2", "sub").add_edge("sub", "b1").add_edge("sub", "b2")
    g.add_edge(["b1", "b2"], "j3").add_edge("j3", "ninth").add_edge("ninth", "tenth").add_edge("tenth", END)
    return g.compile(checkpointer=saver, **options)
