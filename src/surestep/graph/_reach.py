"""Which classes a state may hold: a strict serializer is told of them when the graph is compiled."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import typing
from collections.abc import Iterable
from typing import Any, Final

from surestep._drive.call import is_runnable
from surestep.channels.base import BaseChannel
from surestep.pregel._schemas import is_pydantic

_KNOWN: Final = ("builtins", "surestep.", "langchain_core.messages.", "langchain_core.documents.")
"""Modules whose classes every serializer of ours revives anyway."""


def reachable_classes(schemas: Iterable[Any], channels: Iterable[BaseChannel[Any, Any, Any]] = ()) -> set[type]:
    """The dataclasses, models, enums and named tuples that `schemas` and `channels` name, at any depth."""
    found: set[type] = set()
    seen: dict[int, Any] = {}  # holds on to what it has seen: an id means nothing once its object is gone
    pending: list[Any] = list(schemas)
    for channel in channels:
        pending += (channel.ValueType, channel.UpdateType)
    while pending:
        hint = pending.pop()
        if id(hint) in seen:
            continue
        seen[id(hint)] = hint
        pending += typing.get_args(hint)
        pending.append(getattr(hint, "__supertype__", None))  # of a NewType
        cls = typing.get_origin(hint) or hint
        if isinstance(cls, type) and not cls.__module__.startswith(_KNOWN):
            if _is_stored(cls):
                found.add(cls)
            pending += _fields(cls)
    return found


def held_types(calls: Iterable[Any]) -> list[Any]:
    """Types that packaged nodes work with though no schema names them: an agent's response format, for one.

    Looked for where it costs little: in what the function of a Runnable holds (its closure), or its `schema`. A node of
    the program's own names its types in the state.
    """
    found = []
    for call in calls:
        if call is None or not is_runnable(call.target):
            continue
        for function in (call.func, call.afunc):
            for cell in getattr(function, "__closure__", None) or ():
                try:
                    held = cell.cell_contents
                except ValueError:  # not assigned yet
                    continue
                found.append(held if isinstance(held, type) else getattr(held, "schema", None))
    return found


def _is_stored(cls: type) -> bool:
    """Whether values of the class are stored under its name. A TypedDict's are plain dicts."""
    return (
        dataclasses.is_dataclass(cls)
        or is_pydantic(cls)
        or issubclass(cls, enum.Enum)
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
    )


def _fields(cls: type) -> Iterable[Any]:
    """The types of the class's fields. Those that can't be resolved are left out."""
    if issubclass(cls, enum.Enum):
        return ()
    try:
        return typing.get_type_hints(cls, include_extras=True).values()
    except Exception:  # a name that only a type checker knows
        return _resolvable(cls)


def _resolvable(cls: type) -> Iterable[Any]:
    model_fields = getattr(cls, "model_fields", None)
    if model_fields:
        return [field.annotation for field in model_fields.values()]
    return [hint for base in cls.__mro__ for hint in inspect.get_annotations(base).values()]
