"""The memory saver: what people see who look into it, and keeping it in a file."""

from __future__ import annotations

import os
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import pytest
from savers.history import TASK, Thread, at, everything

from surestep.checkpoint.base import TaskWrites
from surestep.checkpoint.memory import InMemorySaver, MemorySaver, PersistentDict, _rows
from surestep.graph import END, START, StateGraph


def test_the_layout() -> None:
    saver = InMemorySaver()
    thread = Thread(saver)
    first = thread.put({"a": "x", "none": None})
    second = thread.put({}, empty=("none",), writes=[TaskWrites(TASK, "~p", [("b", None), ("__error__", "e")])])
    assert list(vars(saver)) == ["serde", "storage", "writes", "blobs", "stack"]
    version = {name: thread.versions[second][name] for name in ("a", "none")}
    assert saver.blobs == {
        ("t", "", "a", version["a"]): ("msgpack", b"\xa1x"),
        ("t", "", "none", thread.versions[first]["none"]): ("null", b""),
        ("t", "", "none", version["none"]): ("empty", b""),
    }
    assert saver.writes == {
        ("t", "", first): {
            (TASK, 0): (TASK, "b", ("null", b""), "~p"),
            (TASK, -1): (TASK, "__error__", ("msgpack", b"\xa1e"), "~p"),
        }
    }
    assert list(saver.storage["t"][""]) == [first, second]
    body, metadata, parent = saver.storage["t"][""][second]
    assert parent == first and saver.serde.loads_typed(metadata)["source"] == "loop"
    assert "channel_values" not in saver.serde.loads_typed(body)
    assert MemorySaver is InMemorySaver


def test_it_believes_what_is_written_into_its_dictionaries() -> None:
    saver = InMemorySaver()
    thread = Thread(saver)
    thread.put({"a": 1}, id="5")
    saver.storage["t"][""]["7"] = saver.storage["t"][""]["5"]
    assert saver._head(("t", ""), saver.storage["t"][""]) == "7"
    del saver.storage["t"][""]["7"]
    thread.put({"a": 2}, id="6", guard="5")
    assert saver.storage["nobody"]["at all"] == {}


async def test_it_is_a_context_manager_both_ways() -> None:
    saver = InMemorySaver()
    closed = []
    saver.stack.callback(closed.append, 1)
    with saver as same:
        assert same is saver
    assert closed == [1]
    async with saver as same:
        assert same is saver


def persistent(path: Path) -> Any:
    return partial(PersistentDict, filename=str(path))


def test_it_can_be_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    with InMemorySaver(factory=persistent(path)) as saver:
        thread = Thread(saver)
        first = thread.put({"a": (1, 2)}, metadata={"run_id": "r"})
        thread.put({"b": 1}, writes=[TaskWrites(TASK, "~p", [("b", 1)])])
        before = everything(saver)
    with InMemorySaver(factory=persistent(path)) as again:
        assert everything(again) == before
        assert again.get_tuple(at("t", first)).pending_writes == [(TASK, "b", 1)]  # type: ignore[union-attr]
        Thread(again, "new").put({"n": 1})
        again.prune(["t"])
    assert len(everything(InMemorySaver(factory=persistent(path)))) == 2
    assert os.listdir(tmp_path) == ["memory"]


def test_an_empty_or_missing_file_is_a_beginning(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    path.touch()
    assert not InMemorySaver(factory=persistent(path)).storage
    found = PersistentDict(list, filename=str(tmp_path / "none"))
    found["a"].append((1, {"b": defaultdict(int)}))
    found.close()
    again = PersistentDict(filename=str(tmp_path / "none"))
    again.load()
    assert again == {"a": [(1, {"b": {}})]}


# ---- many channels: a row says what it changes ----


def wide_run(saver: InMemorySaver, width: int = 80, steps: int = 120) -> Any:
    State = TypedDict("State", {f"c{i}": int for i in range(width)})  # type: ignore[misc]
    builder: Any = StateGraph(State)
    builder.add_node("a", lambda state: {"c1": state["c1"] + 1, f"c{state['c1'] % width}": state["c1"] + 1})
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", lambda state: "a" if state["c1"] < steps else END)
    graph = builder.compile(checkpointer=saver)
    graph.invoke({f"c{i}": 0 for i in range(width)}, {**at("wide"), "recursion_limit": 1000, "run_id": "r"})
    return graph


def shape(found: Any) -> Any:
    """A checkpoint without what differs from run to run: ids, times, random parts of versions."""

    def counts(versions: Any) -> Any:
        return [(name, int(version.partition(".")[0])) for name, version in versions.items()]

    checkpoint = found.checkpoint
    seen = {node: counts(versions) for node, versions in checkpoint["versions_seen"].items()}
    values = sorted(checkpoint["channel_values"].items(), key=str)
    return counts(checkpoint["channel_versions"]), seen, values, checkpoint["updated_channels"], set(checkpoint)


def test_a_row_of_many_channels_says_what_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    saver = InMemorySaver()
    wide_run(saver)
    sizes = [len(row[0][1]) for row in saver.storage["wide"][""].values()]
    assert sorted(sizes)[len(sizes) // 2] * 10 < max(sizes)
    assert sum(2 * size > max(sizes) for size in sizes[3:]) >= 2  # whole ones between, so that chains end

    monkeypatch.setattr(_rows, "MANY", 10**9)
    whole = InMemorySaver()
    wide_run(whole)
    assert [shape(found) for found in saver.list(at("wide"))] == [shape(found) for found in whole.list(at("wide"))]


def test_rows_stay_readable_when_those_before_them_go() -> None:
    saver = InMemorySaver()
    wide_run(saver)
    saver.copy_thread("wide", "copy")
    before = {found.checkpoint["id"]: shape(found) for found in saver.list(at("wide"))}
    saver.pin(at("wide", sorted(before)[40]), "kept")
    saver.prune(["wide"])
    after = {found.checkpoint["id"]: shape(found) for found in saver.list(at("wide"))}
    assert after.keys() == {sorted(before)[40], max(before)}
    assert after == {id: before[id] for id in after}
    assert {found.checkpoint["id"]: shape(found) for found in saver.list(at("copy"))} == before
