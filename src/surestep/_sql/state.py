"""The column `state` of a checkpoint: what changed since its parent, or now and then everything.

    [v, ts, updated, versions, gone, seen, values, rest], msgpack

    v, ts      of the checkpoint
    updated    `updated_channels`: an index into the names below, or a name; nil for None
    versions   [[version, name, name, ...], ...] of the channels that changed
    gone       names of the channels that aren't there any more
    seen       {node: [index or name of a channel, ...]}: it saw the versions that the parent has;
               {node: {channel: version}} otherwise; {node: nil}: it isn't there any more
    values     where the values of these channels are, in the order of the names (see pages)
    rest       other keys of the checkpoint, typed; or which of the usual ones are missing; nil as a rule

A version of ours, `%032d.0.%016d`, is stored as its two numbers; one of LangGraph's, which has more or fewer digits at
its end, as its number and those.

Rules
1. A row with depth 0 has the versions, sightings and values of all channels; one with depth n those that its parent, a
   row with depth n - 1 or 0, has differently.
2. A row is whole when its parent is not the row before it at the time, and when the rows that it would take to make it
   whole have become longer than a whole one (and longer than CHAIN_BYTES): so a step stores what it changes,
   and reading costs at most twice what the whole is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import ormsgpack

from surestep._sql.pages import Place
from surestep._sql.rows import EMPTY, join, split
from surestep.checkpoint.serde.base import CorruptValueError, SerializerProtocol

CHAIN_BYTES = 2048
_USUAL = ("v", "ts", "updated_channels", "channel_versions", "versions_seen")
_NAMED = frozenset({"id", "channel_values", *_USUAL})

Version = str | int | float


class State(NamedTuple):
    """A checkpoint's maps, whole. Never changed once made: others may share it.

    `stored`: the column as it lies in the database (see sealing); `data`: what it says; `chain`: the bytes it takes to
    make it whole, without those of the whole row; `whole`: of that.
    """

    id: str
    stored: bytes
    data: bytes
    depth: int
    chain: int
    whole: int
    versions: Mapping[str, Version]
    seen: Mapping[str, Mapping[str, Version]]
    values: Mapping[str, Place]


class Change(NamedTuple):
    """What a checkpoint changes in its parent's maps."""

    versions: dict[str, Version]
    gone: list[str]
    seen: dict[str, Any]


def whole(checkpoint: Mapping[str, Any]) -> Change:
    """A change that says everything."""
    return Change(dict(checkpoint.get("channel_versions") or {}), [], dict(checkpoint.get("versions_seen") or {}))


def difference(before: State, checkpoint: Mapping[str, Any], new: Mapping[str, Version], *, trusted: bool) -> Change:
    """What changed since `before`. `trusted`: no other versions than those of `new` did."""
    versions: Mapping[str, Version] = checkpoint.get("channel_versions") or {}
    known = before.versions
    changed = {name: versions[name] for name in new if name in versions}
    gone: list[str] = []
    if not trusted or len(versions) != len(known) + sum(name not in known for name in changed):
        for name, version in versions.items():
            if name not in changed and (name not in known or not _same(known[name], version)):
                changed[name] = version
        gone = [name for name in known if name not in versions]
    seen: Mapping[str, Any] = checkpoint.get("versions_seen") or {}
    differs = {}
    if seen != before.seen or not trusted:
        for node, saw in seen.items():
            earlier = before.seen.get(node)
            if saw is not earlier and (earlier is None or not _same_map(saw, earlier)):
                differs[node] = saw
        for node in before.seen:
            if node not in seen:
                differs[node] = None
    return Change(changed, gone, differs)


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and a == b)


