"""One thread on its way into our tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Literal, NamedTuple

from surestep._import.sources import Found, Source
from surestep._sql import ops, queries
from surestep._sql.reading import Desk
from surestep._sql.statement import Steps
from surestep.checkpoint.base import TaskWrites
from surestep.checkpoint.base._shared import address
from surestep.checkpoint.base._types import WRITES_IDX_MAP


class Outcome(NamedTuple):
    """What became of a thread, and how many checkpoints were written."""

    what: Literal["imported", "updated", "there already", "moved on here"]
    checkpoints: int = 0


def import_thread(desk: Desk, source: Source, thread_id: str, told: Callable[[], None]) -> Steps[Outcome]:
    """Write what is missing of a thread. `told` is called for every checkpoint that was seen to."""
    spaces: dict[str, list[str]] = {}
    for ns, id in source.ids(thread_id):
        spaces.setdefault(ns, []).append(id)
    found = yield (queries.HEADS, (thread_id,))
    heads: dict[str, str] = {ns: head for ns, head in found}
    if any(head not in spaces.get(ns, ()) for ns, head in heads.items()):
        for _ in chain(*spaces.values()):
            told()
        return Outcome("moved on here")
    written = 0
    for ns, ids in spaces.items():
        head = heads.get(ns, "")
        if head:  # tasks may have ended there since
            known = {task for task, _ in (yield from ops.writes_of(desk, thread_id, ns, head))}
            tasks = _tasks(source.read(thread_id, ns, head))
            yield from _put_writes(desk, thread_id, ns, head, [task for task in tasks if task.task_id not in known])
        before: Found | None = None
        for id in ids:
            if id > head:
                before = yield from _import(desk, source, thread_id, ns, id, before)
                written += 1
            told()
        if before is not None:
            yield from _put_writes(desk, thread_id, ns, before.id, _tasks(before))
    if not written:
        return Outcome("there already")
    return Outcome("updated" if heads else "imported", written)


def _import(desk: Desk, source: Source, thread_id: str, ns: str, id: str, before: Found | None) -> Steps[Found]:
    """Write a checkpoint, and the writes of the one before it: with it, if they led to it."""
    found = source.read(thread_id, ns, id)
    led: list[TaskWrites] = []
    if before is not None:
        tasks = _tasks(before)
        if before.id == found.parent and not _has_control(tasks):
            led = tasks
        else:
            yield from _put_writes(desk, thread_id, ns, before.id, tasks)
    checkpoint: Any = {
        "channel_versions": {},
        "versions_seen": {},
        "updated_channels": None,
        **found.checkpoint,
        "id": id,
    }
    config: Any = address(thread_id, ns, found.parent or "")
    if not found.parent:
        del config["configurable"]["checkpoint_id"]
    metadata: Any = found.metadata
    yield from ops.commit(desk, config, checkpoint, metadata, {}, led)  # which versions are new it finds out
    return found


def _tasks(found: Found) -> list[TaskWrites]:
    return [TaskWrites(*task) for task in found.writes]


def _has_control(tasks: list[TaskWrites]) -> bool:
    """Whether questions, answers or failures are among the writes: those lie in rows of their own here too."""
    return any(channel in WRITES_IDX_MAP for task in tasks for channel, _ in task.writes)


def _put_writes(desk: Desk, thread_id: str, ns: str, id: str, tasks: list[TaskWrites]) -> Steps[None]:
    for task in tasks:
        yield from ops.put_writes(desk, address(thread_id, ns, id), task.writes, task.task_id, task.task_path)
