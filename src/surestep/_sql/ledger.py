"""The ledger of effects in a database (`checkpoint/base/_ledger.py`), as generators of statements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from surestep._records import Decision, EffectRecord, Move
from surestep._sql import leases
from surestep._sql.rows import join, split
from surestep._sql.statement import Each, Statement, Steps
from surestep.checkpoint.base._leases import HOLD_KEY, Hold, took
from surestep.checkpoint.base._ledger import Row, as_record, as_row

if TYPE_CHECKING:
    from surestep._sql.reading import Desk
    from surestep._sql.run import Runner

_COLUMNS: Final = EffectRecord._fields  # the table's, in this order
_PLACES: Final = ", ".join("?" * len(_COLUMNS))
_SET: Final = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in ("id", "asked_at"))
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM surestep_effects"

BY_ID: Final = f"{_SELECT} WHERE id = ?"
OF_THREAD: Final = f"{_SELECT} WHERE thread_id = ? ORDER BY asked_at, position"
OF_TASK: Final = f"{_SELECT} WHERE (thread_id = ? AND task_id = ?) OR id = ? ORDER BY asked_at, position"

# Parameters: the reason, actor and time of the decision; thread and checkpoint.
CANCEL_HELD: Final = """
UPDATE surestep_effects SET state = 'cancelled', reason = ?, actor = ?, changed_at = ?
WHERE thread_id = ? AND checkpoint_id = ? AND state = 'held'"""

_DECISION: Final = Decision._fields
DECIDE: Final = (
    f"INSERT INTO surestep_decisions VALUES ({', '.join('?' * len(_DECISION))}) ON CONFLICT DO NOTHING RETURNING 1"
)
DECISIONS: Final = (
    f"SELECT {', '.join(_DECISION)} FROM surestep_decisions WHERE thread_id = ? ORDER BY decided_at, kind"
)

# A thread that is deleted takes its effects along, but for those with a business key: they stand for all time, and
# keep nothing of the thread but their result. Parameter: thread.
FORGET: Final = (
    "DELETE FROM surestep_effects WHERE thread_id = ? AND business_key IS NULL",
    "UPDATE surestep_effects SET arguments = NULL WHERE thread_id = ?",
    "DELETE FROM surestep_decisions WHERE thread_id = ?",
)


@cache
def _moving(allowed: frozenset[str]) -> str:
    """The statement that makes a move from these states if it may be made: then it has one row, the id. Parameters:
    all columns of the record; and its id, name and digest where it must be there already."""
    states = ", ".join(f"'{state}'" for state in sorted(allowed - {"new"}))
    if "new" in allowed:
        return (
            f"INSERT INTO surestep_effects VALUES ({_PLACES}) ON CONFLICT (id) DO UPDATE SET {_SET} WHERE "
            "surestep_effects.name = excluded.name AND surestep_effects.digest = excluded.digest AND "
            f"surestep_effects.state IN ({states}) RETURNING id"
        )
    columns = ", ".join(f"{name} = ?" for name in _COLUMNS)
    known = "id = ? AND name = ? AND digest = ?"
    return f"UPDATE surestep_effects SET {columns} WHERE {known} AND state IN ({states}) RETURNING id"


def _moves(rows: Sequence[tuple[Move, list[Any]]]) -> list[Statement]:
    """One statement for all moves of a kind."""
    by_start: dict[frozenset[str], list[list[Any]]] = {}
    for move, columns in rows:
        record = move.record
        known = () if "new" in move.allowed else (record.id, record.name, record.digest)
        by_start.setdefault(move.allowed, []).append([*columns, *known])
    return [Each(_moving(allowed), params) for allowed, params in by_start.items()]


def move_effects(desk: Desk, moves: Sequence[Move], hold: Hold | None) -> Steps[list[EffectRecord | None]]:
    rows = [(move, _columns(desk, as_row(desk.serde, move.record))) for move in moves]
    yield from leases.guard(desk.dialect, {"configurable": {HOLD_KEY: hold}})
    moved: set[str] = set()
    for statement in _moves(rows):
        found = yield statement
        moved.update(id for (id,) in found)
    refused: list[EffectRecord | None] = []
    for move in moves:
        there: Sequence[Sequence[Any]] = ()
        if move.record.id not in moved:
            there = yield (BY_ID, (move.record.id,))
        refused.append(None if move.record.id in moved else _record(desk, there[0]) if there else move.record)
    return refused


def get_effects(desk: Desk, thread_id: str, task_id: str | None, id: str | None) -> Steps[list[EffectRecord]]:
    if task_id is None:
        found = yield (OF_THREAD, (thread_id,))
    else:
        found = yield (OF_TASK, (thread_id, task_id, id))
    return [_record(desk, row) for row in found]


def decide(desk: Desk, decisions: Sequence[Decision], cancels: bool) -> Steps[None]:
    rows: list[list[Any]] = [list(one._replace(reason=None)) for one in decisions]
    reasons = [_typed(desk, one.reason) for one in decisions]
    for decision, row, reason in zip(decisions, rows, reasons, strict=True):
        row[_DECISION.index("reason")] = reason
        new = yield (DECIDE, row)
        if new and cancels:
            where = decision.thread_id, decision.checkpoint_id
            yield (CANCEL_HELD, (reason, decision.actor, decision.decided_at, *where))


def get_decisions(desk: Desk, thread_id: str) -> Steps[list[Decision]]:
    found = yield (DECISIONS, (thread_id,))
    decisions = [Decision(*row) for row in found]
    return [one._replace(reason=_untyped(desk, one.reason)) for one in decisions]


# Encrypting again: a page of effects; parameters: an id, and how many. Of those without a thread too: they stand.
SEALED: Final = "SELECT id, arguments, result, reason FROM surestep_effects WHERE id > ? ORDER BY id LIMIT ?"
SEAL_AGAIN: Final = "UPDATE surestep_effects SET arguments = ?, result = ?, reason = ? WHERE id = ?"
SEALED_REASONS: Final = "SELECT subject, kind, reason FROM surestep_decisions WHERE thread_id = ?"
SEAL_REASON_AGAIN: Final = "UPDATE surestep_decisions SET reason = ? WHERE thread_id = ? AND subject = ? AND kind = ?"


def _columns(desk: Desk, row: Row) -> list[Any]:
    record = row.record._replace(
        arguments=desk.seal(join(row.arguments)),
        result=desk.seal(join(row.result)),
        reason=_typed(desk, row.record.reason),  # type: ignore[arg-type] # as the column has it
        late=int(row.record.late),  # type: ignore[arg-type]
    )
    return list(record)


def _record(desk: Desk, columns: Sequence[Any]) -> EffectRecord:
    stored = EffectRecord(*columns)
    empty = desk.serde.dumps_typed(None)
    arguments = split(desk.open(stored.arguments)) if stored.arguments is not None else empty
    record = stored._replace(arguments=None, result=None, reason=_untyped(desk, stored.reason), late=bool(stored.late))
    return as_record(desk.serde, Row(record, arguments, split(desk.open(stored.result))))


def _typed(desk: Desk, text: str | None) -> bytes | None:
    """A text that people wrote: stored as values are, so that a cipher covers it."""
    return None if text is None else desk.seal(join(desk.serde.dumps_typed(text)))


def _untyped(desk: Desk, column: Any) -> Any:
    return None if column is None else desk.serde.loads_typed(split(desk.open(column)))


class SqlLedger:
    """The ledger's methods, as a saver on a database has them."""

    _runner: Runner

    @property
    def _desk(self) -> Desk:
        raise NotImplementedError

    def move_effects(self, moves: Sequence[Move], hold: Hold | None = None) -> Sequence[EffectRecord | None]:
        """See `Ledger`."""
        found = self._runner.write(move_effects(self._desk, moves, hold))
        took({"configurable": {HOLD_KEY: hold}})
        return found

    async def amove_effects(self, moves: Sequence[Move], hold: Hold | None = None) -> Sequence[EffectRecord | None]:
        """See `Ledger`."""
        found = await self._runner.awrite(move_effects(self._desk, moves, hold))
        took({"configurable": {HOLD_KEY: hold}})
        return found

    def get_effects(
        self, thread_id: str, *, task_id: str | None = None, id: str | None = None
    ) -> Sequence[EffectRecord]:
        """See `Ledger`."""
        return self._runner.read(get_effects(self._desk, thread_id, task_id, id))

    async def aget_effects(
        self, thread_id: str, *, task_id: str | None = None, id: str | None = None
    ) -> Sequence[EffectRecord]:
        """See `Ledger`."""
        return await self._runner.aread(get_effects(self._desk, thread_id, task_id, id))

    def decide(self, decisions: Sequence[Decision], *, cancels: bool = False) -> None:
        """See `Ledger`."""
        self._runner.write(decide(self._desk, decisions, cancels))

    async def adecide(self, decisions: Sequence[Decision], *, cancels: bool = False) -> None:
        """See `Ledger`."""
        await self._runner.awrite(decide(self._desk, decisions, cancels))

    def get_decisions(self, thread_id: str) -> Sequence[Decision]:
        """See `Ledger`."""
        return self._runner.read(get_decisions(self._desk, thread_id))

    async def aget_decisions(self, thread_id: str) -> Sequence[Decision]:
        """See `Ledger`."""
        return await self._runner.aread(get_decisions(self._desk, thread_id))
