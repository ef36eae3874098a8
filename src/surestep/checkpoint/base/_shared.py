"""What every saver of ours does alike: rows of writes, versions, and the parts of a stored checkpoint put
together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import random
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from surestep.checkpoint.base._types import WRITES_IDX_MAP, CheckpointTuple

if TYPE_CHECKING:
    from surestep.checkpoint.serde.base import SerializerProtocol
    from surestep.errors import AlreadyAnswered
    from surestep.types import RunnableConfig

Typed = tuple[str, bytes]
EMPTY: Typed = ("empty", b"")
"""The stored value of a channel that got a new version by losing its value."""


class WriteRow(NamedTuple):
    """A write as it is stored. A negative index replaces an earlier row of its key, any other is stored
    once."""

    task_id: str
    idx: int
    channel: str
    value: Typed
    task_path: str


def write_rows(
    dumps: Callable[[Any], Typed], task_id: str, task_path: str, writes: Iterable[tuple[str, Any]]
) -> list[WriteRow]:
    """The rows of a task's writes."""
    special = WRITES_IDX_MAP.get
    return [
        WriteRow(task_id, special(channel, position), channel, dumps(value), task_path)
        for position, (channel, value) in enumerate(writes)
    ]


class Stored(NamedTuple):
    """Everything that belongs to one checkpoint, as read from storage. `writes` in replay order."""

    thread_id: str
    ns: str
    parent: str | None
    body: dict[str, Any]
    metadata: dict[str, Any]
    values: Iterable[tuple[str, Typed]]
    writes: Iterable[tuple[str, str, Typed]]

    def load(self, serde: SerializerProtocol, config: RunnableConfig | None) -> CheckpointTuple:
        """The checkpoint as callers get it; `config` is what they asked with, when it named this
        checkpoint."""
        loads = serde.loads_typed
        body = self.body
        body["channel_values"] = {
            channel: loads(value) for channel, value in self.values if value[0] != "empty"
        }
        return CheckpointTuple(
            config or address(self.thread_id, self.ns, body["id"]),
            cast("Any", body),
            cast("Any", self.metadata),
            address(self.thread_id, self.ns, self.parent) if self.parent else None,
            [(task_id, channel, loads(value)) for task_id, channel, value in self.writes],
        )


def address(thread_id: str, ns: str, id: str) -> RunnableConfig:
    """The config that addresses a checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": id}}


def address_of(config: Mapping[str, Any], *, exact: bool = False) -> tuple[str, str, str | None]:
    """(thread id, namespace, checkpoint id or None) of a config. ValueError if something needed isn't
    there."""
    configurable = config["configurable"]
    id = configurable.get("checkpoint_id")
    if "thread_id" not in configurable or (exact and not id):
        missing = "checkpoint_id" if "thread_id" in configurable else "thread_id"
        raise ValueError(f"The config says nothing about {missing}: set config['configurable'][{missing!r}].")
    return configurable["thread_id"], configurable.get("checkpoint_ns", ""), id


def next_version(current: str | int | float | None) -> str:
    """The version after `current`: a counter, and a random part that tells forks of a thread apart."""
    if current is None:
        count = 0
    elif isinstance(current, str):
        count = int(current.split(".", 1)[0])
    else:
        count = int(current)
    return f"{count + 1:032}.{random():016}"


def already_claimed(thread_id: str, task_id: str) -> AlreadyAnswered:
    """The error for a claim that comes second."""
    from surestep.errors import AlreadyAnswered

    return AlreadyAnswered(
        f"What task {task_id} of thread {thread_id!r} waits for was answered already, or the run that "
        "answered it is under way. Nothing was saved. Look at the thread with get_state()."
    )


def check_prune(thread_ids: Sequence[str], strategy: str) -> None:
    """TypeError for one id in place of a list, ValueError for an unknown strategy."""
    if isinstance(thread_ids, str):
        raise TypeError(f"prune takes a list of thread ids; for one thread: prune([{thread_ids!r}]).")
    if strategy not in ("keep_latest", "delete"):
        raise ValueError(f"Unknown strategy {strategy!r}: use 'keep_latest' or 'delete'.")
