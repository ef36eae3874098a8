"""What a saver does, as generators of statements. Written once for every database, and for sync and async
callers.

Where things lie (see sqlite/schema.sql):

1. A checkpoint is one row, which says what it changes in its parent's (see state). Large values and the items
   of lists lie on pages (see pages).
2. Writes that are committed together with the checkpoint they led to ride in that checkpoint's row, so that
   a step of a run is one row. They belong to the parent. Only the latest checkpoint of a namespace can be
   such a parent, and only while it has no writes of its own; the row that its writes ride in follows it
   immediately in the order of the keys.
3. What would break rule 2 (a checkpoint put between others, deleted, copied) first moves the writes that
   ride to rows of their own; what would take a row's parent away first makes that row whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from surestep._sql import leases, pages, queries, state
from surestep._sql.collect import collect
from surestep._sql.dialect import AtOnce
from surestep._sql.pages import Draft, Memo, Parts, Place
from surestep._sql.reading import Desk, remember, whole_state
from surestep._sql.recall import Known
from surestep._sql.rows import EMPTY, Row, join, pack_writes, unpack_writes
from surestep._sql.state import Change, State
from surestep._sql.statement import Many, Steps, Whole
from surestep._sql.turns import take_turn
from surestep.checkpoint.base import CLAIM_KEY, HEAD_KEY, TaskWrites
from surestep.checkpoint.base._shared import address, address_of, already_claimed, write_rows
from surestep.checkpoint.serde.base import SerializationError
from surestep.checkpoint.serde.types import ERROR, _DeltaSnapshot

if TYPE_CHECKING:
    from surestep.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
    from surestep.checkpoint.serde.base import SerializerProtocol
    from surestep.types import RunnableConfig


# ---- writing ----


class Plan(NamedTuple):
    """What a checkpoint changes, and what its values will be stored as."""

    before: Known | None
    change: Change
    values: dict[str, Place | Draft | Parts]
    memos: dict[str, Memo]


class _Commit:
    """A checkpoint on its way into the database, and the writes that led to it."""

    def __init__(
        self,
        desk: Desk,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
        trusted: bool,
    ) -> None:
        self.desk = desk
        self.config = config
        self.thread_id, self.ns, self.parent = address_of(config, exact=bool(writes))
        self.checkpoint = checkpoint
        self.new_versions = new_versions
        self.trusted = trusted
        self.metadata = join(desk.serde.dumps_typed(metadata))
        self.rows: list[Row] = []
        self.known: dict[int, bytes] = {}  # typed values by the identity of what was written
        self.lists: dict[str, list[tuple[list[Any], bytes]]] = {}
        for task in writes:
            self._take(task)

    def _take(self, task: TaskWrites) -> None:
        rows = _rows(self.desk.serde, task.task_id, task.task_path, task.writes)
        self.rows += rows
        for (channel, value), row in zip(task.writes, rows, strict=True):
            if channel == ERROR:  # as a text; the same failure may also stand in the state
                continue
            self.known[id(value)] = row[3]
            if type(value) is list and value:
                self.lists.setdefault(channel, []).append((value, row[3]))

    def plan(self, before: Known | None) -> Plan:
        """What to store if this is the parent."""
        checkpoint: Mapping[str, Any] = self.checkpoint
        values = checkpoint["channel_values"]
        if before is None:
            change = state.whole(checkpoint)
        else:
            change = state.difference(before.state, checkpoint, self.new_versions, trusted=self.trusted)
        memos = _with_parts(before)
        drafts: dict[str, Place | Draft | Parts] = {}
        for name in change.versions:
            if name in values:
                drafts[name] = self._draft(name, values[name], memos)
        return Plan(before, change, drafts, memos)

    def _draft(self, name: str, value: Any, memos: Mapping[str, Memo]) -> Place | Draft | Parts:
        memo, dumps = memos.get(name), self.desk.serde.dumps_typed
        try:
            if type(value) in (list, _DeltaSnapshot):
                return pages.draft(dumps, value, memo, self.lists.get(name, ()))
            column = self.known.get(id(value)) or join(dumps(value))
            if type(value) is dict:
                return pages.draft_dict(dumps, value, column, memo, memos)
            return pages.draft_typed(column, memo)
        except SerializationError as error:
            raise error.within(f"Channel {name!r}") from error

    def store(self, alone: bool) -> Steps[RunnableConfig]:
        """All of it. Serializes before the first statement what can be. `alone`: nothing else belongs to the
        transaction."""
        thread_id, ns, parent, seal = self.thread_id, self.ns, self.parent, self.desk.seal
        before = self.desk.recall.get(thread_id, ns, parent) if parent is not None else None
        plan = self.plan(before) if before is not None or parent is None else None
        if alone and plan is not None and self.desk.dialect.at_once is not None:
            done = yield from self._at_once(plan, self.desk.dialect.at_once)
            if done is not None:
                return done

        yield from take_turn(self.desk.dialect, thread_id)
        yield from leases.guard(self.desk.dialect, self.config)
        found = yield (queries.HEAD, (thread_id, ns))
        head, data, head_has_writes = found[0] if found else (None, None, 0)
        _check_head(self.config, thread_id, ns, head)
        id = self.checkpoint["id"]
        appended = head is None or id > head
        replaced = not appended and (yield from _make_room(self.desk, thread_id, ns, id, parent))
        if parent is not None:
            before = yield from self._parent(parent, data if parent == head else None, before)
        if plan is None or plan.before is not before:
            plan = self.plan(before)
        places, memos, where = yield from self._settle(plan, pages.Shelf(thread_id, seal))
        follows = appended and parent == head
        made = self._state(plan, places, follows)
        rows = self._referring(where)
        led = None
        if rows and follows and not head_has_writes:
            led, rows = seal(pack_writes(rows)), []
        yield (queries.PUT, (thread_id, ns, id, parent, made.depth, made.stored, seal(self.metadata), led))
        if rows:
            yield _put_writes(self.desk, queries.PUT_WRITE, thread_id, ns, str(parent), rows)
        if replaced:
            yield from collect(self.desk, thread_id)
        yield from leases.let_go(self.config)
        self.desk.recall.keep(thread_id, ns, Known(made, memos), instead=parent)
        return address(thread_id, ns, id)

    def _at_once(self, plan: Plan, say: AtOnce) -> Steps[RunnableConfig | None]:
        """All of it in one statement, if the parent is the latest and as it is known; None, and nothing is stored, if
        it isn't."""
        thread_id, ns, parent, seal, id = self.thread_id, self.ns, self.parent, self.desk.seal, self.checkpoint["id"]
        guard = self.config["configurable"].get(HEAD_KEY, parent)
        if guard != parent or (parent is not None and id <= parent):
            return None
        new: list[tuple[int, int, bytes]] = []
        places, memos, where = yield from self._settle(plan, pages.Shelf(thread_id, seal, new))
        made = self._state(plan, places, follows=True)
        rows, led = self._referring(where), None
        if rows and not self.desk.recall.has_writes(thread_id, ns, str(parent)):
            led, rows = seal(pack_writes(rows)), []
        known = plan.before.state.stored if plan.before is not None else None
        row = (thread_id, ns, id, parent, known, made.depth, made.stored, seal(self.metadata), led)
        sql = say.step
        params: list[Any] = [*row, *leases.terms(self.config)]
        for part, lines in ((say.pages, new), (say.writes, _once(rows, seal))):
            if lines:
                sql += part
                params += map(list, zip(*lines, strict=True))
        ((done,),) = yield Whole(sql + say.end, params)
        if not done:
            return None
        self.desk.recall.keep(thread_id, ns, Known(made, memos), instead=parent)
        return address(thread_id, ns, id)

    def _parent(self, parent: str, data: bytes | None, known: Known | None) -> Steps[Known | None]:
        """The parent as it is stored, if it is."""
        if data is None:
            found = yield (queries.EXACT, (self.thread_id, self.ns, parent))
            if not found:
                return None
            data = found[0][3]
        if known is not None and known.state.stored == data:
            return known
        return (yield from remember(self.desk, self.thread_id, self.ns, parent))

    def _settle(self, plan: Plan, shelf: pages.Shelf) -> Steps[tuple[dict[str, Place], dict[str, Memo], pages.Where]]:
        """Put the new pages."""
        memos = dict(plan.before.memos) if plan.before is not None else {}
        for name in (*plan.change.versions, *plan.change.gone):
            memos.pop(name, None)
        places: dict[str, Place] = {}
        where: pages.Where = {}
        for name, value in plan.values.items():
            if isinstance(value, Draft):
                settled = yield from pages.settle(shelf, value, plan.memos.get(name), where)
                places[name], memos[name] = settled
            elif isinstance(value, Parts):
                settled = yield from pages.settle_parts(shelf, value, plan.memos, where)
                places[name], memos[name] = settled
            else:
                places[name] = value
        return places, memos, where

    def _state(self, plan: Plan, places: Mapping[str, Place], follows: bool) -> State:
        """The column `state`, whole or as a difference."""
        checkpoint: Mapping[str, Any] = self.checkpoint
        before = plan.before.state if plan.before is not None else None
        versions, seen = checkpoint.get("channel_versions") or {}, checkpoint.get("versions_seen") or {}
        values = {**before.values} if before is not None else {}
        for name in plan.change.versions:
            values[name] = places.get(name, EMPTY)
        for name in plan.change.gone:
            values.pop(name, None)
        depth, chain, whole = 0, 0, 0
        data = b""
        if before is not None and follows:
            data = state.pack(self.desk.serde, checkpoint, plan.change, places, before)
            depth, chain, whole = before.depth + 1, before.chain + len(data), before.whole
        if not depth or chain > max(whole, state.CHAIN_BYTES):
            data = state.pack(self.desk.serde, checkpoint, state.whole(checkpoint), values, None)
            depth, chain, whole = 0, 0, len(data)
        if not self.trusted:  # the caller may go on to change his maps
            versions, seen = dict(versions), {node: dict(saw) for node, saw in seen.items()}
        return State(checkpoint["id"], self.desk.seal(data), data, depth, chain, whole, versions, seen, values)

    def _referring(self, where: pages.Where) -> list[Row]:
        """The rows of the writes, those whose values lie on pages as references."""
        return [(*row[:3], pages.refer(row[3], where), row[4]) for row in self.rows] if where else self.rows


