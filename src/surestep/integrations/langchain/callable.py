"""A function, or a sync and an async one that do the same, as a LangChain Runnable with our injected parameters.

Nodes don't need it. Packages build on it: the tool node of `langgraph-prebuilt` is a subclass, agents wrap their
model's calls in it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, Final, TypeAlias

from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableLike as _RunnableLike
from langchain_core.runnables.config import ensure_config, run_in_executor, set_config_context

from surestep._constants import CONF, CONFIG_KEY_RUNTIME
from surestep._drive.alone import Alone
from surestep._drive.call import injections, is_runnable

RunnableLike: TypeAlias = _RunnableLike[Any, Any]
"""What can be made a Runnable: a Runnable, a function of one input, or a mapping of these."""

# Parameters that can be filled outside of a graph too
_WITHOUT_A_RUN: Final = frozenset({"config", "writer"})


class RunnableCallable(Runnable[Any, Any]):
    """A function as a Runnable. Its parameters `config`, `runtime`, `store`, `writer` and `previous` are filled.

    func, afunc: what `invoke` and `ainvoke` call; one is enough, and a coroutine function may be given as either.
    name: by default the function's. tags: of its runs. trace: whether callbacks hear of a run of its own.
    recurse: a Runnable that the function returns is invoked with the same input. explode_args: the input is a pair
    of positional and keyword arguments. kwargs: further arguments for every call. ValueError without a function.
    """

    def __init__(
        self,
        func: Callable[..., Any] | None,
        afunc: Callable[..., Awaitable[Any]] | None = None,
        *,
        name: str | None = None,
        tags: Sequence[str] | None = None,
        trace: bool = True,
        recurse: bool = True,
        explode_args: bool = False,
        **kwargs: Any,
    ) -> None:
        if func is not None and afunc is None and iscoroutinefunction(func):
            func, afunc = None, func
        known = func or afunc
        if known is None:
            raise ValueError("At least one of func or afunc must be provided.")
        own = getattr(known, "__name__", None)
        self.name = name or (own if own != "<lambda>" else None)
        self.func = func
        self.afunc = afunc
        self.tags = tags
        self.kwargs = kwargs
        self.trace = trace
        self.recurse = recurse
        self.explode_args = explode_args
        self.func_accepts = dict(injections(known))

    def __repr__(self) -> str:
        return f"{self.get_name()}(tags={self.tags}, recurse={self.recurse}, fills={sorted(self.func_accepts)})"

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """What the function returns for `input`. TypeError if there is only an async one."""
        if self.func is None:
            raise TypeError(
                f'No synchronous function provided to "{self.get_name()}".\n'
                "Either initialize with a synchronous function or invoke via the async API (ainvoke, astream, etc.)"
            )
        config, call = self._ready(self.func, input, config, kwargs)
        if self.trace:
            out = self._call_with_config(call, input, self._tagged(config))
        else:
            with set_config_context(config) as context:
                out = context.run(call, input, config)
        return out.invoke(input, config) if self.recurse and is_runnable(out) else out

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """As `invoke`; a function that is only sync runs in a thread."""
        if self.afunc is None:
            return await run_in_executor(config, self.invoke, input, config, **kwargs)
        config, call = self._ready(self.afunc, input, config, kwargs)
        if self.trace:
            out = await self._acall_with_config(_awaiting(call), input, self._tagged(config))
        else:
            from asyncio import create_task

            with set_config_context(config) as context:
                out = await create_task(_awaiting(call)(input, config), context=context)
        return await out.ainvoke(input, config) if self.recurse and is_runnable(out) else out

    def _ready(
        self, func: Callable[..., Any], input: Any, config: Any, given: Mapping[str, Any]
    ) -> tuple[Any, Callable[[Any, Any], Any]]:
        """The whole config, and the call as a function of the one it is made with. ValueError if a value lacks."""
        config = ensure_config(config)
        args, own = input if self.explode_args else ((input,), {})
        named = {**self.kwargs, **own, **given}
        if CONFIG_KEY_RUNTIME not in config.get(CONF, {}):
            for name in self.func_accepts:
                if name not in named and name not in _WITHOUT_A_RUN:
                    raise ValueError(
                        f"Missing required config key {name!r} for {self.get_name()!r}: it is filled inside of a "
                        f"graph. Outside of one, pass {name}= or a config with a runtime "
                        f"({{'configurable': {{{CONFIG_KEY_RUNTIME!r}: Runtime(...)}}}})."
                    )

        def call(_: Any, config: Any) -> Any:
            return func(*args, **self._filled(config, named))

        return config, call

    def _filled(self, config: Any, named: dict[str, Any]) -> dict[str, Any]:
        seen = Alone(config)
        return {**{name: get(seen) for name, get in self.func_accepts.items()}, **named}  # type: ignore[arg-type]

    def _tagged(self, config: Any) -> Any:
        return {**config, "tags": [*config["tags"], *self.tags]} if self.tags else config


def _awaiting(call: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Any], Coroutine[Any, Any, Any]]:
    async def awaited(input: Any, config: Any) -> Any:
        return await call(input, config)

    return awaited
