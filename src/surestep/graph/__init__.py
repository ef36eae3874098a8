"""Graphs of nodes that share a state: start with `StateGraph`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surestep.constants import END, START
from surestep.graph._check import UnreachableJoinWarning
from surestep.graph.message import MessagesState, add_messages
from surestep.graph.state import StateGraph

if TYPE_CHECKING:
    from surestep.graph._check import UnreachableJoinWarning
from surestep.graph.message import MessageGraph

__all__ = ("END", "START", "MessageGraph", "MessagesState", "StateGraph", "UnreachableJoinWarning", "add_messages")


def __getattr__(name: str) -> Any:
    if name == "MessageGraph":  # deprecated: made when somebody asks
        from surestep.graph import message

        return message.MessageGraph
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
