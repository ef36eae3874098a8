"""What one commit adds to the dictionaries of the saver in memory, serialized.

Rules
1. A checkpoint with many channels or nodes is stored as what it changes in its parent's: `SINCE` is the parent's id,
   `channel_versions` and `versions_seen` have what differs. Every other one is stored whole.
2. At most `LONGEST` rows lie between such a row and a whole one, so that reading costs little more than the whole.
3. A value that was written, or that several channels hold, is serialized once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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

Known = dict[int, Typed]
"""What was serialized, by the identity of the objects. Whoever holds it keeps the objects alive."""

SINCE = "__surestep_since"
MANY = 64
LONGEST = 50

_special = WRITES_IDX_MAP.get


def rows_of(dumps: Dumps, writes: Iterable[TaskWrites], known: Known) -> Writes:
    """The rows of tasks' writes. `known` grows by what was serialized."""
    rows: Writes = {}
    channel = ""
    try:
        for task_id, path, of_task in writes:
            for position, (channel, value) in enumerate(of_task):
                key = id(value)
                if channel == ERROR:
                    typed = dumps(as_text(value))
                elif key in known:
                    typed = known[key]
                else:
                    typed = known[key] = dumps(value)
                rows[task_id, _special(channel, position)] = (task_id, channel, typed, path)
    except SerializationError as error:
        raise error.within(f"Channel {channel!r}") from error
    return rows


def values_of(dumps: Dumps, versions: Iterable[str], values: Mapping[str, Any], known: Known) -> list[Typed]:
    """The values of channels that have a new version, in their order; `EMPTY` for one that has lost its value."""
    found: list[Typed] = []
    channel = ""
    try:
        for channel in versions:
            typed = EMPTY
            if channel in values:
                key = id(values[channel])
                if key in known:
                    typed = known[key]
                else:
                    typed = known[key] = dumps(values[channel])
            found.append(typed)
    except SerializationError as error:
        raise error.within(f"Channel {channel!r}") from error
    return found


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
