"""A checkpoint -> the tasks of the next step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from surestep._core.blueprint import TASKS, Blueprint, NodePlan
from surestep._core.head import Head, channel_value, has_value
from surestep._core.task import Task, pull, push
from surestep.errors import InvalidUpdateError

ManagedReader = Callable[[Any], Any]


def plan(head: Head, blueprint: Blueprint, step: int, stop: int, inputs: bool = True) -> list[Task]:
    """The tasks that a checkpoint asks for; without their inputs where only their identity counts.

    Sent tasks come first, in the order they were sent, then triggered nodes: in the order of their names when it is
    known what changed last (as in a run), else in the order in which they were defined (as in a state snapshot).
    """
    tasks: list[Task] = []
    if TASKS in head.live:
        for index, packet in enumerate(head.channels[TASKS].get()):
            if inputs or getattr(packet, "node", None) in blueprint.nodes:  # onlookers don't stumble over what is gone
                tasks.append(push(head, _target(blueprint, packet), index, packet, step))
    for name in _candidates(head, blueprint):
        node = blueprint.nodes[name]
        if is_triggered(head, node):
            task = _pull(head, node, step, stop) if inputs else pull(head, node, None, step)
            if task is not None:
                tasks.append(task)
    return tasks


def is_idle(head: Head, blueprint: Blueprint) -> bool:
    """Whether a checkpoint asks for nothing: the run is over."""
    if TASKS in head.live:
        return False
    return not any(is_triggered(head, blueprint.nodes[name]) for name in _candidates(head, blueprint))


def _target(blueprint: Blueprint, packet: Any) -> NodePlan:
    node = blueprint.nodes.get(getattr(packet, "node", None))  # type: ignore[arg-type]
    if node is None:
        known = ", ".join(sorted(name for name in blueprint.nodes if not name.startswith("__")))
        raise InvalidUpdateError(
            f"A Send names the node {getattr(packet, 'node', packet)!r}, which graph '{blueprint.name}' does not have. "
            f"Its nodes: {known}."
        )
    return node


def _candidates(head: Head, blueprint: Blueprint) -> Iterable[str]:
    if head.updated:
        triggered_by = blueprint.triggered_by
        hits = triggered_by.keys() & head.updated
        if len(hits) == 1:
            names = triggered_by[hits.pop()]
            return names if len(names) == 1 else sorted(names)
        return sorted({name for key in hits for name in triggered_by[key]}) if hits else ()
    if not head.versions:
        return ()
    return blueprint.nodes


def is_triggered(head: Head, node: NodePlan) -> bool:
    """Whether a trigger of the node holds a version that the node has not seen."""
    seen = head.seen.get(node.name)
    for trigger in node.triggers:
        version = head.versions.get(trigger)
        if version is None or not head.channels[trigger].is_available():
            continue
        if seen is None or (last := seen.get(trigger)) is None or version > last:
            return True
    return False


def _pull(head: Head, node: NodePlan, step: int, stop: int) -> Task | None:
    reads = node.reads
    if node.lookups is not None and type(reads) is tuple:
        task = pull(head, node, None, step)
        task.view = head.view, reads
        return task
    try:
        if type(reads) is tuple:
            value: Any = head.view(reads).copy()
            for key, managed in node.managed:
                value[key] = managed.get(Position(step, stop))
        else:
            value = channel_value(head.channels[reads])  # type: ignore[index]
            if not has_value(value):
                return None
        if node.mapper is not None:
            value = node.mapper(value)
    except Exception as error:
        error.add_note(f"Before task with name '{node.name}' and path '{node.path}'")
        raise
    return pull(head, node, value, step)


def state_for(head: Head, node: NodePlan, step: int, stop: int) -> Any:
    """What a node is given when it is triggered: the part of the state that it reads."""
    task = _pull(head, node, step, stop)
    return None if task is None else task.input


class Position:
    """Where a run stands, for managed values."""

    __slots__ = ("step", "stop")

    def __init__(self, step: int, stop: int) -> None:
        self.step = step
        self.stop = stop
