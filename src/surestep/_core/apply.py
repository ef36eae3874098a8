"""Writes of a step -> channel values and versions of the next checkpoint.

Rules:
1. Writes are folded in the order of the tasks' paths, and within a task in the order it wrote them.
2. All channels that change in a step get one and the same new version.
3. A channel's `update([])` is called only for channels that may react to it, `finish()` likewise: a step costs what
   it changes, not the number of channels.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from surestep._core.blueprint import MANY, UNFOLDED, Blueprint
from surestep._core.head import Head
from surestep._core.task import Task, by_path
from surestep.errors import InvalidUpdateError

log = logging.getLogger("surestep")


def apply_writes(head: Head, blueprint: Blueprint, tasks: Sequence[Task]) -> set[str]:
    """Fold the tasks' writes into the channels; the names of the channels that now hold something new."""
    if len(tasks) > 1:
        tasks = by_path(tasks)
    triggered = _note_seen(head, tasks)
    head.bump()
    changed: set[str] = set()
    for task in tasks:
        if task.node.consumes and task.triggers is task.node.triggers:
            changed.update(key for key in task.node.consumes if head.channels[key].consume())
    put: Mapping[str, Any] = {}
    left: Sequence[tuple[str, Any]] | None = None
    if len(tasks) == 1 and len(tasks[0].writes) > MANY:
        put, left = _put_down(head, tasks[0].writes)
    written = _by_channel(head, tasks, left)
    updated = _fold(head, blueprint, written, tasks, changed)
    updated.update(put)
    if triggered:
        if not head.live <= updated:
            _tell_silence(head, changed, updated)
        if blueprint.finishing and not any(key in blueprint.triggered_by for key in updated):
            _finish(head, blueprint, changed, updated)
    head.note(changed, put)
    if head.ahead:
        head.ahead.clear()
    return updated


def _note_seen(head: Head, tasks: Sequence[Task]) -> bool:
    """Note what each node has seen. A new dict each time: an older checkpoint may hold the last one."""
    triggered = False
    versions, seen, looked = head.versions, head.seen, head.looked
    for task in tasks:
        now = {}
        for key in task.triggers:
            triggered = True
            if key in versions:
                now[key] = versions[key]
        name = task.name
        before = seen.get(name)
        if now or before is None:
            seen[name] = {**before, **now} if before else now
            if looked is not None:
                looked.add(name)
    return triggered


def apply_edits(head: Head, blueprint: Blueprint, edits: Sequence[tuple[str, Any]]) -> set[str]:
    """Fold writes that belong to no task into the channels; nothing else reacts."""
    if not edits:
        return set()
    head.bump()
    changed: set[str] = set()
    written: dict[str, list[Any]] = {}
    for key, value in edits:
        if key in head.channels.specs:
            written.setdefault(key, []).append(value)
        elif key not in UNFOLDED:
            log.warning("An update names the unknown channel %s; it is ignored.", key)
    updated = _fold(head, blueprint, written, (), changed)
    head.note(changed)
    return updated


def _put_down(head: Head, writes: Sequence[tuple[str, Any]]) -> tuple[Mapping[str, Any], Sequence[tuple[str, Any]]]:
    """Of many writes by one task: put values down for the channels that hold the last one and that nobody has asked
    for yet, all at once; these, and the other writes. The input of a graph with many channels is such a case."""
    values = dict(writes)
    if len(values) < len(writes):
        return {}, writes  # several to one channel: it has something to say about that
    channels, plain = head.channels, head.channels.plain
    left = [(key, value) for key, value in values.items() if key not in plain]
    left += [(key, values[key]) for key in channels if key in values and key in plain]
    for key, _ in left:
        del values[key]
    channels.saved.update(values)
    return values, left


def _by_channel(
    head: Head, tasks: Sequence[Task], left: Sequence[tuple[str, Any]] | None = None
) -> dict[str, list[Any]]:
    """The values that tasks wrote to each channel. `left`: those of a lone task that are still to be folded."""
    written: dict[str, list[Any]] = {}
    for task in tasks:
        for key, value in task.writes if left is None else left:
            if key in written:
                written[key].append(value)
            elif key in head.channels.specs:
                written[key] = [value]
            elif key not in UNFOLDED:
                log.warning(
                    "Task %s with path %s wrote to unknown channel %s, ignoring it.",
                    task.name,
                    task.path,
                    key,
                )
    return written


def _fold(
    head: Head, blueprint: Blueprint, written: dict[str, list[Any]], tasks: Sequence[Task], changed: set[str]
) -> set[str]:
    """Fold values into channels; those that now hold something new. `changed` grows by all that changed."""
    updated = set()
    channels, silent = head.channels, blueprint.silent
    for key, values in written.items():
        channel = channels[key]
        try:
            if head.ahead and (known := head.folded(key, values)) is not None:
                channels[key] = channel = known
            elif not channel.update(values):
                continue
        except InvalidUpdateError as error:
            raise _with_writers(error, key, tasks) from error.__cause__
        changed.add(key)
        if channel.is_available():
            updated.add(key)
            if key in silent:
                head.live.add(key)
        elif key in silent:
            head.live.discard(key)
    return updated


def _with_writers(error: InvalidUpdateError, key: str, tasks: Sequence[Task]) -> InvalidUpdateError:
    """The same error with the nodes that wrote the key named."""
    writers = [task.name for task in tasks for channel, _ in task.writes if channel == key]
    if not writers:
        return error
    named = ", ".join(f"'{name}'" for name in writers)
    told = InvalidUpdateError(f"{error}\nThe key '{key}' was written in this step by: {named}.")
    told.__dict__.update(error.__dict__)
    return told


def _tell_silence(head: Head, changed: set[str], updated: set[str]) -> None:
    """Channels that nobody wrote to and that do not outlive a step are cleared."""
    for key in [key for key in head.live if key not in updated]:
        channel = head.channels[key]
        if channel.update([]):
            changed.add(key)
            if channel.is_available():
                updated.add(key)
            else:
                head.live.discard(key)


def _finish(head: Head, blueprint: Blueprint, changed: set[str], updated: set[str]) -> None:
    """Nothing else is triggered: what was deferred becomes available."""
    for key in blueprint.finishing:
        channel = head.channels[key]
        if channel.finish():
            changed.add(key)
            if channel.is_available():
                updated.add(key)
