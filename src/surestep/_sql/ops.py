"""What a saver does, as generators of statements. Written once for every database, and for sync and async
callers.

Where things lie (see sqlite/schema.sql):

1. A checkpoint and the small values of its channels are one row; a big value is a row of its own, found by
   the version that the checkpoint has for the channel.
2. Writes that are committed together with the checkpoint they led to ride in that checkpoint's row, so that
   a step of a run is one row. They belong to the parent. Only the latest checkpoint of a namespace can be
   such a parent, and only while it has no writes of its own; the row that its writes ride in follows it
   immediately in the order of the keys.
3. What would break rule 2 (a checkpoint put between others, deleted, copied) first moves the writes that
   ride to rows of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surestep._sql import queries
from surestep._sql.dialect import Dialect
from surestep._sql.rows import divide, merge_writes, pack_small, pack_writes, unpack_small, unpack_writes
from surestep._sql.statement import Many, Steps
from surestep.checkpoint.base import CLAIM_KEY, HEAD_KEY, CheckpointTuple, DeltaChannelHistory, TaskWrites
from surestep.checkpoint.base._shared import (
    DeltaWalk,
    Stored,
    Typed,
    WriteRow,
    address,
    address_of,
    already_claimed,
    changes,
    write_rows,
)
from surestep.checkpoint.base._types import matches

if TYPE_CHECKING:
    from surestep.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
    from surestep.checkpoint.serde.base import SerializerProtocol
    from surestep.types import RunnableConfig


# ---- writing ----


def commit(
    serde: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    writes: Sequence[TaskWrites],
) -> Steps[RunnableConfig]:
    """Store a checkpoint and the writes that led to it; gives the config that addresses it."""
    thread_id, ns, parent = address_of(config, exact=bool(writes))
    id = checkpoint["id"]
    body, values, rows = changes(serde.dumps_typed, checkpoint, new_versions, writes)
    meta = serde.dumps_typed(metadata)

    found = yield (queries.HEAD, (thread_id, ns))
    head, packed, head_has_writes = found[0] if found else (None, None, 0)
    _check_head(config, thread_id, ns, head)
    appended = head is None or id > head
    if not appended:
        yield from _make_room(thread_id, ns, id, parent)
    if parent is None or parent != head:
        found = yield (queries.SMALL, (thread_id, ns, parent))
        packed = found[0][0] if found else None
    inherited = _own_values(serde, checkpoint, new_versions) if packed is None else unpack_small(packed)
    small, large = divide(checkpoint["channel_versions"], new_versions, values, inherited)
    led = None
    if rows and appended and parent == head and not head_has_writes:
        led, rows = pack_writes(rows), []
    yield (queries.PUT, (thread_id, ns, id, parent, *body, *meta, pack_small(small), led))
    if rows:
        yield _put_writes(queries.PUT_WRITE, thread_id, ns, str(parent), rows)
    if large:
        params = [(thread_id, ns, version, channel, *value) for channel, version, value in large]
        yield Many(queries.PUT_VALUE, params)
    return address(thread_id, ns, id)


def _check_head(config: Mapping[str, Any], thread_id: str, ns: str, head: str | None) -> None:
    configurable = config["configurable"]
    if HEAD_KEY in configurable and configurable[HEAD_KEY] != head:
        from surestep.errors import ThreadConflict

        raise ThreadConflict(thread_id, ns, configurable[HEAD_KEY], head)


def _own_values(serde: SerializerProtocol, checkpoint: Checkpoint, new_versions: ChannelVersions) -> dict[str, Typed]:
    """What stands in for the values of a parent that isn't there: those that the checkpoint brings along."""
    values = checkpoint["channel_values"]
    return {channel: serde.dumps_typed(values[channel]) for channel in values if channel not in new_versions}


def _make_room(thread_id: str, ns: str, id: str, parent: str | None) -> Steps[None]:
    """Keep rule 2 when a checkpoint is put that is not the latest, or takes the place of one that is there."""
    found = yield (queries.FROM_HERE, (thread_id, ns, id))
    for other, its_parent, led in found:
        if led is not None and (its_parent < id if other > id else its_parent != parent):
            yield from _unride(thread_id, ns, [(other, its_parent, led)])


