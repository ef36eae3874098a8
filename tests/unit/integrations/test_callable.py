"""Functions as Runnables, as packages make them: the same as LangGraph's, which they were written for."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langgraph.runtime import Runtime as TheirRuntime

from surestep.runtime import Runtime


class Heard(BaseCallbackHandler):
    """What callbacks hear of a run."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.events.append(("start", kwargs.get("name"), inputs, kwargs.get("tags")))

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        self.events.append(("end", outputs))

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        self.events.append(("error", repr(error)))


async def later(x: Any, config: Any) -> Any:
    return [x, config["tags"]]


def config_of(x: Any, config: Any) -> Any:
    return sorted(config)


def filled(x: Any, runtime: Any, store: Any, previous: Any) -> Any:
    return runtime.context, store, previous


def written(x: Any, writer: Any) -> Any:
    return writer(x)


def exploded(a: int, b: int, *, c: int) -> Any:
    return a, b, c


def with_default(x: Any, z: int = 1) -> Any:
    return x, z


def listened(make: Any, **options: Any) -> Any:
    heard = Heard()
    make(lambda x: 1 // x, name="one", tags=["t"], **options).invoke(2, {"callbacks": [heard], "run_name": "run"})
    with pytest.raises(ZeroDivisionError):
        make(lambda x: 1 // x, **options).invoke(0, {"callbacks": [heard]})
    return heard.events


def inside(runtime: Any) -> Any:
    return {"configurable": {"__pregel_runtime": runtime(context="ctx", store="store", previous="before")}}


CASES: dict[str, Any] = {
    "plain": lambda make, runtime: make(lambda x: x + 1).invoke(1),
    "names": lambda make, runtime: [make(one).get_name() for one in (with_default, later, lambda x: x)],
    "given name": lambda make, runtime: make(with_default, name="other").name,
    "no function": lambda make, runtime: make(None),
    "async": lambda make, runtime: asyncio.run(make(None, later).ainvoke(1, {"tags": ["t"]})),
    "async, untraced": lambda make, runtime: asyncio.run(make(None, later, trace=False).ainvoke(1, {"tags": ["t"]})),
    "async alone, called": lambda make, runtime: make(None, later).invoke(1),
    "sync, awaited": lambda make, runtime: asyncio.run(make(with_default).ainvoke(1)),
    "config": lambda make, runtime: make(config_of).invoke(1),
    "config of its own": lambda make, runtime: make(config_of, trace=False).invoke(1, {"tags": ["t"]}),
    "filled": lambda make, runtime: make(filled).invoke(1, inside(runtime)),
    "filled by the caller": lambda make, runtime: make(filled).invoke(1, inside(runtime), store="mine"),
    "writer outside": lambda make, runtime: make(written).invoke(1),
    "nothing to fill with": lambda make, runtime: make(filled).invoke(1),
    "exploded": lambda make, runtime: make(exploded, explode_args=True).invoke(((1, 2), {"c": 3})),
    "bound arguments": lambda make, runtime: [
        make(with_default, z=5).invoke(1),
        make(with_default, z=5).invoke(1, z=6),
    ],
    "recursion": lambda make, runtime: make(lambda x: RunnableLambda(lambda y: y * 2)).invoke(4),
    "async recursion": lambda make, runtime: asyncio.run(
        make(None, lambda x: asyncio.sleep(0, RunnableLambda(lambda y: y * 2))).ainvoke(4)
    ),
    "no recursion": lambda make, runtime: type(make(lambda x: RunnableLambda(abs), recurse=False).invoke(4)).__name__,
    "traced": lambda make, runtime: listened(make),
    "untraced": lambda make, runtime: listened(make, trace=False),
    "in a sequence": lambda make, runtime: (make(abs) | make(with_default)).invoke(-3),
}


def outcome(root: str, runtime: Any, case: Any) -> Any:
    try:
        return case(importlib.import_module(f"{root}._internal._runnable").RunnableCallable, runtime)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_like_the_reference(case: Any) -> None:
    assert outcome("surestep", Runtime, case) == outcome("langgraph", TheirRuntime, case)


def test_a_sync_function_does_not_block_the_loop() -> None:
    """LangGraph's calls it on the loop; a tool that waits would stop everybody."""
    from threading import get_ident

    from surestep.utils.runnable import RunnableCallable

    async def main() -> bool:
        return bool(await RunnableCallable(lambda x: get_ident()).ainvoke(1) == get_ident())

    assert asyncio.run(main()) is False


def test_what_is_missing_is_named() -> None:
    from surestep._internal._runnable import RunnableCallable

    with pytest.raises(ValueError, match=r"Missing required config key 'runtime' for 'filled'.*pass runtime="):
        RunnableCallable(filled).invoke(1)
