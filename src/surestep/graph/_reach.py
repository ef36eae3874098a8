"""Which classes a state may hold: a strict serializer is told of them when the graph is compiled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from surestep._drive.call import is_runnable
from surestep.channels.base import BaseChannel
from surestep.checkpoint.serde._hints import classes_in

_KNOWN: Final = ("builtins", "surestep.", "langchain_core.messages.", "langchain_core.documents.")
"""Modules whose classes every serializer of ours revives anyway."""


def reachable_classes(schemas: Iterable[Any], channels: Iterable[BaseChannel[Any, Any, Any]] = ()) -> set[type]:
    """The classes that `schemas` and `channels` name, at any depth, and whose values are stored under their names."""
    hints = list(schemas)
    for channel in channels:
        hints += (channel.ValueType, channel.UpdateType)
    return classes_in(hints, _KNOWN)


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