def _same_map(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.keys() == b.keys() and all(_same(version, b[name]) for name, version in a.items())


def pack(
    serde: SerializerProtocol,
    checkpoint: Mapping[str, Any],
    change: Change,
    values: Mapping[str, Place],
    before: State | None,
) -> bytes:
    """The column. `before`: what the change is relative to; None when it says everything."""
    return _encode(
        (checkpoint.get("v"), checkpoint.get("ts"), checkpoint.get("updated_channels")),
        change,
        values,
        before,
        _rest(serde, checkpoint),
    )


def _encode(
    about: tuple[Any, Any, Any], change: Change, values: Mapping[str, Place], before: State | None, rest: Any
) -> bytes:
    v, ts, updated = about
    groups: dict[Any, list[str]] = {}
    for name, version in change.versions.items():
        groups.setdefault((type(version), version), []).append(name)
    names = [name for group in groups.values() for name in group]
    position = {name: index for index, name in enumerate(names)}
    return ormsgpack.packb(
        [
            v,
            ts,
            None if updated is None else [position.get(name, name) for name in updated],
            [[_short(version), *group] for (_, version), group in groups.items()],
            change.gone,
            {node: _pack_seen(saw, before, position) for node, saw in change.seen.items()},
            [values.get(name, EMPTY) for name in names],
            rest,
        ]
    )


def _pack_seen(saw: Mapping[str, Version] | None, before: State | None, position: Mapping[str, int]) -> Any:
    if saw is None:
        return None
    if before is not None and all(
        name in before.versions and _same(before.versions[name], v) for name, v in saw.items()
    ):
        return [position.get(name, name) for name in saw]
    return {name: _short(version) for name, version in saw.items()}


def _rest(serde: SerializerProtocol, checkpoint: Mapping[str, Any]) -> Any:
    if len(checkpoint) == len(_NAMED) and _NAMED <= checkpoint.keys():
        return None
    missing = [name for name in _USUAL if name not in checkpoint]
    more = {name: value for name, value in checkpoint.items() if name not in _NAMED}
    return [missing, join(serde.dumps_typed(more)) if more else None]


def unpack(id: str, depth: int, stored: bytes, data: bytes, before: State | None) -> State:
    """The maps of a checkpoint, given those of its parent where `depth` isn't 0."""
    try:
        _, _, _, groups, gone, seen, places, _ = ormsgpack.unpackb(data)
    except (TypeError, ValueError) as error:
        raise CorruptValueError(f"The stored bytes are damaged or cut off: {error}") from None
    versions: dict[str, Version] = {}
    sightings: dict[str, Mapping[str, Version]] = {}
    values: dict[str, Place] = {}
    if depth:
        assert before is not None
        versions.update(before.versions)
        sightings.update(before.seen)
        values.update(before.values)
    names = []
    for packed, *group in groups:
        version = _long(packed)
        names += group
        for name in group:
            versions[name] = version
    values.update(zip(names, places, strict=True))
    for name in gone:
        versions.pop(name, None)
        values.pop(name, None)
    for node, saw in seen.items():
        if saw is None:
            sightings.pop(node, None)
        elif isinstance(saw, dict):
            sightings[node] = {name: _long(version) for name, version in saw.items()}
        else:
            assert before is not None
            keys = [names[key] if isinstance(key, int) else key for key in saw]
            sightings[node] = {name: before.versions[name] for name in keys}
    chain = before.chain + len(data) if depth and before else 0
    whole = before.whole if depth and before else len(data)
    return State(id, stored, data, depth, chain, whole, versions, sightings, values)


def body(serde: SerializerProtocol, state: State) -> dict[str, Any]:
    """The checkpoint without its values."""
    v, ts, updated, rest = _about(state.data)
    found: dict[str, Any] = {
        "v": v,
        "ts": ts,
        "id": state.id,
        "channel_versions": dict(state.versions),
        "versions_seen": {node: dict(saw) for node, saw in state.seen.items()},
        "updated_channels": updated,
    }
    if rest is not None:
        missing, more = rest
        for name in missing:
            del found[name]
        if more is not None:
            found.update(serde.loads_typed(split(more)))
    return found


def _about(data: bytes) -> tuple[Any, Any, list[str] | None, Any]:
    v, ts, updated, groups, _, _, _, rest = ormsgpack.unpackb(data)
    if updated is not None:
        names = [name for _, *group in groups for name in group]
        updated = [names[entry] if isinstance(entry, int) else entry for entry in updated]
    return v, ts, updated, rest


def made_whole(state: State) -> bytes:
    """The column of a checkpoint that says everything."""
    v, ts, updated, rest = _about(state.data)
    change = Change({**state.versions}, [], {**state.seen})
    return _encode((v, ts, updated), change, state.values, None, rest)


def places(data: bytes) -> list[Place]:
    """The places that a column mentions."""
    found: list[Place] = ormsgpack.unpackb(data)[6]
    return found


def moved(data: bytes, move: Callable[[Place], Place]) -> bytes:
    """The column with other places."""
    parts = ormsgpack.unpackb(data)
    parts[6] = [move(place) for place in parts[6]]
    return ormsgpack.packb(parts)


def _short(version: Version) -> Any:
    if type(version) is str and version[32:35] == ".0.":
        count, tie = version[:32], version[35:]
        if count.isdecimal() and version.isascii() and count.startswith("0000000000000"):
            return [int(count), int(tie) if len(tie) == 16 and tie.isdecimal() else tie]
    return version


def _long(packed: Any) -> Version:
    if type(packed) is list:
        count, tie = packed
        if type(tie) is str:
            return f"{count:032}.0.{tie}"
        return "%032d.0.%016d" % (count, tie)  # noqa: UP031 - faster than an f-string
    return packed  # type: ignore[no-any-return]
