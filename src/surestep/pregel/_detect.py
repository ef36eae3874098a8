"""Finding the graph that a node runs inside its own code, so that state and drawings can show it.

A function is searched by what its compiled code refers to: what it closes over, the globals that it names,
and attributes of either (`holder.graph.invoke(...)`). Nothing is run but attribute access. Missing a graph
costs only introspection: the graph still runs.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterable, Iterator
from functools import partial
from types import CodeType, FunctionType
from typing import Any, Final

from surestep._drive.call import Call, is_graph

# What can hold no graph. Exact types: a subclass may carry one as an attribute.
_LEAVES: Final = frozenset(
    {type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, FunctionType}
)
_FILLER: Final = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL"})
_FREE: Final = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_GLOBAL: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_ATTRIBUTE: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


def find_subgraph(call: Call) -> Any | None:
    """The first graph in reach of `call` that may have checkpoints of its own, or None."""
    pending: list[Any] = [call]
    while pending:
        thing = pending.pop(0)
        if isinstance(thing, Call):
            thing = thing.target
        if _counts(thing):
            return thing
        if isinstance(thing, dict):
            pending += thing.values()
        elif isinstance(thing, list | tuple):
            pending += thing
        elif isinstance(getattr(thing, "steps", None), list | tuple):  # a LangChain sequence
            pending += thing.steps
        else:
            for held in _held_by(thing):
                if _counts(held):
                    return held
    return None


def _counts(thing: Any) -> bool:
    return is_graph(thing) and getattr(thing, "checkpointer", None) is not False


def _held_by(thing: Any) -> Iterator[Any]:
    for function in _functions_of(thing):
        yield from _reachable(function)


def _functions_of(thing: Any) -> Iterator[FunctionType]:
    """The plain functions of a callable: behind partials, methods, LangChain lambdas, `__wrapped__`."""
    while isinstance(thing, partial):
        thing = thing.func
    for attribute in ("afunc", "func"):
        inner = getattr(thing, attribute, None)
        if inspect.isroutine(inner):
            thing = inner
            break
    else:
        if not inspect.isroutine(thing) and not isinstance(thing, type):
            thing = type(thing).__call__ if callable(thing) else None
    seen: set[int] = set()
    while thing is not None and id(thing) not in seen:
        seen.add(id(thing))
        function = getattr(thing, "__func__", thing)
        if isinstance(function, FunctionType):
            yield function
        thing = getattr(thing, "__wrapped__", None)


def _reachable(function: FunctionType) -> Iterator[Any]:
    """The objects that the function's code refers to, with the attribute chains that it takes of them."""
    code = function.__code__
    free = dict(_cells(function))
    named = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    if all(type(value) in _LEAVES for value in (*free.values(), *named.values())):
        return
    yield from free.values()
    for path in _paths(code, free, named):
        yield from path
    for nested in _nested(code):
        # Inner functions count for what they take of captured names. A global that only they name is theirs.
        for path in _paths(nested, free, {}):
            yield from path


def _cells(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # assigned later, or never
            continue


def _paths(code: CodeType, free: dict[str, Any], named: dict[str, Any]) -> Iterator[Iterable[Any]]:
    """For each load of a known name: its value, then the value of each attribute taken directly of it."""
    path: list[Any] = []
    for instruction in dis.get_instructions(code):
        operation = instruction.opname
        if operation in _FILLER:
            continue
        if operation in _ATTRIBUTE and path:
            try:
                path.append(getattr(path[-1], instruction.argval))
            except Exception:  # user code may run in a property; whatever it raises, the chain ends here
                yield path
                path = []
            continue
        if path:
            yield path
        scope = free if operation in _FREE else named if operation in _GLOBAL else {}
        path = [scope[instruction.argval]] if instruction.argval in scope else []
    if path:
        yield path


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)
