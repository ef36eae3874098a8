"""Results of nodes and tasks that a cache answers for: what is kept, under which key, and what never is."""

from __future__ import annotations

import logging
import operator
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import pytest
from harness.engine import Engine
from pydantic import BaseModel

from surestep.cache.memory import InMemoryCache
from surestep.types import CachePolicy, Command, RetryPolicy, Send, interrupt

POLICY = CachePolicy()


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


class Spy(InMemoryCache[Any]):
    """Counts what it is asked, and may refuse to answer."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []  # keys in each look-up
        self.stored = 0
        self.refuses = ""

    def get(self, keys: Any) -> Any:
        self.asked.append(len(keys))
        if "get" in self.refuses:
            raise ConnectionError("nobody there")
        return super().get(keys)

    def set(self, pairs: Any) -> None:
        if "set" in self.refuses:
            raise ConnectionError("nobody there")
        self.stored += len(pairs)
        super().set(pairs)


@pytest.fixture(params=["sync", "async"])
def E(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with Engine(driver=request.param) as engine:
        yield engine


class Counted:
    """A node that counts its runs."""

    def __init__(self, *says: Any) -> None:
        self.says = says
        self.runs = 0
        self.__name__ = "counted"

    def __call__(self, state: Any) -> Any:
        self.runs += 1
        return {"log": list(self.says)}


def one(E: Engine, body: Any, cache: Any, policy: Any = POLICY, **settings: Any) -> Any:
    """A graph of one cached node."""
    builder = E.StateGraph(State).add_node("n", body, cache_policy=policy).add_edge(E.START, "n")
    return builder.compile(cache=cache, **settings)


def test_a_result_is_found_by_other_runs_and_other_threads(E: Engine) -> None:
    node, cache = Counted("done"), InMemoryCache[Any]()
    app = one(E, node, cache, checkpointer=E.saver())
    for thread in "ab":
        assert E.invoke(app, {"log": ["in"]}, E.config(thread)) == {"log": ["in", "done"]}
    assert E.invoke(app, {"log": ["other"]}, E.config("c")) == {"log": ["other", "done"]}
    assert node.runs == 2
    assert [row[1:] for row in E.rows(app.checkpointer, E.config("b"))[1].pending_writes] == [("log", ["done"])]


def test_a_hit_is_shown_as_cached_and_has_no_result_of_a_task(E: Engine) -> None:
    app = one(E, Counted("done"), InMemoryCache())
    E.invoke(app, {"log": []})
    shown = E.stream(app, {"log": []}, stream_mode=["updates", "tasks"])
    assert [mode for mode, _ in shown] == ["tasks", "updates"]
    assert shown[1][1] == {"n": {"log": ["done"]}, "__metadata__": {"cached": True}}


def test_a_step_asks_once_and_answers_equal_inputs_alike(E: Engine) -> None:
    node, cache = Counted("done"), Spy()
    builder = E.StateGraph(State).add_node("n", node, cache_policy=POLICY)
    builder.add_conditional_edges(E.START, lambda state: [Send("n", k) for k in (1, 2, 1)], ["n"])
    app = builder.compile(cache=cache)
    E.invoke(app, {"log": []})
    E.invoke(app, {"log": []})
    assert cache.asked == [2, 2]
    assert node.runs == 3, "in the first run nobody had an answer yet"


def test_edges_and_commands_of_a_hit_lead_on(E: Engine) -> None:
    def jump(state: Any) -> Any:
        return Command(update={"log": ["jump"]}, goto="b")

    builder = E.StateGraph(State)
    builder.add_node("n", jump, cache_policy=POLICY).add_node("a", Counted("a")).add_node("b", Counted("b"))
    builder.add_edge(E.START, "n").add_edge("n", "a")
    app = builder.compile(cache=InMemoryCache())
    first = E.invoke(app, {"log": []})
    assert first == {"log": ["jump", "a", "b"]} == E.invoke(app, {"log": []})


def test_a_node_that_writes_nothing_is_cached_too(E: Engine) -> None:
    runs = []
    app = one(E, lambda state: runs.append(1), InMemoryCache())
    assert E.invoke(app, {"log": ["x"]}) == {"log": ["x"]} == E.invoke(app, {"log": ["x"]})
    assert len(runs) == 1


def test_failures_are_not_cached(E: Engine) -> None:
    runs, cache = [], Spy()

    def fails_twice(state: Any) -> Any:
        runs.append(1)
        if len(runs) < 3:
            raise ConnectionError("no")
        return {"log": ["done"]}

    app = one(E, fails_twice, cache)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            E.invoke(app, {"log": []})
    assert cache.stored == 0
    assert E.invoke(app, {"log": []}) == {"log": ["done"]} == E.invoke(app, {"log": []})
    assert (len(runs), cache.stored) == (3, 1)


def test_a_retried_success_is_cached(E: Engine) -> None:
    runs, cache = [], Spy()

    def fails_once(state: Any) -> Any:
        runs.append(1)
        if len(runs) == 1:
            raise ConnectionError("no")
        return {"log": ["done"]}

    builder = E.StateGraph(State)
    retry = RetryPolicy(initial_interval=0.0, jitter=False)
    builder.add_node("n", fails_once, cache_policy=POLICY, retry_policy=retry).add_edge(E.START, "n")
    app = builder.compile(cache=cache)
    assert E.invoke(app, {"log": []}) == {"log": ["done"]} == E.invoke(app, {"log": []})
    assert (len(runs), cache.stored) == (2, 1)


def test_what_a_handler_did_is_not_the_result_of_the_node(E: Engine) -> None:
    def fails(state: Any) -> Any:
        raise ConnectionError("no")

    cache = Spy()
    builder = E.StateGraph(State)
    builder.set_node_defaults(cache_policy=POLICY)
    builder.add_node("n", fails, error_handler=lambda state: {"log": ["handled"]}).add_edge(E.START, "n")
    app = builder.compile(cache=cache)
    for _ in range(2):
        assert E.invoke(app, {"log": []}) == {"log": ["handled"]}
    assert (cache.asked, cache.stored) == ([1, 1], 0)


@pytest.mark.parametrize("nested", ["no", "kept", "not kept"])
def test_an_answer_is_asked_for_again_each_time(E: Engine, nested: str) -> None:
    """A result that took somebody's answer depends on more than the input."""

    def ask(state: Any) -> Any:
        return {"log": [interrupt("sure?")]}

    cache = Spy()
    app = one(E, ask, cache, checkpointer=E.saver())
    if nested != "no":
        inner = one(E, ask, cache, checkpointer=None if nested == "kept" else False)
        app = one(E, inner, cache, checkpointer=E.saver())
    for thread, answer in (("a", "yes"), ("b", "no")):
        assert "__interrupt__" in E.invoke(app, {"log": []}, E.config(thread))
        assert E.invoke(app, Command(resume=answer), E.config(thread))["log"] == [answer]
    assert cache.stored == 0


