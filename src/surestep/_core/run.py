"""One run: take the input, step until nothing is left to do, and leave everything kept.

Rules:
1. The input is durable before the first node starts (except in `exit` durability, which promises no such thing).
2. A checkpoint is committed by compare-and-set on the thread's newest checkpoint: of two runs on one thread, the
   slower one gets `ThreadConflict` and loses nothing silently.
3. Whatever ends a run, the writes of finished tasks are kept before it ends.
4. The core has no clock: ids and times come from `Request.mint` and `Request.now`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from surestep._core.apply import apply_writes
from surestep._core.begin import begin
from surestep._core.blueprint import ERROR, HIDDEN, INTERRUPT, Blueprint
from surestep._core.cache import Key, recall
from surestep._core.commands import SETTLE, Commit, Emit, Save, Step, TaskRows, UseLedger
from surestep._core.emit import Show
from surestep._core.events import RunStopped
from surestep._core.head import FORMAT, Head, Mint, without_keys
from surestep._core.ids import interrupt_id
from surestep._core.plan import is_idle, plan
from surestep._core.resume import reattach
from surestep._core.rows import Answers, Pending, TaskStatus
from surestep._core.snapshot import checkpoint_payload
from surestep._core.step import Superstep
from surestep._core.task import Task
from surestep._records import Decision
from surestep.errors import GateClosed, GraphInterrupt, RunCancelled, ThreadConflict


@dataclass(slots=True, kw_only=True)
class Request:
    """What a run is asked to do, and under which circumstances."""

    input: Any
    config: Mapping[str, Any]
    mint: Mint
    now: Callable[[], str]
    next_version: Callable[[Any, None], Any]
    recursion_limit: int
    control: Any
    ns: str = ""
    nested: bool = False
    saver: bool = False
    durability: str = "async"
    fresh: bool = False  # run as if the thread were empty
    checkpoint_id: str | None = None  # run from this checkpoint instead of the newest one
    mapped: bool = False  # nested: the address came with the caller's checkpoint_map
    base_ns: str | None = None  # nested: the address lies in this older namespace of the same graph
    deep: Sequence[str] = ()  # namespaces below this one that the address reaches into
    bound: str | None = None  # nested, replaying: the newest checkpoint older than this one
    resuming: bool | None = None  # nested: what the enclosing run says; None at the root
    answers: Answers = field(default_factory=Answers)  # shared with nested runs
    parents: Mapping[str, str] = field(default_factory=dict)
    run_id: Any = None
    strict: bool = False
    before: Any = ()  # static interrupts: names, or "*"
    after: Any = ()
    timed: bool = False  # steps have a time limit, which the driver knows
    caching: bool = False  # the driver has a cache
    holding: bool = False  # the run holds its thread, and lets go of it with its last commit
    ledger: bool = False  # the saver, or that of an enclosing graph, keeps a ledger of effects


class Outcome(NamedTuple):
    """How a run ended."""

    status: str  # done | interrupted | draining | out_of_steps
    output: Any
    shown: bool  # whether any state was there to be shown
    questions: tuple[Any, ...] = ()
    pause: GraphInterrupt | None = None


class Run:
    """The state of one run. Everything that decides is in functions; this is what they share."""

    __slots__ = (
        "answered",
        "blueprint",
        "first_step",
        "head",
        "held",
        "held_edits",
        "keeps",
        "loaded_id",
        "metadata",
        "newest",
        "parent_id",
        "parked",
        "paused_at",
        "pending",
        "replay_bound",
        "replaying",
        "request",
        "resuming",
        "show",
        "shown",
        "step",
        "stop",
        "tasks",
        "to_cache",
        "unsaved",
    )

    def __init__(self, blueprint: Blueprint, request: Request, show: Show) -> None:
        self.blueprint = blueprint
        self.request = request
        self.show = show
        self.head: Head
        self.pending: Pending | None = None  # rows stored beside the loaded checkpoint
        self.parked: dict[Task, tuple[Any, ...]] = {}  # tasks whose questions nobody has answered yet
        self.held: list[tuple[Task, Sequence[tuple[str, Any]]]] = []  # rows that go with the next commit
        self.held_edits: list[Save] = []  # edits of state that are kept when the run ends, if it takes no step
        self.keeps = request.saver
        self.newest: str | None = None  # the thread's newest checkpoint as this run knows it
        self.loaded_id: str | None = None
        self.parent_id: str | None = None
        self.metadata: dict[str, Any] = {}
        self.unsaved = False  # exit durability: the head is not stored
        self.replaying = False
        self.replay_bound: str | None = None
        self.resuming: bool | None = None  # what nested graphs of this step are told
        self.answered: dict[str, str] = {}  # question id -> task id under which its answer was claimed
        self.shown = False
        self.paused_at = "pending"  # or at a static interrupt: interrupt_before, interrupt_after
        self.tasks: list[Task] = []  # of the current step
        self.to_cache: dict[Task, tuple[Key, int | None]] = {}  # where their results go, and for how long
        self.step = -1
        self.stop = 0

    @property
    def thread_id(self) -> str:
        return str(self.request.config.get("configurable", {}).get("thread_id"))

    @property
    def actor(self) -> str | None:
        """Who runs it, for audits."""
        found = self.request.config.get("configurable", {}).get("actor")
        return None if found is None else str(found)

    @property
    def may_have_effects(self) -> bool:
        """Whether a task of this step may have run before."""
        return self.pending is not None or self.request.nested

    @property
    def root_checkpoint(self) -> str:
        """The checkpoint of the outermost graph that this step belongs to."""
        return self.request.parents.get("") or self.head.anchor.id

    # keeping

    def keep(self, task: Task, writes: Sequence[tuple[str, Any]], last: bool, urgent: bool = False) -> Step[None]:
        """Keep a task's rows: at once, or (the step's last ones) with the step's checkpoint."""
        if self.request.durability == "exit" or (last and not urgent):
            self.hold(task, writes)
        else:
            yield Save(self.head.ns, task.anchor.id, self._rows(task, writes), urgent=urgent)

    def hold(self, task: Task, writes: Sequence[tuple[str, Any]]) -> None:
        """Keep a task's rows together with the step's checkpoint."""
        self.held.append((task, writes))

    def store_head(self) -> Step[None]:
        """Exit durability: keep the checkpoint stood on now, for something that hangs from it."""
        if self.unsaved:
            self.unsaved = False
            yield self._commit(self.loaded_id, urgent=True)
            self.loaded_id = self.head.anchor.id

    def _rows(self, task: Task, writes: Sequence[tuple[str, Any]]) -> TaskRows:
        untracked = self.blueprint.untracked
        if untracked:
            writes = [(key, without_keys(value, untracked)) for key, value in writes if key not in untracked]
        return TaskRows(task.id, task.path_text, writes)

    def commit(self, source: str, urgent: bool = False, parent: tuple[str | None] | None = None) -> Step[None]:
        """Stand on a new checkpoint and keep it. `parent`: (id,) if it is not the one stood on so far."""
        command = self.advance(source, urgent, parent)
        if command is not None:
            yield command
        self.held.clear()
        self.held_edits.clear()

    def advance(self, source: str, urgent: bool = False, parent: tuple[str | None] | None = None) -> Commit | None:
        """Stand on a new checkpoint; the command that keeps it, if it is to be kept now."""
        head = self.head
        if not self.keeps:
            head.advance(self.step, None)
            return None
        before = head.anchor.known_id() if parent is None else parent[0]
        head.advance(self.step, before if before == self.newest else _later(before, self.newest))
        self.metadata = {"source": source, "step": self.step, "parents": dict(self.request.parents)}
        if self.request.durability == "exit":
            self.parent_id = self.loaded_id  # as it will be stored
            self.unsaved = True
            return None
        self.parent_id = before
        return self._commit(before, urgent)

    def _commit(self, parent: str | None, urgent: bool) -> Commit:
        head = self.head
        versions, id, looked = head.versions, head.anchor.id, head.looked
        checkpoint = {
            "v": FORMAT,
            "ts": self.request.now(),
            "id": id,
            "channel_values": head,  # the driver asks it for the values that the saver wants
            "channel_versions": versions,  # as they are now: the driver copies them for a saver that needs that
            "versions_seen": head.seen,
            "updated_channels": None if head.updated is None else sorted(head.updated),
        }
        new_versions = head.dirty or {}
        rows: Sequence[TaskRows] = ()
        if self.held and self.request.durability != "exit":
            rows = [self._rows(task, writes) for task, writes in self.held]
        command = Commit(
            head.ns, parent, self.newest, checkpoint, self.metadata, new_versions, rows, True, urgent, looked
        )
        head.dirty, head.looked = {}, set()
        self.newest = id
        return command

    def leave(self, failed: bool) -> Step[None]:
        """Before the run ends: keep what is not kept yet."""
        request = self.request
        if not self.keeps:
            return
        if request.durability == "exit":
            yield from self._leave_at_exit(failed)
        else:
            yield from self._save_held()
        yield SETTLE

    def _leave_at_exit(self, failed: bool) -> Step[None]:
        if self.request.nested and not failed and ":" in self.request.ns:
            return
        if self.unsaved:
            self.unsaved = False
            yield self._commit(self.loaded_id, urgent=False)
        yield from self._save_held()

    def _save_held(self) -> Step[None]:
        edits, self.held_edits = self.held_edits, []
        yield from edits
        held, self.held = self.held, []
        for task, writes in held:
            yield Save(self.head.ns, task.anchor.id, self._rows(task, writes))

    # answers and decisions

    def decision(self, subject: str, kind: str, **more: Any) -> Decision:
        checkpoint = self.root_checkpoint
        return Decision(self.thread_id, subject, kind, self.request.now(), self.actor, checkpoint_id=checkpoint, **more)

    def asked_at_gate(self, pause: GateClosed) -> list[Decision]:
        """The question of a gate, for the ledger."""
        asked = pause.args[0]
        return [self.decision(one.id, "ask", digest=pause.digest, deadline=pause.deadline) for one in asked]

    def answers_of(self, task: Task, status: TaskStatus | None) -> list[Any]:
        """The answers a task starts with: those it had, and those to the questions it asked since."""
        known = self.request.answers.by_id
        given: list[Any] = []
        for number, stored in enumerate(status.answers if status is not None else ()):
            key = interrupt_id(task.ns, number) if known else ""
            given.append(known.get(key, stored))
            if key in known and self.replaying:
                break  # an old question answered anew: what was answered after it stands no more
        while known and (key := interrupt_id(task.ns, len(given))) in known:
            given.append(known[key])
        return given

    def reject_answers(self, task: Task) -> Step[None]:
        """The answer did not fit what the question asks for: the question is open again."""
        for key, claimed in list(self.answered.items()):
            self.request.answers.by_id.pop(key, None)
            del self.answered[key]
            rows = TaskRows(claimed, "", [(ERROR, f"rejected by {task.name}")])
            yield Save(self.head.ns, self.head.anchor.id, rows, urgent=True)


