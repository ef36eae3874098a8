"""What every saver of ours does alike: rows of writes, versions, and the parts of a stored checkpoint put
together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import getrandbits
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from surestep.checkpoint.base._types import WRITES_IDX_MAP, CheckpointTuple
from surestep.checkpoint.serde.base import SerializationError
from surestep.checkpoint.serde.types import ERROR

if TYPE_CHECKING:
    from surestep.checkpoint.base._types import (
        DeltaChannelHistory,
        PendingWrite,
    )
    from surestep.checkpoint.serde.base import SerializerProtocol
    from surestep.errors import AlreadyAnswered
    from surestep.types import RunnableConfig

Typed = tuple[str, bytes]
EMPTY: Typed = ("empty", b"")
"""The stored value of a channel that got a new version by losing its value."""


WriteRow = tuple[str, int, str, Typed, str]
"""A write as it is stored: task id, index, channel, value, task path. A negative index replaces an earlier
row of its (task, index), any other is stored once."""


def write_rows(
    dumps: Callable[[Any], Typed], task_id: str, task_path: str, writes: Iterable[tuple[str, Any]]
) -> list[WriteRow]:
    """The rows of a task's writes."""
    special = WRITES_IDX_MAP.get
    rows: list[WriteRow] = []
    try:
        for position, (channel, value) in enumerate(writes):
            if channel == ERROR:
                value = as_text(value)
            rows.append((task_id, special(channel, position), channel, dumps(value), task_path))
    except SerializationError as error:
        raise error.within(f"Channel {channel!r}") from error
    return rows


def as_text(error: Any) -> Any:
    """A failure as it is stored. Its class may not be there for whoever reads the thread."""
    return repr(error) if isinstance(error, BaseException) else error


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
        body, channel = self.body, ""
        try:
            body["channel_values"] = values = {}
            for channel, value in self.values:
                if value[0] != "empty":
                    values[channel] = loads(value)
            writes = []
            for task_id, channel, value in self.writes:
                writes.append((task_id, channel, loads(value)))
        except SerializationError as error:
            raise error.within(f"Channel {channel!r} of thread {self.thread_id!r}") from error
        return CheckpointTuple(
            config or address(self.thread_id, self.ns, body["id"]),
            cast("Any", body),
            cast("Any", self.metadata),
            address(self.thread_id, self.ns, self.parent) if self.parent else None,
            writes,
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
    global _latest
    text, count = _latest  # a run asks for one after the other: then there is nothing to read in the last one
    if current is not text:
        if current is None:
            count = 0
        else:
            count = int(current.partition(".")[0]) if isinstance(current, str) else int(current)
    count += 1
    text = "%032d.0.%016d" % (count, getrandbits(53))  # noqa: UP031 - faster than an f-string, at every step
    _latest = text, count
    return text


_latest: tuple[str, int] = ("", 0)  # the version made last, and its count


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


class DeltaWalk:
    """Collects the writes of delta channels on the way from a checkpoint to its first ancestor."""

    def __init__(self, channels: Sequence[str]) -> None:
        self.open = set(channels)
        self._writes: dict[str, list[list[PendingWrite]]] = {channel: [] for channel in channels}
        self._seeds: dict[str, Any] = {}
        self._seen: set[str] = set()

    def parent_of(self, found: CheckpointTuple | None) -> RunnableConfig | None:
        """Where to go on from this checkpoint; None at the end. A damaged history that leads back to itself
        ends too."""
        parent = found.parent_config if found and self.open else None
        if parent is None or parent["configurable"]["checkpoint_id"] in self._seen:
            return None
        self._seen.add(parent["configurable"]["checkpoint_id"])
        return parent

    def visit(self, ancestor: CheckpointTuple | None) -> None:
        """Take the writes that were made from this ancestor; a channel that has a value here is done."""
        if ancestor is None:
            return
        for channel in self.open:
            self._writes[channel].append([w for w in ancestor.pending_writes or () if w[1] == channel])
        values = ancestor.checkpoint["channel_values"]
        for channel in self.open & values.keys():
            self._seeds[channel] = values[channel]
        self.open -= values.keys()

    def result(self) -> dict[str, DeltaChannelHistory]:
        found: dict[str, DeltaChannelHistory] = {}
        for channel, visits in self._writes.items():
            found[channel] = {"writes": [write for visit in reversed(visits) for write in visit]}
            if channel in self._seeds:
                found[channel]["seed"] = self._seeds[channel]
        return found
