"""What graphs can do as Runnables."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.runnables import (
    Runnable,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSequence,
)
from typing_extensions import TypedDict

from surestep._config import DEFAULT_RECURSION_LIMIT
from surestep.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def graph(body: Any, name: str = "my graph") -> Any:
    return StateGraph(State).add_node("a", body).add_edge(START, "a").compile(name=name)


def plus(state: State) -> dict[str, Any]:
    return {"n": state["n"] + 1}


def boom(state: State) -> dict[str, Any]:
    raise ValueError("boom")


ONE, TWO = {"n": 1}, {"n": 2}
app = graph(plus)

SYNC = {
    "or": lambda: (app | (lambda state: state["n"])).invoke(ONE),
    "or dict": lambda: (app | {"a": lambda state: state["n"]}).invoke(ONE),
    "ror": lambda: ((lambda n: {"n": n}) | app).invoke(1),
    "ror dict": lambda: ({"n": lambda n: n} | app).invoke(1),
    "pipe": lambda: app.pipe(lambda state: state["n"], lambda n: n * 2).invoke(ONE),
    "map": lambda: app.map().invoke([ONE, TWO]),
    "batch_as_completed": lambda: sorted(app.batch_as_completed([ONE, TWO]), key=str),
    "with_fallbacks": lambda: graph(boom).with_fallbacks([app]).invoke(ONE),
    "with_types": lambda: app.with_types(input_type=dict).invoke(ONE),
    "bind": lambda: list(app.bind(stream_mode="values").stream(ONE)),
    "assign": lambda: app.assign(m=lambda state: state["n"] * 10).invoke(ONE),
    "pick": lambda: app.pick("n").invoke(ONE),
    "transform": lambda: list(app.transform(iter([ONE]))),
    "stream": lambda: list((app | RunnablePassthrough()).stream(ONE)),
    "parallel": lambda: RunnableParallel(a=app, b=app).invoke(ONE),
    "branch": lambda: RunnableBranch((lambda state: True, app), boom).invoke(ONE),
    "given back": lambda: RunnableLambda(lambda state: app).invoke(ONE),
    "batch": lambda: (RunnablePassthrough() | app).batch([ONE, TWO]),
    "specs": lambda: app.config_specs,
    "copy": lambda: copy.copy(app).invoke(ONE),
}
EXPECTED = {
    "or": 2,
    "or dict": {"a": 2},
    "ror": TWO,
    "ror dict": TWO,
    "pipe": 4,
    "map": [TWO, {"n": 3}],
    "batch_as_completed": [(0, TWO), (1, {"n": 3})],
    "with_fallbacks": TWO,
    "with_types": TWO,
    "bind": [ONE, TWO],
    "assign": {"n": 2, "m": 20},
    "pick": 2,
    "transform": [{"a": TWO}],
    "stream": [{"a": TWO}],
    "parallel": {"a": TWO, "b": TWO},
    "branch": TWO,
    "given back": TWO,
    "batch": [TWO, {"n": 3}],
    "specs": [],
    "copy": TWO,
}


@pytest.mark.parametrize("name", SYNC)
def test_what_runnables_do(name: str) -> None:
    assert SYNC[name]() == EXPECTED[name]


async def test_what_runnables_do_on_a_loop() -> None:
    assert await (app | (lambda state: state["n"])).ainvoke(ONE) == 2
    assert await app.map().ainvoke([ONE, TWO]) == [TWO, {"n": 3}]
    assert sorted([r async for r in app.abatch_as_completed([ONE, TWO])], key=str) == [(0, TWO), (1, {"n": 3})]
    assert await graph(boom).with_fallbacks([app]).ainvoke(ONE) == TWO
    assert await RunnableParallel(a=app, b=app).ainvoke(ONE) == {"a": TWO, "b": TWO}

    async def inputs() -> AsyncIterator[Any]:
        yield ONE

    assert [chunk async for chunk in app.atransform(inputs())] == [{"a": TWO}]


def test_it_is_one() -> None:
    assert isinstance(app, Runnable) and issubclass(type(app), Runnable)
    assert isinstance(app | app, RunnableSequence)
    assert type(app).__name__ == "CompiledStateGraph" and app.__class__ is type(app)


def test_retries() -> None:
    runs = []

    def flaky(state: State) -> dict[str, Any]:
        runs.append(1)
        return plus(state) if len(runs) == 3 else boom(state)

    again = graph(flaky).with_retry(stop_after_attempt=3, wait_exponential_jitter=False)
    assert again.invoke(ONE, {"callbacks": []}) == TWO


def test_listeners() -> None:
    heard: list[Any] = []
    listened = app.with_listeners(
        on_start=lambda run: heard.append(run.name), on_end=lambda run: heard.append(run.outputs)
    )
    assert listened.invoke(ONE) == TWO and heard == ["my graph", TWO]


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_as_a_tool() -> None:
    tool = app.as_tool(name="plus", description="Adds one.")
    assert tool.name == "plus" and set(tool.args) == {"n"} and tool.invoke(ONE) == TWO


def test_names() -> None:
    assert app.get_name() == "my graph" and app.get_name("Input") == "my graph_input"
    assert graph(plus, "Graph").get_name("input") == "GraphInput" and app.get_name(name="x") == "x"


def test_what_it_is_not() -> None:
    with pytest.raises(AttributeError, match="'CompiledStateGraph' object has no attribute 'bind_tools'"):
        app.bind_tools([])
    assert not hasattr(app, "__fspath__")


async def test_event_streams_keep_the_limit_of_steps() -> None:
    """LangChain's default is 25 steps; a graph's own default is another one."""
    builder = StateGraph(State).add_node("a", plus).add_edge(START, "a")
    loop = builder.add_conditional_edges("a", lambda state: END if state["n"] >= 40 else "a").compile()
    events = [event async for event in loop.astream_events({"n": 0}, version="v2")]
    assert events[-1]["data"] == {"output": {"n": 40}}
    assert DEFAULT_RECURSION_LIMIT > 40
    with pytest.raises(RecursionError):
        assert [event async for event in loop.with_config(recursion_limit=5).astream_events({"n": 0})]


async def test_event_streams_of_the_third_kind_are_not_there() -> None:
    with pytest.raises(NotImplementedError):
        app.stream_events(ONE, version="v2")
