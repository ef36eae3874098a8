"""The contract of savers: what a graph needs from the place where its checkpoints are kept.

`BaseCheckpointSaver` is LangGraph's contract, method by method, so that savers written for it work here.
Our own savers offer more, each of it optional and visible from outside:

* a unit of work: `commit` stores a checkpoint and the writes of the tasks that led to it in one transaction
  (`has_unit_of_work`);
* compare-and-set: a config with HEAD_KEY says which checkpoint the thread must be at; else ThreadConflict;
* claims: a config with CLAIM_KEY makes `put_writes` store all of its rows, or none and raise
  AlreadyAnswered when one is there already;
* inline writes: `writes_inline` says that the methods are too cheap to be worth a thread
  (`saver_writes_inline`). Such a saver is given maps that the run goes on to change: it serializes them, or copies.

A commit may say in a config's SEEN_KEY which nodes have seen something new. Then the checkpoint differs from its parent
in these and in `new_versions`, and in nothing else of `versions_seen` and `channel_versions`.

None of the keys is ever stored.
"""

from __future__ import annotations

import builtins
import copy
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast, runtime_checkable
from weakref import WeakKeyDictionary

from surestep.checkpoint.base._serde import SerdeAttribute, View, _with_msgpack_allowlist
from surestep.checkpoint.base._shared import DeltaWalk
from surestep.checkpoint.base._types import (
    CLAIM_KEY,
    EXCLUDED_METADATA_KEYS,
    HEAD_KEY,
    LATEST_VERSION,
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    TaskWrites,
    copy_checkpoint,
    create_checkpoint,
    empty_checkpoint,
    get_checkpoint_id,
    get_checkpoint_metadata,
    get_serializable_checkpoint_metadata,
    writes_sort_key,
)
from surestep.checkpoint.serde.base import SerializerProtocol, UntypedSerializerProtocol
from surestep.checkpoint.serde.types import ERROR, INTERRUPT, RESUME, SCHEDULED, ChannelProtocol
from surestep.errors import EmptyChannelError

if TYPE_CHECKING:
    from surestep.types import RunnableConfig

__all__ = (
    "CLAIM_KEY",
    "ERROR",
    "EXCLUDED_METADATA_KEYS",
    "HEAD_KEY",
    "INTERRUPT",
    "LATEST_VERSION",
    "RESUME",
    "SCHEDULED",
    "WRITES_IDX_MAP",
    "BaseCheckpointSaver",
    "ChannelProtocol",
    "ChannelVersions",
    "Checkpoint",
    "CheckpointMetadata",
    "CheckpointTuple",
    "DeltaChannelHistory",
    "EmptyChannelError",
    "PendingWrite",
    "SerializerProtocol",
    "TaskWrites",
    "UnitOfWork",
    "copy_checkpoint",
    "create_checkpoint",
    "empty_checkpoint",
    "get_checkpoint_id",
    "get_checkpoint_metadata",
    "get_serializable_checkpoint_metadata",
    "has_unit_of_work",
    "saver_writes_inline",
    "writes_sort_key",
)

V = TypeVar("V", int, float, str)
S = TypeVar("S", bound="BaseCheckpointSaver[Any]")

_OWN_SLOTS = frozenset({"_view", "__dict__", "__weakref__"})


