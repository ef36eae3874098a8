"""A scripted graph, and a model of its thread that knows what each step must leave behind.

The input of a turn is a script: steps of operations that run in parallel. `say` logs a word, `ask` waits for
an answer, `fail` raises for as long as its key is broken. Every body tells the model when it starts, asks and
ends, outside of the graph: what has ended must never end again, and must be seen in the state.
"""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from harness.engine import Boom, Engine

Script = list[list[str]]
"""Steps of operations; each is one of `say`, `ask`, `fail`."""


class State(TypedDict):
    log: Annotated[list, operator.add]
    turn: str
    script: list
    at: int


class Packet(TypedDict):
    key: str
    kind: str


@dataclass
class Line:
    """One line of a thread: the turn under way, and how far it has come."""

    turn: str
    script: Script
    at: int
    log: list[str]
    starts: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    asked: set[str] = field(default_factory=set)

    def keys(self, at: int) -> dict[str, str]:
        """Key -> kind of the operations of a step."""
        return {f"{self.turn}.{at}.{i}": kind for i, kind in enumerate(self.script[at])}

    @property
    def over(self) -> bool:
        return self.at >= len(self.script)

    def now(self) -> dict[str, str]:
        return {} if self.over else self.keys(self.at)

    def advance(self) -> None:
        """Closes every step whose operations have all ended."""
        while not self.over and all(self.ends[key] for key in self.now()):
            self.log += [text(key, kind) for key, kind in self.now().items()]
            self.at += 1

    def live(self) -> list[str]:
        """What a reader of the state must see: the closed steps, and what has ended of the one under way."""
        return self.log + [text(key, kind) for key, kind in self.now().items() if self.ends[key]]

    def waiting(self) -> list[str]:
        return sorted(
            key for key, kind in self.now().items() if kind == "ask" and not self.ends[key] and key in self.asked
        )

    def end(self) -> list[str]:
        """The log at the end of the turn, whatever happens on the way."""
        rest = range(self.at, len(self.script))
        return self.log + [text(key, kind) for at in rest for key, kind in self.keys(at).items()]


def text(key: str, kind: str) -> str:
    return f"{key}={answer(key)}" if kind == "ask" else key


def answer(key: str) -> str:
    return f"<{key}>"


class Bodies:
    """What the nodes do; `line` is the line that hears of it, `broken` says which keys fail."""

    def __init__(self, E: Engine, broken: set[str]) -> None:
        self.E, self.broken = E, broken
        self.line: Line | None = None

    def work(self, packet: Packet) -> Any:
        key, kind, line = packet["key"], packet["kind"], self.line
        assert line is not None
        line.starts[key] += 1
        if kind == "fail" and key in self.broken:
            raise Boom(key)
        if kind == "ask":
            line.asked.add(key)
            given = self.E.interrupt(key)
            assert given == answer(key), f"the answer to another question: {given} for {key}"
        line.ends[key] += 1
        return {"log": [text(key, kind)]}

    def close(self, state: Any) -> Any:
        return {"at": state["at"] + 1}

    def route(self, state: Any) -> Any:
        if state["at"] >= len(state["script"]):
            return self.E.END
        step = enumerate(state["script"][state["at"]])
        return [self.E.Send("work", {"key": f"{state['turn']}.{state['at']}.{i}", "kind": kind}) for i, kind in step]

    def build(self, saver: Any) -> Any:
        E = self.E
        nodes = {"plan": lambda state: {}, "work": self.work, "close": self.close}
        ways = ["work", E.END]
        g = E.graph(
            State, nodes, "START > plan", ("plan", self.route, ways), "work > close", ("close", self.route, ways)
        )
        return g.compile(checkpointer=saver)
