"""Checks of a graph as it is made: every name that is used must be there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from surestep.managed.base import is_managed_value

if TYPE_CHECKING:
    from surestep.pregel.main import Pregel


def validate_graph(graph: Pregel[Any, Any, Any, Any], reserved: Collection[str]) -> None:
    """Raise ValueError for the first thing that does not fit."""
    for kind, names in (("Channel", graph.channels), ("Node", graph.nodes)):
        for name in names:
            if name in reserved:
                raise ValueError(f"{kind} name '{name}' is reserved; choose another one.")
    channels = {key for key, spec in graph.channels.items() if not is_managed_value(spec)}
    subscribed: set[str] = set()
    for name, node in graph.nodes.items():
        subscribed |= set(node.triggers)
        _known(f"Node '{name}' reads", _names(node.channels), graph.channels)
        _known(f"Node '{name}' is triggered by", node.triggers, channels)
    for name, node in graph.nodes.items():
        if node.timeout is not None and node.bound is not None and not node.bound.is_async:
            raise ValueError(
                "Node timeouts are only supported for async nodes because sync Python execution cannot be safely "
                f"cancelled in-process. Node '{name}' is sync."
            )
    _validate_ends(graph, channels, subscribed)
    for names in (graph.interrupt_before_nodes, graph.interrupt_after_nodes):
        if names != "*":
            for name in names:
                if name not in graph.nodes:
                    raise ValueError(
                        f"Node {name} not in nodes: an interrupt names it; the graph has {sorted(graph.nodes)}."
                    )


def _validate_ends(graph: Pregel[Any, Any, Any, Any], channels: set[str], subscribed: set[str]) -> None:
    inputs = _names(graph.input_channels)
    _known("The graph's input goes to", inputs, channels)
    if isinstance(graph.input_channels, str):
        if graph.input_channels not in subscribed:
            raise ValueError(
                f"Input channel {graph.input_channels} is not subscribed to by any node, so nothing would run."
            )
    elif not subscribed.intersection(inputs):
        raise ValueError(
            f"None of the input channels {list(inputs)} is subscribed to by any node, so nothing would run."
        )
    _known("The graph's output comes from", _names(graph.output_channels), channels)
    if graph.stream_channels is not None:
        _known("The graph's streams show", _names(graph.stream_channels), channels)


def _names(keys: Any) -> Iterable[str]:
    return [keys] if isinstance(keys, str) else list(keys)


def _known(what: str, names: Iterable[str], channels: Collection[str]) -> None:
    for name in names:
        if name not in channels:
            raise ValueError(f"{what} the channel '{name}', which is not in 'channels': {sorted(channels)}.")
