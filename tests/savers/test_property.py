"""Any history of puts, commits, writes, claims, copies, prunes and deletes is the same on memory and in databases.

The memory saver is the model: a few dictionaries. Besides, no saver keeps a value that nothing refers to after
something was deleted, and none loses one that something does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from savers.history import LARGE, at, everything
from savers.kinds import opened, ring
from savers.walk import check_pages

from surestep.checkpoint.base import CLAIM_KEY, HEAD_KEY, TaskWrites
from surestep.checkpoint.memory import InMemorySaver
from surestep.checkpoint.serde.types import _DeltaSnapshot
from surestep.checkpoint.sqlite import SqliteSaver

THREADS = ("a", "b")
SPACES = ("", "inner")
CHANNELS = ("x", "y", "z")
TASKS = ("t1", "t2")

threads = st.sampled_from(THREADS)
spaces = st.sampled_from(SPACES)
ITEMS = [0, "small", {"text": "medium " * 30}, {"text": LARGE, "list": [1, {"deep": 2}]}, LARGE]
items = st.sampled_from(ITEMS)
inputs = st.fixed_dictionaries({"x": st.lists(items, max_size=2), "new": items, "y": st.lists(items, max_size=10)})
values = st.sampled_from([None, 0, "small", LARGE, [LARGE, 1]]) | st.lists(items, max_size=6) | inputs
edits = st.fixed_dictionaries(
    {
        "edit": st.sampled_from(["grow", "grow", "grow", "replace", "remove", "move", "mutate", "nothing"]),
        "where": st.integers(0, 9),
        "items": st.lists(items, min_size=1, max_size=3),
        "wrap": st.booleans(),
    }
)
"""What becomes of a list that the parent has: it is longer, or changed somewhere."""
pick = st.integers(0, 7)  # an index into the checkpoints there are; counted from the latest
written = st.lists(
    st.tuples(st.sampled_from([*CHANNELS, "__error__", "__interrupt__", "__resume__"]), values), min_size=1, max_size=3
)
tasks = st.builds(TaskWrites, st.sampled_from(TASKS), st.sampled_from(["~1", "~2"]), written)

put = st.fixed_dictionaries(
    {
        "op": st.just("put"),
        "thread": threads,
        "ns": spaces,
        "parent": st.none() | pick | st.just(0) | st.just(0),
        "changes": st.dictionaries(st.sampled_from(CHANNELS), values | edits | edits | st.just(...), max_size=3),
        "writes": st.lists(tasks, max_size=2, unique_by=lambda task: task.task_id),
        "run": st.sampled_from(["r1", "r2"]),
        "id": st.sampled_from(["next", "next", "next", "between", "again"]),
        "guard": st.sampled_from(["none", "none", "right", "wrong"]),
    }
)
write = st.fixed_dictionaries(
    {"op": st.just("write"), "thread": threads, "ns": spaces, "at": pick, "task": tasks, "claim": st.booleans()}
)
operations = st.one_of(
    put,
    put,
    put,
    write,
    st.fixed_dictionaries({"op": st.just("copy"), "source": threads, "target": threads}),
    st.fixed_dictionaries({"op": st.just("prune"), "threads": st.lists(threads, max_size=2)}),
    st.fixed_dictionaries({"op": st.just("forget"), "runs": st.lists(st.sampled_from(["r1", "r2", "r3"]), max_size=2)}),
    st.fixed_dictionaries({"op": st.just("delete"), "thread": threads}),
)


class World:
    """Applies operations to both savers and knows which checkpoints there are."""

    def __init__(self, *savers: Any) -> None:
        self.savers = savers
        self.counter = 100

    def both(self, call: Callable[[Any], Any]) -> None:
        """Make the same call to each; all give the same result or raise the same error."""
        results = []
        for saver in self.savers:
            try:
                results.append(("gave", call(saver)))
            except Exception as error:
                results.append(("raised", type(error)))
        assert results[0] == results[1]

    def ids(self, thread: str, ns: str) -> list[str]:
        """The checkpoints of a namespace, latest first."""
        return [found.checkpoint["id"] for found in self.savers[0].list(at(thread, ns=ns))]

    def apply(self, operation: dict[str, Any]) -> None:
        getattr(self, operation.pop("op"))(**operation)

    def put(self, thread: str, ns: str, parent: int | None, changes: Any, writes: Any, run: str, **more: Any) -> None:
        there = self.ids(thread, ns)
        parent_id = there[parent % len(there)] if parent is not None and there else None
        self.counter += 1
        new = {channel: f"{self.counter:032}.{thread}" for channel in changes}
        found = self.savers[0].get_tuple(at(thread, parent_id, ns)) if parent_id else None
        before = found.checkpoint["channel_values"] if found else {}
        changes = {c: edited(before.get(c), value) for c, value in changes.items()}
        seen = found.checkpoint["versions_seen"] if found else {}
        checkpoint = {
            "v": 4,
            "id": self._id(there, more["id"]),
            "ts": "",
            "channel_values": {c: value for c, value in changes.items() if value is not ...},
            "channel_versions": {**(found.checkpoint["channel_versions"] if found else {}), **new},
            "versions_seen": {**seen, run: dict(found.checkpoint["channel_versions"] if found else new)},
            "updated_channels": sorted(changes),
        }
        guard = {"none": {}, "right": {HEAD_KEY: there[0] if there else None}, "wrong": {HEAD_KEY: "wrong"}}
        config = at(thread, parent_id, ns, **guard[more["guard"]])
        metadata = {"source": "loop", "run_id": run}
        if parent_id and writes:
            self.both(lambda saver: saver.commit(config, checkpoint, metadata, new, writes))
        else:
            self.both(lambda saver: saver.put(config, checkpoint, metadata, new))

    def _id(self, there: list[str], kind: str) -> str:
        if kind == "again" and there:
            return there[self.counter % len(there)]
        if kind == "between" and there:
            return f"{there[-1]}.{self.counter}"
        return f"{self.counter:04}"

    def write(self, thread: str, ns: str, at: int, task: TaskWrites, claim: bool) -> None:
        there = self.ids(thread, ns)
        if there:
            config = address(thread, there[at % len(there)], ns, claim)
            self.both(lambda saver: saver.put_writes(config, task.writes, task.task_id, task.task_path))

    def copy(self, source: str, target: str) -> None:
        self.both(lambda saver: saver.copy_thread(source, target))

    def prune(self, threads: list[str]) -> None:
        self.both(lambda saver: saver.prune(threads))
        self.check_orphans(threads)

    def forget(self, runs: list[str]) -> None:
        self.both(lambda saver: saver.delete_for_runs(runs))

    def delete(self, thread: str) -> None:
        self.both(lambda saver: saver.delete_thread(thread))

    def check(self) -> None:
        """Both give back the same: all checkpoints, and the latest of each namespace."""
        memory, database = self.savers
        assert everything(memory) == everything(database)
        for thread in THREADS:
            for ns in SPACES:
                assert memory.get_tuple(at(thread, ns=ns)) == database.get_tuple(at(thread, ns=ns))
                history = [
                    s.get_delta_channel_history(config=at(thread, ns=ns), channels=CHANNELS) for s in self.savers
                ]
                assert history[0] == history[1]
        check_pages(database)

    def check_orphans(self, threads: list[str]) -> None:
        """What pruning left has all of its values, and nothing is left that it doesn't have."""
        memory, _ = self.savers
        for thread in threads:
            used = {
                (ns, channel, version)
                for ns in SPACES
                for found in memory.list(at(thread, ns=ns))
                for channel, version in found.checkpoint["channel_versions"].items()
            }
            assert {key[1:] for key in memory.blobs if key[0] == thread} <= used


