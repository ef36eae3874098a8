"""What one commit adds to the dictionaries of the saver in memory, serialized.

Rules
1. A checkpoint with many channels or nodes is stored as what it changes in its parent's: `SINCE` is the parent's id,
   `channel_versions` and `versions_seen` have what differs. Every other one is stored whole.
2. At most `LONGEST` rows lie between such a row and a whole one, so that reading costs little more than the whole.
3. A value that was written, or that several channels hold, is serialized once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, repeat
from typing import TYPE_CHECKING, Any

from surestep.checkpoint.base._shared import EMPTY, Typed, as_text
from surestep.checkpoint.base._types import SEEN_KEY, WRITES_IDX_MAP
from surestep.checkpoint.serde.base import SerializationError
from surestep.checkpoint.serde.types import ERROR

if TYPE_CHECKING:
    from surestep.checkpoint.base import Checkpoint, TaskWrites
    from surestep.checkpoint.serde.base import SerializerProtocol

Dumps = Callable[[Any], Typed]
Row = tuple[Typed, Typed, str | None]
"""A stored checkpoint: itself without its channel values, its metadata, its parent's id."""
Write = tuple[str, str, Typed, str]
"""A stored write: task id, channel, value, task path."""
Writes = dict[tuple[str, int], Write]
Blobs = dict[tuple[str, str, str, Any], Typed]

SINCE = "__surestep_since"
MANY = 64
LONGEST = 50

_special = WRITES_IDX_MAP.get


class Once:
    """Serializes an object that it meets again only once. Whoever has one keeps the objects alive."""

    __slots__ = ("dumps", "known")

    def __init__(self, dumps: Dumps) -> None:
        self.dumps = dumps
        self.known: dict[int, Typed] = {}

    def writes(self, writes: Iterable[TaskWrites]) -> Writes:
        """The rows of tasks' writes."""
        rows: Writes = {}
        for task_id, path, of_task in writes:
            self.add(rows, task_id, path, of_task)
        return rows

    def add(self, rows: Writes, task_id: str, path: str, writes: Sequence[tuple[str, Any]]) -> None:
        """Add the rows of one task's writes."""
        channels = [channel for channel, _ in writes] if len(writes) > MANY else []
        if channels and WRITES_IDX_MAP.keys().isdisjoint(channels):
            # A run's input may have thousands: rows without a round of the interpreter for each.
            typed = self._typed(channels, [value for _, value in writes])
            found = zip(repeat(task_id), channels, typed, repeat(path), strict=False)
            rows.update(zip(zip(repeat(task_id), count(), strict=False), found, strict=False))
            return
        dumps, known, channel = self.dumps, self.known, ""
        try:
            for position, (channel, value) in enumerate(writes):
                if channel == ERROR:
                    rows[task_id, _special(channel, position)] = (task_id, channel, dumps(as_text(value)), path)
                    continue
                key = id(value)
                if key not in known:
                    known[key] = dumps(value)
                rows[task_id, _special(channel, position)] = (task_id, channel, known[key], path)
        except SerializationError as error:
            raise error.within(f"Channel {channel!r}") from error

    def values(self, thread_id: str, ns: str, versions: Mapping[str, Any], values: Mapping[str, Any]) -> Blobs:
        """The values of channels that have a new version; `EMPTY` for one that has lost its value."""
        if len(versions) > MANY:
            typed = dict.fromkeys(versions, EMPTY)
            there = [channel for channel in versions if channel in values]
            typed.update(zip(there, self._typed(there, [values[channel] for channel in there]), strict=True))
            places = zip(repeat(thread_id), repeat(ns), versions, versions.values(), strict=False)
            return dict(zip(places, typed.values(), strict=True))
        blobs: Blobs = {}
        dumps, known, channel = self.dumps, self.known, ""
        try:
            for channel, version in versions.items():
                if channel not in values:
                    blobs[thread_id, ns, channel, version] = EMPTY
                    continue
                value = values[channel]
                key = id(value)
                if key not in known:
                    known[key] = dumps(value)
                blobs[thread_id, ns, channel, version] = known[key]
        except SerializationError as error:
            raise error.within(f"Channel {channel!r}") from error
        return blobs

    def _typed(self, channels: Sequence[str], values: Sequence[Any]) -> Iterable[Typed]:
        """Many values, serialized."""
        known, ids = self.known, list(map(id, values))
        for position, key in enumerate(ids):
            if key not in known:
                try:
                    known[key] = self.dumps(values[position])
                except SerializationError as error:
                    raise error.within(f"Channel {channels[position]!r}") from error
        return map(known.__getitem__, ids)


def whole(checkpoint: Checkpoint) -> dict[str, Any]:
    """The checkpoint as it is stored: without its values."""
    body: dict[str, Any] = {**checkpoint}
    del body["channel_values"]
    return body


def is_wide(checkpoint: Checkpoint) -> bool:
    """Whether it is worth while to store only what changed."""
    return len(checkpoint["channel_versions"]) > MANY or len(checkpoint["versions_seen"]) > MANY


def changed(checkpoint: Checkpoint, new_versions: Mapping[str, Any], configurable: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoint as it is stored: as what it changes in its parent's."""
    body, seen = whole(checkpoint), checkpoint["versions_seen"]
    body["channel_versions"] = new_versions
    body["versions_seen"] = {node: seen[node] for node in configurable[SEEN_KEY]}
    body[SINCE] = configurable["checkpoint_id"]
    return body


def made_whole(loads: Callable[[Typed], Any], checkpoints: Mapping[str, Row], id: str) -> dict[str, Any]:
    """A stored checkpoint, with the maps of those that it says the changes of."""
    body: dict[str, Any] = loads(checkpoints[id][0])
    if SINCE not in body:
        return body
    later = [body]
    while (since := later[-1].get(SINCE)) is not None:
        later.append(loads(checkpoints[since][0]))
    versions: dict[str, Any] = {}
    seen: dict[str, Any] = {}
    for change in reversed(later):
        versions.update(change["channel_versions"])
        seen.update(change["versions_seen"])
    del body[SINCE]
    body["channel_versions"], body["versions_seen"] = versions, seen
    return body


def make_whole(serde: SerializerProtocol, checkpoints: dict[str, Row], stay: Iterable[str]) -> None:
    """Make rows whole that stay when those that they say the changes of go."""
    for id in stay:
        if SINCE in serde.loads_typed(checkpoints[id][0]):
            body = made_whole(serde.loads_typed, checkpoints, id)
            checkpoints[id] = (serde.dumps_typed(body), *checkpoints[id][1:])
