"""What is saved: the shapes of a checkpoint and what goes with it, and the functions that make them."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NotRequired, TypedDict, cast

from surestep.checkpoint.base.id import next_checkpoint_id
from surestep.checkpoint.serde.types import ERROR, INTERRUPT, RESUME, SCHEDULED, ChannelProtocol

if TYPE_CHECKING:
    from surestep.types import RunnableConfig

LATEST_VERSION: Final = 4

ChannelVersions = dict[str, str | int | float]
"""Channel name → version. Versions of one saver compare with each other and say nothing else."""

PendingWrite = tuple[str, str, Any]
"""(task id, channel, value)."""

WRITES_IDX_MAP: Final = {ERROR: -1, SCHEDULED: -2, INTERRUPT: -3, RESUME: -4}
"""The index that a write to one of these is stored under; any other write's index is its position."""

EXCLUDED_METADATA_KEYS: Final = frozenset(
    {
        "thread_id",
        "checkpoint_id",
        "checkpoint_ns",
        "checkpoint_map",
        "langgraph_step",
        "langgraph_node",
        "langgraph_triggers",
        "langgraph_path",
        "langgraph_checkpoint_ns",
    }
)
"""Keys of a config that say where a checkpoint stands; they are columns and not metadata."""

METADATA_KEYS: Final = frozenset({"run_id", "assistant_id", "graph_id"})
"""Keys of `configurable` that are put into the metadata without being listed: ids of what runs."""

HEAD_KEY: Final = "__surestep_head"
CLAIM_KEY: Final = "__surestep_claim"
SEEN_KEY: Final = "__surestep_seen"


class CheckpointMetadata(TypedDict, total=False):
    """What is known about how a checkpoint came to be. Scalars of the run's config are added when it is
    saved.

    `source`: the input of a run, a step of it, `update_state`, or a fork of another checkpoint. `step`: -1
    for the first input, 0 for the first step, and on. `parents`: namespace → checkpoint id of the enclosing
    graphs.
    """

    source: Literal["input", "loop", "update", "fork"]
    step: int
    parents: dict[str, str]
    run_id: str
    counters_since_delta_snapshot: dict[str, tuple[int, int]]


class Checkpoint(TypedDict):
    """The state of a graph between two steps.

    `v`: the format. `id`: sorts after the ids of the checkpoints before it. `ts`: ISO 8601, UTC.
    `channel_values`: the channels that have a value. `channel_versions`: every channel that ever had one.
    `versions_seen`: for each node the versions that it last ran with. `updated_channels`: what the step
    changed, sorted; None when unknown. Those of formats before 4 may also have `pending_sends`, a list of packets.
    """

    v: int
    id: str
    ts: str
    channel_values: dict[str, Any]
    channel_versions: ChannelVersions
    versions_seen: dict[str, ChannelVersions]
    updated_channels: list[str] | None


class CheckpointTuple(NamedTuple):
    """A checkpoint as a saver gives it back, with what belongs to it.

    `pending_writes`: writes of tasks that ran from this checkpoint, in replay order (task path, task id,
    index).
    """

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent_config: RunnableConfig | None = None
    pending_writes: list[PendingWrite] | None = None


class DeltaChannelHistory(TypedDict):
    """What a delta channel's value is made of: the writes, oldest first, on top of `seed` (absent: of
    nothing)."""

    writes: list[PendingWrite]
    seed: NotRequired[Any]


class TaskWrites(NamedTuple):
    """The writes of one task, for `commit`."""

    task_id: str
    task_path: str
    writes: Sequence[tuple[str, Any]]


def empty_checkpoint() -> Checkpoint:
    """The checkpoint of a thread that nothing happened in yet. Its id is new at each call."""
    return Checkpoint(
        v=LATEST_VERSION,
        id=next_checkpoint_id(-2, None),
        ts=datetime.now(UTC).isoformat(),
        channel_values={},
        channel_versions={},
        versions_seen={},
        updated_channels=None,
    )


def copy_checkpoint(checkpoint: Checkpoint) -> Checkpoint:
    """A copy whose maps may be changed without changing the original's; the channel values are shared."""
    copy: dict[str, Any] = dict(checkpoint)
    copy["channel_values"] = dict(checkpoint["channel_values"])
    copy["channel_versions"] = dict(checkpoint["channel_versions"])
    copy["versions_seen"] = {node: dict(seen) for node, seen in checkpoint["versions_seen"].items()}
    if copy.get("pending_sends"):
        copy["pending_sends"] = list(copy["pending_sends"])
    return cast(Checkpoint, copy)


