"""One superstep: tasks start, end, fail, pause, are tried again, handled or abandoned.

Rules:
1. What a task wrote is kept the moment it ends, while others still run. The last one's writes are held and go with
   the step's checkpoint, in one transaction where the saver can.
2. A failure that nobody handles stops the step: no new attempt starts, running ones are abandoned where the driver can
   do that and waited for where it can't, and everything that finished is kept.
3. A pause stops nothing: siblings run to their end. The step then ends in one pause with all questions.
4. A report of an attempt that is not the current one counts for nothing.
5. An error handler starts after the failure it handles is durable, and once.
7. Behind a gate node nothing of its step starts before it has finished.
6. A call that has returned once in this step (in an earlier run, or in an earlier attempt of its caller) is not carried
   out again: the n-th call of a task gets the result of its n-th call. If that was another call, it gets an error.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from surestep._core import rows
from surestep._core.admission import Admission
from surestep._core.begin import closing
from surestep._core.cache import recall_call, remember
from surestep._core.commands import NEXT, Abandon, Answer, MoreLanded, Next, Spawn, Step, UseLedger
from surestep._core.events import (
    Abandoned,
    Asked,
    CallDropped,
    Called,
    Ended,
    Expired,
    Landed,
    RunStopped,
    StepExpired,
    Stopped,
)
from surestep._core.messages import name_messages
from surestep._core.retry import delay_before_retry
from surestep._core.task import Call, Task, called, handler
from surestep.errors import (
    EffectAborted,
    EffectCancelled,
    EffectFenced,
    EffectHeld,
    EffectUnknown,
    GateClosed,
    GraphBubbleUp,
    GraphInterrupt,
    NodeTimeoutError,
    ReplayMismatch,
    is_invalid_resume,
)

if TYPE_CHECKING:
    from surestep._core.run import Run

log = logging.getLogger("surestep")
_THE_SAME_AGAIN = (ReplayMismatch, EffectUnknown, EffectAborted, EffectFenced)


class Superstep:
    """The tasks of a step and how far they are."""

    __slots__ = (
        "behind",
        "called",
        "calls",
        "calm",
        "effects",
        "escaped",
        "failure",
        "live",
        "questions",
        "quiet",
        "run",
        "stopped",
        "tasks",
    )

    def __init__(self, run: Run, tasks: list[Task]) -> None:
        self.run = run
        self.tasks = tasks
        self.live: dict[Task, int] = {}  # running (or about to run again) -> number of the current attempt
        self.questions: dict[Task, tuple[Any, ...]] = {}
        self.calls: dict[rows.Position, Task] = {}  # called tasks that have returned
        self.escaped: list[GraphBubbleUp] = []  # what left a task without being a failure or a question
        self.failure: BaseException | None = None
        self.behind: list[Task] = []  # gate nodes: what starts when they are through
        self.stopped = False  # nothing of it is wanted any more
        self.called = 0  # how many tasks were called
        self.effects: Admission | None = None  # from the first call of an effect on
        # nobody wants to hear of a task's end
        self.calm = not run.show.modes and not run.to_cache  # a task's end is to be kept, and nothing else
        self.quiet = self.calm and not run.keeps

    def play(self) -> Step[None]:
        """Run every task that has no writes yet; ends normally, or raises what ended the step."""
        parked = self.run.parked
        for task in self.tasks:
            if parked and task in parked:
                self.questions[task] = parked[task]
                if self.run.show.modes:
                    yield from self.run.show.paused(task, parked[task], self.run.head, self.run.step)
            elif not task.restored:
                self.live[task] = 1
        if self.run.blueprint.gated:
            self._put_behind_gates()
        step = self.run.step if self.run.request.timed else None
        command, wait = Next(tuple(self.live), step), NEXT if step is None else Next((), step)
        try:
            while self.live or (self.effects is not None and self.effects.flying):
                event = yield command
                command = wait
                if type(event) is not Ended or self.effects is not None:
                    yield from self._other(event)
                elif self.live.get(event.task) == event.attempt:
                    event.task.writes = event.writes
                    if event.error is None:
                        del self.live[event.task]
                        if self.run.blueprint.delta:
                            name_messages(self.run.blueprint.delta, event.writes)
                        if event.task.call is not None or not self.calm or self.live or self.behind:
                            if not self.quiet or event.task.call is not None:
                                yield from self._finished(event.task)
                        elif not self.quiet:
                            self.run.hold(event.task, rows.rows_of_success(event.task.writes))
                    else:
                        yield from self._broke(event.task, event.attempt, event.error)
                if not self.live and self.behind:
                    command = Next(self._through_gates(), step)
        except RunStopped:
            yield from self._stop(RunStopped())
            raise
        except Exception as error:  # the saver failed: siblings are not left running behind the caller's back
            yield from self._stop(error)
            raise
        self._conclude()

    def _put_behind_gates(self) -> None:
        """Rule 7."""
        gates = [task for task in self.live if task.node.gate]
        if gates or any(task.node.gate for task in self.questions):
            self.behind = [task for task in self.live if not task.node.gate]
            self.live = dict.fromkeys(gates, 1)

    def _through_gates(self) -> tuple[Task, ...]:
        """What stood behind the gates, if all of them were decided."""
        if self.failure is not None or self.escaped or self.questions:
            self.behind = []
        starts, self.behind = tuple(self.behind), []
        self.live.update(dict.fromkeys(starts, 1))
        return starts

    def _other(self, event: Any) -> Step[None]:
        """What is not the plain end of an attempt; with effects about, that too."""
        kind = type(event)
        if kind is Asked or kind is Landed:
            yield from self._about_effects(event)
        elif kind is not Ended:
            yield from self._about_tasks(event)
        elif self.live.get(event.task) == event.attempt:
            yield from self._ended(event)
        if self.effects is not None:
            yield from self.effects.decide()

    def _about_effects(self, event: Any) -> Step[None]:
        effects = self.effects = self.effects or Admission(self)
        if type(event) is Asked:
            yield from effects.ask(event.call)
        else:
            yield from effects.land([event, *(yield MoreLanded())])

    def _ended(self, event: Ended) -> Step[None]:
        task, error = event.task, event.error
        task.writes = event.writes
        if self.effects is not None:
            yield from self.effects.ended(task)
            if task in self.effects.held and not (isinstance(error, GraphInterrupt) and any(error.args)):
                error = EffectHeld()
        if isinstance(error, EffectCancelled):  # nobody caught it: the task ends without writes, its siblings go on
            task.writes = closing(self.run, task, str(error)) if task.node.spec.close is not None else []
            error = None
        if error is not None:
            yield from self._broke(task, event.attempt, error)
        else:
            del self.live[task]
            if self.run.blueprint.delta:
                name_messages(self.run.blueprint.delta, event.writes)
            yield from self._finished(task)

    def _about_tasks(self, event: Any) -> Step[None]:
        if type(event) is Stopped:
            raise event.error
        if type(event) is Called:
            yield from self._called(event.call)
        elif type(event) is Expired and self.live.get(event.task) == event.attempt:
            yield Abandon(event.task, event.attempt)
            event.task.writes = []
            yield from self._broke(event.task, event.attempt, self._timeout_error(event))
        elif type(event) is CallDropped:
            for task, attempt in self.live.items():
                if task.call is event.call:
                    yield Abandon(task, attempt)
        elif type(event) is StepExpired and event.step == self.run.step:
            self.failure = self.failure or TimeoutError("Timed out")
            for task, attempt in self.live.items():
                yield Abandon(task, attempt)

    # ends of attempts

    def _finished(self, task: Task) -> Step[None]:
        run = self.run
        if task.call is not None:
            self.calls[task.call.position] = task
        if run.keeps:
            yield from self._keep(task, rows.rows_of_success(task.writes, task.call))
        if run.to_cache:
            yield from remember(run, task)
        if run.show.modes:
            yield from run.show.finished(task, run.step)
        if task.call is not None:
            yield Answer(task.call, rows.returned(task.writes), None)

    def _keep(self, task: Task, kept: Sequence[tuple[str, Any]], handled: bool = False) -> Step[None]:
        """Keep what a task came to. If that can't be done, whoever called it is not left waiting."""
        try:
            yield from self.run.keep(task, kept, last=not (self.live or self.behind or handled), urgent=handled)
        except (Exception, RunStopped) as error:
            if task.call is not None:
                yield Answer(task.call, None, error if isinstance(error, Exception) else Abandoned(started=False))
            raise

    def _broke(self, task: Task, attempt: int, error: BaseException) -> Step[None]:
        if isinstance(error, GraphInterrupt):
            del self.live[task]
            yield from self._paused(task, error)
        elif isinstance(error, GraphBubbleUp):
            del self.live[task]
            task.writes = []
            self.escaped.append(error)
            if task.call is not None:
                yield Answer(task.call, None, error)
        elif isinstance(error, Abandoned):
            del self.live[task]
            if error.started and task.call is None:
                yield from self._keep_failure(task, error.error, handled=False)
            if task.call is not None:
                yield Answer(task.call, None, Abandoned(started=False))
        elif (delay := self._delay(task, attempt, error)) is not None:
            self.live[task] = attempt + 1
            yield Spawn(task, attempt + 1, delay)
        else:
            del self.live[task]
            yield from self._failed(task, error)

    def _delay(self, task: Task, attempt: int, error: BaseException) -> float | None:
        if self.failure is not None or not isinstance(error, Exception):
            return None
        if isinstance(error, _THE_SAME_AGAIN) or is_invalid_resume(error):  # it would be the same again
            return None
        return delay_before_retry(task.node.retry, error, attempt)

    def _paused(self, task: Task, pause: GraphInterrupt) -> Step[None]:
        run = self.run
        questions = tuple(pause.args[0]) if pause.args else ()
        if questions or isinstance(pause, EffectHeld):
            if run.request.ledger and isinstance(pause, GateClosed):
                yield UseLedger("decide", (run.asked_at_gate(pause),))
            if run.keeps:
                yield from self._keep(task, rows.rows_of_pause(task.writes, questions))
            if run.show.modes:
                yield from run.show.paused(task, questions, run.head, run.step)
        task.writes = []
        if task.call is not None:
            yield Answer(task.call, None, pause)
        else:
            self.questions[task] = questions

    def _failed(self, task: Task, error: BaseException) -> Step[None]:
        """An attempt failed for good: its handler takes over, or whoever called it, or the step ends."""
        run = self.run
        by_handler = run.blueprint.nodes.get(task.node.handler or "") if isinstance(error, Exception) else None
        if is_invalid_resume(error):
            yield from run.reject_answers(task)
            task.writes = []
        else:
            yield from self._keep_failure(task, error, handled=by_handler is not None)
        if task.call is not None:
            yield Answer(task.call, None, error)
        elif by_handler is not None and self.failure is None and not is_invalid_resume(error):
            yield from self._handle(task, by_handler, error)
        elif self.failure is None:
            self.failure = error
            if self.effects is not None:
                yield from self.effects.hold()
            for other, attempt in list(self.live.items()):
                yield Abandon(other, attempt)

    def _keep_failure(self, task: Task, error: BaseException, handled: bool) -> Step[None]:
        run = self.run
        if run.keeps:
            kept = rows.rows_of_failure(task.writes, error, task.name, handled)
            yield from self._keep(task, kept, handled)
        if run.show.modes:
            yield from run.show.failed(task, error, run.step)
        task.writes = []

    def _handle(self, failed: Task, node: Any, error: BaseException) -> Step[None]:
        task = handler(self.run.head, failed, node, error)
        self.tasks.append(task)
        self.live[task] = 1
        yield Spawn(task, 1, 0.0)

    @staticmethod
    def _timeout_error(event: Expired) -> NodeTimeoutError:
        policy = event.task.timeout
        return NodeTimeoutError(
            event.task.name,
            event.elapsed,
            kind=event.kind,
            idle_timeout=policy.idle_timeout,
            run_timeout=policy.run_timeout,
        )

    # calls of tasks by tasks

    def _called(self, call: Call) -> Step[None]:
        run = self.run
        pending = run.pending if not run.replaying else None
        if (changed := self._mismatch(call, pending)) is not None:
            yield Answer(call, None, changed)
            return
        again = self.calls.get(call.position)
        if again is not None:
            yield Answer(call, rows.returned(again.writes), None)
            return
        task = called(run.head, call, run.step)
        self.called += 1
        status = pending.by_task.get(task.id) if pending is not None else None
        self.tasks.append(task)
        if run.show.tasks:
            yield from run.show.starts([task], run.step)
        if status is not None and status.finished:
            task.writes, task.restored = list(status.outputs), True
            yield Answer(call, rows.returned(task.writes), None)
            return
        if run.request.caching and self.failure is None:
            yield from recall_call(run, task)
            if task.restored:
                self.calls[call.position] = task
                yield from run.show.restored(task)
                yield Answer(call, task.writes[0][1], None)
                return
        if status is not None:
            task.answers = run.answers_of(task, status)
        if self.failure is None:
            self.live[task] = 1
            yield Spawn(task, 1, 0.0)
        else:
            yield Answer(call, None, Abandoned(started=False))

    def _mismatch(self, call: Call, pending: rows.Pending | None) -> ReplayMismatch | None:
        """The error for a call whose place has the result of another one."""
        before = self.calls.get(call.position)
        known = before.call.origin if before is not None and before.call is not None else None
        if known is None and pending is not None:
            known = pending.calls.get(call.position)
        if known is None or known == call.origin:
            return None
        before_was = "had other arguments" if known.name == call.name else f"was a call of task '{known.name}'"
        return ReplayMismatch(
            f"Call {call.index + 1} of '{call.parent.name}' is now a call of task '{call.name}'; the one whose result "
            f"is kept {before_was}. Results belong to calls by their order, so nothing was run or handed out. Run "
            "the thread with the code that it was paused in, or start again from its input. A value that differs each "
            "time (the time, a random id) must not be an argument: get it from a task of its own.",
            task=call.name,
            position=call.index,
        )

    # the end

    def _stop(self, reason: BaseException) -> Step[None]:
        """The step can't go on: let go of what runs, and keep what comes in, as far as the saver can."""
        self.failure = reason
        self.stopped = True
        if self.effects is not None:
            yield from self.effects.fence()
        for task, attempt in list(self.live.items()):
            yield Abandon(task, attempt)
        while self._under_way():
            try:
                yield from self._drain()
            except Exception as error:
                if error is not reason:
                    log.info("A result of a stopped step could not be kept: %s", error)

    def _under_way(self) -> bool:
        return bool(self.live or (self.effects is not None and self.effects.flying))

    def _drain(self) -> Step[None]:
        while self._under_way():
            event = yield NEXT
            kind = type(event)
            if kind is Called:
                yield Answer(event.call, None, Abandoned(started=False))
            elif kind is Asked or kind is Landed:
                yield from self._about_effects(event)
            elif kind is Ended and self.live.get(event.task) == event.attempt:
                yield from self._ended(event)
            if self.effects is not None:
                yield from self.effects.wind_up()

    def _conclude(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self.escaped:
            raise self.escaped[0]
        if self.questions:
            order = [task for task in self.tasks if task in self.questions]
            raise GraphInterrupt(tuple(question for task in order for question in self.questions[task]))
