"""Stored checkpoints from before one control channel per node: their channels get today's names.

Until checkpoint format 3 a node was started by `start:<node>`, by `branch:<source>:<condition>:<node>`, or by
a channel named like the node that ran before it. All of these are `branch:to:<node>` now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from surestep._constants import INTERRUPT
from surestep.constants import END, START
from surestep.graph._writer import trigger_name

Rename = Callable[[str], Iterable[str]]


def rename_control_channels(
    checkpoint: dict[str, Any], edges: Iterable[tuple[str, str]], channels: Mapping[str, Any]
) -> None:
    """Rename in place: in the values, the versions and what each node has seen.

    `edges` and `channels` are those of the graph that loads the checkpoint. Several old channels may become
    one: the newest version counts.
    """
    after: dict[str, list[str]] = {}
    for start, end in edges:
        if start != START and start not in channels:
            after.setdefault(start, []).append(end)

    def rename(channel: str) -> Iterable[str]:
        if channel in channels:
            return (channel,)
        if channel.startswith("start:"):
            return (trigger_name(channel.removeprefix("start:")),)
        if channel.startswith("branch:") and channel.count(":") == 3:
            return (trigger_name(channel.rpartition(":")[2]),)
        if channel in after:
            return [trigger_name(end) for end in after[channel] if end != END]
        return (channel,)

    values = checkpoint["channel_values"]
    checkpoint["channel_values"] = {
        new: value if new == old else None for old, value in values.items() for new in rename(old)
    }
    checkpoint["channel_versions"] = _renamed(checkpoint["channel_versions"], rename)
    seen = checkpoint["versions_seen"]
    for node, versions in seen.items():
        renamed = _renamed(versions, rename)
        if node not in (INTERRUPT, START):
            # What a node saw of the one before it, it saw as its own trigger and not as that of a sibling.
            own = trigger_name(node)
            renamed = {key: version for key, version in renamed.items() if key == own or key in versions}
        seen[node] = renamed


def _renamed(versions: Mapping[str, Any], rename: Rename) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for old, version in versions.items():
        for new in rename(old):
            found[new] = version if new not in found else max(found[new], version)
    return found