def create_checkpoint(
    checkpoint: Checkpoint,
    channels: Mapping[str, ChannelProtocol[Any, Any, Any]] | None,
    step: int,
    *,
    id: str | None = None,
) -> Checkpoint:
    """The checkpoint that follows `checkpoint`: same versions, and the values that `channels` hold now.

    Channels without a version are left out; without `channels` the values stay as they are. `id`: its id,
    by default a new one that is greater than the given checkpoint's.
    """
    values = checkpoint["channel_values"]
    if channels is not None:
        from surestep.channels.base import MISSING

        stored = {name: channels[name].checkpoint() for name in checkpoint["channel_versions"] if name in channels}
        values = {name: value for name, value in stored.items() if value is not MISSING}
    return Checkpoint(
        v=LATEST_VERSION,
        id=id or next_checkpoint_id(step, checkpoint["id"]),
        ts=datetime.now(UTC).isoformat(),
        channel_values=values,
        channel_versions=checkpoint["channel_versions"],
        versions_seen=checkpoint["versions_seen"],
        updated_channels=None,
    )


def writes_sort_key(task_path: str, task_id: str = "", idx: int = 0) -> tuple[str, str, int]:
    """What pending writes are sorted by, so that they are replayed in the order in which they were made."""
    return task_path, task_id, idx


def get_checkpoint_id(config: Mapping[str, Any]) -> str | None:
    """The checkpoint that a config addresses; None when it means the latest."""
    return cast("str | None", config["configurable"].get("checkpoint_id"))


_SCALARS = (str, int, bool, float)


def get_checkpoint_metadata(
    config: Mapping[str, Any], metadata: CheckpointMetadata, *, listed: Collection[str] = ()
) -> CheckpointMetadata:
    """The metadata to save: the given one plus the scalars of the config's metadata and some of configurable.

    Of `configurable` only what is `listed` (and METADATA_KEYS): people pass tokens and keys there, and what is saved
    can be read by whoever reads the database. Keys that say where the checkpoint stands and private keys (starting with
    two underscores) are left out; NUL characters, which PostgreSQL can't store, are removed from texts.
    """
    merged: dict[str, Any] = {**metadata}
    labels, configurable = config.get("metadata") or {}, config.get("configurable") or {}
    unlisted = configurable.keys() - METADATA_KEYS - set(listed)
    copied = {key for key in unlisted & labels.keys() if labels[key] == configurable[key]}
    for source, hidden in ((labels, copied if copied and _langchain_copies() else ()), (configurable, unlisted)):
        for key, value in source.items():
            if key in EXCLUDED_METADATA_KEYS or key in merged or key[:2] == "__" or key in hidden:
                continue
            if isinstance(value, _SCALARS):
                merged[key] = value
    for key, value in merged.items():
        if isinstance(value, str) and "\0" in value:
            merged[key] = value.replace("\0", "")
    return cast(CheckpointMetadata, merged)


def get_serializable_checkpoint_metadata(
    config: Mapping[str, Any], metadata: CheckpointMetadata, *, listed: Collection[str] = ()
) -> CheckpointMetadata:
    """The metadata to save, without the key "writes", where very old versions put whole node outputs."""
    merged = cast("dict[str, Any]", get_checkpoint_metadata(config, metadata, listed=listed))
    merged.pop("writes", None)
    return cast(CheckpointMetadata, merged)


def _langchain_copies() -> bool:
    """Whether the LangChain in use copies `configurable` into the metadata of what a runnable calls, as earlier
    versions did: then an entry that stands in both may not be meant to be saved."""
    module = sys.modules.get("langchain_core.runnables.config")
    if module is None:
        return False
    return "probe" in module.ensure_config({"configurable": {"probe": 1}})["metadata"]


_FILTER_KEY = re.compile(r"[\w.:/@ +-]+")


def check_filter(filter: Mapping[str, Any] | None) -> None:
    """ValueError for a key that can't be a metadata key: one with quotes, brackets and the like."""
    for key in filter or ():
        if not _FILTER_KEY.fullmatch(key):
            raise ValueError(
                f"Invalid filter key: {key!r}. A key is made of letters, digits and _ - . : / @ + and "
                "spaces; a dot also leads into nested metadata."
            )


def check_limit(limit: int | None) -> None:
    """ValueError for a negative limit; None is no limit and 0 gives nothing."""
    if limit is not None and (type(limit) is not int or limit < 0):
        raise ValueError(f"limit must be None or an int of at least 0, not {limit!r}.")


def matches(metadata: Mapping[str, Any], filter: Mapping[str, Any]) -> bool:
    """Does the metadata have every (key, value) of the filter? A missing key equals None; "a.b" also means
    b in a."""
    return all(_look_up(metadata, key) == value for key, value in filter.items())


def _look_up(metadata: Mapping[str, Any], key: str) -> Any:
    if key in metadata or "." not in key:
        return metadata.get(key)
    head, rest = key.split(".", 1)
    inner = metadata.get(head)
    return _look_up(inner, rest) if isinstance(inner, Mapping) else None