def test_a_breakpoint_comes_before_the_cache(E: Engine) -> None:
    node, cache = Counted("done"), Spy()
    app = one(E, node, cache, checkpointer=E.saver(), interrupt_before=["n"])
    for thread in "ab":
        looked = len(cache.asked)
        E.invoke(app, {"log": []}, E.config(thread))
        assert (E.state(app, E.config(thread)).next, len(cache.asked)) == (("n",), looked)
        assert E.invoke(app, None, E.config(thread)) == {"log": ["done"]}
    assert node.runs == 1


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_hit_is_kept_however_durable_the_run_is(E: Engine, durability: Any) -> None:
    app = one(E, Counted("done"), InMemoryCache(), checkpointer=E.saver())
    for thread in "ab":
        assert E.invoke(app, {"log": []}, E.config(thread), durability=durability) == {"log": ["done"]}
        assert E.state(app, E.config(thread)).values == {"log": ["done"]}


def test_a_time_to_live_is_the_policys(E: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("surestep.cache.memory.time.time", lambda: now[0])
    node = Counted("done")
    app = one(E, node, InMemoryCache(), CachePolicy(ttl=60))
    for later in (0.0, 59.0, 61.0):
        now[0] = 1000.0 + later
        E.invoke(app, {"log": []})
    assert node.runs == 2


def test_a_key_function_decides_what_is_the_same(E: Engine) -> None:
    node = Counted("done")
    app = one(E, node, InMemoryCache(), CachePolicy(key_func=lambda state: str(len(state["log"]))))
    assert E.invoke(app, {"log": ["a"]}) == {"log": ["a", "done"]}
    assert E.invoke(app, {"log": ["b"]}) == {"log": ["b", "done"]}
    assert E.invoke(app, {"log": ["a", "b"]}) == {"log": ["a", "b", "done"]}
    assert node.runs == 2


def test_an_input_that_makes_no_key_is_an_error_that_says_what_to_do(E: Engine) -> None:
    app = one(E, Counted(), InMemoryCache())
    with pytest.raises(Exception, match="pickle") as caught:
        E.invoke(app, {"log": [lambda: 1]})
    assert any("'n'" in note and "key_func" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("refuses", ["get", "set", "get set"])
def test_a_cache_that_fails_costs_time_and_not_the_run(
    E: Engine, refuses: str, caplog: pytest.LogCaptureFixture
) -> None:
    node, cache = Counted("done"), Spy()
    cache.refuses = refuses
    app = one(E, node, cache)
    with caplog.at_level(logging.WARNING, "surestep"):
        for _ in range(2):
            assert E.invoke(app, {"log": []}) == {"log": ["done"]}
    assert node.runs == 2
    assert "n; the run goes on without it. ConnectionError: nobody there" in caplog.text


def test_nodes_do_not_find_each_others_results(E: Engine) -> None:
    def say(word: str) -> Any:
        return lambda state: {"log": [word]}

    cache = InMemoryCache[Any]()
    for body, word in ((say("a"), "a"), (say("b"), "b"), (Counted("c"), "c"), (Counted("d"), "d")):
        assert E.invoke(one(E, body, cache), {"log": []}) == {"log": [word]}


def test_graphs_inside_use_the_cache_around_them(E: Engine) -> None:
    node, outer, own = Counted("inner"), Spy(), Spy()
    for inner, used in ((one(E, node, None), outer), (one(E, node, own), own)):
        app = E.StateGraph(State).add_node("g", inner).add_edge(E.START, "g").compile(cache=outer)
        for _ in range(2):
            E.invoke(app, {"log": []})
        assert used.stored == 1
    assert node.runs == 2


def test_clearing(E: Engine) -> None:
    nodes = {"a": Counted("a"), "b": Counted("b")}
    builder = E.StateGraph(State)
    for name, body in nodes.items():
        builder.add_node(name, body, cache_policy=POLICY).add_edge(E.START, name)
    app = builder.compile(cache=InMemoryCache())

    def clear(*args: Any) -> None:
        E.wait(app.aclear_cache(*args)) if E.is_async else app.clear_cache(*args)

    def runs() -> list[int]:
        E.invoke(app, {"log": []})
        return [node.runs for node in nodes.values()]

    assert runs() == runs() == [1, 1]
    clear(["a"])
    assert runs() == [2, 1]
    clear()
    assert runs() == [3, 2]
    with pytest.raises(ValueError, match="No such nodes: c"):
        clear(["c"])
    app = builder.compile()
    with pytest.raises(ValueError, match="No cache is set for this graph"):
        clear()


class Point(BaseModel):
    x: int


class Places(TypedDict):
    at: Point


def test_classes_of_the_state_come_back_as_they_were(E: Engine) -> None:
    runs = []

    def body(state: Any) -> Any:
        runs.append(1)
        return {"at": Point(x=state["at"].x + 1)}

    builder = E.StateGraph(Places).add_node("n", body, cache_policy=POLICY).add_edge(E.START, "n")
    inner = builder.compile()
    outer = E.StateGraph(Places).add_node("g", inner).add_edge(E.START, "g").compile(cache=InMemoryCache())
    for app in (builder.compile(cache=InMemoryCache()), outer):
        runs.clear()
        for _ in range(2):
            assert E.invoke(app, {"at": Point(x=1)}) == {"at": Point(x=2)}
        assert len(runs) == 1


def test_tasks(E: Engine) -> None:
    runs: list[Any] = []

    def double(x: int, *, plus: int = 0) -> int:
        runs.append((x, plus))
        return 2 * x + plus

    async def adouble(x: int, *, plus: int = 0) -> int:
        return double(x, plus=plus)

    cache = InMemoryCache[Any]()
    doubled = E.task(cache_policy=POLICY)(adouble if E.is_async else double)

    async def athree(x: int) -> Any:
        return [await doubled(x), await doubled(x), await doubled(x, plus=1)]

    def three(x: int) -> Any:
        return [doubled(x).result(), doubled(x).result(), doubled(x, plus=1).result()]

    app = E.entrypoint(cache=cache)(athree if E.is_async else three)
    assert E.invoke(app, 2) == [4, 4, 5] == E.invoke(app, 2)
    assert runs == [(2, 0), (2, 1)]
    shown = E.stream(app, 2, stream_mode="updates")
    assert shown[0] == {doubled.name: 4, "__metadata__": {"cached": True}}
    if E.is_async:
        E.wait(doubled.aclear_cache(cache))
    else:
        doubled.clear_cache(cache)
    assert E.invoke(app, 2) == [4, 4, 5]
    assert len(runs) == 4


def test_a_called_task_that_pauses_is_not_cached(E: Engine) -> None:
    cache = Spy()
    ask = E.task(cache_policy=POLICY)(lambda: interrupt("sure?"))

    async def aflow(x: int) -> Any:
        return await ask()

    def flow(x: int) -> Any:
        return ask().result()

    app = E.entrypoint(checkpointer=E.saver(), cache=cache)(aflow if E.is_async else flow)
    for thread, answer in (("a", "yes"), ("b", "no")):
        E.invoke(app, 1, E.config(thread))
        assert E.invoke(app, Command(resume=answer), E.config(thread)) == answer
    assert cache.stored == 0


def test_a_graph_without_policies_asks_nothing(E: Engine) -> None:
    cache = Spy()
    app = one(E, Counted("done"), cache, policy=None)
    E.invoke(app, {"log": []})
    assert (cache.asked, cache.stored) == ([], 0)


def test_a_graphs_policy_is_that_of_all_its_nodes_and_tasks(E: Engine) -> None:
    runs: list[str] = []
    inner = E.task(lambda x: runs.append("task") or x)

    async def aflow(x: int) -> Any:
        runs.append("node")
        return await inner(x)

    def flow(x: int) -> Any:
        runs.append("node")
        return inner(x).result()

    app = E.entrypoint(cache=InMemoryCache())(aflow if E.is_async else flow)
    app = app.copy({"cache_policy": POLICY})
    assert E.invoke(app, 1) == 1 == E.invoke(app, 1)
    app.clear_cache()
    assert E.invoke(app, 1) == 1
    assert runs == ["node", "task", "node"]


def test_classes_that_a_task_returns_come_back_as_they_were(E: Engine) -> None:
    runs = []

    def place(x: int) -> list[Point]:
        runs.append(x)
        return [Point(x=x)]

    where = E.task(cache_policy=POLICY)(place)

    async def aflow(x: int) -> Any:
        return [found.x for found in await where(x)]

    def flow(x: int) -> Any:
        return [found.x for found in where(x).result()]

    app = E.entrypoint(cache=InMemoryCache())(aflow if E.is_async else flow)
    assert E.invoke(app, 1) == [1] == E.invoke(app, 1)
    assert runs == [1]
