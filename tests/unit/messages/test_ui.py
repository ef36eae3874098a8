"""Elements of a user interface as state, as LangGraph's."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import langgraph.graph.ui as theirs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from surestep._context import current_task
from surestep.graph.ui import delete_ui_message, push_ui_message, ui_message_reducer

IDS = st.sampled_from(["1", "2", "3"])
ELEMENTS = st.fixed_dictionaries(
    {
        "type": st.just("ui"),
        "id": IDS,
        "name": st.just("chart"),
        "props": st.dictionaries(st.sampled_from("ab"), st.integers(0, 3)),
        "metadata": st.fixed_dictionaries({}, optional={"merge": st.booleans()}),
    }
)
REMOVALS = st.fixed_dictionaries({"type": st.just("remove-ui"), "id": IDS})


def outcome(reducer: Any, left: Any, right: Any) -> Any:
    try:
        return reducer(deepcopy(left), deepcopy(right))
    except Exception as error:
        return type(error).__name__


@given(st.lists(ELEMENTS, max_size=3) | ELEMENTS, st.lists(ELEMENTS | REMOVALS, max_size=5) | REMOVALS)
def test_merging_is_alike(left: Any, right: Any) -> None:
    assert outcome(ui_message_reducer, left, right) == outcome(theirs.ui_message_reducer, left, right)


def test_merging_changes_nothing_given() -> None:
    before: Any = [{"type": "ui", "id": "1", "name": "n", "props": {"a": 1}, "metadata": {}}]
    new: Any = [{"type": "ui", "id": "1", "name": "n", "props": {"b": 2}, "metadata": {"merge": True}}]
    merged: Any = ui_message_reducer(before, new)
    assert merged[0]["props"] == {"a": 1, "b": 2}
    assert before[0]["props"] == {"a": 1} and new[0]["props"] == {"b": 2}


@pytest.fixture
def task() -> Iterator[SimpleNamespace]:
    task = SimpleNamespace(sent=[], shown=[], config={"tags": ["t"], "run_name": "node"})
    task.send, task.stream_writer = task.sent.extend, task.shown.append
    token = current_task.set(task)
    yield task
    current_task.reset(token)


def test_pushing_shows_and_writes(task: SimpleNamespace) -> None:
    event = push_ui_message("chart", {"a": 1}, id="1", metadata={"x": 2}, message=AIMessage("m", id="m1"))
    assert event == {
        "type": "ui",
        "id": "1",
        "name": "chart",
        "props": {"a": 1},
        "metadata": {
            "merge": False,
            "run_id": None,
            "tags": ["t"],
            "name": "node",
            "x": 2,
            "message_id": "m1",
        },
    }
    assert task.shown == [event] and task.sent == [("ui", event)]


def test_pushing_for_the_eye_only(task: SimpleNamespace) -> None:
    event = push_ui_message("chart", {}, state_key=None, merge=True)
    assert event["id"] and event["metadata"]["merge"] and "message_id" not in event["metadata"]
    assert task.shown == [event] and task.sent == []


def test_deleting(task: SimpleNamespace) -> None:
    event = delete_ui_message("1", state_key="panel")
    assert task.shown == [event] and task.sent == [("panel", {"type": "remove-ui", "id": "1"})]


def test_outside_of_a_node() -> None:
    for call in (lambda: push_ui_message("chart", {}), lambda: delete_ui_message("1")):
        with pytest.raises(RuntimeError, match="outside of a runnable context"):
            call()
