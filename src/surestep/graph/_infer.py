"""What a function's annotations say about a node: the schema that it reads, and where it may send control.

Each annotation is resolved on its own, so that one which only a type checker can resolve hides nothing else.
Whatever can't be resolved is taken as not given.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any

from surestep._drive.call import is_runnable
from surestep._fields import annotated_keys
from surestep.types import Command


class _Holder:
    """Carries one annotation, for `typing.get_type_hints` to resolve."""

    def __init__(self, annotation: Any) -> None:
        self.__annotations__ = {"it": annotation}


def input_hint(thing: Any) -> type | None:
    """The class that the first parameter is annotated with, if it has annotated attributes of its own."""
    function = function_of(thing)
    name = _first_parameter(function)
    hint = None if name is None else _hint(function, name)
    return hint if isinstance(hint, type) and _declares_keys(hint) else None


def destinations(thing: Any) -> tuple[str, ...]:
    """The nodes named by a return annotation `Command[Literal[...]]`, also as a part of a union."""
    found: dict[str, None] = {}
    for member in _members(_hint(function_of(thing), "return")):
        if typing.get_origin(member) is Command:
            for argument in typing.get_args(member):
                found.update(dict.fromkeys(_literals(argument)))
    return tuple(found)


def path_names(thing: Any) -> tuple[str, ...]:
    """The answers named by a path function's return annotation `Literal[...]`, if it names all of them."""
    members = list(_members(_hint(function_of(thing), "return")))
    if any(typing.get_origin(member) is not typing.Literal for member in members):
        return ()
    return tuple(name for member in members for name in _literals(member))


def function_of(thing: Any) -> Any:
    """The function or method that runs when `thing` is called, None for what has no annotations to read."""
    if inspect.isfunction(thing) or inspect.ismethod(thing):
        return thing
    if is_runnable(thing):
        inner = getattr(thing, "func", None) or getattr(thing, "afunc", None)
        return inner if inspect.isfunction(inner) or inspect.ismethod(inner) else None
    call = getattr(thing, "__call__", None)  # noqa: B004
    return call if inspect.ismethod(call) else None


def _first_parameter(function: Any) -> str | None:
    plain = getattr(function, "__func__", function)
    if isinstance(plain, types.FunctionType) and not hasattr(plain, "__wrapped__"):
        code = plain.__code__
        skip = inspect.ismethod(function)  # self
        if skip < code.co_argcount:
            return code.co_varnames[skip]
    try:
        return next(iter(inspect.signature(function).parameters), None)
    except (TypeError, ValueError):
        return None


def _hint(function: Any, name: str) -> Any:
    annotation = getattr(function, "__annotations__", {}).get(name)
    if annotation is None or type(annotation) is type:
        return annotation
    scope = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__globals__", {})
    try:
        return typing.get_type_hints(_Holder(annotation), globalns=scope)["it"]
    except Exception:  # evaluating an annotation may raise anything
        return None


def _declares_keys(cls: Any) -> bool:
    return not issubclass(cls, type) and bool(annotated_keys(cls))


def _members(hint: Any) -> Iterator[Any]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        for member in typing.get_args(hint):
            yield from _members(member)
    else:
        yield hint


def _literals(hint: Any) -> Iterator[Any]:
    for member in _members(hint):
        if typing.get_origin(member) is typing.Literal:
            yield from typing.get_args(member)
