"""The checkpoint a run stands on, in memory: channels, their versions, and what each node has seen of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from operator import is_
from typing import Any

from surestep._core.blueprint import MANY, TASKS, Blueprint
from surestep._core.isolate import COPIED, PLAIN, ListCopies, Maker, isolate, needs_isolation
from surestep.channels.base import MISSING, BaseChannel
from surestep.channels.last_value import LastValue
from surestep.errors import EmptyChannelError
from surestep.types import Send

FORMAT = 4  # the `v` of the checkpoints we write
Mint = Callable[[int, "str | None"], str]  # (step, id to be greater than) -> a new checkpoint id
MAX_VIEWS = 64  # kept by a run: each costs a little at every step


class Channels(dict[str, BaseChannel[Any, Any, Any]]):
    """A run's channels, each made when somebody first asks for it: a run touches few of many.

    One that has not been made is its value in `saved`, where it has one. A value may be put there for channels of
    `plain`, which hold what was written last, and have a value for ever once they have one.
    """

    __slots__ = ("plain", "saved", "specs")

    def __init__(
        self,
        specs: Mapping[str, BaseChannel[Any, Any, Any]],
        saved: Mapping[str, Any] | None = None,
        plain: AbstractSet[str] = frozenset(),
    ) -> None:
        self.specs = specs
        self.saved = dict(saved or ())
        self.plain = plain

    def __missing__(self, key: str) -> BaseChannel[Any, Any, Any]:
        channel = self[key] = self.specs[key].from_checkpoint(self.saved.get(key, MISSING))
        if key in self.saved:
            self.saved[key] = None  # it keeps its place, and nothing alive
        return channel

    def value(self, key: str) -> Any:
        """A channel's value, or MISSING."""
        return self.saved.get(key, MISSING) if key in self.plain and key not in self else channel_value(self[key])


