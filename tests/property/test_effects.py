"""Random graphs with effects beside gates, random schedules, decisions in any order: nothing during a pause, nothing
after a rejection, nothing twice, nothing lost.
"""

from __future__ import annotations

import asyncio
import operator
import random
import threading
import time
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surestep.checkpoint.memory import InMemorySaver
from surestep.effects import Approve, EffectCancelled, Reject, current_effect, effect, gate
from surestep.graph import START, StateGraph
from surestep.types import Command, Send


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    packet: Any


class Op(NamedTuple):
    """What a task does next: call an effect, come to a gate, fail once, or wait a moment."""

    kind: str
    name: str
    wait: int  # milliseconds before it


class Shape(NamedTuple):
    """A step's tasks, each with what it does; which of them lie in a subgraph; whether they are packets."""

    tasks: tuple[tuple[Op, ...], ...]
    inside: frozenset[int]
    packets: bool
    second: tuple[Op, ...]  # of the step after it


class World:
    """The outside: what happened, and what must not."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open: set[str] = set()  # gates that wait
        self.happened: dict[str, str] = {}  # idempotency key -> name
        self.wrong: list[str] = []
        self.called: set[tuple[int, str]] = set()
        self.cancelled: set[tuple[int, str]] = set()
        self.failed: set[str] = set()

    def act(self, name: str) -> None:
        key = current_effect().idempotency_key
        with self.lock:
            if self.open:
                self.wrong.append(f"{name} happened while {self.open} waited")
            if key in self.happened:
                self.wrong.append(f"{name} happened twice")
            self.happened[key] = name


OPS = st.builds(
    Op, st.sampled_from(["effect", "effect", "gate", "fail", "wait"]), st.sampled_from("abc"), st.integers(0, 2)
)
TASKS = st.lists(OPS, min_size=1, max_size=4).map(tuple)
SHAPES = st.builds(
    Shape,
    st.lists(TASKS, min_size=1, max_size=4).map(tuple),
    st.frozensets(st.integers(0, 3), max_size=2),
    st.booleans(),
    st.lists(OPS, max_size=2).map(tuple),
)


def program(world: World, number: int, ops: tuple[Op, ...], is_async: bool) -> Any:
    """A node that does these things one after the other, and logs what became of its effects."""

    def body(name: str) -> str:
        time.sleep(0.0005 * (len(name) % 3))
        world.act(name)
        return f"did {name}"

    async def abody(name: str) -> str:
        await asyncio.sleep(0.0005)
        world.act(name)
        return f"did {name}"

    call: Any = effect(name="act")(abody if is_async else body)

    def ask(place: int, op: Op) -> bool:
        question = f"{number}.{place}"
        with world.lock:
            world.open.add(question)
        decision = gate(question)
        with world.lock:
            world.open.discard(question)
        return bool(decision)

    def fail(place: int) -> None:
        name = f"{number}.{place}"
        if name not in world.failed:
            world.failed.add(name)
            raise ConnectionError(name)

    async def run(state: Any) -> Any:
        log = []
        for place, op in enumerate(ops):
            if op.wait:
                if is_async:
                    await asyncio.sleep(op.wait / 1000)
                else:
                    time.sleep(op.wait / 1000)
            if op.kind == "effect":
                try:
                    found = call(f"{number}.{place}")
                    log.append(await found if is_async else found)
                except EffectCancelled:
                    log.append(f"cancelled {number}.{place}")
            elif op.kind == "gate":
                log.append(f"{number}.{place}: {ask(place, op)}")
            elif op.kind == "fail":
                fail(place)
        return {"log": log}

    if is_async:
        return run

    def plain(state: Any) -> Any:
        try:
            run(state).send(None)
        except StopIteration as end:
            return end.value
        raise AssertionError("it never waits")

    return plain


def build(world: World, shape: Shape, is_async: bool) -> Any:
    builder = StateGraph(Log)
    nodes = {f"n{number}": program(world, number, ops, is_async) for number, ops in enumerate(shape.tasks)}
    if shape.packets:
        if is_async:

            async def work(state: Any) -> Any:
                return await nodes[state["packet"]](state)

        else:

            def work(state: Any) -> Any:
                return nodes[state["packet"]](state)

        builder.add_node("work", work)
        builder.add_conditional_edges(START, lambda state: [Send("work", {"packet": name}) for name in nodes], ["work"])
        last = ["work"]
    else:
        for number, (name, node) in enumerate(nodes.items()):
            inner = StateGraph(Log)
            inner.add_node(name, node)
            inner.add_edge(START, name)
            builder.add_node(name, inner.compile() if number in shape.inside else node)
            builder.add_edge(START, name)
        last = list(nodes)
    if shape.second:
        builder.add_node("second", program(world, 99, shape.second, is_async))
        builder.add_edge(last, "second")
    return builder.compile(checkpointer=InMemorySaver())


class Player:
    """Runs the graph to its end, decides what it asks, and holds every step of the way to the guarantees."""

    def __init__(self, shape: Shape, is_async: bool, seed: int) -> None:
        self.world = World()
        self.random = random.Random(seed)
        self.app = build(self.world, shape, is_async)
        self.config = {"configurable": {"thread_id": "t"}}
        self.is_async = is_async

    def call(self, given: Any) -> Any:
        if self.is_async:
            return asyncio.run(self.app.ainvoke(given, self.config))
        return self.app.invoke(given, self.config)

    def play(self) -> None:
        given: Any = {"log": []}
        for _ in range(60):
            try:
                result = self.call(given)
            except ConnectionError:
                given = None
                continue
            finally:
                assert self.world.wrong == []
            questions = result.get("__interrupt__", [])
            if not questions:
                self.check(result["log"])
                return
            given = self.decide(questions)
        raise AssertionError("it comes to no end")

    def decide(self, questions: Any) -> Any:
        chosen = self.random.sample(questions, self.random.randint(1, len(questions)))
        answers = {one.id: self.random.choice([Approve(), Reject("no")]) for one in chosen}
        held = {record.id for record in self.app.get_effects(self.config).effects if record.state == "held"}
        if any(isinstance(answer, Reject) for answer in answers.values()):
            self.doomed = getattr(self, "doomed", set()) | held
        self.world.open -= {one.value for one in chosen}
        return Command(resume=answers)

    def check(self, log: list[str]) -> None:
        doomed = getattr(self, "doomed", set())
        assert doomed.isdisjoint(self.world.happened), "what a rejection cancelled has happened"
        happened = sorted(self.world.happened.values())
        assert happened == sorted(one.removeprefix("did ") for one in log if one.startswith("did ")), "one was lost"
        states = {record.id: record.state for record in self.app.get_effects(self.config).effects}
        assert {id for id, state in states.items() if state == "done"} == set(self.world.happened)
        assert {id for id, state in states.items() if state == "cancelled"} == doomed
        assert set(states.values()) <= {"done", "cancelled"}


def play(shape: Shape, is_async: bool, seed: int) -> None:
    Player(shape, is_async, seed).play()


QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@given(shape=SHAPES, seed=st.integers(0, 2**16))
@QUICK
def test_random_graphs_keep_the_guarantees(is_async: bool, shape: Shape, seed: int) -> None:
    play(shape, is_async, seed)


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@given(shape=SHAPES, seed=st.integers(0, 2**16))
@LONG
def test_a_thousand_random_graphs(is_async: bool, shape: Shape, seed: int) -> None:
    play(shape, is_async, seed)
