"""Calling user code: whatever a node may be becomes a `Call`, with its extra parameters worked out once.

A node is called with its input and with those parameters that its signature names (`config`, `runtime`,
`store`, `writer`, `previous`, `error`). Which ones is decided when the graph is built, so a call costs no
inspection: a function of one argument is called straight.
"""

from __future__ import annotations

import contextvars
import inspect
import sys
import types
import typing
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from surestep.types import Command, Send, StreamWriter

if TYPE_CHECKING:
    from surestep._drive.context import TaskContext

__all__ = [
    "Call",
    "GraphCall",
    "ParallelCall",
    "SequenceCall",
    "coerce",
    "injections",
    "is_graph",
    "is_runnable",
]

Getter = Callable[["TaskContext"], Any]

# Results of these types are never called again; everything else is looked at (a node may return a runnable).
_PLAIN: Final = frozenset({type(None), dict, list, tuple, str, int, float, bool, bytes, set, frozenset, Command, Send})


class Call:
    """User code that can be run on an input: `invoke` or `await ainvoke`, with injected parameters.

    `func` or `afunc` (or both) takes the input first; subclasses that run something else have neither.
    `injects` names further keyword parameters with a function that gets each from the task. `is_async`: there
    is a native coroutine function, which is what can be cancelled. `target` is what the user gave. `traced`: it has
    a run of its own in a trace, below its node's.
    """

    __slots__ = ("afunc", "func", "injects", "is_async", "name", "target", "traced")

    def __init__(
        self,
        name: str,
        func: Callable[..., Any] | None,
        afunc: Callable[..., Awaitable[Any]] | None = None,
        injects: tuple[tuple[str, Getter], ...] = (),
        target: Any = None,
    ) -> None:
        self.name = name
        self.func = func
        self.afunc = afunc
        self.injects = injects
        self.is_async = afunc is not None
        self.traced = False
        self.target: Any = target if target is not None else func or afunc

    def invoke(self, input: Any, task: TaskContext) -> Any:
        """What the function returns for `input`. TypeError if there is only an async one."""
        func = self.func
        if func is None:
            raise self._no_sync()
        injects = self.injects
        out = func(input, **{name: get(task) for name, get in injects}) if injects else func(input)
        if type(out) in _PLAIN:
            return out
        if inspect.iscoroutine(out):
            out.close()
            raise self._no_sync()
        return coerce(out).invoke(input, task) if is_runnable(out) else out

    async def ainvoke(self, input: Any, task: TaskContext) -> Any:
        """Like `invoke`; a function that is only sync runs in a thread, in a copy of the current context."""
        afunc = self.afunc
        if afunc is not None:
            injects = self.injects
            out = await (afunc(input, **{name: get(task) for name, get in injects}) if injects else afunc(input))
        else:
            out = await _in_thread(self._invoke_raw, input, task)
        if type(out) in _PLAIN:
            return out
        if inspect.iscoroutine(out):  # a plain lambda around a coroutine function
            out = await out
        return await coerce(out).ainvoke(input, task) if is_runnable(out) else out

    def _invoke_raw(self, input: Any, task: TaskContext) -> Any:
        """The function's own result, without following a returned runnable or coroutine."""
        assert self.func is not None
        return self.func(input, **{name: get(task) for name, get in self.injects})

    def _no_sync(self) -> TypeError:
        return TypeError(
            f'No synchronous function provided to "{self.name}": it is async only. '
            "Run the graph with ainvoke, astream or another async method, or make the function synchronous."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class GraphCall(Call):
    """A compiled graph as a node: it runs nested, with the task's config."""

    __slots__ = ()

    def __init__(self, graph: Any, name: str | None = None) -> None:
        super().__init__(name or name_of(graph), None, target=graph)
        self.is_async = True

    def invoke(self, input: Any, task: TaskContext) -> Any:
        """The graph's output for `input`."""
        return self.target.invoke(input, task.config)

    async def ainvoke(self, input: Any, task: TaskContext) -> Any:
        """The graph's output for `input`."""
        return await self.target.ainvoke(input, task.config)


class SequenceCall(Call):
    """Several calls in a row: each gets what the one before it returned."""

    __slots__ = ("steps",)

    def __init__(self, steps: Sequence[Call], name: str | None = None) -> None:
        self.steps = tuple(steps)
        super().__init__(name or " | ".join(step.name for step in steps), None, target=self.steps)
        self.is_async = all(step.is_async for step in steps)

    def invoke(self, input: Any, task: TaskContext) -> Any:
        """What the last step returns."""
        for step in self.steps:
            input = step.invoke(input, task)
        return input

    async def ainvoke(self, input: Any, task: TaskContext) -> Any:
        """What the last step returns."""
        for step in self.steps:
            input = await step.ainvoke(input, task)
        return input


class ParallelCall(Call):
    """Named calls on the same input at the same time; the result is a dict of theirs, in that order."""

    __slots__ = ("steps",)

    def __init__(self, steps: Mapping[str, Call], name: str | None = None) -> None:
        self.steps = dict(steps)
        super().__init__(name or f"parallel<{','.join(steps)}>", None, target=self.steps)
        self.is_async = all(step.is_async for step in steps.values())

    def invoke(self, input: Any, task: TaskContext) -> dict[str, Any]:
        """The results by name. The first error in the given order is raised once all have ended."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(len(self.steps) or 1) as pool:
            futures = {
                key: pool.submit(contextvars.copy_context().run, step.invoke, input, task)
                for key, step in self.steps.items()
            }
        return {key: future.result() for key, future in futures.items()}

    async def ainvoke(self, input: Any, task: TaskContext) -> dict[str, Any]:
        """The results by name. The first error is raised and the other calls are cancelled."""
        from asyncio import TaskGroup

        try:
            async with TaskGroup() as group:
                running = {key: group.create_task(step.ainvoke(input, task)) for key, step in self.steps.items()}
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return {key: done.result() for key, done in running.items()}


def coerce(thing: Any, name: str | None = None) -> Call:
    """`thing` as a Call: a function of any kind, a callable object, a graph, a Runnable, or a dict of these.

    TypeError if it is none of them, or if its first parameter is declared as something that is injected.
    """
    if isinstance(thing, Call):
        return thing
    if is_graph(thing):
        return GraphCall(thing, name)
    if is_runnable(thing):
        from surestep.integrations.langchain import coerce_runnable

        return coerce_runnable(thing, name)
    if callable(thing):
        return _function(thing, name or name_of(thing))
    if isinstance(thing, Mapping):
        return ParallelCall({key: coerce(value) for key, value in thing.items()}, name)
    raise TypeError(
        "Expected a Runnable, callable or dict: a node is a function, a compiled graph, a Runnable or a dict "
        f"of these, not {type(thing).__name__} ({thing!r})."
    )


def is_graph(thing: Any) -> bool:
    """Whether `thing` is a compiled graph of ours (or of a class that says so)."""
    return getattr(type(thing), "is_surestep_graph", False) is True


def is_runnable(thing: Any) -> bool:
    """Whether `thing` is a graph or a LangChain Runnable. LangChain is not imported to find out."""
    if is_graph(thing):
        return True
    base = sys.modules.get("langchain_core.runnables.base")
    runnable = getattr(base, "Runnable", None)
    return runnable is not None and isinstance(thing, runnable)


def _function(thing: Callable[..., Any], name: str) -> Call:
    injects = injections(thing)
    # What decides is the function, or the __call__ of an object; inspect looks through partials and methods.
    code = thing if inspect.isroutine(thing) or isinstance(thing, partial | type) else type(thing).__call__
    if inspect.iscoroutinefunction(code) or inspect.iscoroutinefunction(thing):
        return Call(name, None, thing, injects, thing)
    if inspect.isasyncgenfunction(code):
        return Call(name, None, partial(_afold, thing), injects, thing)
    if inspect.isgeneratorfunction(code):
        return Call(name, partial(_fold, thing), None, injects, thing)
    return Call(name, thing, None, injects, thing)


def _fold(generator: Callable[..., Iterable[Any]], input: Any, /, **injected: Any) -> Any:
    """What a generator node returns: its chunks added up, or the last one where they don't add."""
    out: Any = None
    for chunk in generator(input, **injected):
        out = _add(out, chunk)
    return out


async def _afold(generator: Callable[..., AsyncIterator[Any]], input: Any, /, **injected: Any) -> Any:
    out: Any = None
    async for chunk in generator(input, **injected):
        out = _add(out, chunk)
    return out


def _add(total: Any, chunk: Any) -> Any:
    if total is None:
        return chunk
    try:
        return total + chunk
    except TypeError:
        return chunk


async def _in_thread(func: Callable[..., Any], *args: Any) -> Any:
    from asyncio import get_running_loop

    return await get_running_loop().run_in_executor(None, contextvars.copy_context().run, func, *args)


def name_of(thing: Any) -> str:
    get_name = getattr(thing, "get_name", None)
    if callable(get_name) and is_runnable(thing):
        return str(get_name())
    return str(getattr(thing, "__name__", None) or type(thing).__name__)


# --- injection ---------------------------------------------------------------------------------------------


class _Injectable(NamedTuple):
    """A parameter that is filled: from where, for which annotation (None: any), and whether without one."""

    get: Getter
    type_name: str | None
    bare: bool


_INJECTABLE: Final[dict[str, _Injectable]] = {
    "config": _Injectable(attrgetter("config"), "RunnableConfig", True),
    "writer": _Injectable(attrgetter("stream_writer"), "StreamWriter", True),
    "store": _Injectable(attrgetter("store"), "BaseStore", True),
    "previous": _Injectable(attrgetter("previous"), None, True),
    "runtime": _Injectable(attrgetter("runtime"), None, True),
    # A handler's other parameters may be called `error` for reasons of its own: the annotation is required.
    "error": _Injectable(attrgetter("node_error"), "NodeError", False),
}


def injections(func: Callable[..., Any], *, takes_input: bool = True) -> tuple[tuple[str, Getter], ...]:
    """The parameters of `func` that the runtime fills, each with a function that gets it from the task.

    With `takes_input`, the first positional parameter receives the input and is never filled; TypeError if
    its annotation says that it should be. A keyword that a partial binds keeps the partial's value.
    """
    if not _may_inject(func):
        return ()
    try:
        parameters = list(inspect.signature(func).parameters.values())
    except (ValueError, TypeError):  # builtins without a signature
        return ()
    bound = func.keywords if isinstance(func, partial) else {}
    found: list[tuple[str, Getter]] = []
    for position, parameter in enumerate(parameters):
        rule = _INJECTABLE.get(parameter.name)
        if rule is None or parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            continue
        wanted = _wanted(parameter, rule, func)
        if position == 0 and takes_input and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            if wanted and parameter.annotation is not parameter.empty and rule.type_name:
                raise TypeError(
                    f"The first parameter of {name_of(func)!r} receives the node's input, but is declared "
                    f"as {parameter}: put one for the input before it, as in (state, {parameter.name})."
                )
        elif wanted and parameter.name not in bound:
            found.append((parameter.name, rule.get))
    return tuple(found)


def _may_inject(func: Any) -> bool:
    """False when a look at a plain function's parameter names shows that nothing can be filled."""
    func = getattr(func, "__func__", func)
    if not isinstance(func, types.FunctionType):
        return True
    if hasattr(func, "__wrapped__") or hasattr(func, "__signature__"):
        return True
    code = func.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    return not _INJECTABLE.keys().isdisjoint(code.co_varnames[:count])


def _wanted(parameter: inspect.Parameter, rule: _Injectable, func: Any) -> bool:
    if rule.type_name is None:
        return True
    if parameter.annotation is parameter.empty:
        return rule.bare
    if _names(parameter.annotation, rule.type_name, func):
        return True
    if parameter.name == "config":
        warnings.warn(
            f"The 'config' parameter of {name_of(func)!r} should be typed as 'RunnableConfig' or "
            f"'RunnableConfig | None', not {parameter.annotation!r}: it is not filled.",
            UserWarning,
            stacklevel=6,  # the line that calls add_node
        )
    return False


def _names(annotation: Any, type_name: str, func: Any) -> bool:
    """Whether `annotation` (a type or its source text, maybe optional) is the type called `type_name`.

    Types are told by name, so that neither the store nor LangChain has to be imported to recognise them, and
    so that text which only a type checker can resolve is understood.
    """
    if isinstance(annotation, str):
        if _text_names(annotation, type_name):
            return True
        try:
            return _names(eval(annotation, _globals_of(func)), type_name, func)
        except Exception:  # whatever a name that exists only for type checkers may raise
            return False
    if isinstance(annotation, typing.ForwardRef):
        return _names(annotation.__forward_arg__, type_name, func)
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        members = [arg for arg in typing.get_args(annotation) if arg is not type(None)]
        return len(members) == 1 and _names(members[0], type_name, func)
    if origin is typing.Annotated:
        return _names(annotation.__origin__, type_name, func)
    if type_name == "StreamWriter":
        return annotation == StreamWriter or origin is Callable
    cls = origin or annotation
    return isinstance(cls, type) and any(base.__name__ == type_name for base in cls.__mro__)


def _text_names(text: str, type_name: str) -> bool:
    """The same for source text: `X`, `module.X`, `X[T]`, `Optional[X]`, `X | None`."""
    text = text.strip().strip("'\"")
    head, bracket, inner = text.partition("[")
    if bracket and head.rpartition(".")[2] == "Optional":
        return _text_names(inner.rstrip().removesuffix("]"), type_name)
    members = [m for m in (part.strip() for part in text.split("|")) if m != "None"]
    return len(members) == 1 and members[0].partition("[")[0].rpartition(".")[2] == type_name


_CALLED: Final = {True: "__init__", False: "__call__"}  # of a class, and of an object


def _globals_of(func: Any) -> dict[str, Any]:
    """The module globals in which the function's annotations were written."""
    while isinstance(func, partial):
        func = func.func
    func = inspect.unwrap(func)
    if not inspect.isroutine(func):
        func = getattr(func if isinstance(func, type) else type(func), _CALLED[isinstance(func, type)])
    return getattr(getattr(func, "__func__", func), "__globals__", {})
