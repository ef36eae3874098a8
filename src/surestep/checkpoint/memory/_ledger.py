"""The ledger of effects of the memory saver (`checkpoint/base/_ledger.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

from surestep._records import Decision, EffectRecord, Move
from surestep.checkpoint.base._leases import HOLD_KEY, Hold
from surestep.checkpoint.base._ledger import Row, allows, as_record, as_row, cancelled

if TYPE_CHECKING:
    from surestep.checkpoint.base import SerializerProtocol


class MemoryLedger:
    """Effects and decisions in dictionaries of the saver."""

    __slots__ = ()

    serde: SerializerProtocol
    _lock: RLock
    _need: Callable[[Mapping[str, Any]], None]
    _take: Callable[[Mapping[str, Any]], None]
    _effects: dict[str, Row]  # by id
    _decisions: dict[tuple[str, str, str], Decision]  # by thread, subject and kind

    def move_effects(self, moves: Sequence[Move], hold: Hold | None = None) -> Sequence[EffectRecord | None]:
        """See `Ledger`."""
        rows = [as_row(self.serde, move.record) for move in moves]
        with self._lock:
            self._need({"configurable": {HOLD_KEY: hold}})
            self._take({"configurable": {HOLD_KEY: hold}})
            refused: list[EffectRecord | None] = []
            for move, row in zip(moves, rows, strict=True):
                there = self._effects.get(move.record.id)
                if allows(there.record if there is not None else None, move):
                    self._effects[move.record.id] = row
                    refused.append(None)
                else:
                    refused.append(as_record(self.serde, there) if there is not None else move.record)
            return refused

    async def amove_effects(self, moves: Sequence[Move], hold: Hold | None = None) -> Sequence[EffectRecord | None]:
        """See `Ledger`."""
        return self.move_effects(moves, hold)

    def get_effects(
        self, thread_id: str, *, task_id: str | None = None, id: str | None = None
    ) -> Sequence[EffectRecord]:
        """See `Ledger`."""
        with self._lock:
            found = [
                row
                for row in self._effects.values()
                if row.record.id == id or (row.record.thread_id == thread_id and task_id in (None, row.record.task_id))
            ]
        return [as_record(self.serde, row) for row in found]

    async def aget_effects(
        self, thread_id: str, *, task_id: str | None = None, id: str | None = None
    ) -> Sequence[EffectRecord]:
        """See `Ledger`."""
        return self.get_effects(thread_id, task_id=task_id, id=id)

    def decide(self, decisions: Sequence[Decision], *, cancels: bool = False) -> None:
        """See `Ledger`."""
        with self._lock:
            for decision in decisions:
                key = decision.thread_id, decision.subject, decision.kind
                if key not in self._decisions:
                    self._decisions[key] = decision
                    if cancels:
                        self._cancel_held(decision)

    def _cancel_held(self, decision: Decision) -> None:
        for id, row in self._effects.items():
            record = row.record
            here = record.thread_id == decision.thread_id and record.checkpoint_id == decision.checkpoint_id
            if here and record.state == "held":
                self._effects[id] = row._replace(record=cancelled(record, decision))

    async def adecide(self, decisions: Sequence[Decision], *, cancels: bool = False) -> None:
        """See `Ledger`."""
        self.decide(decisions, cancels=cancels)

    def get_decisions(self, thread_id: str) -> Sequence[Decision]:
        """See `Ledger`."""
        with self._lock:
            return [decision for decision in self._decisions.values() if decision.thread_id == thread_id]

    async def aget_decisions(self, thread_id: str) -> Sequence[Decision]:
        """See `Ledger`."""
        return self.get_decisions(thread_id)

    def _forget_effects(self, thread_id: str) -> None:
        """A thread is deleted: its effects go too, but for those with a business key, which stand for all time and
        keep nothing of the thread but their result."""
        for id, row in list(self._effects.items()):
            if row.record.thread_id == thread_id:
                if row.record.business_key is None:
                    del self._effects[id]
                else:
                    self._effects[id] = row._replace(arguments=self.serde.dumps_typed(None))
        for key in [key for key in self._decisions if key[0] == thread_id]:
            del self._decisions[key]