def _with_parts(before: Known | None) -> dict[str, Memo]:
    """What is known of the channels of a checkpoint: rule 7 of pages."""
    if before is None:
        return {}
    memos = dict(before.memos)
    for memo in before.memos.values():
        for name, part in memo.parts.items():
            memos[name] = pages.with_part(before.memos.get(name), part)
    return memos


def commit(
    desk: Desk,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    writes: Sequence[TaskWrites],
    *,
    trusted: bool = False,
    alone: bool = False,
) -> Steps[RunnableConfig]:
    """Store a checkpoint and the writes that led to it; gives the config that addresses it.

    `trusted`: the versions differ from the parent's by `new_versions`, and nobody changes the maps later. `alone`: it
    is a transaction of its own.
    """
    return (yield from _Commit(desk, config, checkpoint, metadata, new_versions, writes, trusted).store(alone))


def _check_head(config: Mapping[str, Any], thread_id: str, ns: str, head: str | None) -> None:
    configurable = config["configurable"]
    if HEAD_KEY in configurable and configurable[HEAD_KEY] != head:
        from surestep.errors import ThreadConflict

        raise ThreadConflict(thread_id, ns, configurable[HEAD_KEY], head)


def _make_room(desk: Desk, thread_id: str, ns: str, id: str, parent: str | None) -> Steps[bool]:
    """Keep rule 2 when a checkpoint is put that is not the latest, or takes the place of one that is there: whether
    it does."""
    found = yield (queries.FROM_HERE, (thread_id, ns, id))
    for other, its_parent, led in found:
        if led is not None and (its_parent < id if other > id else its_parent != parent):
            yield from unride(desk, thread_id, ns, [(other, its_parent, led)])
    replaces = bool(found) and found[0][0] == id
    if replaces:
        children = yield (queries.CHILDREN, (thread_id, ns, id))
        yield from make_whole(desk, thread_id, ns, [child for (child,) in children])
    return replaces


