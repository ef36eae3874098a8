"""Reading checkpoints: a row and those it builds on, then the pages and writes that belong to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from surestep._sql import pages, queries, state
from surestep._sql.dialect import Dialect
from surestep._sql.pages import Memo, Place
from surestep._sql.recall import Known, Recall
from surestep._sql.rows import EMPTY, Row, merge_writes, split, unpack_writes
from surestep._sql.sealing import Sealing
from surestep._sql.state import State
from surestep._sql.statement import Steps
from surestep.checkpoint.base import CheckpointTuple, DeltaChannelHistory
from surestep.checkpoint.base._shared import DeltaWalk, address, address_of
from surestep.checkpoint.base._types import matches
from surestep.checkpoint.serde.base import SerializationError

if TYPE_CHECKING:
    from surestep.checkpoint.serde.base import SerializerProtocol
    from surestep.types import RunnableConfig


class Desk(NamedTuple):
    """What a saver works with."""

    serde: SerializerProtocol
    dialect: Dialect
    recall: Recall
    seal: Sealing
    open: Sealing


ChainRow = Sequence[Any]
"""A row of queries.ROW: id, parent's id, depth, state, metadata."""


def get_tuple(desk: Desk, config: RunnableConfig) -> Steps[CheckpointTuple | None]:
    """The addressed checkpoint, or the latest of the thread and namespace."""
    thread_id, ns, id = address_of(config)
    known = desk.recall.get(thread_id, ns, id)
    if id:
        found = yield (queries.EXACT, (thread_id, ns, id)) if known else (queries.CHAIN, (thread_id, ns, id) * 2)
    else:
        found = yield (queries.LATEST, (thread_id, ns)) if known else (queries.LATEST_CHAIN, (thread_id, ns) * 2)
    if not found:
        return None
    made = yield from state_of(desk, thread_id, ns, found[0], found)
    loaded, memos = yield from _load(desk, thread_id, ns, found[0], made, config if id else None)
    desk.recall.keep(thread_id, ns, Known(made, memos))
    return loaded


def state_of(
    desk: Desk,
    thread_id: str,
    ns: str,
    row: ChainRow,
    others: Iterable[ChainRow] = (),
    made: dict[str, State] | None = None,
) -> Steps[State]:
    """The maps of the checkpoint in a row. `others`: the rows it builds on, as far as they were foreseen; `made`: maps
    that are known, and where those that were worked out are added."""
    made = {} if made is None else made
    there = {other[0]: other for other in others}
    climbed: list[ChainRow] = []
    found = None
    while found is None:
        known = desk.recall.get(thread_id, ns, row[0])
        found = known.state if known is not None and known.state.stored == row[3] else made.get(row[0])
        if found is not None:
            break
        climbed.append(row)
        if not row[2]:
            break
        if row[1] not in there:
            more = yield (queries.CHAIN, (thread_id, ns, row[1]) * 2)
            there.update({other[0]: other for other in more})
        row = there[row[1]]
    for id, _, depth, stored, _ in reversed(climbed):
        try:
            found = made[id] = state.unpack(id, depth, stored, desk.open(stored), found)
        except SerializationError as error:
            raise error.within(f"Checkpoint {id!r} of thread {thread_id!r}") from error
    assert found is not None
    return found


def whole_state(desk: Desk, thread_id: str, ns: str, id: str) -> Steps[State | None]:
    """The maps of a checkpoint, if it is there."""
    found = yield (queries.CHAIN, (thread_id, ns, id) * 2)
    return (yield from state_of(desk, thread_id, ns, found[0], found)) if found else None


def remember(desk: Desk, thread_id: str, ns: str, id: str) -> Steps[Known | None]:
    """What is known of a checkpoint when nothing was remembered; None when it isn't there."""
    made = yield from whole_state(desk, thread_id, ns, id)
    if made is None:
        return None
    lists = [(name, place) for name, place in made.values.items() if type(place) is list]
    there: dict[tuple[int, int], bytes] = {}
    if lists:
        wanted = pages.as_json(pages.wanted(place for _, place in lists))
        found = yield (desk.dialect.pages, (wanted, thread_id))
        there = {(log, page): desk.open(data) for log, page, data in found}
    return Known(made, _values(desk.serde.loads_typed, lists, there, thread_id)[1])


