"""What a run takes over from the writes stored beside the checkpoint it starts from, and where answers go.

Rules:
1. A finished task does not run again: its stored writes are its writes.
2. A task whose error a handler took over does not run again; the handler does, unless it finished.
3. A branch that waits for an answer and got none is not started again while others go on: it goes on waiting. A run
   without answers that finds nothing but waiting branches starts them again: they may not need the answer any more.
4. An answer belongs to the question it names, or to the only one that is open; it is kept before anything runs, and
   once: of two answers to one question the second gets `AlreadyAnswered`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from surestep._core.blueprint import ERROR, RESUME
from surestep._core.commands import Save, Step, TaskRows, UseLedger
from surestep._core.effects import resolution_of
from surestep._core.gates import Approve, Reject, as_decision, rejection_in
from surestep._core.ids import NS_SEP, interrupt_id, recast
from surestep._core.rows import ANSWER, Pending, TaskStatus
from surestep._core.task import Task, handler
from surestep.errors import AlreadyAnswered, AmbiguousResume, UnknownInterruptError

if TYPE_CHECKING:
    from surestep._core.run import Run

_QUESTION_ID = re.compile("[0-9a-f]{32}")


def reattach(run: Run, tasks: list[Task]) -> None:
    """Give planned tasks what is stored of them."""
    pending = run.pending
    if pending is None:
        return
    held: list[Task] = []
    for task in list(tasks):
        status = pending.by_task.get(task.id)
        if status is None:
            continue
        if not run.replaying and status.handled and status.error is not None and not status.finished:
            _hand_over(run, task, status, tasks)
        else:
            _take_over(run, task, status, held)
    if run.parked:  # a question is open still: what it holds goes on waiting with it
        run.parked.update(dict.fromkeys(held, ()))
    if not run.request.answers.given and all(task.restored or task in run.parked for task in tasks):
        run.parked.clear()


def _take_over(run: Run, task: Task, status: TaskStatus, held: list[Task]) -> None:
    if status.finished and not run.replaying:
        task.writes = list(status.outputs)
        task.restored = True
        return
    task.answers = run.answers_of(task, status)
    if not run.replaying and status.error is None:
        if questions := _unanswered(run, task, status):
            run.parked[task] = questions
        elif status.held:
            held.append(task)


def _unanswered(run: Run, task: Task, status: TaskStatus) -> tuple[Any, ...]:
    """The questions of a task that nobody answered; none as soon as one of them was, for then it goes on."""
    if any(reaches_into(ns, task.ns) for ns in run.request.deep):
        return ()
    answered = {interrupt_id(task.ns, k) for k in range(len(task.answers))} | run.request.answers.by_id.keys()
    if any(question.id in answered for question in status.questions):
        return ()
    return status.questions


def _hand_over(run: Run, task: Task, status: TaskStatus, tasks: list[Task]) -> None:
    error = status.error if isinstance(status.error, BaseException) else Exception(status.error)
    task.writes = [(ERROR, error)]
    task.restored = True
    node = run.blueprint.nodes.get(task.node.handler or "")
    if node is None:
        task.writes, task.restored = [], False  # the handler is gone (a deploy): the node is tried again
        return
    takes_over = handler(run.head, task, node, error)
    tasks.append(takes_over)
    assert run.pending is not None
    if (own := run.pending.by_task.get(takes_over.id)) is not None:
        _take_over(run, takes_over, own, [])


def reaches_into(ns: str, task_ns: str) -> bool:
    """Whether a namespace lies in that of a task; the task may have had another id when it was made."""
    inner, outer = recast(ns), recast(task_ns)
    return inner == outer or inner.startswith(outer + NS_SEP)


def is_answer_map(resume: Any) -> bool:
    """Whether a resume value names the questions it answers: a dict whose keys are all question ids."""
    return (
        isinstance(resume, dict)
        and bool(resume)
        and all(isinstance(key, str) and _QUESTION_ID.fullmatch(key) for key in resume)
    )


def take_answers(run: Run, resume: Any, old: bool) -> Step[None]:
    """Match a resume value with the open questions and keep it. `old`: the checkpoint is not the newest one any
    more, so its questions may be answered anew, and nothing is kept beside it.
    """
    pending = run.pending or Pending()
    thread = run.request.config.get("configurable", {}).get("thread_id")
    if old:
        _reopen(pending)
        run.request.answers.to_old = True
    waiting = {question.id: question for question in _open_questions(run, pending)}
    if run.request.deep and not is_answer_map(resume):
        run.request.answers.loose.append(resume)  # the checkpoint further down asks anew, under another id
        return
    if is_answer_map(resume):
        answers = dict(resume)
        if unknown := [key for key in answers if key not in waiting]:
            raise _not_waiting(pending, thread, unknown, list(waiting))
    elif len(waiting) == 1:
        answers = {next(iter(waiting)): resume}
    elif waiting:
        raise AmbiguousResume(
            f"Thread {thread!r} waits for {len(waiting)} answers, and one value was given. When there are multiple "
            "pending interrupts, you must specify the interrupt id when resuming: "
            f"Command(resume={{id: answer}}) with ids from get_state(config).interrupts ({', '.join(waiting)}).",
            pending_ids=tuple(waiting),
        )
    else:
        raise _not_waiting(pending, thread, [], [])
    run.request.answers.by_id.update(answers)
    if not old:
        yield from _claim(run, pending, answers)


def expire_gates(run: Run) -> Step[None]:
    """Gates that nobody decided in time are answered by that (rule G2)."""
    pending = run.pending
    assert pending is not None
    waiting = {question.id for question in _open_questions(run, pending)}
    if not waiting:
        return
    asked = yield UseLedger("get_decisions", (run.thread_id,))
    now = run.request.now()
    for gate in asked:
        if gate.kind == "ask" and gate.subject in waiting and gate.deadline is not None and gate.deadline <= now:
            reason = f"nobody decided until {gate.deadline}"
            answers: dict[str, Any] = {gate.subject: Reject(reason, expired=True)}
            yield from _claim(run, pending, answers)
            run.request.answers.by_id.update(answers)
            pending.answers.update(answers)


def record_decisions(run: Run) -> Step[None]:
    """Keep what was approved and what was rejected; a rejection cancels what its scope holds (rule G3).

    Done for answers of earlier runs too: one may have ended between the answer and this. The ledger takes a decision
    once.
    """
    for subject, answer in run.request.answers.by_id.items():
        rejection = rejection_in(answer)
        if rejection is not None:
            kind = "expire" if rejection.expired else "reject"
            decided = run.decision(subject, kind, reason=rejection.reason)
            yield UseLedger("decide", ([decided],), {"cancels": True})
        elif isinstance(as_decision(answer), Approve):
            yield UseLedger("decide", ([run.decision(subject, "approve")],))
        elif (resolution := resolution_of(answer)) is not None:
            yield UseLedger("decide", ([run.decision(subject, type(resolution).__name__.lower())],))


def _open_questions(run: Run, pending: Pending) -> list[Any]:
    answered = pending.answers
    found: dict[str, Any] = {}
    for status in pending.by_task.values():
        if status.handled:
            continue
        for question in status.open_questions(answered):
            found.setdefault(question.id, question)
    return list(found.values())


def _claim(run: Run, pending: Pending, answers: dict[str, Any]) -> Step[None]:
    for key, value in answers.items():
        claimed = f"{ANSWER}{key}"
        if attempts := pending.rejected.get(key, 0):
            claimed = f"{claimed}#{attempts}"
        rows = TaskRows(claimed, "", [(RESUME, value)])
        yield Save(run.head.ns, run.head.anchor.id, rows, claim=True, urgent=True)
        run.answered[key] = claimed


def _reopen(pending: Pending) -> None:
    """On an old checkpoint what was asked may be asked again: forget what came of it."""
    pending.answers.clear()
    for status in pending.by_task.values():
        status.outputs = []


def _not_waiting(pending: Pending, thread: Any, unknown: list[str], waiting: list[str]) -> UnknownInterruptError:
    answered = [key for key in unknown if key in pending.answers] or ([] if unknown else list(pending.answers))
    if answered:
        return AlreadyAnswered(
            f"The question {answered[0]} of thread {thread!r} has been answered already. The run that took the answer "
            "is under way or was interrupted; go on from it with invoke(None, config).",
            interrupt_ids=tuple(answered),
            pending_ids=tuple(waiting),
        )
    what = f"Nobody asked {', '.join(unknown)}" if unknown else "Nobody waits for an answer"
    open_now = f"Open questions: {', '.join(waiting)}." if waiting else "It has no open question."
    return UnknownInterruptError(
        f"{what} in thread {thread!r}, so the answer was not used. {open_now} "
        "Look with get_state(config).interrupts; to continue a thread that waits for no answer, invoke(None, config).",
        reason="not_pending",
        interrupt_ids=tuple(unknown),
        pending_ids=tuple(waiting),
    )
