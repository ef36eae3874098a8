"""A saver that keeps everything in dictionaries of this process: for development, for tests, and to be read.

    storage[thread id][namespace][checkpoint id]  = (checkpoint, metadata, parent's id or None)
    writes[thread id, namespace, checkpoint id]   = {(task id, index): (task id, channel, value, task path)}
    blobs[thread id, namespace, channel, version] = value

Checkpoints, metadata and values are `(tag, bytes)` as the serializer makes them; a checkpoint is stored
without its channel values, one with very many channels as what it changes in its parent's (`_rows`). A blob is
("empty", b"") when the channel got a new version by losing its value.
"""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, cast

from surestep.checkpoint.base import (
    CLAIM_KEY,
    HEAD_KEY,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    SerializerProtocol,
    TaskWrites,
    get_checkpoint_metadata,
)
from surestep.checkpoint.base._leases import HOLD_KEY, RELEASE_KEY
from surestep.checkpoint.base._shared import (
    EMPTY,
    Stored,
    Typed,
    address,
    address_of,
    already_claimed,
    check_prune,
    next_version,
)
from surestep.checkpoint.base._types import SEEN_KEY, check_filter, check_limit, matches
from surestep.checkpoint.memory._keeping import Keeping
from surestep.checkpoint.memory._leases import MemoryLeases
from surestep.checkpoint.memory._ledger import MemoryLedger
from surestep.checkpoint.memory._persistent import PersistentDict
from surestep.checkpoint.memory._rows import (
    LONGEST,
    Row,
    Write,
    Writes,
    changed,
    is_wide,
    made_whole,
    make_whole,
    rows_of,
    values_of,
    whole,
)

if TYPE_CHECKING:
    from types import TracebackType

    from surestep.types import RunnableConfig

__all__ = ("InMemorySaver", "MemorySaver", "PersistentDict")

Place = tuple[str, str]
"""A thread and a namespace in it."""


def _namespaces() -> defaultdict[str, dict[str, Row]]:
    return defaultdict(dict)