def make_whole(desk: Desk, thread_id: str, ns: str, ids: Iterable[str]) -> Steps[None]:
    """Have rows say everything, so that their parents may change or go."""
    for id in ids:
        made = yield from whole_state(desk, thread_id, ns, id)
        if made is not None:
            yield (queries.MAKE_WHOLE, (desk.seal(state.made_whole(made)), thread_id, ns, id))


def unride(desk: Desk, thread_id: str, ns: str, riders: Sequence[Sequence[Any]]) -> Steps[None]:
    """Move writes that ride in the rows (id, parent's id, writes) to rows of their own."""
    for _, parent, led in riders:
        yield _put_writes(desk, queries.PUT_EARLIER_WRITE, thread_id, ns, parent, unpack_writes(desk.open(led)))
    yield Many(queries.FORGET_LED, [(thread_id, ns, id) for id, _, _ in riders])


def _put_writes(desk: Desk, sql: str, thread_id: str, ns: str, id: str, rows: Sequence[Row]) -> Many:
    at, seal = (thread_id, ns, id), desk.seal
    return Many(sql, [(*at, task, idx, channel, seal(value), path) for task, idx, channel, value, path in rows])


def _once(rows: Sequence[Row], seal: Callable[[bytes], bytes]) -> list[Row]:
    """The rows for one statement, which may touch each of them once: of equal keys the one that counts."""
    by_key: dict[tuple[str, int], Row] = {}
    for task, idx, channel, value, path in rows:
        if idx < 0 or (task, idx) not in by_key:
            by_key[task, idx] = (task, idx, channel, seal(value), path)
    return list(by_key.values())


