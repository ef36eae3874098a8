"""Everything that a node may be, called on a thread and on an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from surestep._drive.call import Call, coerce
from surestep.runtime import Runtime
from surestep.types import Command

TASK: Any = SimpleNamespace(
    config={"configurable": {}}, runtime="the runtime", store=None, stream_writer=None, previous=None, node_error=None
)


class Graph:
    """As much of a compiled graph as a call of it needs."""

    is_surestep_graph = True

    def get_name(self) -> str:
        return "inner"

    def invoke(self, input: Any, config: Any) -> Any:
        return {"sync": input, "config": config}

    async def ainvoke(self, input: Any, config: Any) -> Any:
        return {"async": input, "config": config}


def double(state: int) -> int:
    return 2 * state


async def adouble(state: int) -> int:
    await asyncio.sleep(0)
    return 2 * state


def chunks(state: int, runtime: Runtime) -> Any:
    yield [state]
    yield [runtime]


async def achunks(state: int, *, runtime: Runtime) -> Any:
    yield [state]
    yield [runtime]


class Doubler:
    def __call__(self, state: int) -> int:
        return 2 * state


class ADoubler:
    async def __call__(self, state: int) -> int:
        return 2 * state


BOTH_WAYS = {
    "function": (double, 6),
    "lambda": (lambda s: 2 * s, 6),
    "object": (Doubler(), 6),
    "method": (Doubler().__call__, 6),
    "partial": (functools.partial(lambda s, k: k * s, k=2), 6),
    "class": (str, "3"),
    "generator": (chunks, [3, "the runtime"]),
    "generator of what doesn't add": (lambda s: (yield from ({"a": 1}, {"a": s})), {"a": 3}),
    "empty generator": (lambda s: (yield from ()), None),
    "dict": ({"twice": double, "text": str}, {"twice": 6, "text": "3"}),
    "a returned graph": (lambda s: Graph(), None),
}
ASYNC_ONLY = {
    "coroutine function": (adouble, 6),
    "async object": (ADoubler(), 6),
    "async method": (ADoubler().__call__, 6),
    "async partial": (functools.partial(adouble), 6),
    "async generator": (achunks, [3, "the runtime"]),
    "coroutine of a lambda": (lambda s: adouble(s), 6),
}


@pytest.mark.parametrize(("node", "result"), BOTH_WAYS.values(), ids=BOTH_WAYS)
async def test_what_runs_both_ways(node: Any, result: Any) -> None:
    call = coerce(node)
    assert not call.is_async
    sync, awaited = call.invoke(3, TASK), await call.ainvoke(3, TASK)
    if result is None and isinstance(sync, dict):
        assert sync == {"sync": 3, "config": TASK.config}
        assert awaited == {"async": 3, "config": TASK.config}
    else:
        assert sync == awaited == result


@pytest.mark.parametrize(("node", "result"), ASYNC_ONLY.values(), ids=ASYNC_ONLY)
async def test_what_runs_only_awaited(node: Any, result: Any) -> None:
    call = coerce(node, "slow")
    assert await call.ainvoke(3, TASK) == result
    with pytest.raises(TypeError, match='No synchronous function provided to "slow"'):
        call.invoke(3, TASK)


@pytest.mark.parametrize("name", set(ASYNC_ONLY) - {"coroutine of a lambda"})
def test_native_coroutines_are_known(name: str) -> None:
    assert coerce(ASYNC_ONLY[name][0]).is_async


async def test_a_graph_runs_with_the_tasks_config() -> None:
    call = coerce(Graph())
    assert (call.name, call.is_async) == ("inner", True)
    assert call.invoke(1, TASK)["config"] is TASK.config
    assert (await call.ainvoke(1, TASK))["async"] == 1


async def test_a_sync_function_of_an_async_run_has_a_thread_and_the_context() -> None:
    var = contextvars.ContextVar("var", default=0)
    var.set(7)

    def node(state: Any) -> Any:
        var.set(var.get() + 1)
        return [var.get(), threading.get_ident()]

    value, thread = await coerce(node).ainvoke(None, TASK)
    assert value == 8 and thread != threading.get_ident()
    assert var.get() == 7  # a copy of the context: what a node sets is its own


def test_a_plain_function_is_called_without_ceremony() -> None:
    frames = []

    def node(state: Any) -> None:
        import sys

        frame = sys._getframe(1)
        while frame is not None and frame.f_code is not test_a_plain_function_is_called_without_ceremony.__code__:
            frames.append(frame.f_code.co_name)
            frame = frame.f_back

    coerce(node).invoke(None, TASK)
    assert frames == ["invoke"]


async def test_the_parts_of_a_dict_run_at_the_same_time() -> None:
    met = threading.Barrier(2, timeout=10)
    both = {"a": lambda s: met.wait() is not None, "b": lambda s: met.wait() is not None}
    assert coerce(both).invoke(None, TASK) == {"a": True, "b": True}
    assert await coerce(both).ainvoke(None, TASK) == {"a": True, "b": True}


async def test_the_first_error_of_a_dict_is_raised_as_it_is() -> None:
    def fail(state: Any) -> None:
        raise LookupError("here")

    call = coerce({"a": fail, "b": double})
    with pytest.raises(LookupError, match="here"):
        call.invoke(1, TASK)
    with pytest.raises(LookupError, match="here"):
        await call.ainvoke(1, TASK)


def test_errors_of_a_node_pass_unchanged() -> None:
    error = ValueError("mine")

    def node(state: Any) -> None:
        raise error

    with pytest.raises(ValueError) as raised:
        coerce(node).invoke(None, TASK)
    assert raised.value is error


@pytest.mark.parametrize("thing", [3, "text", None, Command()])
def test_what_can_not_run_is_refused(thing: Any) -> None:
    with pytest.raises(TypeError, match="Expected a Runnable, callable or dict"):
        coerce(thing)


def test_names() -> None:
    assert [coerce(thing).name for thing in (double, Doubler(), Graph(), functools.partial(double))] == [
        "double",
        "Doubler",
        "inner",
        "partial",
    ]
    assert coerce(double, "given").name == "given"
    call = coerce(double)
    assert coerce(call) is call and isinstance(call, Call)