class InMemorySaver(
    Keeping,
    MemoryLedger,
    MemoryLeases,
    AbstractContextManager["InMemorySaver"],
    AbstractAsyncContextManager["InMemorySaver"],
):
    """Checkpoints in memory: gone when the process ends. Safe to use from several threads and event loops.

    `factory`: makes the three dictionaries; `partial(PersistentDict, filename=...)` keeps them in a file,
    which is written when the saver is closed (`with InMemorySaver(...) as saver`).
    """

    __slots__ = ("_decisions", "_effects", "_heads", "_last", "_leases", "_lock", "_tickets")

    writes_inline: ClassVar[bool] = True

    def __init__(self, *, serde: SerializerProtocol | None = None, factory: Any = defaultdict) -> None:
        super().__init__()
        self.serde = serde or self.serde
        self.storage: dict[str, dict[str, dict[str, Row]]] = factory(_namespaces)
        self.writes: dict[tuple[str, str, str], dict[tuple[str, int], Write]] = factory(dict)
        self.blobs: dict[tuple[str, str, str, Any], Typed] = factory()
        self.stack = ExitStack()
        # In slots: people print this object's attributes to see what is stored, and that is all they should
        # see.
        self._lock = RLock()
        self._effects = {}
        self._decisions = {}
        self._leases = {}
        self._tickets = {}
        self._heads: dict[Place, tuple[int, str]] = {}
        self._last: dict[Place, tuple[str, int]] = {}  # stored last, and how many rows it takes to make it whole
        for section in ("storage", "writes", "blobs"):
            found = getattr(self, section)
            if isinstance(found, PersistentDict):
                found.section = section
                found.load()
                self.stack.enter_context(found)

    def __enter__(self) -> InMemorySaver:
        self.stack.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self.stack.__exit__(exc_type, exc_value, traceback)

    async def __aenter__(self) -> InMemorySaver:
        return self.__enter__()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self.__exit__(exc_type, exc_value, traceback)

    # ---- writing ----

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; see `BaseCheckpointSaver.put`."""
        metadata = get_checkpoint_metadata(config, metadata, listed=self.metadata_keys)
        return InMemorySaver.commit(self, config, checkpoint, metadata, new_versions, ())

    def commit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig:
        """Store a checkpoint and the writes that led to it, all or nothing; see `UnitOfWork.commit`."""
        thread_id, ns, parent = address_of(config, exact=bool(writes))
        configurable = config["configurable"]
        place = thread_id, ns
        # What can fail comes before anything is stored.
        dumps = self.serde.dumps_typed
        known: dict[int, Typed] = {}
        rows = rows_of(dumps, writes, known) if writes else None
        values = values_of(dumps, new_versions, checkpoint["channel_values"], known)
        id, about = checkpoint["id"], dumps(metadata)
        wide = is_wide(checkpoint)
        with self._lock:
            if HOLD_KEY in configurable:
                self._need(config)
            checkpoints = self._checkpoints(thread_id, ns)
            head = self._head(place, checkpoints)
            if HEAD_KEY in configurable and configurable[HEAD_KEY] != head:
                from surestep.errors import ThreadConflict

                raise ThreadConflict(thread_id, ns, configurable[HEAD_KEY], head)
            if HOLD_KEY in configurable:
                self._take(config)
            depth = self._depth(place, checkpoints, configurable) if wide else 0
            body = dumps(changed(checkpoint, new_versions, configurable) if depth else whole(checkpoint))
            if rows:
                self._store((thread_id, ns, parent or ""), rows)
            blobs = self.blobs
            for (channel, version), value in zip(new_versions.items(), values, strict=True):
                blobs[thread_id, ns, channel, version] = value
            checkpoints[id] = (body, about, parent)
            self._heads[place] = (len(checkpoints), id if head is None or id > head else head)
            if wide:
                self._last[place] = id, depth
            if RELEASE_KEY in configurable:
                self._let_go(config)
        return address(thread_id, ns, id)

    def _depth(self, place: Place, checkpoints: Mapping[str, Any], configurable: Mapping[str, Any]) -> int:
        """How many rows it will take to make this one whole: 0 if it is stored whole. The caller holds the lock."""
        last, depth = self._last.get(place, ("", 0))
        since = configurable.get("checkpoint_id") == last and last in checkpoints and SEEN_KEY in configurable
        return depth + 1 if since and depth < LONGEST else 0

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store writes of a task; see `BaseCheckpointSaver.put_writes`."""
        key = cast("tuple[str, str, str]", address_of(config, exact=True))
        rows = rows_of(self.serde.dumps_typed, [TaskWrites(task_id, task_path, writes)], {})
        with self._lock:
            self._need(config)
            stored = self.writes.get(key, {})
            if config["configurable"].get(CLAIM_KEY) and not rows.keys().isdisjoint(stored):
                raise already_claimed(key[0], task_id)
            self._take(config)
            self._store(key, rows)

    def _store(self, key: tuple[str, str, str], rows: Writes) -> None:
        """Add writes to a checkpoint. The caller holds the lock."""
        stored = self.writes.get(key)
        if stored is None:
            self.writes[key] = rows
            return
        for at, row in rows.items():
            if at[1] < 0 or at not in stored:
                stored[at] = row

    def _checkpoints(self, thread_id: str, ns: str) -> dict[str, Row]:
        """The checkpoints of one namespace, to add to. The caller holds the lock."""
        namespaces = self.storage.get(thread_id)
        if namespaces is None:
            namespaces = self.storage[thread_id] = _namespaces()
        checkpoints = namespaces.get(ns)
        if checkpoints is None:
            checkpoints = namespaces[ns] = {}
        return checkpoints

    def _newest(self, thread_id: str) -> str | None:
        """The newest checkpoint of the outermost graph. The caller holds the lock."""
        checkpoints = self.storage.get(thread_id, {}).get("", {})
        return self._head((thread_id, ""), checkpoints) if checkpoints else None

    def _head(self, place: Place, checkpoints: Mapping[str, Any]) -> str | None:
        """The greatest checkpoint id; remembered, since a run asks at every step. The caller holds the
        lock."""
        size, head = self._heads.get(place, (0, ""))
        if size != len(checkpoints) or head not in checkpoints:
            head = max(checkpoints, default="")
            self._heads[place] = (len(checkpoints), head)
        return head or None

    # ---- reading ----

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The addressed or latest checkpoint; see `BaseCheckpointSaver.get_tuple`."""
        thread_id, ns, id = address_of(config)
        with self._lock:
            checkpoints = self.storage.get(thread_id, {}).get(ns, {})
            wanted = id or (self._head((thread_id, ns), checkpoints) if checkpoints else None)
            if wanted is None or wanted not in checkpoints:
                return None
            found = self._read(thread_id, ns, wanted, checkpoints)
        return found.load(self.serde, config if id else None)

    def _read(self, thread_id: str, ns: str, id: str, checkpoints: Mapping[str, Row]) -> Stored:
        """Everything of one checkpoint. The caller holds the lock."""
        row, blobs = checkpoints[id], self.blobs
        body = made_whole(self.serde.loads_typed, checkpoints, id)
        values = [
            (channel, blobs.get((thread_id, ns, channel, version), EMPTY))
            for channel, version in body["channel_versions"].items()
        ]
        writes = sorted(
            (path, key, channel, value)
            for key, (_, channel, value, path) in self.writes.get((thread_id, ns, id), {}).items()
        )
        return Stored(
            thread_id,
            ns,
            row[2],
            body,
            self.serde.loads_typed(row[1]),
            values,
            [(key[0], channel, value) for _, key, channel, value in writes],
        )

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first; see `BaseCheckpointSaver.list`."""
        check_filter(filter)
        check_limit(limit)
        return self._list(config, filter or {}, before, limit)

    def _list(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any],
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Iterator[CheckpointTuple]:
        for thread_id, ns, id in self._ids(config, before):
            if limit == 0:
                return
            with self._lock:
                checkpoints = self.storage.get(thread_id, {}).get(ns, {})
                row = checkpoints.get(id)
                if row is None or (filter and not matches(self.serde.loads_typed(row[1]), filter)):
                    continue
                found = self._read(thread_id, ns, id, checkpoints)
            yield found.load(self.serde, None)
            limit = None if limit is None else limit - 1

    def _ids(self, config: RunnableConfig | None, before: RunnableConfig | None) -> builtins.list[tuple[str, str, str]]:
        wanted = config["configurable"] if config else {}
        end = before["configurable"].get("checkpoint_id") if before else None
        with self._lock:
            threads = [wanted["thread_id"]] if config else builtins.list(self.storage)
            found = [
                (thread_id, ns, id)
                for thread_id in threads
                for ns, checkpoints in self.storage.get(thread_id, {}).items()
                if "checkpoint_ns" not in wanted or wanted["checkpoint_ns"] == ns
                for id in checkpoints
                if (not wanted.get("checkpoint_id") or wanted["checkpoint_id"] == id) and (not end or id < end)
            ]
        return sorted(found, key=lambda key: (key[2], key[0], key[1]), reverse=True)

    # ---- forgetting ----

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread."""
        with self._lock:
            self.storage.pop(thread_id, None)
            self._forget_keeping(thread_id)
            self._forget_effects(thread_id)
            self._leases.pop(thread_id, None)
            sections: Iterable[dict[Any, Any]] = (self.writes, self.blobs, self._heads, self._last)
            for section in sections:
                for key in [key for key in section if key[0] == thread_id]:
                    del section[key]

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, their writes, and the values that only they had."""
        wanted = set(run_ids)
        with self._lock:
            for thread_id, namespaces in self.storage.items():
                for ns, checkpoints in namespaces.items():
                    doomed = {
                        id for id, row in checkpoints.items() if self.serde.loads_typed(row[1]).get("run_id") in wanted
                    }
                    if doomed:
                        self._drop(thread_id, ns, doomed)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything of a thread to another one."""
        with self._lock:
            for ns, checkpoints in builtins.list(self.storage.get(source_thread_id, {}).items()):
                self._checkpoints(target_thread_id, ns).update(checkpoints)
            for key, rows in builtins.list(self.writes.items()):
                if key[0] == source_thread_id:
                    self.writes.setdefault((target_thread_id, *key[1:]), {}).update(rows)
            for blob, value in builtins.list(self.blobs.items()):
                if blob[0] == source_thread_id:
                    self.blobs[target_thread_id, *blob[1:]] = value
            self._copy_pins(source_thread_id, target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the latest checkpoint of each namespace and those that are pinned, with their writes ("keep_latest"), or
        nothing ("delete")."""
        check_prune(thread_ids, strategy)
        with self._lock:
            for thread_id in thread_ids:
                if strategy == "delete":
                    self.delete_thread(thread_id)
                    continue
                for ns, checkpoints in self.storage.get(thread_id, {}).items():
                    stays = {self._head((thread_id, ns), checkpoints), *self._pinned(thread_id, ns)}
                    self._drop(thread_id, ns, set(checkpoints) - stays)

    def _drop(self, thread_id: str, ns: str, doomed: set[str]) -> None:
        """Delete checkpoints of a namespace, their writes, and the values that nothing refers to any more.
        The caller holds the lock."""
        checkpoints = self.storage[thread_id][ns]
        make_whole(self.serde, checkpoints, [id for id in checkpoints if id not in doomed])
        for id in doomed:
            del checkpoints[id]
            self.writes.pop((thread_id, ns, id), None)
        self._forget_pins(thread_id, ns, doomed)
        used = {
            item for row in checkpoints.values() for item in self.serde.loads_typed(row[0])["channel_versions"].items()
        }
        for key in [key for key in self.blobs if key[:2] == (thread_id, ns) and key[2:] not in used]:
            del self.blobs[key]
        self._heads.pop((thread_id, ns), None)
        self._last.pop((thread_id, ns), None)

    # ---- the same, awaited: nothing here waits ----

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`get_tuple`, awaited."""
        return self.get_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """`list`, as an async iterator."""
        for found in self.list(config, filter=filter, before=before, limit=limit):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """`put`, awaited."""
        return self.put(config, checkpoint, metadata, new_versions)

    async def acommit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig:
        """`commit`, awaited."""
        return self.commit(config, checkpoint, metadata, new_versions, writes)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """`put_writes`, awaited."""
        self.put_writes(config, writes, task_id, task_path)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """`get_delta_channel_history`, awaited."""
        return self.get_delta_channel_history(config=config, channels=channels)

    async def adelete_thread(self, thread_id: str) -> None:
        """`delete_thread`, awaited."""
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """`delete_for_runs`, awaited."""
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """`copy_thread`, awaited."""
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`prune`, awaited."""
        self.prune(thread_ids, strategy=strategy)

    def get_next_version(self, current: str | int | None, channel: None) -> str:
        """The next version: a counter, and a random part that tells two forks of a thread apart."""
        return next_version(current)


MemorySaver = InMemorySaver
"""The older name."""
