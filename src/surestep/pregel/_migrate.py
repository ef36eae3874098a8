"""Stored checkpoints of older formats, brought up to date when they are read."""

from __future__ import annotations

from typing import Any

from surestep._constants import TASKS

CURRENT = 4


def migrate(graph: Any, saved: Any) -> None:
    """Change a loaded checkpoint in place to the current format."""
    checkpoint = saved.checkpoint
    version = checkpoint.get("v", CURRENT)
    if version < 3 and (hook := getattr(graph, "_migrate_checkpoint", None)) is not None:
        hook(checkpoint)
    if version < 4 and checkpoint.get("pending_sends"):
        _move_sends(checkpoint)


def _move_sends(checkpoint: Any) -> None:
    """Format 3 kept what was sent beside the channels."""
    versions = checkpoint["channel_versions"]
    checkpoint["channel_values"][TASKS] = checkpoint.pop("pending_sends")
    if versions:
        versions[TASKS] = max(versions.values())
