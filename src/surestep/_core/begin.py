"""The first part of a run: load the checkpoint, decide between resuming and new input, and take the input in."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surestep._core.apply import apply_edits, apply_writes
from surestep._core.blueprint import BRANCH, INPUT, INTERRUPT, START, TASKS, Blueprint
from surestep._core.commands import SETTLE, Emit, ListCheckpoints, Load, Replay, Save, Step, TaskRows
from surestep._core.events import Loaded
from surestep._core.head import Anchor, Channels, Head
from surestep._core.ids import NULL_TASK_ID, PUSH
from surestep._core.plan import plan, state_for
from surestep._core.resume import expire_gates, record_decisions, take_answers
from surestep._core.rows import Pending
from surestep._core.task import Task
from surestep.channels.base import MISSING
from surestep.errors import EmptyInputError, InvalidUpdateError, MissingNodeError, UnknownInterruptError
from surestep.types import Command, Send

if TYPE_CHECKING:
    from surestep._core.run import Run

log = logging.getLogger("surestep")


class Reading:
    """How a run stands to the checkpoint it was given."""

    __slots__ = ("addressed", "forks", "resuming", "superseded", "travelling")

    def __init__(self, run: Run, loaded: Loaded, source: str) -> None:
        request = run.request
        command = request.input if isinstance(request.input, Command) else None
        answering = command is not None and command.resume is not None
        history = bool(run.head.versions)
        asked_to_resume = request.input is None or command is not None or _same_run(run, loaded)
        flag = request.resuming
        self.resuming = history and (asked_to_resume if flag is None else flag)
        self.addressed = request.checkpoint_id is not None
        old = loaded.saved is not None and loaded.saved.checkpoint["id"] != loaded.head_id
        self.superseded = old and (self.addressed or request.answers.to_old)
        into_child = bool(request.deep) and not self.superseded  # the address means a checkpoint further down
        self.travelling = self.addressed and not into_child and (request.mapped or not (answering or bool(flag)))
        # A branch that was made to be run is run where it is, once: whoever goes back to it after one of its
        # tasks has ended gets a branch beside it, which nothing of the older try is mixed into.
        fresh = source in ("update", "fork") and not self.superseded and not _worked_on(run)
        self.forks = self.resuming and self.travelling and not fresh


def _worked_on(run: Run) -> bool:
    return run.pending is not None and any(status.finished for status in run.pending.by_task.values())


def _same_run(run: Run, loaded: Loaded) -> bool:
    """Whether the very same run is started again (at the root, told by a run id of the caller's)."""
    run_id, saved = run.request.run_id, loaded.saved
    if run.request.nested or run_id is None or saved is None:
        return False
    return bool(saved.metadata.get("run_id") == run_id)


def begin(run: Run) -> Step[None]:
    """Everything before the first step."""
    loaded = yield from load(run)
    source = loaded.saved.metadata.get("source", "") if loaded.saved is not None else ""
    reading = Reading(run, loaded, source)
    if reading.resuming and loaded.saved is not None:
        _check_nodes(run, loaded.saved.checkpoint["channel_values"])
    run.replaying = reading.travelling or reading.superseded
    if reading.travelling and run.pending is not None:
        _forget_answers(run.pending)
    elif run.pending is not None and not reading.superseded:
        for key, value in run.pending.answers.items():
            run.request.answers.by_id.setdefault(key, value)
    if run.request.ledger and run.pending is not None and not run.request.nested:
        yield from expire_gates(run)
    carried = yield from _take_command(run, reading)
    if run.request.ledger and run.request.answers.by_id and not run.request.nested:
        yield from record_decisions(run)
    updated = apply_edits(run.head, run.blueprint, [*(run.pending.edits() if run.pending else ()), *carried])
    if updated:
        run.head.updated = {*(run.head.updated or ()), *updated}
    if reading.resuming:
        yield from _resume(run, reading)
    else:
        yield from _take_input(run)
    run.resuming = reading.resuming if run.request.resuming is None else run.request.resuming
    if reading.travelling and not run.request.nested:
        run.replay_bound = _bound(run, loaded, source)
        run.resuming = False if run.replay_bound is None else run.resuming


def _bound(run: Run, loaded: Loaded, source: str) -> str | None:
    """Nested graphs of a replay start from their newest checkpoint older than this one."""
    if source in ("update", "fork") and loaded.saved is not None and loaded.saved.parent_config:
        return str(loaded.saved.parent_config["configurable"]["checkpoint_id"])
    return run.request.checkpoint_id


def _check_nodes(run: Run, values: Mapping[str, Any]) -> None:
    """A thread that waits at a node which a deploy took away does not end as if it were done."""
    blueprint = run.blueprint
    gone = [key.removeprefix(BRANCH) for key in values if key.startswith(BRANCH) and key not in blueprint.channels]
    if gone:
        thread = run.request.config.get("configurable", {}).get("thread_id")
        raise MissingNodeError(
            f"Thread {thread!r} is to go on at {', '.join(map(repr, gone))}, which graph '{blueprint.name}' does not "
            "have: it was renamed or taken away since. Nothing was run, and an answer was not used. Keep a node of "
            "that name for as long as threads wait at it (it may do what the new one does), or give the thread an "
            "input.",
            nodes=tuple(gone),
            thread_id=thread,
        )


def _forget_answers(pending: Pending) -> None:
    """A replay asks its questions again."""
    pending.answers.clear()
    for status in pending.by_task.values():
        status.answers = []


# loading


def load(run: Run) -> Step[Loaded]:
    """Load the checkpoint that the request means, or stand on an empty one."""
    request, blueprint = run.request, run.blueprint
    loaded = Loaded(None, None)
    if request.saver:
        loaded = yield Load(request.base_ns or request.ns, request.checkpoint_id, request.bound)
        if request.fresh:
            loaded = loaded._replace(saved=None)
        if request.base_ns:  # the state comes from another namespace; ours is empty so far
            loaded = loaded._replace(head_id=(yield Load(request.ns)).head_id)
    if request.answers.to_old and loaded.saved is not None:
        loaded = yield from _where_asked(run, loaded)
    saved = loaded.saved
    values: Mapping[str, Any] = saved.checkpoint["channel_values"] if saved is not None else {}
    channels = Channels(blueprint.channels, values, blueprint.plain)
    head = Head(request.ns, channels, request.next_version, request.mint)
    head.untracked = blueprint.untracked
    if not run.keeps:
        head.dirty = head.looked = None
    run.head = head
    if saved is not None:
        yield from restore(head, blueprint, saved, values, request.base_ns or request.ns)
        run.metadata = dict(saved.metadata)
        run.pending = Pending(saved.pending_writes or ()) if not request.base_ns else None
        run.loaded_id = head.anchor.id if not request.base_ns else None
        if saved.parent_config:
            run.parent_id = saved.parent_config["configurable"]["checkpoint_id"]
        if request.base_ns:
            head.dirty, head.looked = dict(head.versions), None
    run.newest = loaded.head_id
    run.step = run.metadata.get("step", -2) + 1
    run.stop = run.step + request.recursion_limit + 1
    return loaded


def _where_asked(run: Run, loaded: Loaded) -> Step[Loaded]:
    """The checkpoint beside which the question stands that is being answered anew; the newest if there is none."""
    found = yield ListCheckpoints(run.request.ns, None, None, None, None)
    for saved in found:
        for status in Pending(saved.pending_writes or ()).by_task.values():
            if any(question.id in run.request.answers.by_id for question in status.questions):
                return loaded._replace(saved=saved)
    return loaded


def restore(head: Head, blueprint: Blueprint, saved: Any, values: Mapping[str, Any], ns: str) -> Step[None]:
    """Make a head stand on a saved checkpoint."""
    checkpoint = saved.checkpoint
    missing = [key for key in blueprint.delta if key not in values and key in checkpoint["channel_versions"]]
    if missing:
        history = yield Replay(ns, checkpoint["id"], missing)
        for key in missing:
            head.channels[key] = _replayed(blueprint.channels[key], history.get(key, {}))
    step = saved.metadata.get("step", -2)
    version = checkpoint.get("v", 4)
    head.anchor = Anchor.stored(head.ns, step, checkpoint["id"], head.mint, version)
    head.restore(checkpoint, blueprint)


def _replayed(spec: Any, history: Mapping[str, Any]) -> Any:
    channel = spec.from_checkpoint(history.get("seed", MISSING))
    channel.replay_writes(history.get("writes", ()))
    return channel


# resuming


def _resume(run: Run, reading: Reading) -> Step[None]:
    head, show = run.head, run.show
    if show.lifecycle:
        yield Emit("lifecycle", head.anchor.id)
    head.seen[INTERRUPT] = dict(head.versions)
    if head.looked is not None:
        head.looked.add(INTERRUPT)
    if reading.forks:
        if run.pending is not None:
            for status in run.pending.by_task.values():
                status.questions = ()
        head.updated = None  # planned anew, from all nodes
        yield from run.commit("fork")
        run.step += 1
    run.shown = True
    if show.values:
        yield Emit("values", show.output(head))


def _take_command(run: Run, reading: Reading) -> Step[Sequence[tuple[str, Any]]]:
    """A Command on a thread with history: its answers, and its edits of state and course."""
    command = run.request.input
    if not isinstance(command, Command):
        return ()
    if command.resume is not None:
        yield from _take_resume(run, command, reading)
    if not run.head.versions:
        return ()  # nothing there to edit: it is taken as input, once
    edits = command_edits(run.blueprint, command)
    if not edits and command.resume is None:
        raise EmptyInputError(
            "The Command is empty: it has no update, no goto and no answer (None is no answer; answer None by id: "
            "Command(resume={id: None}))."
        )
    if edits and run.keeps and not reading.forks:
        known = run.pending.null if run.pending is not None else []
        rows = TaskRows(NULL_TASK_ID, "", [*known, *edits])
        save = Save(run.head.ns, run.head.anchor.id, rows, urgent=True)
        if run.request.durability == "exit" or reading.superseded:
            run.held_edits.append(save)
        else:
            yield save
    return edits


def _take_resume(run: Run, command: Command[Any], reading: Reading) -> Step[None]:
    if not run.request.saver:
        raise RuntimeError(
            "Cannot use Command(resume=...) without checkpointer: nothing was kept that could be resumed. "
            "Compile the graph with one, e.g. compile(checkpointer=InMemorySaver())."
        )
    if run.request.strict and command.resume == {}:
        raise UnknownInterruptError("The map of answers is empty.", reason="empty_map")
    if not run.head.versions:
        raise UnknownInterruptError(
            f"Thread {run.request.config.get('configurable', {}).get('thread_id')!r} has no checkpoint, so nobody "
            "waits for an answer in it.",
            reason="not_pending",
            interrupt_ids=tuple(command.resume) if isinstance(command.resume, dict) else (),
        )
    run.request.answers.given = True
    yield from take_answers(run, command.resume, old=reading.superseded)


def command_edits(blueprint: Blueprint, command: Command[Any]) -> list[tuple[str, Any]]:
    """The writes that a Command from outside stands for."""
    if command.graph is not None and command.graph == Command.PARENT:
        raise InvalidUpdateError("There is no parent graph: a Command given to a run can't be addressed to one.")
    gotos = command.goto if isinstance(command.goto, (list, tuple)) else [command.goto]
    edits: list[tuple[str, Any]] = []
    for goto in gotos:
        if isinstance(goto, Send):
            edits.append((TASKS, goto))
        elif isinstance(goto, str):
            if goto != "__end__":
                edits.append((_branch_to(blueprint, goto), START))
        else:
            raise TypeError(f"In Command.goto, expected Send or the name of a node, got {type(goto).__name__}.")
    if command.update is not None:
        edits.extend(command._update_as_tuples())
    return edits


def _branch_to(blueprint: Blueprint, name: str) -> str:
    channel = f"{BRANCH}{name}"
    if channel not in blueprint.channels:
        known = ", ".join(sorted(node for node in blueprint.nodes if not node.startswith("__")))
        raise InvalidUpdateError(
            f"Command(goto={name!r}) names a node that graph '{blueprint.name}' does not have. Its nodes: {known}."
        )
    return channel


# new input


def _take_input(run: Run) -> Step[None]:
    writes = input_writes(run.blueprint, run.request.input)
    if not writes:
        if run.request.resuming is None:
            raise EmptyInputError(
                f"Received no input for {run.blueprint.input_channels}: pass the graph's input, or None to continue a "
                "thread that has a checkpoint."
            )
        return
    head = run.head
    left = plan(head, run.blueprint, run.step, run.stop, inputs=False)
    for task in left:
        replaced = task.name == START and run.request.checkpoint_id is not None  # a fork with another input
        if task.node.spec.close is not None and not replaced:
            task.writes = closing(run, task)
    head.updated = apply_writes(head, run.blueprint, [*left, input_task(run.head, run.blueprint, writes, run.step)])
    run.pending = None
    yield from run.commit("input", urgent=True)
    run.step += 1
    if run.keeps:
        yield SETTLE


def closing(run: Run, task: Task, *why: str) -> list[tuple[str, Any]]:
    """What a task that will not run any more leaves in the state. Failing at that must not refuse the input."""
    head, node = run.head, task.node
    status = run.pending.by_task.get(task.id) if run.pending is not None else None
    try:
        given = task.input if task.path[0] == PUSH else state_for(head, node, run.step, run.stop)
        close = node.spec.close
        assert close is not None
        found = close(given, status.outputs if status is not None else (), head.read, *why)
    except Exception:
        log.warning("What node '%s' leaves unfinished could not be closed.", node.name, exc_info=True)
        return []
    return [(key, value) for key, value in found if key in head.channels.specs]


def input_task(head: Head, blueprint: Blueprint, writes: Sequence[tuple[str, Any]], step: int) -> Task:
    """Input taken as the writes of a task that nothing triggered."""
    task = Task(head, INPUT, next(iter(blueprint.nodes.values())), (), (), "", None, step)
    task.writes = list(writes)
    return task


def input_writes(blueprint: Blueprint, value: Any) -> list[tuple[str, Any]]:
    """A run's input as channel writes."""
    keys = blueprint.input_channels
    if value is None:
        return []
    if isinstance(keys, str):
        return [(keys, value)]
    if not isinstance(value, dict):
        raise TypeError(f"Expected the input to be a dict with keys of {list(keys)}, got {type(value).__name__}.")
    if unknown := [key for key in value if key not in keys]:
        log.warning("Input channels %s not found in %s; they are ignored.", unknown, list(keys))
    return [(key, item) for key, item in value.items() if key in keys]
