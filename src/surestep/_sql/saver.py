"""The saver on a database: every method of the contract as one operation given to a runner."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surestep._calls import adriven, driven
from surestep._sql import forget, keeping, ops, reading
from surestep._sql.dialect import Dialect
from surestep._sql.leases import SqlLeases
from surestep._sql.ledger import SqlLedger
from surestep._sql.reading import Desk
from surestep._sql.recall import Recall
from surestep._sql.reencrypt import reencrypt
from surestep._sql.sealing import lock_of
from surestep.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    SerializerProtocol,
    TaskWrites,
    get_checkpoint_metadata,
)
from surestep.checkpoint.base._leases import took
from surestep.checkpoint.base._retention import Pin, Retention, Swept
from surestep.checkpoint.base._shared import check_prune, next_version
from surestep.checkpoint.base._types import check_filter, check_limit

if TYPE_CHECKING:
    from surestep._sql.run import Runner
    from surestep.types import RunnableConfig


class SqlSaver(BaseCheckpointSaver[str], SqlLedger, SqlLeases):
    """Checkpoints in a database. What each method does is documented on `BaseCheckpointSaver`."""

    def __init__(self, runner: Runner, dialect: Dialect, serde: SerializerProtocol | None) -> None:
        super().__init__(serde=serde)
        self._runner = runner
        self._dialect = dialect
        self._recall = Recall()

    @property
    def _desk(self) -> Desk:
        lock = lock_of(self.serde)
        return Desk(lock.serde, self._dialect, self._recall, lock.seal, lock.open)

    # ---- writing ----

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; durable when this returns."""
        return self.commit(config, checkpoint, self._labelled(config, metadata), new_versions, ())

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """`put`, awaited."""
        return await self.acommit(config, checkpoint, self._labelled(config, metadata), new_versions, ())

    def _labelled(self, config: RunnableConfig, metadata: CheckpointMetadata) -> CheckpointMetadata:
        return get_checkpoint_metadata(config, metadata, listed=self.metadata_keys)

    def commit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig:
        """Store a checkpoint and the writes that led to it in one transaction; see `UnitOfWork`."""
        steps = ops.commit(self._desk, config, checkpoint, metadata, new_versions, writes, alone=True)
        stored = self._runner.write(steps)
        took(config)
        return stored

    async def acommit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig:
        """`commit`, awaited."""
        steps = ops.commit(self._desk, config, checkpoint, metadata, new_versions, writes, alone=True)
        stored = await self._runner.awrite(steps)
        took(config)
        return stored

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store writes of a task; durable when this returns."""
        self._runner.write(ops.put_writes(self._desk, config, writes, task_id, task_path, alone=True))
        took(config)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """`put_writes`, awaited."""
        await self._runner.awrite(ops.put_writes(self._desk, config, writes, task_id, task_path, alone=True))
        took(config)

    # ---- reading ----

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The addressed checkpoint, or the latest."""
        return self._runner.read(reading.get_tuple(self._desk, config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`get_tuple`, awaited."""
        return await self._runner.aread(reading.get_tuple(self._desk, config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first; read in pages while the caller goes on."""
        page = self._page(config, filter, before, limit)

        def pages() -> Iterator[CheckpointTuple]:
            while not page.done:
                yield from self._runner.read(page.read())

        return pages()

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """`list`, as an async iterator."""
        page = self._page(config, filter, before, limit)
        while not page.done:
            for found in await self._runner.aread(page.read()):
                yield found

    def _page(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> reading.Listing:
        check_filter(filter)
        check_limit(limit)
        return reading.Listing(self._desk, config, filter or {}, before, limit)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """The writes that make up delta channels, from one view of the database."""
        return self._runner.read(reading.delta_history(self._desk, config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """`get_delta_channel_history`, awaited."""
        return await self._runner.aread(reading.delta_history(self._desk, config, channels))

    # ---- forgetting ----

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread."""
        self._runner.write(forget.delete_thread(self._desk, thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """`delete_thread`, awaited."""
        await self._runner.awrite(forget.delete_thread(self._desk, thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, and what only they had."""
        self._runner.write(forget.delete_for_runs(self._desk, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """`delete_for_runs`, awaited."""
        await self._runner.awrite(forget.delete_for_runs(self._desk, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything of a thread to another one."""
        self._runner.write(forget.copy_thread(self._desk, source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """`copy_thread`, awaited."""
        await self._runner.awrite(forget.copy_thread(self._desk, source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the latest checkpoint of each namespace ("keep_latest"), or nothing ("delete")."""
        check_prune(thread_ids, strategy)
        self._runner.write(forget.prune(self._desk, thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`prune`, awaited."""
        check_prune(thread_ids, strategy)
        await self._runner.awrite(forget.prune(self._desk, thread_ids, strategy))

    # ---- encrypting again ----

    def reencrypt(self) -> int:
        """Encrypt with the serializer's current key what isn't: what was stored in clear or with an older key.

        Thread by thread, each in a transaction of its own; runs may go on meanwhile. Gives the number of rows that were
        rewritten. When it has ended, older keys aren't needed any more.
        """
        return driven(reencrypt(self._desk), lambda asked: asked.answer(self._runner))

    async def areencrypt(self) -> int:
        """`reencrypt`, awaited."""
        return await adriven(reencrypt(self._desk), lambda asked: asked.aanswer(self._runner))

    # ---- keeping ----

    def pin(self, config: RunnableConfig, label: str) -> None:
        """Keep the addressed checkpoint (the latest by default) until it is unpinned or its thread is deleted.

        Raises ValueError for a checkpoint that isn't there.
        """
        self._runner.write(keeping.pin(self._desk, config, label))

    async def apin(self, config: RunnableConfig, label: str) -> None:
        """`pin`, awaited."""
        await self._runner.awrite(keeping.pin(self._desk, config, label))

    def unpin(self, config: RunnableConfig, label: str | None = None) -> None:
        """Take the pins with this label (None: all) from the addressed checkpoint, or from all of the thread."""
        self._runner.write(keeping.unpin(config, label))

    async def aunpin(self, config: RunnableConfig, label: str | None = None) -> None:
        """`unpin`, awaited."""
        await self._runner.awrite(keeping.unpin(config, label))

    def pins(self, thread_id: str) -> Sequence[Pin]:
        """The pins of a thread."""
        return self._runner.read(keeping.pins(thread_id))

    async def apins(self, thread_id: str) -> Sequence[Pin]:
        """`pins`, awaited."""
        return await self._runner.aread(keeping.pins(thread_id))

    def sweep(
        self, retention: Retention, *, now: float | None = None, after: str | None = None, dry_run: bool = False
    ) -> Swept:
        """Delete what the retention doesn't keep, each thread in a transaction of its own; see `Retention`.

        now: seconds since 1970, by default the time. after: go on behind this thread. dry_run: only count.
        """
        steps = keeping.sweep(self._desk, retention, now, after, dry_run)
        return driven(steps, lambda asked: asked.answer(self._runner))

    async def asweep(
        self, retention: Retention, *, now: float | None = None, after: str | None = None, dry_run: bool = False
    ) -> Swept:
        """`sweep`, awaited."""
        steps = keeping.sweep(self._desk, retention, now, after, dry_run)
        return await adriven(steps, lambda asked: asked.aanswer(self._runner))

    def get_next_version(self, current: str | int | None, channel: None) -> str:
        """The next version: a counter, and a random part that tells two forks of a thread apart."""
        return next_version(current)
