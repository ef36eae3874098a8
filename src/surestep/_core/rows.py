"""What a task's stored writes say about it: finished, waiting for an answer, or failed.

Rules:
1. A task is finished when it has an output row: any that is not in `CONTROL`. If it wrote nothing it has `NO_WRITES`.
2. Rows of older attempts stay beside newer ones; an output row outweighs them all.
3. A question is open until an answer to its id is known.
4. Beside a called task's result stands which call it was: who called, the how manyth call it was, what was called, and
   a digest of the arguments. Code that changed does not get the result of another call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from surestep._core.blueprint import CALLED, CONTROL, ERROR, ERROR_SOURCE_NODE, INTERRUPT, NO_WRITES, RESUME, RETURN
from surestep._core.ids import NULL_TASK_ID

if TYPE_CHECKING:
    from surestep._core.task import Call

Writes = Sequence[tuple[str, Any]]
Position = tuple[str, int]  # of a call: the id of the task that called, and the how manyth of its calls it was
ANSWER = "answer:"  # + the question's id: the task id under which an answer is stored


class Origin(NamedTuple):
    """What was called."""

    name: str
    arguments: str  # their digest


class TaskStatus:
    """The rows of one task, sorted by what they mean."""

    __slots__ = ("answers", "error", "handled", "held", "outputs", "questions")

    def __init__(self) -> None:
        self.outputs: list[tuple[str, Any]] = []
        self.questions: tuple[Any, ...] = ()  # the Interrupts it raised last
        self.answers: list[Any] = []
        self.error: Any = None
        self.held = False  # it waits for no answer of its own: an effect of it is held beside another's question
        self.handled = False  # its error is an error handler's business

    @property
    def finished(self) -> bool:
        return bool(self.outputs)

    def open_questions(self, answered: Collection[str]) -> tuple[Any, ...]:
        if self.finished:
            return ()
        return tuple(question for question in self.questions if question.id not in answered)


class Answers:
    """What the caller of a run answered; one object for a run and all runs inside it."""

    __slots__ = ("by_id", "given", "loose", "to_old")

    def __init__(self) -> None:
        self.by_id: dict[str, Any] = {}  # question id -> answer, those kept from earlier runs included
        self.loose: list[Any] = []  # for whoever asks first
        self.given = False  # the caller brought answers
        self.to_old = False  # they are for an old checkpoint: its questions are answered anew


class Pending:
    """The writes stored beside one checkpoint, by task."""

    __slots__ = ("answers", "by_task", "calls", "null", "rejected")

    def __init__(self, rows: Iterable[tuple[str, str, Any]] = ()) -> None:
        self.by_task: dict[str, TaskStatus] = {}
        self.null: list[tuple[str, Any]] = []  # edits that belong to no task
        self.answers: dict[str, Any] = {}  # question id -> answer
        self.rejected: dict[str, int] = {}  # question id -> answers that did not fit it
        self.calls: dict[Position, Origin] = {}  # of the finished called tasks
        for task_id, channel, value in rows:
            self.add(task_id, channel, value)

    def add(self, task_id: str, channel: str, value: Any) -> None:
        if task_id == NULL_TASK_ID:
            self.null.append((channel, value))
        elif task_id.startswith(ANSWER):
            self._add_answer(task_id.removeprefix(ANSWER).partition("#")[0], channel, value)
        elif channel == CALLED:
            caller, index, *origin = value
            self.calls[caller, index] = Origin(*origin)
        else:
            self._add_to(self.status(task_id), channel, value)

    def _add_answer(self, question: str, channel: str, value: Any) -> None:
        if channel == ERROR:  # stored after the answer it rejects
            self.rejected[question] = self.rejected.get(question, 0) + 1
            self.answers.pop(question, None)
        else:
            self.answers[question] = value

    @staticmethod
    def _add_to(status: TaskStatus, channel: str, value: Any) -> None:
        if channel == INTERRUPT:
            status.questions = tuple(value) if isinstance(value, (list, tuple)) else (value,)
            status.held = not status.questions
        elif channel == RESUME:
            status.answers = list(value) if isinstance(value, (list, tuple)) else [value]
        elif channel == ERROR:
            status.error = value
        elif channel == ERROR_SOURCE_NODE:
            status.handled = True
        else:
            status.outputs.append((channel, value))

    def status(self, task_id: str) -> TaskStatus:
        found = self.by_task.get(task_id)
        if found is None:
            found = self.by_task[task_id] = TaskStatus()
        return found

    def edits(self) -> list[tuple[str, Any]]:
        """Edits of the state that a Command brought, without the answers it brought."""
        return [(channel, value) for channel, value in self.null if channel not in CONTROL]


def rows_of_success(writes: Writes, call: Call | None = None) -> Writes:
    """A finished task's rows: never only control rows, so that "finished" can be seen."""
    if call is not None:
        return [*writes, (CALLED, [*call.position, *call.origin])]
    for channel, _ in writes:
        if channel not in CONTROL:
            return writes
    return [*writes, (NO_WRITES, None)]


def rows_of_pause(writes: Writes, questions: Sequence[Any]) -> Writes:
    """A paused task's rows: what it asks, and the answers it already has."""
    return last_of_each([(INTERRUPT, list(questions)), *((c, v) for c, v in writes if c == RESUME)])


def rows_of_failure(writes: Writes, error: BaseException, node: str, handled: bool) -> Writes:
    """A failed task's rows. Its writes count for nothing: it did not finish, so it will run again as a whole."""
    # As text, whatever the saver's serializer makes of exceptions: reading the thread must not need the error's class.
    rows: list[tuple[str, Any]] = [*((c, v) for c, v in writes if c == RESUME), (ERROR, repr(error))]
    if handled:
        rows.append((ERROR_SOURCE_NODE, node))
    return last_of_each(rows)


def returned(writes: Writes) -> Any:
    """What a called task returned."""
    return next((value for channel, value in writes if channel == RETURN), None)


def last_of_each(writes: Writes) -> Writes:
    """One row a channel, the last one written."""
    return list(dict(writes).items())