class View:
    """Some channels' values as a dict that follows the channels, so that reading costs a copy and no walk."""

    __slots__ = ("keys", "lists", "loose", "order", "values")

    def __init__(self, order: tuple[str, ...], channels: Channels) -> None:
        self.order = order
        self.keys = frozenset(order)
        self.values: dict[str, Any] = {}
        self.loose: dict[str, Maker] = {}  # keys whose values a holder could change in place: what copies them
        self.lists: dict[str, ListCopies] = {}  # of those that are lists of containers
        self.rebuild(channels)

    def rebuild(self, channels: Channels) -> None:
        self.loose.clear()
        saved, made = channels.saved, channels.keys() & self.keys
        if channels.plain >= self.keys and saved.keys() >= made:
            # The input of a graph usually has the keys in their order: then a copy will do.
            as_it_is = len(saved) == len(self.order) and tuple(saved) == self.order
            self.values = saved.copy() if as_it_is else {key: saved[key] for key in self.order if key in saved}
            for key in made:
                self.values[key] = channels[key].get()
        else:
            self.values = {key: value for key in self.order if (value := channels.value(key)) is not MISSING}
        if not PLAIN.issuperset(map(type, self.values.values())):
            for key, value in self.values.items():
                self._set(key, value)

    def _set(self, key: str, value: Any) -> None:
        self.values[key] = value
        kind = type(value)
        if kind in PLAIN or not needs_isolation(value):
            self._tight(key)
        elif kind is list and COPIED.isdisjoint(map(type, value)):
            self.loose[key] = value.copy
        elif kind is list:
            if key not in self.lists:
                self.lists[key] = ListCopies()
            self.lists[key].take(value)
            self.loose[key] = self.lists[key].copy
        else:
            self.loose[key] = partial(isolate, value)

    def _tight(self, key: str) -> None:
        """Nobody could change the key's value in place."""
        if key in self.loose:
            del self.loose[key]
            self.lists.pop(key, None)

    def follow(self, changed: AbstractSet[str], channels: Channels) -> None:
        """Take over the values of channels that changed. Keys stay in the order of the schema."""
        values = self.values
        if len(changed) > MANY:
            self.rebuild(channels)
            return
        for key in self.keys & changed:
            channel = channels[key]
            value = channel.value if type(channel) is LastValue else channel_value(channel)
            if value is MISSING:
                values.pop(key, None)
                self._tight(key)
            elif key in values:
                self._set(key, value)
            else:
                self.rebuild(channels)  # a new key: rare, and it has its place in the order
                return

    def in_order(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The same values in the order of the schema: a key that somebody is the first to write has its place too."""
        return {key: found[key] for key in self.order if key in found}

    def copy(self, written: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The values, for somebody who may do with them what they like. `written`: keys that get others anyway."""
        values = self.values.copy()
        for key, copy in self.loose.items():
            if not written or key not in written:
                values[key] = copy()
        return values

    def isolated(self, key: str, value: Any) -> Any:
        """A value that its channel may have next, for somebody who may do with it what they like."""
        if type(value) is list and key in self.lists:
            return self.lists[key].copy_of(value)
        return isolate(value)


def without_keys(packet: Any, keys: frozenset[str]) -> Any:
    """A sent packet without these keys in its argument; anything else as it is."""
    arg = getattr(packet, "arg", None)
    if isinstance(arg, dict) and isinstance(packet, Send) and not keys.isdisjoint(arg):
        return Send(packet.node, {k: v for k, v in arg.items() if k not in keys}, timeout=packet.timeout)
    return packet


def channel_value(channel: BaseChannel[Any, Any, Any]) -> Any:
    try:
        return channel.get()
    except EmptyChannelError:
        return MISSING


class Anchor:
    """One checkpoint's identity: what ids of tasks are made from. The id is minted when somebody asks for it."""

    __slots__ = ("_bytes", "_ids", "_mint", "format", "ns", "parent_id", "step")

    def __init__(self, ns: str, step: int, parent_id: str | None, mint: Mint, format: int = FORMAT) -> None:
        self.ns = ns
        self.step = step
        self.parent_id = parent_id
        self.format = format
        self._mint = mint
        self._bytes: bytes | None = None
        self._ids: dict[int, str] = {}  # holds one id: `setdefault` lets one of several threads decide

    @property
    def id(self) -> str:
        """The checkpoint's id; whichever thread asks first decides."""
        found = self._ids.get(0)
        return found if found is not None else self._ids.setdefault(0, self._mint(self.step, self.parent_id))

    @property
    def id_bytes(self) -> bytes:
        """The id as the 16 bytes that ids of tasks are hashed from."""
        if self._bytes is None:
            self._bytes = bytes.fromhex((self._ids.get(0) or self.id).replace("-", ""))
        return self._bytes

    def known_id(self) -> str | None:
        """The id, if anybody has asked for it."""
        return self._ids.get(0)

    @classmethod
    def stored(cls, ns: str, step: int, checkpoint_id: str, mint: Mint, format: int) -> Anchor:
        anchor = cls(ns, step, None, mint, format)
        anchor._ids[0] = checkpoint_id
        return anchor


class Head:
    """What the next step is planned from."""

    __slots__ = (
        "ahead",
        "anchor",
        "channels",
        "dirty",
        "following",
        "live",
        "looked",
        "mint",
        "next_version",
        "ns",
        "seen",
        "top",
        "untracked",
        "updated",
        "versions",
        "views",
    )

    def __init__(
        self,
        ns: str,
        channels: Channels,
        next_version: Callable[[Any, None], Any],
        mint: Mint,
    ) -> None:
        self.ns = ns
        self.channels = channels
        self.versions: dict[str, Any] = {}
        self.seen: dict[str, dict[str, Any]] = {}
        self.updated: Collection[str] | None = None  # channels that changed in the last step, if known
        # channels that changed since the last commit, with their versions; None: nothing will be committed
        self.dirty: dict[str, Any] | None = {}
        self.looked: set[str] | None = set()  # nodes that saw something since the last commit; None: any may have
        self.live: set[str] = set()  # available channels that a step without writes may change
        self.top: Any = None  # the greatest version
        self.next_version = next_version
        self.following: list[View] = []  # they hear of every change
        self.views: dict[int, tuple[tuple[str, ...], View]] = {}  # by the id of a tuple of keys, which is kept alive
        self.mint = mint
        self.untracked: frozenset[str] = frozenset()  # keys that are never stored
        self.ahead: dict[str, tuple[list[Any], BaseChannel[Any, Any, Any]]] = {}  # what routers of this step saw
        self.anchor = Anchor(ns, -2, None, mint)

    def advance(self, step: int, after: str | None) -> None:
        """Stand on the next checkpoint, whose id will be greater than `after`."""
        self.anchor = Anchor(self.ns, step, after, self.mint)

    def restore(self, checkpoint: Mapping[str, Any], blueprint: Blueprint) -> None:
        """Take versions and sightings from a stored checkpoint."""
        self.versions = dict(checkpoint["channel_versions"])
        self.seen = {name: dict(seen) for name, seen in checkpoint["versions_seen"].items()}
        self.updated = checkpoint.get("updated_channels")
        self.top = max(self.versions.values(), default=None)
        channels, saved = self.channels, self.channels.saved
        maybe = [key for key in blueprint.silent if key in saved or key in channels or key not in blueprint.fleeting]
        self.live = {key for key in maybe if channels[key].is_available()}

    def bump(self) -> Any:
        """The version of everything that changes now."""
        self.top = self.next_version(self.top, None)
        return self.top

    def note(self, changed: AbstractSet[str], more: Mapping[str, Any] | None = None) -> None:
        """These channels have changed: they get the new version, and the views their values.

        `more`: further ones, in an order that is the same in every process, for it is stored.
        """
        now = dict.fromkeys(sorted(changed), self.top)
        if more:
            now = {**dict.fromkeys(more, self.top), **now}
            changed = now.keys()
        self.versions.update(now)
        if self.dirty is not None:
            self.dirty.update(now)
        for view in self.following:
            view.follow(changed, self.channels)

    def view(self, select: Sequence[str]) -> View:
        """The view of these keys. Nodes and routers ask with the same tuple each time, and hashing it costs more."""
        known = self.views.get(id(select))
        return known[1] if known is not None else self._find_view(select)

    def _find_view(self, select: Sequence[str]) -> View:
        order = tuple(select)
        found = next((view for view in self.following if view.order == order), None)
        if found is None:
            found = View(order, self.channels)
            if len(self.following) == MAX_VIEWS:
                return found
            self.following.append(found)
        if order is select and len(self.views) < MAX_VIEWS:
            self.views[id(select)] = order, found
        return found

    def folded(self, key: str, values: Sequence[Any]) -> BaseChannel[Any, Any, Any] | None:
        """The channel with these values folded in, if a router has asked for just that: a reducer may be dear."""
        before = self.ahead.get(key)
        if before is None or len(before[0]) != len(values):
            return None
        return before[1] if all(map(is_, before[0], values)) else None

    def look_again(self) -> None:
        """Channels were changed behind the views' backs."""
        self.following.clear()
        self.views.clear()

    def read(self, select: str | Sequence[str]) -> Any:
        """One channel's value (None when it has none), or a dict of those that have one."""
        if isinstance(select, str):
            value = self.channels.value(select) if select in self.channels.specs else MISSING
            return None if value is MISSING else isolate(value)
        return self.view(select).copy()

    def fresh(self, select: str | Sequence[str], writes: Sequence[tuple[str, Any]]) -> Any:
        """As `read`, with a task's own writes folded in, on copies."""
        if isinstance(select, str):
            return self._fresh_one(select, writes)
        view, mine = self.view(select), dict(writes)
        found = view.copy(mine)
        keys = view.keys
        if len(mine) < len(writes):
            return self._fresh_of_many(view, found, writes)
        for key, value in mine.items():
            if key in keys:
                channel = self.channels[key]
                if type(channel) is LastValue:
                    found[key] = value if type(value) in PLAIN else isolate(value)
                else:
                    self._look_ahead(view, found, key, [value])
        return found if len(found) == len(view.values) else view.in_order(found)

    def _fresh_of_many(self, view: View, found: dict[str, Any], writes: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        """The same for writes of which several go to one channel."""
        mine: dict[str, list[Any]] = {}
        for key, value in writes:
            if key in view.keys:
                mine.setdefault(key, []).append(value)
        for key, values in mine.items():
            self._look_ahead(view, found, key, values)
        return view.in_order(found)

    def _look_ahead(self, view: View, found: dict[str, Any], key: str, values: list[Any]) -> None:
        """Put in the value that a channel will have, and remember it: likely it is asked for again when the step is
        applied, and a reducer may be dear."""
        channel = self.channels[key].copy()
        channel.update(values)
        self.ahead[key] = values, channel
        if (value := channel_value(channel)) is not MISSING:
            found[key] = view.isolated(key, value)
        elif key in found:
            found[key] = isolate(found[key])

    def _fresh_one(self, key: str, writes: Sequence[tuple[str, Any]]) -> Any:
        mine = [value for written, value in writes if written == key]
        if not mine:
            return self.read(key)
        channel = self.channels[key].copy()
        channel.update(mine)
        value = channel_value(channel)
        return None if value is MISSING else isolate(value)

    def values_to_keep(self, names: Iterable[str]) -> dict[str, Any]:
        """Channel values as checkpoints hold them."""
        kept = {}
        channels = self.channels
        specs, saved, plain = channels.specs, channels.saved, channels.plain
        for name in names:
            if name in channels:
                value = channels[name].checkpoint()
            elif name in plain:
                value = saved.get(name, MISSING)
            else:
                value = channels[name].checkpoint() if name in specs else MISSING
            if value is not MISSING:
                kept[name] = value
        if self.untracked and TASKS in kept:
            kept[TASKS] = [without_keys(packet, self.untracked) for packet in kept[TASKS]]
        return kept


def has_value(value: Any) -> bool:
    return value is not MISSING
