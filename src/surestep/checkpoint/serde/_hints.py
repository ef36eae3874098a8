"""Which classes type hints name: those whose values are stored under the name of their class."""

from __future__ import annotations

import collections
import dataclasses
import enum
import inspect
import typing
from collections.abc import Iterable
from typing import Any, Final

_BASIC: Final = (str, int, float, complex, list, dict, tuple, set, frozenset, collections.deque, BaseException)
"""Values of classes that extend one of these are stored under the name of their class."""


def is_model(cls: Any) -> bool:
    """Is it a pydantic model, of version 1 or 2?"""
    return isinstance(cls, type) and (hasattr(cls, "model_fields") or hasattr(cls, "__fields__"))


def classes_in(hints: Iterable[Any], known: tuple[str, ...] = ("builtins",)) -> set[type]:
    """The dataclasses, models, enums, named tuples, exceptions and extended basic types that hints name, at any depth.

    known: beginnings of names of modules whose classes are left out.
    """
    found: set[type] = set()
    seen: dict[int, Any] = {}  # holds on to what it has seen: an id means nothing once its object is gone
    pending: list[Any] = list(hints)
    while pending:
        hint = pending.pop()
        if id(hint) in seen:
            continue
        seen[id(hint)] = hint
        pending += typing.get_args(hint)
        if isinstance(hint, enum.Enum):  # in a Literal
            pending.append(type(hint))
        # of a NewType, of `type X = ...`, of a TypeVar
        pending += [getattr(hint, name, None) for name in ("__supertype__", "__value__", "__bound__")]
        pending += getattr(hint, "__constraints__", None) or ()
        cls = typing.get_origin(hint) or hint
        if isinstance(cls, type) and issubclass(cls, BaseException):
            found.add(cls)
        if isinstance(cls, type) and not cls.__module__.startswith(known):
            if _is_stored(cls):
                found.add(cls)
            pending += _fields(cls)
    return found


def _is_stored(cls: type) -> bool:
    """Whether values of the class are stored under its name. A TypedDict's are plain dicts."""
    if (issubclass(cls, dict) and hasattr(cls, "__total__")) or getattr(cls, "_is_protocol", False):
        return False
    return dataclasses.is_dataclass(cls) or is_model(cls) or issubclass(cls, (enum.Enum, *_BASIC))


def _fields(cls: type) -> Iterable[Any]:
    """The types of the class's fields. Those that can't be resolved are left out."""
    if issubclass(cls, enum.Enum):
        return ()
    model_fields = getattr(cls, "model_fields", None)
    if isinstance(model_fields, dict) and model_fields:  # where the parameters of a generic model have their types
        return [getattr(field, "annotation", None) for field in model_fields.values()]
    try:
        return typing.get_type_hints(cls, include_extras=True).values()
    except Exception:  # a name that only a type checker knows
        return [hint for base in cls.__mro__ for hint in inspect.get_annotations(base).values()]
