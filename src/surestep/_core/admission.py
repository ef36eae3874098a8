"""Which effects of a superstep may start, and when their tasks may go on.

Rules (A1 and so on; INVARIANTS.md says which tests prove them):
A1. An effect starts when every task of its superstep is settled: has finished, failed, paused, or waits itself, for the
    admission of an effect or for a task it called that does.
A2. While a question is open, a task has failed or has left the graph, nothing starts: what asks is held, its task
    pauses too, and asks again after the decision.
A3. What starts together is a wave: no task of a wave goes on before the whole wave has landed. A call that comes while
    everybody else waits for the wave joins it.
A4. In a graph inside a task, the superstep around it must be settled too: the inner wave is an effect of that task.
A5. A call by an attempt that is not the current one is fenced.
A6. What a held call's task does after that counts for nothing: it is held.
A7. Before a wave starts, the checkpoint that its ids hang from is durable, whatever the durability.
A8. An eager effect waits for nobody and holds nobody up; ledger, fence and open questions hold for it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from surestep._core import doubt
from surestep._core.commands import SETTLE, Answer, AskAbove, LandedAbove, Step, Unstorable, UseLedger
from surestep._core.effects import (
    ADMITTED,
    CANCELLED,
    DONE,
    FAILED,
    FENCED,
    HELD,
    UNKNOWN,
    EffectCall,
    Outcome,
    Verdict,
    moved,
    other_intent,
    unasked,
)
from surestep._core.events import RunStopped
from surestep._records import EffectRecord
from surestep.errors import EffectCancelled, EffectFenced, EffectHeld, EffectUnknown, ReplayMismatch, ThreadConflict

if TYPE_CHECKING:
    from surestep._core.events import Landed
    from surestep._core.step import Superstep
    from surestep._core.task import Task

_LANDING = {DONE: "land", FAILED: "fail", UNKNOWN: "doubt"}


class Admission:
    """The effects of one superstep."""

    __slots__ = ("asked", "asking", "eager", "flying", "granted", "held", "landed", "looked", "records", "run", "step")

    def __init__(self, step: Superstep) -> None:
        self.step = step
        self.run = step.run
        self.asking: list[EffectCall] = []
        self.flying: dict[str, EffectCall] = {}  # admitted, their bodies run
        self.eager: dict[str, EffectCall] = {}  # the same, outside of waves
        self.landed: list[tuple[EffectCall, Outcome]] = []  # of the wave that is not over
        self.records: dict[str, EffectRecord] = {}  # what is known of the ledger
        self.asked: dict[tuple[Task, int], set[str]] = {}  # ids that an attempt has asked for
        self.looked: set[str] = set()  # tasks whose records have been read
        self.held: set[Task] = set()
        self.granted = False  # the superstep around this graph waits for our wave

    # events

    def ask(self, call: EffectCall) -> Step[None]:
        """A running attempt calls an effect."""
        if self.step.live.get(call.task) != call.attempt:  # A5
            yield from self._fence(call)
            return
        if call.options is None:
            self.asking.append(call)
            return
        asked = self.asked.setdefault((call.task, call.attempt), set())
        asked.add(call.id)
        yield from self._look_up(call)
        record = self.records.get(call.id)
        if record is not None and not self._under_way(call.id):
            if (yield from self.answer_from(record, call)):
                return
        elif record is None and (left := self._skipped(call, asked)) is not None:
            yield Answer(call, None, _changed(call, f"the task has a record of '{left.name}', which was not called"))
            return
        if call.options.eager and not self._blocked() and not self._under_way(call.id):
            yield from self._admit([call], self.eager)  # A8
        else:
            self.asking.append(call)

    def _under_way(self, id: str) -> bool:
        return id in self.flying or id in self.eager

    def _skipped(self, call: EffectCall, asked: set[str]) -> EffectRecord | None:
        """An effect on record that the task, running again, should have come to before this one."""
        if call.owner != call.task.id:
            return None
        return unasked([record for record in self.records.values() if record.task_id == call.owner], asked)

    def land(self, events: Sequence[Landed]) -> Step[None]:
        """Bodies have come to an end: their outcomes are kept together."""
        eager = {event.call.id for event in events if self.eager.pop(event.call.id, None) is not None}
        for event in events:
            self.flying.pop(event.call.id, None)
        try:
            outcomes = yield from self._keep_outcomes([event for event in events if event.call.options is not None])
        except (Exception, RunStopped) as error:  # they stay in doubt; nobody is left waiting
            for event in events:
                yield Answer(event.call, None, error if isinstance(error, Exception) else _fenced(event.call))
            raise
        for call, outcome in events:
            told = outcomes.get(call.id, outcome)
            if call.id in eager:
                yield from self._release(call, told)
            else:
                self.landed.append((call, told))

    def ended(self, task: Task) -> Step[None]:
        """An attempt is over: calls that its own threads still make are fenced, and a graph in it has no wave."""
        left = [call for call in self.asking if call.task is task]
        self.asking = [call for call in self.asking if call.task is not task]
        for call in left:
            yield from self._fence(call)
        for id, call in list(self.flying.items()):
            if call.options is None and call.task is task:
                del self.flying[id]

    def decide(self) -> Step[None]:
        """After every event: let a wave go on that has landed, hold what must not start, start what may."""
        if self.landed and not self.flying:
            yield from self._end_wave()
        if not self.asking:
            return
        if self._blocked():
            yield from self.hold()
        elif self._settled():
            asked_inside = any(call.task.asked for call in self.asking)  # its own pause is on the way
            yield from self.hold() if asked_inside else self._start_wave()

    # what stands in the way

    def _blocked(self) -> bool:
        step, parked = self.step, self.run.parked  # A2
        if step.failure is not None or step.escaped:
            return True
        return any(asked or not (task in self.held or task in parked) for task, asked in step.questions.items())

    def _settled(self) -> bool:
        live = self.step.live
        if len(self.asking) + len(self.flying) + self.step.called < len(live):  # too few to be everybody
            return False
        waits = Counter([call.task for call in self.asking])  # A1
        waits.update([call.task for call in self.flying.values()])
        for task in live:
            if task.call is not None and task.call.awaited:
                waits[task.call.parent] += 1
        # a task that runs several graphs side by side waits when each of them does
        return all(waits[task] >= max(1, task.graphs) for task in live)

    # waves

    def _start_wave(self) -> Step[None]:
        starting: dict[str, EffectCall] = {}
        for call in self.asking:
            if call.id not in self.flying:  # the same intent twice: the second waits for the first one's result
                starting.setdefault(call.id, call)
        if not starting:
            return
        if self.run.request.nested and not self.granted:  # A4
            try:
                yield AskAbove()
            except (EffectHeld, EffectFenced) as refusal:
                yield from self.hold() if isinstance(refusal, EffectHeld) else self.fence()
                return
            self.granted = True
        calls = list(starting.values())
        self.asking = [call for call in self.asking if call not in calls]
        yield from self._admit(calls, self.flying)
        if not self.flying and not self.landed:
            yield from self._end_wave()

    def _admit(self, calls: Sequence[EffectCall], flight: dict[str, EffectCall]) -> Step[None]:
        yield from self._make_durable()
        for call in calls:
            if call.options is None:
                flight[call.id] = call
                yield Answer(call, Verdict("go"), None)
        own = [call for call in calls if call.options is not None]
        if own:
            yield from self._admit_own(own, flight)

    def _admit_own(self, calls: Sequence[EffectCall], flight: dict[str, EffectCall]) -> Step[None]:
        moves = [moved(doubt.move_of(call), self._record(call, ADMITTED)) for call in calls]
        try:
            refused = yield UseLedger("move_effects", (moves,))
        except Unstorable as error:  # arguments that can't be stored: nothing has started
            if len(calls) == 1:
                yield Answer(calls[0], None, error.__cause__)
            else:
                for call in calls:
                    yield from self._admit_own([call], flight)
            return
        except Exception as error:
            for call in calls:
                yield Answer(call, None, _fenced(call) if isinstance(error, ThreadConflict) else error)
            raise
        for call, move, there in zip(calls, moves, refused, strict=True):
            if there is not None:
                self.records[call.id] = there
                if not (yield from self.answer_from(there, call)):
                    self.asking.append(call)
                continue
            self.records[call.id] = move.record
            flight[call.id] = call
            yield Answer(call, Verdict("go", attempt=move.record.attempt), None)

    def _end_wave(self) -> Step[None]:
        if self.granted:
            self.granted = False
            try:
                yield LandedAbove()
            except EffectFenced:  # the enclosing task is not wanted any more: what landed is kept all the same
                pass
        landed, self.landed = self.landed, []
        for call, outcome in landed:
            yield from self._release(call, outcome)
        twins, self.asking = self.asking, []
        for call in twins:  # the same intent, asked for while it was under way
            record = self.records.get(call.id)
            if record is None or not (yield from self.answer_from(record, call)):
                self.asking.append(call)

    def _release(self, call: EffectCall, outcome: Outcome) -> Step[None]:
        """Let a task go on whose effect has landed."""
        if self.step.live.get(call.task) != call.attempt:
            yield Answer(call, None, _fenced(call))
        elif outcome.state == UNKNOWN and doubt.may_be_told(call):
            call.resolution = None
            if not (yield from doubt.resolve(self, self.records[call.id], call)):
                self.asking.append(call)
        else:
            yield Answer(call, Verdict("replay", outcome.value), outcome.error)

    # answers from what is known

    def answer_from(self, record: EffectRecord, call: EffectCall) -> Step[bool]:
        """Answer a call from its record, if that says all; else it has to be admitted."""
        if (difference := other_intent(record, call)) is not None:  # E4
            yield Answer(call, None, _changed(call, f"the one on record {difference}"))
        elif record.state == DONE:
            yield Answer(call, Verdict("replay", record.result), None)
        elif record.state == FAILED:
            yield Answer(call, None, record.result)
        elif record.state == CANCELLED:
            yield Answer(call, None, _cancelled(record))
        elif record.state in (ADMITTED, UNKNOWN):  # E5
            return (yield from doubt.resolve(self, record, call))
        else:
            return False
        return True

    def _look_up(self, call: EffectCall) -> Step[None]:
        """Read what the ledger has of a task that may have run before, and of a business key."""
        fresh = call.owner in self.looked or not self.run.may_have_effects
        self.looked.add(call.owner)
        if fresh and (call.key is None or call.id in self.records):
            return
        found = yield UseLedger("get_effects", (self.run.thread_id,), {"task_id": call.owner, "id": call.id})
        for record in found:
            if not self._under_way(record.id):
                self.records[record.id] = record

    def _record(self, call: EffectCall, state: str) -> EffectRecord:
        known = self.records.get(call.id)
        now = self.run.request.now()
        return EffectRecord(
            call.id,
            self.run.thread_id,
            call.name,
            state,
            checkpoint_ns=call.task.ns,
            checkpoint_id=self.run.root_checkpoint,
            task_id=call.owner,
            node=call.task.name,
            business_key=call.key,
            position=call.position,
            digest=call.digest,
            attempt=(known.attempt if known is not None else 0) + (state == ADMITTED),
            arguments=call.arguments,
            actor=self.run.actor,
            asked_at=known.asked_at if known is not None else now,
            changed_at=now,
        )

    # outcomes

    def _keep_outcomes(self, landed: Sequence[Landed]) -> Step[dict[str, Outcome]]:
        """Record what came of bodies; what their callers are to be told, by id."""
        now = self.run.request.now()
        kept = []
        for call, outcome in landed:
            late = self.step.stopped or self.step.live.get(call.task) != call.attempt
            kept.append(_with_outcome(self.records[call.id], outcome)._replace(late=late, changed_at=now))
        outcomes = {call.id: outcome for call, outcome in landed}
        moves = [moved(_LANDING[record.state], record) for record in kept]
        try:
            refused = (yield UseLedger("move_effects", (moves,))) if moves else ()
        except Unstorable as unstorable:
            if len(landed) > 1:  # one of them: each by itself
                for event in landed:
                    outcomes.update((yield from self._keep_outcomes([event])))
                return outcomes
            call = landed[0].call
            outcomes[call.id] = _unstorable(call, unstorable)
            kept = [kept[0]._replace(state=UNKNOWN, result=outcomes[call.id].error)]
            refused = yield UseLedger("move_effects", ([moved("doubt", kept[0])],))
        for record, there in zip(kept, refused, strict=True):
            self.records[record.id] = record if there is None else there
        return outcomes

    # holding and fencing

    def hold(self) -> Step[None]:
        """Nothing starts now: who asks is held."""
        calls, self.asking = self.asking, []
        own = [call for call in calls if call.options is not None and call.id not in self.flying]
        moves = [moved("hold", self._record(call, HELD)) for call in own]
        if moves:
            yield from self._make_durable()
            refused = yield UseLedger("move_effects", (moves,))
            for move, there in zip(moves, refused, strict=True):
                self.records[move.record.id] = move.record if there is None else there
        for call in calls:
            self._mark_held(call.task)
            yield Answer(call, None, EffectHeld())

    def _mark_held(self, task: Task) -> None:
        above: Task | None = task
        while above is not None:
            self.held.add(above)
            above = above.call.parent if above.call is not None else None

    def fence(self) -> Step[None]:
        """The run goes no further: who asks is refused for good."""
        calls, self.asking = self.asking, []
        for call in calls:
            yield from self._fence(call)

    def wind_up(self) -> Step[None]:
        """The same for who asks later, and let go of what has landed."""
        yield from self.fence()
        if self.landed and not self.flying:
            yield from self._end_wave()

    def _fence(self, call: EffectCall) -> Step[None]:
        if call.options is not None and call.id not in self.records:
            try:
                yield UseLedger("move_effects", ([moved("fence", self._record(call, FENCED))],))
            except Exception:  # a note for audits: the refusal does not hang from it
                pass
        yield Answer(call, None, _fenced(call))

    def _make_durable(self) -> Step[None]:
        """A7."""
        run = self.run
        if not run.keeps:
            return  # the records hang from the task of an enclosing graph, which made itself durable
        if run.request.durability == "exit":
            yield from run.store_head()
        yield SETTLE


def _with_outcome(record: EffectRecord, outcome: Outcome) -> EffectRecord:
    result = outcome.value if outcome.error is None else outcome.error
    return record._replace(state=outcome.state, result=result)


def _unstorable(call: EffectCall, unstorable: Unstorable) -> Outcome:
    """For the caller: it failed, and there is nothing to be found out."""
    error = EffectUnknown(
        f"Effect '{call.name}' did happen, but its result can't be stored: {unstorable.__cause__} It counts as "
        "unknown. Return something that can be stored.",
        effect_id=call.id,
    )
    error.__cause__ = unstorable.__cause__
    return Outcome(FAILED, error=error)


def _fenced(call: EffectCall) -> EffectFenced:
    return EffectFenced(
        f"Effect '{call.name}' was called by attempt {call.attempt} of '{call.task.name}', which does not count any "
        "more (it timed out, was cancelled, or its run is over). Nothing was executed."
    )


def _cancelled(record: EffectRecord) -> EffectCancelled:
    why = f": {record.reason}" if record.reason else ""
    return EffectCancelled(
        f"Effect '{record.name}' was held beside a decision and cancelled with it{why}. It was not executed and will "
        "not be.",
        effect_id=record.id,
        reason=record.reason,
        actor=record.actor,
    )


def _changed(call: EffectCall, difference: str) -> ReplayMismatch:
    where = f"key {call.key!r}" if call.key is not None else f"effect {call.position + 1} of '{call.task.name}'"
    return ReplayMismatch(
        f"'{call.name}' was called as {where}, but {difference}. A record belongs to one call with its arguments, so "
        "nothing was run or handed out. Run the thread with the code that it was paused in, and give an effect only "
        "arguments that are the same when the node runs again (no clock, no random id); another intent needs another "
        "key.",
        task=call.name,
        position=call.position,
    )
