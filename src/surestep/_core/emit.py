"""What each stream mode shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from surestep._core.blueprint import ERROR, INTERRUPT, RETURN
from surestep._core.commands import Emit
from surestep._core.head import Head
from surestep._core.task import Task

Writes = Sequence[tuple[str, Any]]


class Show:
    """Turns what happens in a run into the parts of the stream that somebody asked for."""

    __slots__ = (
        "_key_set",
        "all_keys",
        "checkpoints",
        "debug",
        "keys",
        "labels",
        "lifecycle",
        "modes",
        "now",
        "tasks",
        "updates",
        "values",
    )

    def __init__(
        self,
        modes: Iterable[str],
        keys: str | Sequence[str],
        now: Any,
        all_keys: str | Sequence[str] = (),
        labels: Mapping[str, Any] | None = None,
    ) -> None:
        self.modes = frozenset(modes)
        self.keys: str | tuple[str, ...] = keys if isinstance(keys, str) else tuple(keys)
        self._key_set: frozenset[str] | None = None
        self.lifecycle = "lifecycle" in self.modes  # no mode of callers: somebody wants to hear of resumed runs
        self.values = "values" in self.modes
        self.updates = "updates" in self.modes
        self.debug = "debug" in self.modes
        self.tasks = self.debug or "tasks" in self.modes
        self.checkpoints = self.debug or "checkpoints" in self.modes
        self.now = now  # () -> timestamp text, for debug parts
        self.all_keys = all_keys or keys  # of the state: what results of tasks show
        self.labels = labels or {}  # the caller's own metadata and tags

    def output(self, head: Head) -> Any:
        """The values of the output keys."""
        return head.read(self.keys)

    def touches(self, updated: Iterable[str]) -> bool:
        """Whether a change of these channels is a change of the output."""
        if self._key_set is None:
            self._key_set = frozenset((self.keys,)) if isinstance(self.keys, str) else frozenset(self.keys)
        return not self._key_set.isdisjoint(updated)

    def starts(self, tasks: Sequence[Task], step: int) -> Iterable[Emit]:
        labels = self.labels
        for task in tasks:
            if not task.node.hidden:
                tags = [*labels.get("tags", ()), *task.node.tags]
                yield from self._debug(
                    "task", step, task_payload(task, {**labels, **task.node.metadata}, tags), "tasks"
                )

    def restored(self, task: Task) -> Iterable[Emit]:
        """Updates of a task whose writes were there already."""
        if self.updates and not task.node.hidden and not (task.writes and task.writes[0][0] == ERROR):
            yield Emit("updates", {**self._update(task.name, task.writes), "__metadata__": {"cached": True}})

    def finished(self, task: Task, step: int) -> Iterable[Emit]:
        if task.node.hidden:
            return
        if self.updates:
            yield Emit("updates", self._update(task.name, task.writes))
        if self.tasks:
            yield from self._debug("task_result", step, result_payload(task, task.writes, self.all_keys), "tasks")

    def paused(self, task: Task, questions: Sequence[Any], head: Head, step: int) -> Iterable[Emit]:
        if task.node.hidden or task.call is not None:  # whoever called the task pauses too, and shows it
            return
        if self.updates:
            yield Emit("updates", {INTERRUPT: tuple(questions)})
        if self.values:
            values = self.output(head)
            shown = dict(values) if isinstance(values, dict) else {}
            yield Emit("values", {**shown, INTERRUPT: tuple(questions)})
        if self.tasks:
            rows = [(INTERRUPT, list(questions))]
            yield from self._debug("task_result", step, result_payload(task, rows, self.all_keys), "tasks")

    def failed(self, task: Task, error: BaseException, step: int) -> Iterable[Emit]:
        if self.tasks and not task.node.hidden:
            yield from self._debug("task_result", step, result_payload(task, [(ERROR, error)], self.all_keys), "tasks")

    def checkpoint(self, payload: Mapping[str, Any], step: int) -> Iterable[Emit]:
        yield from self._debug("checkpoint", step, payload, "checkpoints")

    def _debug(self, kind: str, step: int, payload: Mapping[str, Any], mode: str) -> Iterable[Emit]:
        if mode in self.modes:
            yield Emit(mode, payload)
        if self.debug:
            yield Emit("debug", {"step": step, "timestamp": self.now(), "type": kind, "payload": payload})

    def _update(self, name: str, writes: Writes) -> dict[str, Any]:
        for channel, value in writes:
            if channel == RETURN:
                return {name: value}
        keys = self.keys
        if isinstance(keys, str):
            found = [value for channel, value in writes if channel == keys]
            return {name: None if not found else found[0] if len(found) == 1 else found}
        rows = [(channel, value) for channel, value in writes if channel in keys]
        if not rows:
            return {name: None}
        if max(Counter(channel for channel, _ in rows).values()) > 1:
            return {name: [{channel: value} for channel, value in rows]}
        return {name: dict(rows)}


def task_payload(task: Any, metadata: Mapping[str, Any], tags: Sequence[str]) -> dict[str, Any]:
    """A task as it starts, with the metadata and tags that the caller and the node gave it, if any."""
    payload: dict[str, Any] = {
        "id": task.id,
        "name": task.name,
        "input": task.input,
        "triggers": task.triggers,
    }
    if metadata or tags:
        payload["metadata"] = {**metadata, "tags": list(tags)} if tags else dict(metadata)
    return payload


def result_payload(task: Any, writes: Writes, keys: str | Sequence[str]) -> dict[str, Any]:
    wanted = {keys} if isinstance(keys, str) else set(keys)
    return {
        "id": task.id,
        "name": task.name,
        "error": next((value for channel, value in writes if channel == ERROR), None),
        "result": result_of([row for row in writes if row[0] in wanted or row[0] == RETURN]),
        "interrupts": [as_dict(q) for channel, value in writes if channel == INTERRUPT for q in value],
    }


def as_dict(question: Any) -> dict[str, Any]:
    return {"value": question.value, "id": question.id, "response_schema": question.response_schema}


def result_of(writes: Writes) -> dict[str, Any]:
    """Writes as a dict; what was written several times to one channel under `$writes`."""
    result: dict[str, Any] = {}
    many: set[str] = set()
    for channel, value in writes:
        if channel in many:
            result[channel]["$writes"].append(value)
        elif channel in result:
            many.add(channel)
            result[channel] = {"$writes": [result[channel], value]}
        else:
            result[channel] = value
    return result
