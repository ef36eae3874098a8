"""Payloads of the `tasks`, `checkpoints` and `debug` stream modes, made of tasks and writes that somebody else holds.

The engine makes its own in the core; these functions hand the same shapes to programs that run tasks themselves or
show what a saver holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surestep._core.emit import result_of, result_payload, task_payload
from surestep._core.head import channel_value, has_value
from surestep._core.ids import NS_END, child_ns
from surestep._core.rows import Pending, TaskStatus
from surestep._core.snapshot import task_payload as task_of_checkpoint
from surestep._core.state import task_snapshot
from surestep.checkpoint.base import EXCLUDED_METADATA_KEYS
from surestep.constants import TAG_HIDDEN

if TYPE_CHECKING:
    from surestep.channels.base import BaseChannel
    from surestep.checkpoint.base import CheckpointMetadata
    from surestep.types import (
        CheckpointPayload,
        PregelExecutableTask,
        PregelTask,
        RunnableConfig,
        StateSnapshot,
        TaskPayload,
        TaskResultPayload,
    )

    PendingWrite = tuple[str, str, Any]  # task id, channel, value

__all__ = (
    "get_bolded_text",
    "get_colored_text",
    "is_multiple_channel_write",
    "map_debug_checkpoint",
    "map_debug_task_results",
    "map_debug_tasks",
    "map_task_result_writes",
    "rm_pregel_keys",
    "tasks_w_writes",
)


def map_debug_tasks(tasks: Iterable[PregelExecutableTask]) -> Iterator[TaskPayload]:
    """What the `tasks` mode shows when each task starts; hidden tasks are left out."""
    for task in tasks:
        config: Any = task.config or {}
        tags = config.get("tags") or ()
        if TAG_HIDDEN in tags:
            continue
        given = (config.get("metadata") or {}).items()
        metadata = {k: v for k, v in given if k not in EXCLUDED_METADATA_KEYS and not k.startswith("langgraph_")}
        yield task_payload(task, metadata, [tag for tag in tags if not tag.startswith("seq:step")])  # type: ignore[misc]


def is_multiple_channel_write(value: Any) -> bool:
    """Whether a value in a result stands for several writes to one key: `{"$writes": [...]}`."""
    return isinstance(value, dict) and isinstance(value.get("$writes"), list)


def map_task_result_writes(writes: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Writes as a dict; several to one key become `{"$writes": [...]}`."""
    return result_of(writes)


def map_debug_task_results(
    task_tup: tuple[PregelExecutableTask, Sequence[tuple[str, Any]]], stream_keys: str | Sequence[str]
) -> Iterator[TaskResultPayload]:
    """What the `tasks` mode shows when a task ends, of its writes to `stream_keys`."""
    task, writes = task_tup
    yield result_payload(task, writes, stream_keys)  # type: ignore[misc]


def rm_pregel_keys(config: RunnableConfig | None) -> RunnableConfig | None:
    """A config with nothing but the caller's part of `configurable`."""
    if config is None:
        return None
    given = config.get("configurable", {}).items()
    return {"configurable": {key: value for key, value in given if not key.startswith("__pregel_")}}


def map_debug_checkpoint(
    config: RunnableConfig,
    channels: Mapping[str, BaseChannel[Any, Any, Any]],
    stream_channels: str | Sequence[str],
    metadata: CheckpointMetadata,
    tasks: Iterable[PregelExecutableTask],
    pending_writes: Sequence[PendingWrite],
    parent_config: RunnableConfig | None,
    output_keys: str | Sequence[str],
) -> Iterator[CheckpointPayload[Any]]:
    """What the `checkpoints` mode shows of a checkpoint and the tasks that come next.

    `stream_channels`: whose values are shown; `output_keys`: which writes count as the result of a finished task.
    """
    planned, pending = list(tasks), Pending(pending_writes)
    yield {
        "config": rm_pregel_keys(config),
        "parent_config": rm_pregel_keys(parent_config),
        "values": _values(channels, stream_channels),
        "metadata": metadata,
        "next": [task.name for task in planned],
        "tasks": [
            task_of_checkpoint(task, _status(pending, task.id), output_keys, _address(config, task))  # type: ignore[misc]
            for task in planned
        ],
    }


def tasks_w_writes(
    tasks: Iterable[PregelTask | PregelExecutableTask],
    pending_writes: Sequence[PendingWrite] | None,
    states: Mapping[str, RunnableConfig | StateSnapshot] | None,
    output_keys: str | Sequence[str],
    *,
    live: bool = False,
) -> tuple[PregelTask, ...]:
    """Tasks as a state snapshot shows them, with what is stored of each.

    `states`: state or config of the graph inside a task, by task id. `live`: of the newest checkpoint; questions that
    were answered are left out.
    """
    pending = Pending(pending_writes or ())
    of_children: Mapping[str, Any] = states or {}
    return tuple(
        task_snapshot(task, _status(pending, task.id), pending, live, output_keys, of_children.get(task.id))
        for task in tasks
    )


_COLORS = {"black": 30, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "white": 37}


def get_colored_text(text: str, color: str) -> str:
    """Text for a terminal, bold and in colour. KeyError for a colour it does not know."""
    known = {**{name: f"0;{code}" for name, code in _COLORS.items()}, "gray": "1;30"}
    return f"\033[1;3{known[color]}m{text}\033[0m"


def get_bolded_text(text: str) -> str:
    """Text for a terminal, bold."""
    return f"\033[1m{text}\033[0m"


def _status(pending: Pending, task_id: str) -> TaskStatus:
    return pending.by_task.get(task_id) or TaskStatus()


def _values(channels: Mapping[str, BaseChannel[Any, Any, Any]], select: str | Sequence[str]) -> Any:
    if isinstance(select, str):
        value = channel_value(channels[select])
        return value if has_value(value) else None
    found = {key: channel_value(channels[key]) for key in select}
    return {key: value for key, value in found.items() if has_value(value)}


def _address(config: RunnableConfig, task: PregelExecutableTask) -> dict[str, Any] | None:
    """The config of the graph inside a task."""
    if not task.subgraphs:
        return None
    configurable = config["configurable"]
    ns = f"{child_ns(configurable.get('checkpoint_ns', ''), task.name)}{NS_END}{task.id}"
    return {"configurable": {"thread_id": configurable.get("thread_id"), "checkpoint_ns": ns}}
