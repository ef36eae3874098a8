"""What a running node sees of the run around it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surestep._answers import json_schema_of, parse_answer
from surestep._context import current_task
from surestep._core.blueprint import PREVIOUS, RESUME
from surestep._core.gates import Answer, as_decision
from surestep._core.ids import gate_id, interrupt_id
from surestep._core.task import Task
from surestep.errors import GateClosed, GraphInterrupt, NodeError, mark_invalid_resume
from surestep.integrations.ambient import show_config
from surestep.runtime import ExecutionInfo, Runtime
from surestep.types import Interrupt

if TYPE_CHECKING:
    from surestep._drive.env import Env

TASK_KEY = "__surestep_task"  # in `configurable`: the task that a nested graph runs in
_numbering = threading.Lock()


class TaskContext:
    """One attempt at a task, as its node sees it. Most nodes ask for nothing of it, so everything is made on demand."""

    __slots__ = (
        "_config",
        "_runtime",
        "aside",
        "attempt",
        "calls",
        "effects",
        "env",
        "fenced",
        "gates",
        "graphs",
        "named",
        "progressed",
        "questions",
        "scope",
        "task",
        "watch",
        "writes",
    )

    def __init__(self, env: Env, task: Task, attempt: int) -> None:
        self.env = env
        self.task = task
        self.attempt = attempt
        self.writes: list[tuple[str, Any]] = []
        self.fenced = False  # abandoned: nothing it does counts any more
        self.progressed: Callable[[bool], None] | None = None  # told of signs of life; True: an explicit heartbeat
        self.aside = 0  # how many of its strands wait for the admission of an effect
        self.questions = 0  # how many answers it has asked for
        self.calls = 0  # how many tasks it has called
        self.effects = 0  # how many effects it has called
        self.gates = 0  # how many gates it has come to
        self.named: dict[str, int] = {}  # how many effects of a name
        self.graphs = 0  # how many graphs have run in it
        self.watch: Any = None  # the clocks of the attempt, if it has any
        self.scope: Any = None  # the context variables it runs with
        self._config: dict[str, Any] | None = None
        self._runtime: Runtime[Any] | None = None

    def started(self) -> None:
        """The attempt begins now."""
        self.task.asked = False
        if self.task.first_started is None:
            self.task.first_started = time.time()

    # what injection and the functions of `surestep.config` hand out

    @property
    def config(self) -> dict[str, Any]:
        """The config that the node may pass on to whatever it calls."""
        if self._config is None:
            self._config = self.env.task_config(self)
            if "langchain_core.callbacks.manager" in sys.modules:
                from surestep.integrations.langchain.quiet import quiet_manager

                self._config["callbacks"] = quiet_manager(self)
        return self._config

    def hand_on(self, config: dict[str, Any]) -> None:
        """The config for what the node calls from now on."""
        self._config = config

    @property
    def runtime(self) -> Runtime[Any]:
        if self._runtime is None:
            self._runtime = self.env.runtime.override(
                stream_writer=self.stream_writer,
                heartbeat=self.heartbeat,
                previous=self.previous,
                execution_info=self._execution_info(),
            )
        return self._runtime

    def _execution_info(self) -> ExecutionInfo:
        task, configurable = self.task, self.env.config.get("configurable", {})
        return ExecutionInfo(
            checkpoint_id=task.anchor.id,
            checkpoint_ns=task.ns,
            task_id=task.id,
            thread_id=configurable.get("thread_id"),
            run_id=self.env.run_id,
            node_attempt=self.attempt,
            node_first_attempt_time=self.task.first_started,
        )

    @property
    def store(self) -> Any:
        return self.env.runtime.store

    @property
    def previous(self) -> Any:
        """What the entrypoint saved for this thread the last time."""
        if PREVIOUS in self.env.blueprint.channels:
            return self.env.read(PREVIOUS, ())
        return self.env.runtime.previous

    @property
    def node_error(self) -> NodeError | None:
        failed = self.task.failed
        return NodeError(failed[0].name, failed[1]) if failed is not None else None

    @property
    def stream_writer(self) -> Callable[[Any], None]:
        return self._write_custom if self.env.custom or self.progressed is not None else _nowhere

    def _write_custom(self, chunk: Any) -> None:
        if not self.fenced:
            self.sign_of_life()
            if self.env.custom:
                self.env.show(self.task, "custom", chunk)

    def heartbeat(self) -> None:
        """Tell the idle timeout that the node is alive."""
        if self.progressed is not None:
            self.progressed(True)

    def sign_of_life(self) -> None:
        if self.progressed is not None:
            self.progressed(False)

    # state

    def read(self, select: str | Sequence[str], fresh: bool = False) -> Any:
        """Current values of channels; `fresh`: with this task's own writes applied."""
        return self.env.read(select, self.writes if fresh else ())

    def fresh(self, select: str | Sequence[str], lookups: Sequence[str] | None = None) -> Any:
        """Current values with the task's own writes applied. `lookups`: what the reader looks up of them; it gets no
        more, unless somebody sees what it is given."""
        return self.env.read(select if lookups is None or self.env.tracer is not None else lookups, self.writes)

    def send(self, writes: Sequence[tuple[str, Any]]) -> None:
        """Add writes to the task's own."""
        if not self.fenced:
            self.sign_of_life()
            self.writes.extend(writes)

    def show_message(self, message: Any) -> None:
        """Show a message to everybody who streams messages."""
        self.sign_of_life()
        if self.env.tracer is not None:
            self.env.tracer.push_message(self, message)

    # questions

    def interrupt(self, value: Any, response_schema: Any = None) -> Any:
        """The answer to a question, or the pause that asks for it."""
        env = self.env
        if env.saver is None and env.parent is not None:
            # A graph that keeps nothing starts over when it is resumed: its questions are those of the task it runs in.
            answer = env.parent.interrupt(value, response_schema)
            self.task.answers = [*self.task.answers, answer]  # known to have taken one: its result is not cached
            return answer
        number = self.next_number("questions")
        if number == len(self.task.answers) and env.run.request.answers.loose:
            self.task.answers = [*self.task.answers, env.run.request.answers.loose.pop(0)]
        answers = self.task.answers
        if number < len(answers):
            self.send([(RESUME, list(answers[: number + 1]))])
            return parse_answer(response_schema, answers[number])
        schema = json_schema_of(response_schema)
        raise GraphInterrupt((Interrupt(value, id=interrupt_id(self.task.ns, number), response_schema=schema),))

    def gate(self, value: Any, digest: str, deadline: str | None) -> Answer:
        """The decision on what a gate asks, or the pause that asks for it (`_core/gates.py`)."""
        env = self.env
        if env.saver is None and env.parent is not None:
            return env.parent.gate(value, digest, deadline)
        question = gate_id(self.task.ns, self.next_number("gates"), digest)
        answers = env.run.request.answers
        if question not in answers.by_id and answers.loose:
            answers.by_id[question] = answers.loose.pop(0)
        if question not in answers.by_id:
            raise GateClosed((Interrupt(value, id=question),), digest or None, deadline)
        decision = as_decision(answers.by_id[question])
        if decision is None:
            raise _no_decision(answers.by_id[question])
        return decision

    def next_effect(self, name: str) -> int:
        """The number of the next effect of this name, from 0."""
        with _numbering:
            number = self.named.get(name, 0)
            self.named[name] = number + 1
        return number

    def next_number(self, what: str) -> int:
        """The number of the next of the `questions`, `calls` or `graphs`, from 0. A node's own threads may ask too."""
        with _numbering:
            number: int = getattr(self, what)
            setattr(self, what, number + 1)
        return number

    def count_graphs(self, more: int) -> None:
        """A graph begins, or ends, to run in the task."""
        with _numbering:
            self.task.graphs += more

    def take_number(self, what: str) -> int:
        """Give a number back; the one that is next now."""
        with _numbering:
            number: int = getattr(self, what) - 1
            setattr(self, what, number)
        return number

    # called tasks

    def call(self, name: str, spec: Any, raw: Any) -> Any:
        """Start a task of this task; a future of what it returns."""
        self.sign_of_life()
        return self.env.call(self, name, spec, raw)


def enter(context: TaskContext) -> None:
    """Make it the current task of this context (of context variables), for LangChain too where it is loaded."""
    current_task.set(context)
    if "langchain_core.runnables.config" in sys.modules:
        show_config(context)


def _no_decision(answer: Any) -> TypeError:
    error = TypeError(
        f"A gate is answered by Approve(...) or Reject(reason), or by a dict with type 'approve' or 'reject', not by "
        f"{answer!r}. The question is open again."
    )
    mark_invalid_resume(error)
    return error


def _nowhere(chunk: Any) -> None:
    """A stream writer for a run in which nobody listens."""


def public(configurable: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's own keys of a `configurable`."""
    return {key: value for key, value in configurable.items() if not key.startswith("__")}
