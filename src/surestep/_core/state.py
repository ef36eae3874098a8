"""Looking at threads and editing them: `get_state`, its history, and `update_state`, as generators like a run.

Rules:
1. Looking never runs user code and never raises because of what the state holds.
2. An edit never runs a node's body; it runs the node's writers, so its edges are followed as if it had returned.
3. An edit of a step that is under way loses nothing of it: what finished stays finished, what waits goes on waiting
   (unless the caller says that another node acted, which is a jump).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from surestep._core.apply import apply_edits, apply_writes
from surestep._core.begin import input_task, input_writes, load, restore
from surestep._core.blueprint import BRANCH, END, INPUT, INTERRUPT, RESUME, TASKS, Blueprint
from surestep._core.commands import ListCheckpoints, Next, Save, Step, TaskRows, UseLedger
from surestep._core.effects import HELD
from surestep._core.head import Channels, Head
from surestep._core.ids import id_from, interrupt_id
from surestep._core.plan import plan
from surestep._core.rows import Pending, TaskStatus
from surestep._core.run import Run
from surestep._core.snapshot import child_config, config_at, status_of, task_result
from surestep._core.task import Task
from surestep._records import EffectRecord
from surestep.errors import InvalidUpdateError
from surestep.types import HeldTask, Interrupt, PregelTask, StateSnapshot, StateUpdate

log = logging.getLogger("surestep")
Child = Callable[[Task], "tuple[Blueprint, str] | None"]  # the graph in a task's node, and its namespace


# looking


def get_state(run: Run, child: Child | None) -> Step[StateSnapshot]:
    """The newest state of a thread, or that of the addressed checkpoint. `child`: also those of nested graphs."""
    loaded = yield from load(run)
    if loaded.saved is None:
        config = {"configurable": {k: v for k, v in run.request.config["configurable"].items() if k[:2] != "__"}}
        return StateSnapshot({}, (), config, None, None, None, (), ())  # type: ignore[arg-type]
    live = run.request.checkpoint_id is None
    return (yield from _snapshot(run, loaded.saved, live, child))


def get_history(
    run: Run, filter: Mapping[str, Any] | None, before: str | None, limit: int | None
) -> Step[list[StateSnapshot]]:
    """The states of a thread, newest first."""
    request = run.request
    found = yield ListCheckpoints(request.ns, request.checkpoint_id, filter, before, limit)
    states = []
    for saved in found:
        values = saved.checkpoint["channel_values"]
        channels = Channels(run.blueprint.channels, values, run.blueprint.plain)
        run.head = Head(request.ns, channels, request.next_version, request.mint)
        yield from restore(run.head, run.blueprint, saved, values, request.ns)
        run.pending = Pending(saved.pending_writes or ())
        run.step = saved.metadata.get("step", -2) + 1
        run.stop = run.step + request.recursion_limit + 1
        states.append((yield from _snapshot(run, saved, False, None)))
    return states


def _snapshot(run: Run, saved: Any, live: bool, child: Child | None) -> Step[StateSnapshot]:
    head, blueprint, pending = run.head, run.blueprint, run.pending or Pending()
    head.updated = None
    tasks = plan(head, blueprint, run.step, run.stop, inputs=False)
    apply_edits(head, blueprint, pending.edits())
    statuses = [(task, status_of(pending, task)) for task in tasks]
    if live:
        _show_finished(head, blueprint, statuses)
    states, keys = {}, blueprint.stream_channels
    for task in tasks:
        states[task] = yield from _state_of_child(run, task, child)
    held = yield from _held(run, statuses)
    shown = tuple(
        [
            _with_effects(task_snapshot(task, status, pending, live, keys, states[task]), held.get(task.id))
            for task, status in statuses
        ]
    )
    parents = saved.metadata.get("parents") or {}
    return StateSnapshot(
        values=head.read(blueprint.stream_channels),
        next=tuple([task.name for task, status in statuses if not (live and status.finished)]),
        config=_with_parents(saved.config, head.ns, parents),
        metadata=saved.metadata,
        created_at=saved.checkpoint["ts"],
        parent_config=_with_parents(saved.parent_config, head.ns, parents),
        tasks=shown,
        interrupts=tuple([question for task in shown for question in task.interrupts]),
    )


def _held(run: Run, statuses: Sequence[tuple[Task, TaskStatus]]) -> Step[dict[str, tuple[EffectRecord, ...]]]:
    """The effects that tasks are held at, by task id."""
    held: dict[str, tuple[EffectRecord, ...]] = {}
    if run.request.ledger and any(status.held and not status.finished for _, status in statuses):
        found = yield UseLedger("get_effects", (run.thread_id,))
        for record in found:
            if record.state == HELD:
                held[record.task_id] = (*held.get(record.task_id, ()), record)
    return held


def _with_effects(task: PregelTask, held: tuple[EffectRecord, ...] | None) -> PregelTask:
    if not held:
        return task
    shown = HeldTask(*task)
    shown.held = held
    return shown


def _show_finished(head: Head, blueprint: Blueprint, statuses: Sequence[tuple[Task, TaskStatus]]) -> None:
    """Fold in what finished tasks wrote, as far as it can be: the next step's error is not the onlooker's."""
    finished = []
    for task, status in statuses:
        if status.finished:
            task.writes = list(status.outputs)
            finished.append(task)
    if finished:
        try:
            apply_writes(head, blueprint, finished)
        except Exception as error:
            log.info("Finished tasks are not shown in the state, their writes can't be applied: %s", error)
            head.look_again()


def task_snapshot(
    task: Any, status: TaskStatus, pending: Pending, live: bool, keys: str | Sequence[str], state: Any
) -> PregelTask:
    """A task as a state shows it. `live`: of the newest checkpoint, so what was answered is asked no more."""
    questions = status.open_questions(pending.answers) if live else status.questions
    return PregelTask(
        id=task.id,
        name=task.name,
        path=task.path,
        error=None if status.finished else status.error,
        interrupts=questions,
        state=state,
        result=task_result(status, keys) if status.finished else None,
    )


def _state_of_child(run: Run, task: Task, child: Child | None) -> Step[Any]:
    if not task.node.subgraphs:
        return None
    found = child(task) if child is not None else None
    if found is None:
        return child_config(run.request.config, task)
    blueprint, ns = found
    request = replace(run.request, ns=ns, checkpoint_id=None)
    return (yield from get_state(Run(blueprint, request, run.show), child))


def _with_parents(config: Any, ns: str, parents: Mapping[str, str]) -> Any:
    if config is None:
        return None
    configurable = {key: value for key, value in config["configurable"].items() if not key.startswith("__")}
    if parents:
        configurable["checkpoint_map"] = {**parents, ns: configurable["checkpoint_id"]}
    return {"configurable": configurable}


# editing


def update_state(run: Run, updates: Sequence[StateUpdate]) -> Step[dict[str, Any]]:
    """One edit: one new checkpoint; the config that addresses it."""
    if not updates:
        raise ValueError("No updates provided: each step of bulk_update_state needs at least one StateUpdate.")
    loaded = yield from load(run)
    saved = loaded.saved
    run.metadata = {}
    parents = dict(saved.metadata.get("parents") or {}) if saved is not None else {}
    run.request = replace(run.request, parents=parents)
    first = updates[0]
    if first.values is None and first.as_node == END:
        _only(updates, END)
        yield from _clear(run)
    elif first.as_node == INPUT:
        _only(updates, INPUT)
        yield from _as_input(run, first, at_head=saved is not None and loaded.head_id == run.head.anchor.id)
    elif first.as_node == "__copy__":
        _only(updates, "__copy__")
        yield from _copy(run, saved, first)
    else:
        yield from _edit(run, saved, updates, at_head=saved is not None and loaded.head_id == run.head.anchor.id)
    return config_at(run.request.config, run.head.ns, run.head.anchor.id, parents)


def _only(updates: Sequence[StateUpdate], as_node: str) -> None:
    if len(updates) > 1:
        raise InvalidUpdateError(f"Cannot apply multiple updates when one of them is as_node={as_node!r}.")


def _clear(run: Run) -> Step[None]:
    """Drop what is left to do; what finished stays."""
    head, blueprint, pending = run.head, run.blueprint, run.pending or Pending()
    tasks = plan(head, blueprint, run.step, run.stop, inputs=False)
    apply_edits(head, blueprint, pending.edits())
    for task in tasks:
        task.writes = list(status_of(pending, task).outputs)
    apply_writes(head, blueprint, tasks)
    head.updated = None
    yield from run.commit("update", urgent=True)


def _as_input(run: Run, update: StateUpdate, at_head: bool) -> Step[None]:
    head, blueprint = run.head, run.blueprint
    writes = input_writes(blueprint, update.values)
    if not writes:
        raise InvalidUpdateError(f"Received no input writes for {blueprint.input_channels}: the update has no values.")
    if at_head:
        rows = TaskRows(id_from(head.anchor.id, INPUT), "", writes)
        yield Save(head.ns, head.anchor.id, rows, urgent=True)
    left = plan(head, blueprint, run.step, run.stop, inputs=False)
    apply_writes(head, blueprint, [*left, input_task(head, blueprint, writes, run.step)])
    head.updated = None
    yield from run.commit("input", urgent=True, parent=None if run.loaded_id else (None,))


def _copy(run: Run, saved: Any, update: StateUpdate) -> Step[None]:
    """The same state once more, beside the checkpoint it is copied from."""
    if saved is None:
        raise InvalidUpdateError("Cannot copy a checkpoint that does not exist: the thread is empty.")
    parent = saved.parent_config["configurable"]["checkpoint_id"] if saved.parent_config else None
    run.head.updated = None
    run.head.dirty, run.head.looked = dict(run.head.versions), None  # all may differ from the parent's
    yield from run.commit("fork", urgent=True, parent=(parent,))
    if update.values is not None:
        run.step += 1
        items = [StateUpdate(*item) for item in update.values]
        yield from _edit(run, saved, items, at_head=True)


class _EditSpec:
    """A node reduced to its writers: what an edit runs."""

    def __init__(self, spec: Any, plain: bool) -> None:
        self.bound = None
        self.writers = [writer for writer in spec.writers if not plain or writer.path is None]


def _edit(run: Run, saved: Any, updates: Sequence[StateUpdate], at_head: bool) -> Step[None]:
    """Values as if nodes had returned them. `at_head`: the checkpoint is the newest, so its step may be under way."""
    head, blueprint, pending = run.head, run.blueprint, run.pending or Pending()
    head.updated = None
    if saved is None:
        run.step += 1
    planned = plan(head, blueprint, run.step, run.stop, inputs=False) if saved is not None else []
    apply_edits(head, blueprint, pending.edits())
    statuses = {task: status_of(pending, task) for task in planned}
    under_way = at_head and any(status.finished or status.questions for status in statuses.values())
    names = [_as_node(run, saved, update, len(updates) > 1) for update in updates]
    plain = under_way and updates[0].as_node is None  # an edit of the state and of nothing else
    tasks: list[Task] = []
    for number, (update, name) in enumerate(zip(updates, names, strict=True)):
        task = yield from _run_writers(run, name, update, number, planned, {done.id for done in tasks}, plain)
        if at_head:
            yield Save(head.ns, head.anchor.id, TaskRows(task.id, task.path_text, task.writes), urgent=True)
        tasks.append(task)
    waiting: list[Task] = []
    if plain or (under_way and set(names) <= {task.name for task in planned}):
        waiting = _take_over(run, statuses, [] if plain else names, tasks)
    elif plain_jump := [status for status in statuses.values() if status.finished]:
        log.info(
            "An update as %s leaves the step; results of %d finished tasks are dropped.",
            names,
            len(plain_jump),
        )
    apply_writes(head, blueprint, tasks)
    head.updated = None  # planned anew, from all nodes
    yield from run.commit("update", urgent=True, parent=None if saved is not None else (None,))
    run.step += 1
    yield from _keep_questions(run, waiting, statuses)


def _run_writers(
    run: Run, name: str, update: StateUpdate, number: int, planned: Sequence[Task], used: Collection[str], plain: bool
) -> Step[Task]:
    """The writes that `name` would have made of the values."""
    head, node = run.head, run.blueprint.nodes[name]
    spec: Any = _EditSpec(node.spec, plain)
    if not node.spec.writers:  # type: ignore[attr-defined]
        raise InvalidUpdateError(
            f"No writers found for node '{name}': it writes nothing, so nothing can be written as it."
        )
    path = (INTERRUPT, number)
    task = Task(head, name, node, path, (INTERRUPT,), "", update.values, run.step)
    task.node = node.with_spec(spec)
    task._id = update.task_id or next(
        (other.id for other in planned if other.name == name and other.id not in used), None
    )
    if task._id is None:
        task._id = id_from(head.anchor.id, INTERRUPT[:number] if number else INTERRUPT)
    event = yield Next((task,))
    if event.error is not None:
        raise event.error
    task.node = node
    keys = run.blueprint.stream_channels
    task.writes = [row for row in event.writes if not plain or row[0] == keys or row[0] in keys]
    return task


def _take_over(run: Run, statuses: Mapping[Task, TaskStatus], acted: Sequence[str], tasks: list[Task]) -> list[Task]:
    """Fold finished siblings in, and schedule the unfinished ones again; returns those."""
    waiting = []
    for task, status in statuses.items():
        if status.finished:
            task.writes = list(status.outputs)
            tasks.append(task)
        elif task.name not in acted:
            waiting.append(task)
            again = Task(run.head, INPUT, task.node, ("~again", task.path_text), (), "", None, run.step)
            again.writes = _schedule_again(run.head, task)
            tasks.append(again)
    return waiting


def _schedule_again(head: Head, task: Task) -> list[tuple[str, Any]]:
    if task.path[0] == "__pregel_push":
        return [(TASKS, head.channels[TASKS].get()[task.path[1]])]
    branch = f"{BRANCH}{task.name}"
    return [(branch, None)] if branch in head.channels.specs and head.channels[branch].is_available() else []


def _keep_questions(run: Run, waiting: Sequence[Task], statuses: Mapping[Task, TaskStatus]) -> Step[None]:
    """The questions of tasks that still wait, under the ids that the new checkpoint gives them."""
    if not waiting:
        return
    run.head.updated = None
    planned = plan(run.head, run.blueprint, run.step, run.stop, inputs=False)
    for old in waiting:
        same = [task for task in planned if task.name == old.name and task.path[0] == old.path[0]]
        if not same:
            continue
        new = same[0]
        planned.remove(new)
        status = statuses[old]
        own = interrupt_id(old.ns, len(status.answers))
        asked = [q for q in status.questions if q.id == own]
        if not asked:
            continue
        new_id = interrupt_id(new.ns, len(status.answers))
        rows: list[tuple[str, Any]] = [
            (INTERRUPT, [Interrupt(q.value, id=new_id, response_schema=q.response_schema) for q in asked])
        ]
        if status.answers:
            rows.append((RESUME, status.answers))
        yield Save(run.head.ns, run.head.anchor.id, TaskRows(new.id, new.path_text, rows), urgent=True)


def _as_node(run: Run, saved: Any, update: StateUpdate, several: bool) -> str:
    nodes = run.blueprint.nodes
    if update.as_node is not None:
        if update.as_node not in nodes:
            known = ", ".join(sorted(name for name in nodes if not name.startswith("__")))
            raise InvalidUpdateError(
                f"Node {update.as_node} does not exist. Nodes of graph '{run.blueprint.name}': {known}."
            )
        return update.as_node
    if several:
        raise InvalidUpdateError(
            "as_node is required when applying multiple updates in one step: name a node for each."
        )
    if (found := _infer_node(run, saved)) is None:
        raise InvalidUpdateError(
            "Ambiguous update, specify as_node: several nodes ran last, so it can't be told whose the values are."
        )
    return found


def _infer_node(run: Run, saved: Any) -> str | None:
    """The node that ran last."""
    nodes, head = run.blueprint.nodes, run.head
    if len(nodes) == 1:
        return next(iter(nodes))
    inputs = run.blueprint.input_channels
    if saved is None or not any(head.seen.values()):
        return inputs if isinstance(inputs, str) and inputs in nodes else None
    last = sorted(
        ((max(seen.values()), name) for name, seen in head.seen.items() if name in nodes and seen),
        reverse=True,
    )
    if not last:
        return inputs if isinstance(inputs, str) and inputs in nodes else None
    return last[0][1] if len(last) == 1 or last[0][0] != last[1][0] else None
