"""A checkpoint as people see it: the payload of the `checkpoints` stream mode, and the tasks of a state snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surestep._core.blueprint import RETURN
from surestep._core.emit import as_dict, result_of
from surestep._core.rows import Pending, TaskStatus
from surestep._core.task import Task

if TYPE_CHECKING:
    from surestep._core.run import Run


def checkpoint_payload(run: Run, tasks: Sequence[Task]) -> dict[str, Any]:
    """What the `checkpoints` mode shows when a step is planned."""
    head = run.head
    config = config_at(run.request.config, head.ns, head.anchor.id, run.request.parents)
    parent = run.parent_id
    return {
        "config": config,
        "parent_config": config_at(run.request.config, head.ns, parent, run.request.parents) if parent else None,
        "values": head.read(run.blueprint.stream_channels),
        "metadata": dict(run.metadata),
        "next": [task.name for task in tasks],
        "tasks": [
            task_payload(
                task,
                status_of(run.pending, task),
                run.blueprint.stream_channels,
                child_config(run.request.config, task) if task.node.subgraphs else None,
            )
            for task in tasks
        ],
    }


def task_payload(task: Any, status: TaskStatus, keys: str | Sequence[str], state: Any) -> dict[str, Any]:
    """A task in the payload of a checkpoint; `state`: the config of the graph inside it, if there is one."""
    payload: dict[str, Any] = {"id": task.id, "name": task.name}
    if status.error is not None:
        return {**payload, "error": status.error, "state": state}
    if status.finished:
        payload["result"] = task_result(status, keys)
    return {**payload, "interrupts": tuple([as_dict(question) for question in status.questions]), "state": state}


def task_result(status: TaskStatus, keys: str | Sequence[str]) -> Any:
    """What a finished task returned (a called one) or wrote."""
    for channel, value in status.outputs:
        if channel == RETURN:
            return value
    if isinstance(keys, str):
        found = [value for channel, value in status.outputs if channel == keys]
        return found[0] if len(found) == 1 else {"$writes": found} if found else {}
    wanted = set(keys)
    return result_of([row for row in status.outputs if row[0] in wanted])


def config_at(
    config: Mapping[str, Any], ns: str, checkpoint_id: str | None, parents: Mapping[str, str]
) -> dict[str, Any]:
    """The config that addresses a checkpoint; below the root it carries the ids of all enclosing ones."""
    configurable = {
        **{k: v for k, v in config.get("configurable", {}).items() if not k.startswith("__")},
        "checkpoint_ns": ns,
        "checkpoint_id": checkpoint_id,
    }
    configurable.pop("checkpoint_map", None)
    if parents and checkpoint_id is not None:
        configurable["checkpoint_map"] = {**parents, ns: checkpoint_id}
    return {"configurable": configurable}


def child_config(config: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """The config that addresses the graph inside a task."""
    return {
        "configurable": {
            "thread_id": config.get("configurable", {}).get("thread_id"),
            "checkpoint_ns": task.ns,
        }
    }


def status_of(pending: Pending | None, task: Task) -> TaskStatus:
    """The stored rows of a task, or none."""
    found = pending.by_task.get(task.id) if pending is not None else None
    return found if found is not None else TaskStatus()
