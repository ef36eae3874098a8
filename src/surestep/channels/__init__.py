"""Channels: the cells of a graph's state. Each class is one rule for what a step's writes make of the
value."""

from __future__ import annotations

from surestep.channels.any_value import AnyValue
from surestep.channels.base import BaseChannel
from surestep.channels.binop import BinaryOperatorAggregate
from surestep.channels.delta import DeltaChannel
from surestep.channels.ephemeral_value import EphemeralValue
from surestep.channels.last_value import LastValue, LastValueAfterFinish
from surestep.channels.named_barrier_value import NamedBarrierValue, NamedBarrierValueAfterFinish
from surestep.channels.topic import Topic
from surestep.channels.untracked_value import UntrackedValue

__all__ = (
    "AnyValue",
    "BaseChannel",
    "BinaryOperatorAggregate",
    "DeltaChannel",
    "EphemeralValue",
    "LastValue",
    "LastValueAfterFinish",
    "NamedBarrierValue",
    "NamedBarrierValueAfterFinish",
    "Topic",
    "UntrackedValue",
)