class BaseCheckpointSaver(Generic[V]):
    """Base class of savers. A saver implements the synchronous methods, the asynchronous ones, or both.

    `put` calls for one thread come one after another; `put_writes` may be called from several threads at
    once.
    """

    __slots__ = ("__dict__", "__weakref__", "_view")

    serde = SerdeAttribute()
    writes_inline: ClassVar[bool] = False

    metadata_keys: Collection[str] = ()
    """Keys of a config's `configurable` that are saved in the metadata of checkpoints, so that `list` can look for
    them. Others are not saved: there may be a secret among them. Assign to it: `saver.metadata_keys = {"user_id"}`."""

    def __init__(self, *, serde: SerializerProtocol | UntypedSerializerProtocol | None = None) -> None:
        self._view = None
        if serde is not None:
            self.serde = serde

    _view: View | None  # what a view (`with_allowlist`) adds to its saver

    @property
    def config_specs(self) -> builtins.list[Any]:
        """What a caller may set in `configurable` for this saver beyond the usual; nothing by default."""
        return []

    # ---- reading ----

    def get(self, config: RunnableConfig) -> Checkpoint | None:
        """The checkpoint that `get_tuple` finds, alone."""
        found = self.get_tuple(config)
        return found.checkpoint if found else None

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The addressed checkpoint with its metadata and pending writes; without a checkpoint id the latest.

        Latest means the greatest id in (thread, namespace). None when there is none.
        """
        raise NotImplementedError

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, newest first.

        `config` None: of all threads; without a namespace in it: of all namespaces. `filter`: metadata keys
        and the values that they must have. `before`: only ids smaller than this config's. `limit`: at most
        that many.
        """
        raise NotImplementedError

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """For each channel the writes that led to the addressed checkpoint, and the value that they start
        from.

        The checkpoint's own pending writes aren't among them: they belong to the next one. This
        implementation walks the parents with `get_tuple`.
        """
        walk = DeltaWalk(channels)
        found = self.get_tuple(config) if channels else None
        while parent := walk.parent_of(found):
            found = self.get_tuple(parent)
            walk.visit(found)
        return walk.result()

    # ---- writing ----

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint whose parent is the one in `config`; gives the config that addresses it.

        `new_versions`: the channels whose version differs from the parent's; only their values are stored.
        """
        raise NotImplementedError

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store writes of a task that ran from the checkpoint in `config`.

        Errors, interrupts and answers replace earlier ones of the task; other writes are stored once.
        """
        raise NotImplementedError

    # ---- forgetting ----

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread, in all namespaces."""
        raise NotImplementedError

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata names one of these runs, with their writes."""
        raise NotImplementedError

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything of a thread to another one, ids and parents unchanged."""
        raise NotImplementedError

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the latest checkpoint of each namespace with its writes ("keep_latest"), or nothing
        ("delete")."""
        raise NotImplementedError

    # ---- the same, awaited ----

    async def aget(self, config: RunnableConfig) -> Checkpoint | None:
        """`get`, awaited."""
        found = await self.aget_tuple(config)
        return found.checkpoint if found else None

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`get_tuple`, awaited."""
        raise NotImplementedError

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """`list`, as an async iterator."""
        raise NotImplementedError
        yield  # makes it an async generator

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """`get_delta_channel_history`, awaited."""
        walk = DeltaWalk(channels)
        found = await self.aget_tuple(config) if channels else None
        while parent := walk.parent_of(found):
            found = await self.aget_tuple(parent)
            walk.visit(found)
        return walk.result()

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """`put`, awaited."""
        raise NotImplementedError

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """`put_writes`, awaited."""
        raise NotImplementedError

    async def adelete_thread(self, thread_id: str) -> None:
        """`delete_thread`, awaited."""
        raise NotImplementedError

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """`delete_for_runs`, awaited."""
        raise NotImplementedError

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """`copy_thread`, awaited."""
        raise NotImplementedError

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`prune`, awaited."""
        raise NotImplementedError

    # ---- versions and types ----

    def get_next_version(self, current: V | None, channel: None) -> V:
        """A version greater than `current`. Whole numbers by default; a saver with text versions overrides
        this."""
        version: Any = current
        if isinstance(version, str):
            raise NotImplementedError("A saver with text versions has to implement get_next_version.")
        return cast(V, 1 if version is None else version + 1)

    def with_allowlist(self: S, extra_allowlist: Collection[tuple[str, ...] | type]) -> S:
        """A view of this saver whose serializer also revives these types; the saver itself if that changes
        nothing.

        Types as (module, class) names or as classes. The view shares all storage and attributes with the
        saver.
        """
        base = self.serde
        serde = _with_msgpack_allowlist(base, extra_allowlist)
        if serde is base:
            return self
        if _copies_itself(type(self)):
            clone = copy.copy(self)
            clone.__dict__["serde"] = serde
            return clone
        view = object.__new__(type(self))
        view.__dict__ = self.__dict__
        for cls in type(self).__mro__:
            for slot in _slots(cls):
                if hasattr(self, slot):
                    setattr(view, slot, getattr(self, slot))
        mine: View | None = getattr(self, "_view", None)
        before: Collection[tuple[str, ...] | type] = mine.allowlist if mine else ()
        view._view = View([*before, *extra_allowlist], self.__dict__.get("serde") or base, serde)
        return view


def _copies_itself(cls: type) -> bool:
    """Does a class of savers say itself how it is copied, or have a serializer of its own as a class
    attribute?"""
    owners = [base for base in cls.__mro__ if "serde" in base.__dict__]
    return hasattr(cls, "__copy__") or not isinstance(owners[0].__dict__["serde"], SerdeAttribute)


def _slots(cls: type) -> Sequence[str]:
    slots = cls.__dict__.get("__slots__", ())
    return [s for s in ((slots,) if isinstance(slots, str) else slots) if s not in _OWN_SLOTS]


# ---- what a saver offers beyond the contract ----


@runtime_checkable
class UnitOfWork(Protocol):
    """A saver that stores a checkpoint together with the writes that led to it, all or nothing.

    `writes` hang from the parent, the checkpoint in `config`. `metadata` is stored as it is: `put` is `commit` without
    writes, with the metadata that `get_checkpoint_metadata` makes of the config's and its own.
    """

    def commit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig: ...

    async def acommit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig: ...


_WRITERS = ("put", "put_writes", "aput", "aput_writes")


_offers: WeakKeyDictionary[type, dict[str, bool]] = WeakKeyDictionary()


def _keeps(cls: type, promise: str) -> bool:
    """Does the class that made the promise (defines that name) also have the last word on every writing
    method?"""
    known = _offers.setdefault(cls, {})
    if promise not in known:
        makers = [base for base in cls.__mro__ if promise in base.__dict__]
        below = cls.__mro__[: cls.__mro__.index(makers[0])] if makers else ()
        known[promise] = bool(makers) and not any(name in base.__dict__ for base in below for name in _WRITERS)
    return known[promise]


def has_unit_of_work(saver: object) -> bool:
    """May `commit` stand in for `put` and `put_writes`?

    Not if a subclass or somebody at run time replaced one of those: people do, to log, delay or count, and
    then must see every call.
    """
    return _keeps(type(saver), "commit") and not _patched(saver)


def saver_writes_inline(saver: object) -> bool:
    """Are the saver's methods so cheap that they may be called on the engine's own thread or loop?"""
    inline = getattr(type(saver), "writes_inline", False) is True
    return inline and _keeps(type(saver), "writes_inline") and not _patched(saver)


def _patched(saver: object) -> bool:
    attributes = getattr(saver, "__dict__", {})
    return any(name in attributes for name in _WRITERS)