def _load(
    desk: Desk, thread_id: str, ns: str, row: ChainRow, made: State, config: RunnableConfig | None
) -> Steps[tuple[CheckpointTuple, dict[str, Memo]]]:
    """The checkpoint in a row, and what is known of its values then."""
    id, parent, _, _, metadata = row
    loads = desk.serde.loads_typed
    wanted = pages.as_json(pages.wanted(made.values.values()))
    found = yield (desk.dialect.read, (wanted, thread_id, *(thread_id, ns, id) * 2))
    try:
        there, writes = _sorted_out(desk.open, id, found)
        labels = loads(split(desk.open(metadata)))
    except SerializationError as error:
        raise error.within(f"Checkpoint {id!r} of thread {thread_id!r}") from error
    places = [pages.place_of_write(row[3]) for row in writes]
    if more := [range for range in pages.wanted(places) if not pages.has(there, range)]:
        found = yield (desk.dialect.pages, (pages.as_json(more), thread_id))
        there.update({(log, page): desk.open(data) for log, page, data in found})
    checkpoint = state.body(desk.serde, made)
    checkpoint["channel_values"], memos = _values(loads, made.values.items(), there, thread_id)
    loaded = CheckpointTuple(
        config or address(thread_id, ns, id),
        cast("Any", checkpoint),
        labels,
        address(thread_id, ns, parent) if parent else None,
        _pending(loads, writes, places, there, thread_id),
    )
    return loaded, memos


def _sorted_out(
    open: Sealing, id: str, found: Sequence[Sequence[Any]]
) -> tuple[dict[tuple[int, int], bytes], list[Row]]:
    """What queries.read gave: pages, and the writes of the checkpoint in replay order."""
    there: dict[tuple[int, int], bytes] = {}
    stored: list[Row] = []
    led: list[Row] = []
    for kind, number, page, name, channel, path, data in found:
        if kind == 0:
            there[number, page] = open(data)
        elif kind == 1:
            stored.append((name, number, channel, open(data), path))
        elif name == id and data is not None:
            led = unpack_writes(open(data))
    return there, merge_writes(stored, led)


def _values(
    loads: Callable[[Any], Any], places: Iterable[tuple[str, Place]], there: pages.Pages, thread_id: str
) -> tuple[dict[str, Any], dict[str, Memo]]:
    values: dict[str, Any] = {}
    memos: dict[str, Memo] = {}
    channel = ""
    try:
        for channel, place in places:
            if type(place) is list:
                values[channel], memos[channel] = pages.load(loads, place, there)
            elif place != EMPTY:
                values[channel] = loads(split(cast(bytes, place)))
    except SerializationError as error:
        raise error.within(f"Channel {channel!r} of thread {thread_id!r}") from error
    return values, memos


def _pending(
    loads: Callable[[Any], Any],
    writes: Sequence[Row],
    places: Sequence[Place],
    there: pages.Pages,
    thread_id: str,
) -> list[tuple[str, str, Any]]:
    pending = []
    channel = ""
    try:
        for (task, _, channel, _, _), place in zip(writes, places, strict=True):
            value = pages.load(loads, place, there)[0] if type(place) is list else loads(split(cast(bytes, place)))
            pending.append((task, channel, value))
    except SerializationError as error:
        raise error.within(f"Channel {channel!r} of thread {thread_id!r}") from error
    return pending


class Listing:
    """A walk through the checkpoints, newest first: the rows come in pages, each read on its own."""

    def __init__(
        self,
        desk: Desk,
        config: Mapping[str, Any] | None,
        filter: Mapping[str, Any],
        before: Mapping[str, Any] | None,
        limit: int | None,
    ) -> None:
        self._desk, self._filter = desk, filter
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
        together: dict[tuple[str, str], tuple[list[ChainRow], dict[str, State]]] = {}
        for thread_id, ns, *row in found:
            together.setdefault((thread_id, ns), ([], {}))[0].append(row)
        loaded = []
        for thread_id, ns, *row in found:
            if self._left == 0:
                break
            if self._filter and not self._matches(row[4]):
                continue
            others, made = together[thread_id, ns]
            maps = made.get(row[0]) or (yield from state_of(self._desk, thread_id, ns, row, others, made))
            loaded.append((yield from _load(self._desk, thread_id, ns, row, maps, None))[0])
            self._left = None if self._left is None else self._left - 1
        self.done = self._left == 0 or len(found) < size
        if not self.done:
            thread_id, ns, id = found[-1][:3]
            self._after = (id, thread_id, ns)
            self._size = min(self._size * 4, 1024)
        return loaded

    def _matches(self, metadata: bytes) -> bool:
        """The filter, here and not in the database: there the metadata may be sealed."""
        return matches(self._desk.serde.loads_typed(split(self._desk.open(metadata))), self._filter)


def delta_history(
    desk: Desk, config: RunnableConfig, channels: Sequence[str]
) -> Steps[Mapping[str, DeltaChannelHistory]]:
    """The writes that make up the channels' values, from the nearest ancestors that have one."""
    walk = DeltaWalk(channels)
    found = (yield from get_tuple(desk, config)) if channels else None
    while parent := walk.parent_of(found):
        found = yield from get_tuple(desk, parent)
        walk.visit(found)
    return walk.result()
