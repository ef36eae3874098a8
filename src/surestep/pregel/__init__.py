"""The engine's low-level face: graphs made of nodes and channels by hand."""

from surestep.pregel.main import Pregel
from surestep.pregel.node import NodeBuilder

__all__ = ("NodeBuilder", "Pregel")