def _unride(thread_id: str, ns: str, riders: Sequence[Sequence[Any]]) -> Steps[None]:
    """Move writes that ride in the rows (id, parent's id, writes) to rows of their own."""
    for _, parent, led in riders:
        yield _put_writes(queries.PUT_EARLIER_WRITE, thread_id, ns, parent, unpack_writes(led))
    yield Many(queries.FORGET_LED, [(thread_id, ns, id) for id, _, _ in riders])


def _put_writes(sql: str, thread_id: str, ns: str, id: str, rows: Sequence[WriteRow]) -> Many:
    return Many(
        sql,
        [(thread_id, ns, id, task_id, idx, channel, *value, path) for task_id, idx, channel, value, path in rows],
    )


def put_writes(
    serde: SerializerProtocol,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> Steps[None]:
    """Store writes of a task."""
    thread_id, ns, id = address_of(config, exact=True)
    rows = write_rows(serde.dumps_typed, task_id, task_path, writes)
    if config["configurable"].get(CLAIM_KEY):
        stored = yield from _writes_of(thread_id, ns, str(id))
        if {row[:2] for row in stored} & {row[:2] for row in rows}:
            raise already_claimed(thread_id, task_id)
    if rows:
        yield _put_writes(queries.PUT_WRITE, thread_id, ns, str(id), rows)


# ---- reading ----


def get_tuple(serde: SerializerProtocol, dialect: Dialect, config: RunnableConfig) -> Steps[CheckpointTuple | None]:
    """The addressed checkpoint, or the latest of the thread and namespace."""
    thread_id, ns, id = address_of(config)
    found = yield (queries.EXACT, (thread_id, ns, id)) if id else (queries.LATEST, (thread_id, ns))
    if not found:
        return None
    return (yield from _load(serde, dialect, thread_id, ns, found[0], config if id else None))


def _load(
    serde: SerializerProtocol,
    dialect: Dialect,
    thread_id: str,
    ns: str,
    row: Sequence[Any],
    config: RunnableConfig | None,
) -> Steps[CheckpointTuple]:
    id, parent, tag, data, metadata_tag, metadata, packed = row
    body = serde.loads_typed((tag, data))
    values = unpack_small(packed)
    missing = [(version, channel) for channel, version in body["channel_versions"].items() if channel not in values]
    if missing:
        found = yield (dialect.values, (json.dumps(missing), thread_id, ns))
        values.update({channel: (tag, value) for channel, tag, value in found})
    writes = yield from _writes_of(thread_id, ns, id)
    return Stored(
        thread_id,
        ns,
        parent,
        body,
        serde.loads_typed((metadata_tag, metadata)),
        values.items(),
        [(task_id, channel, value) for task_id, _, channel, value, _ in writes],
    ).load(serde, config)


def _writes_of(thread_id: str, ns: str, id: str) -> Steps[list[WriteRow]]:
    """All writes of a checkpoint, in replay order."""
    found = yield (queries.WRITES, (thread_id, ns, id))
    stored = [(task_id, idx, channel, (tag, value), path) for task_id, idx, channel, tag, value, path in found]
    following = yield (queries.NEXT, (thread_id, ns, id))
    led = following[0][1] if following and following[0][0] == id else None
    return merge_writes(stored, unpack_writes(led) if led is not None else ())


class Listing:
    """A walk through the checkpoints, newest first: the rows come in pages, each read on its own."""

    def __init__(
        self,
        serde: SerializerProtocol,
        dialect: Dialect,
        config: Mapping[str, Any] | None,
        filter: Mapping[str, Any],
        before: Mapping[str, Any] | None,
        limit: int | None,
    ) -> None:
        self._serde, self._dialect, self._filter = serde, dialect, filter
        self._conditions: list[str] = []
        self._params: list[Any] = []
        self._after: Sequence[str] = ()
        self._left = limit
        self._size = 16
        self.done = limit == 0
        wanted = config["configurable"] if config else {}
        for key in ("thread_id", "checkpoint_ns", "checkpoint_id"):
            if key in wanted and (wanted[key] or key != "checkpoint_id"):
                self._add(f"{key} = ?", wanted[key])
        if before and before["configurable"].get("checkpoint_id"):
            self._add("checkpoint_id < ?", before["configurable"]["checkpoint_id"])

    def _add(self, condition: str, *params: Any) -> None:
        self._conditions.append(condition)
        self._params += params

    def read(self) -> Steps[list[CheckpointTuple]]:
        """The next page; `done` says whether it was the last."""
        conditions = [*self._conditions]
        if self._after:
            conditions.append("(checkpoint_id, thread_id, checkpoint_ns) < (?, ?, ?)")
        size = self._size if self._left is None or self._filter else min(self._size, self._left)
        found = yield (queries.page(conditions), [*self._params, *self._after, size])
        loaded = []
        for thread_id, ns, *row in found:
            if self._left == 0:
                break
            if self._filter and not matches(self._serde.loads_typed((row[4], row[5])), self._filter):
                continue
            loaded.append((yield from _load(self._serde, self._dialect, thread_id, ns, row, None)))
            self._left = None if self._left is None else self._left - 1
        self.done = self._left == 0 or len(found) < size
        if not self.done:
            thread_id, ns, id = found[-1][:3]
            self._after = (id, thread_id, ns)
            self._size = min(self._size * 4, 1024)
        return loaded


def delta_history(
    serde: SerializerProtocol, dialect: Dialect, config: RunnableConfig, channels: Sequence[str]
) -> Steps[Mapping[str, DeltaChannelHistory]]:
    """The writes that make up the channels' values, from the nearest ancestors that have one."""
    walk = DeltaWalk(channels)
    found = (yield from get_tuple(serde, dialect, config)) if channels else None
    while parent := walk.parent_of(found):
        found = yield from get_tuple(serde, dialect, parent)
        walk.visit(found)
    return walk.result()


# ---- forgetting ----


def delete_thread(thread_id: str) -> Steps[None]:
    """Delete everything of a thread."""
    for sql in queries.DELETE_THREAD:
        yield (sql, (thread_id,))


def delete_for_runs(serde: SerializerProtocol, run_ids: Sequence[str]) -> Steps[None]:
    """Delete the checkpoints of these runs, their writes, and the values that only they had."""
    wanted = set(run_ids)
    found = yield (queries.ALL_METADATA, ())
    doomed: dict[tuple[str, str], set[str]] = {}
    for thread_id, ns, id, tag, metadata in found:
        if serde.loads_typed((tag, metadata)).get("run_id") in wanted:
            doomed.setdefault((thread_id, ns), set()).add(id)
    for (thread_id, ns), ids in doomed.items():
        yield from _drop(serde, thread_id, ns, ids)


def prune(serde: SerializerProtocol, thread_ids: Sequence[str], strategy: str) -> Steps[None]:
    """Keep the latest checkpoint of each namespace of the threads, or nothing."""
    for thread_id in thread_ids:
        if strategy == "delete":
            yield from delete_thread(thread_id)
            continue
        found = yield (queries.HEADS, (thread_id,))
        for ns, head in found:
            earlier = yield (queries.EARLIER, (thread_id, ns, head))
            yield from _drop(serde, thread_id, ns, {id for (id,) in earlier})


def _drop(serde: SerializerProtocol, thread_id: str, ns: str, doomed: set[str]) -> Steps[None]:
    """Delete checkpoints of a namespace, their writes, and the values that nothing refers to any more."""
    riders = yield (queries.RIDERS, (thread_id, ns))
    yield from _unride(thread_id, ns, [row for row in riders if row[0] in doomed and row[1] not in doomed])
    orphans = [(thread_id, ns, row[0]) for row in riders if row[0] not in doomed and row[1] in doomed]
    yield Many(queries.FORGET_LED, orphans)
    for sql in (queries.DELETE_CHECKPOINT, queries.DELETE_WRITES):
        yield Many(sql, [(thread_id, ns, id) for id in doomed])
    bodies = yield (queries.BODIES, (thread_id, ns))
    used = {
        (version, channel)
        for tag, body in bodies
        for channel, version in serde.loads_typed((tag, body))["channel_versions"].items()
    }
    stored = yield (queries.VALUE_KEYS, (thread_id, ns))
    yield Many(queries.DELETE_VALUE, [(thread_id, ns, *key) for key in stored if tuple(key) not in used])


def copy_thread(source: str, target: str) -> Steps[None]:
    """Copy everything of a thread to another one; what is there under the same keys is replaced."""
    if source == target:
        return
    for thread_id in (source, target):
        riders = yield (queries.RIDERS_OF_THREAD, (thread_id,))
        for ns, *rider in riders:
            yield from _unride(thread_id, ns, [rider])
    for sql in queries.COPY_THREAD:
        yield (sql, (target, source))