def run(this: Run) -> Step[Outcome]:
    """Run a graph."""
    try:
        yield from begin(this)
        status = yield from _steps(this)
        yield from this.leave(failed=False)
        return Outcome(status, this.show.output(this.head), this.shown)
    except GraphInterrupt as pause:
        return (yield from _paused(this, pause))
    except ThreadConflict as error:
        if isinstance(error, RunCancelled) and this.request.control.cancelled:
            yield from _leave_cancelled(this, error)
        raise  # else the thread went on without this run: nothing of it is to be kept
    except BaseException as error:
        yield from _leave_broken(this, error)
        raise


def _leave_cancelled(this: Run, error: RunCancelled) -> Step[None]:
    """Keep what has finished, and that somebody cancelled the rest."""
    yield from _leave_broken(this, error)
    if this.request.ledger and not this.request.nested:
        decided = this.decision(str(this.request.run_id or this.thread_id), "cancel", reason=error.reason)
        yield UseLedger("decide", ([decided],))


def _leave_broken(this: Run, error: BaseException) -> Step[None]:
    """Keep what can be kept; what went wrong first is what the caller hears of."""
    if not hasattr(this, "head"):
        return
    try:
        yield from this.leave(failed=True)
    except Exception as second:
        if isinstance(error, RunStopped):
            raise
        if second is not error:
            error.add_note(f"While leaving, the saver failed too: {type(second).__name__}: {second}")