def edited(value: Any, change: Any) -> Any:
    """The value that a channel gets: a given one, or what an edit makes of the one it has."""
    if not isinstance(change, dict) or "edit" not in change:
        return change
    wrap, where, items = change["wrap"], change["where"], change["items"]
    value = getattr(value, "value", value)
    old = copy.deepcopy(value) if isinstance(value, list) else []
    at = where % (len(old) + 1)
    new = {
        "grow": lambda: [*old, *items],
        "replace": lambda: [*old[:at], *items, *old[at + 1 :]],
        "remove": lambda: [*old[:at], *old[at + 1 :]],
        "move": lambda: [*old[at:], *old[:at]],
        "mutate": lambda: [mutated(item) if index == at else item for index, item in enumerate(old)],
        "nothing": lambda: old,
    }[change["edit"]]()
    return _DeltaSnapshot(new) if wrap else new


def mutated(item: Any) -> Any:
    if isinstance(item, dict):
        item["text"] += "!"
    return item


def address(thread: str, id: str, ns: str, claim: bool) -> dict[str, Any]:
    return at(thread, id, ns, **({CLAIM_KEY: True} if claim else {}))


@settings(max_examples=150)
@given(st.lists(operations, max_size=25))
def test_memory_and_sqlite_give_the_same_answers(history: list[dict[str, Any]]) -> None:
    with SqliteSaver.from_conn_string(":memory:") as saver:
        check_history(history, saver)


@settings(max_examples=40)
@given(st.lists(operations, max_size=25))
def test_they_do_under_a_cipher(history: list[dict[str, Any]]) -> None:
    with SqliteSaver.from_conn_string(":memory:") as saver:
        saver.serde = ring()
        check_history(history, saver)


@pytest.mark.parametrize("kind", ["postgres-tenant", "postgres-async-pool"])
def test_memory_and_postgres_give_the_same_answers(kind: str, place: Callable[[str], Any]) -> None:
    where = place(kind)

    @settings(max_examples=40)
    @given(st.lists(operations, max_size=25))
    def check(history: list[dict[str, Any]]) -> None:
        with opened(kind, where) as saver:
            check_history(history, saver)

    check()


def check_history(history: list[dict[str, Any]], saver: Any) -> None:
    world = World(InMemorySaver(), saver)
    for operation in history:
        world.apply(dict(operation))
        if operation["op"] != "put":
            world.check()
    world.check()
