"""What a checkpoint has still to run, read from its channels: no graph is needed for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surestep._constants import TASKS

if TYPE_CHECKING:
    from surestep.checkpoint.base import CheckpointTuple


def next_nodes(saved: CheckpointTuple) -> list[str]:
    """The nodes that run from a checkpoint of a StateGraph or an entrypoint."""
    values = saved.checkpoint["channel_values"]
    nodes = ["__start__"] if "__start__" in values else []
    for channel, value in values.items():
        kind, _, rest = channel.partition(":")
        if channel.startswith("branch:to:"):
            nodes.append(channel.removeprefix("branch:to:"))
        elif kind == "join":
            sources, _, node = rest.rpartition(":")
            if set(sources.split("+")) == set(value if isinstance(value, set | list) else value[0]):
                nodes.append(node)
    return nodes + [getattr(packet, "node", "?") for packet in values.get(TASKS, ())]