def _steps(this: Run) -> Step[str]:
    """Supersteps until there is nothing to do, a limit is hit, or somebody asks to stop."""
    show, request, blueprint, head = this.show, this.request, this.blueprint, this.head
    while True:
        if this.step > this.stop:
            if show.checkpoints and this.keeps:
                yield from show.checkpoint(
                    checkpoint_payload(this, plan(head, blueprint, this.step, this.stop)), this.step - 1
                )
            return "out_of_steps"
        tasks = plan(head, blueprint, this.step, this.stop)
        if show.checkpoints and this.keeps:
            yield from show.checkpoint(checkpoint_payload(this, tasks), this.step - 1)
        if not tasks:
            return "done"
        if this.pending is not None:
            reattach(this, tasks)
        if request.before and _static_pause(this, request.before, tasks, "interrupt_before"):
            raise GraphInterrupt()
        if request.control.drain_requested:
            return "draining"
        if request.control.cancelled:
            raise RunCancelled(this.thread_id, request.control.cancel_reason, this.actor)
        if request.caching and blueprint.caches:
            yield from recall(this, tasks)
        if show.modes:
            yield from _announce(this, tasks)
        this.tasks = tasks
        yield from Superstep(this, tasks).play()
        head.updated = apply_writes(head, blueprint, tasks)
        if (show.values or not this.shown) and show.touches(head.updated):
            this.shown = True
            if show.values:
                yield Emit("values", show.output(head))
        this.pending = None
        this.parked = {}
        this.tasks = []
        this.replaying = False
        if (command := this.advance("loop")) is not None:
            yield command._replace(final=True) if request.holding and is_idle(head, blueprint) else command
        this.held.clear()
        this.held_edits.clear()
        this.step += 1
        if request.after and _static_pause(this, request.after, tasks, "interrupt_after"):
            if show.checkpoints and this.keeps:
                yield from show.checkpoint(
                    checkpoint_payload(this, plan(head, blueprint, this.step, this.stop)), this.step - 1
                )
            raise GraphInterrupt()
        this.resuming = None


