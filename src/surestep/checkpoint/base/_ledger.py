"""The ledger of effects: what a saver offers so that effects are safe over it, and what all ledgers do alike."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from surestep._records import Decision, EffectRecord, Move
from surestep.errors import RecordedError

if TYPE_CHECKING:
    from surestep.checkpoint.base._leases import Hold
    from surestep.checkpoint.serde.base import SerializerProtocol

Typed = tuple[str, bytes]


@runtime_checkable
class Ledger(Protocol):
    """A saver that keeps effects and decisions.

    Every method is one transaction: all of it is durable when it returns, or nothing is. Each has an async form.
    """

    def move_effects(self, moves: Sequence[Move], hold: Hold | None = None) -> Sequence[EffectRecord | None]:
        """Move records from state to state, each only if the one that is there allows it (`Move.allowed`) and has the
        same name and digest. For each: None, or the record that stood in the way. hold: only if the run has the thread;
        else RunFenced."""
        ...

    async def amove_effects(self, moves: Sequence[Move], hold: Hold | None = None) -> Sequence[EffectRecord | None]: ...

    def get_effects(
        self, thread_id: str, *, task_id: str | None = None, id: str | None = None
    ) -> Sequence[EffectRecord]:
        """The records of a thread, or of one of its tasks, in the order in which they were asked for; and the one with
        this id, whatever thread it is of."""
        ...

    async def aget_effects(
        self, thread_id: str, *, task_id: str | None = None, id: str | None = None
    ) -> Sequence[EffectRecord]: ...

    def decide(self, decisions: Sequence[Decision], *, cancels: bool = False) -> None:
        """Keep decisions, each once. `cancels`: one that is new cancels what its thread holds at its checkpoint."""
        ...

    async def adecide(self, decisions: Sequence[Decision], *, cancels: bool = False) -> None: ...

    def get_decisions(self, thread_id: str) -> Sequence[Decision]:
        """The decisions of a thread, and the questions of its gates, in order."""
        ...

    async def aget_decisions(self, thread_id: str) -> Sequence[Decision]: ...


def has_ledger(saver: object) -> bool:
    """Does the saver keep effects?"""
    return isinstance(saver, Ledger)


class Row(NamedTuple):
    """A record as it is stored: its values are typed bytes."""

    record: EffectRecord  # without its values
    arguments: Typed
    result: Typed


def as_row(serde: SerializerProtocol, record: EffectRecord) -> Row:
    """A record for storing. Raises SerializationError for values that can't be."""
    result = record.result
    if isinstance(result, BaseException):
        result = _packed(result)
    return Row(
        record._replace(arguments=None, result=None),
        serde.dumps_typed(record.arguments),
        serde.dumps_typed(result),
    )


def as_record(serde: SerializerProtocol, row: Row) -> EffectRecord:
    result = serde.loads_typed(row.result)
    if row.record.state in ("failed", "unknown"):
        result = _unpacked(result)
    return row.record._replace(arguments=serde.loads_typed(row.arguments), result=result)


# Errors are stored by what they say, not as objects: they are made again without running code of theirs.


def _packed(error: BaseException) -> dict[str, Any]:
    arguments = [arg if isinstance(arg, (str, int, float, bool, type(None))) else repr(arg) for arg in error.args]
    fields = {key: value for key, value in vars(error).items() if isinstance(value, (str, int, float, bool))}
    kind = type(error)
    return {"module": kind.__module__, "class": kind.__qualname__, "args": arguments, "fields": fields}


def _unpacked(stored: Any) -> BaseException | None:
    """The error, of its own class if that is loaded here; else a RecordedError that names it."""
    if not isinstance(stored, dict):
        return None
    kind: Any = sys.modules.get(stored["module"])
    for name in stored["class"].split("."):
        kind = getattr(kind, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        error = kind.__new__(kind, *stored["args"])
        error.args = tuple(stored["args"])
        vars(error).update(stored["fields"])
        return error
    text = ", ".join(map(str, stored["args"]))
    return RecordedError(f"{stored['module']}.{stored['class']}: {text}")


def allows(there: EffectRecord | None, move: Move) -> bool:
    """May the record that is there be replaced by the move's?"""
    if there is None:
        return "new" in move.allowed
    same = there.name == move.record.name and there.digest == move.record.digest
    return same and there.state in move.allowed


def cancelled(held: EffectRecord, decision: Decision) -> EffectRecord:
    """A held record as a rejection leaves it."""
    return held._replace(
        state="cancelled", reason=decision.reason, actor=decision.actor, changed_at=decision.decided_at
    )