def _rows(serde: SerializerProtocol, task_id: str, task_path: str, writes: Sequence[tuple[str, Any]]) -> list[Row]:
    return [
        (task, idx, channel, join(value), path)
        for task, idx, channel, value, path in write_rows(serde.dumps_typed, task_id, task_path, writes)
    ]


def put_writes(
    desk: Desk,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
    *,
    alone: bool = False,
) -> Steps[None]:
    """Store writes of a task. `alone`: in a transaction of their own."""
    thread_id, ns, id = address_of(config, exact=True)
    rows = _rows(desk.serde, task_id, task_path, writes)
    if alone and rows and desk.dialect.at_once is not None and not config["configurable"].get(CLAIM_KEY):
        run, takes, *_ = leases.terms(config)
        if not takes:
            columns = map(list, zip(*_once(rows, desk.seal), strict=True))
            ((done,),) = yield Whole(desk.dialect.at_once.write, (thread_id, ns, id, *columns, run))
            if done:
                desk.recall.note_writes(thread_id, ns, str(id))
                return
    yield from leases.guard(desk.dialect, config)
    if config["configurable"].get(CLAIM_KEY):
        yield from take_turn(desk.dialect, thread_id)
        stored = yield from writes_of(desk, thread_id, ns, str(id))
        if stored & {row[:2] for row in rows}:
            raise already_claimed(thread_id, task_id)
        yield _put_writes(desk, queries.PUT_WRITE, thread_id, ns, str(id), rows)
    elif rows:
        yield _put_writes(desk, queries.PUT_WRITE, thread_id, ns, str(id), rows)
    desk.recall.note_writes(thread_id, ns, str(id))


def writes_of(desk: Desk, thread_id: str, ns: str, id: str) -> Steps[set[tuple[str, int]]]:
    """Task and index of all writes of a checkpoint."""
    stored = yield (queries.WRITES, (thread_id, ns, id))
    following = yield (queries.NEXT, (thread_id, ns, id))
    led = following[0][1] if following and following[0][0] == id else None
    ridden = unpack_writes(desk.open(led)) if led is not None else ()
    return {(row[0], row[1]) for row in (*stored, *ridden)}