def _announce(this: Run, tasks: Sequence[Task]) -> Step[None]:
    if this.show.tasks:
        yield from this.show.starts(tasks, this.step)
    for task in tasks:
        if task.restored:
            yield from this.show.restored(task)


def _static_pause(this: Run, names: Any, tasks: Sequence[Task], where: str) -> bool:
    """Whether a named node is among the tasks and something changed since the last pause."""
    seen = this.head.seen.get(INTERRUPT, {})
    if not any(key not in seen or version > seen[key] for key, version in this.head.versions.items()):
        return False
    named = [task for task in tasks if (HIDDEN not in task.node.tags if names == "*" else task.name in names)]
    if named:
        this.paused_at = where
    return bool(named)


def _paused(this: Run, pause: GraphInterrupt) -> Step[Outcome]:
    """A pause ends the run of a root graph normally; in a nested graph it goes up to the enclosing one."""
    yield from this.leave(failed=True)
    questions = tuple(pause.args[0]) if pause.args else ()
    show, head = this.show, this.head
    if this.request.nested:
        return Outcome("interrupted", None, this.shown, questions, pause)
    if any(task.writes for task in this.tasks):  # show what finished, though the step is not over
        if show.touches(apply_writes(head, this.blueprint, this.tasks)):
            this.shown = True
            if show.values:
                yield Emit("values", show.output(head))
    if not questions and show.updates:
        yield Emit("updates", {INTERRUPT: ()})
    return Outcome("interrupted", show.output(head), this.shown, questions, pause)


def _later(first: str | None, second: str | None) -> str | None:
    if first is None or second is None:
        return first or second
    return max(first, second)
