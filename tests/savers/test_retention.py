"""Keeping and forgetting, on every saver that can: pins, both strategies, what is never removed."""

from __future__ import annotations

import json
import operator
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, TypedDict

import langgraph.checkpoint.memory
import pytest
from savers.history import TASK, Thread, at, everything, ids
from savers.kinds import opened

from surestep._constants import INTERRUPT
from surestep.checkpoint.base.id import next_checkpoint_id, seconds_of
from surestep.graph import START, StateGraph
from surestep.retention import Pin, Retention, Sweeper, Swept

DAY = 86400.0
A_DAY = timedelta(days=1)
DELETE = Retention(ttl=A_DAY)
KEEP = Retention(strategy="keep_latest", ttl=A_DAY)


def listed(saver: Any) -> list[str]:
    """The ids of all checkpoints, newest first."""
    return ids(saver.list(None))


def made(id: str) -> float:
    """When the checkpoint was made."""
    seconds = seconds_of(id)
    assert seconds is not None
    return seconds


# ---- what may be asked for ----


def test_the_defaults() -> None:
    assert Retention() == Retention(
        strategy="delete", ttl=None, sweep_interval=timedelta(minutes=5), limit=10_000, incident_ttl=None
    )


def test_the_servers_config() -> None:
    config = json.loads(
        '{"strategy": "keep_latest", "sweep_interval_minutes": 60, "default_ttl": 43200, "sweep_limit": 7}'
    )
    assert Retention.from_config(config) == Retention(
        strategy="keep_latest", ttl=timedelta(days=30), sweep_interval=timedelta(hours=1), limit=7
    )
    assert Retention.from_config({}) == Retention()
    with pytest.raises(ValueError, match=r"Unknown in checkpointer\.ttl: ttl\. Known: default_ttl"):
        Retention.from_config({"ttl": 5})


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"strategy": "keep"}, "Unknown strategy 'keep'"),
        ({"ttl": timedelta(days=-1)}, "ttl is negative"),
        ({"ttl": 60}, "ttl is a timedelta, not 60"),
        ({"limit": 0}, "limit=0"),
    ],
)
def test_what_can_not_be(given: Any, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        Retention(**given)


# ---- strategies ----


def test_without_a_ttl_everything_stays(thread: Thread) -> None:
    first = thread.put({"n": 1})
    for strategy in ("delete", "keep_latest"):
        assert thread.saver.sweep(Retention(strategy=strategy), now=made(first) + 1e9).checkpoints_deleted == 0  # type: ignore[arg-type]
    assert listed(thread.saver) == [first]


def test_delete_counts_from_when_a_sweep_saw_the_thread(thread: Thread) -> None:
    first = thread.put({"n": 1})
    start = made(first) + 1000 * DAY
    assert thread.saver.sweep(DELETE, now=start) == Swept(1, 0, 0, None), "its time begins now"
    thread.put({"n": 2})  # and goes on whatever happens
    assert thread.saver.sweep(DELETE, now=start + DAY - 1).threads_deleted == 0
    assert thread.saver.sweep(DELETE, now=start + DAY, dry_run=True) == Swept(1, 1, 2, None)
    assert len(listed(thread.saver)) == 2
    assert thread.saver.sweep(DELETE, now=start + DAY) == Swept(1, 1, 2, None)
    assert everything(thread.saver) == []
    thread.put({"n": 3})  # the name is used again: a new thread
    assert thread.saver.sweep(DELETE, now=start + 2 * DAY).threads_deleted == 0


def test_keep_latest_counts_from_the_last_checkpoint(thread: Thread) -> None:
    first = thread.put({"n": 1})
    second = thread.put({"n": 2})
    third = Thread(thread.saver, ns="child").put({"n": 3})
    assert thread.saver.sweep(KEEP, now=made(third) + DAY - 1).checkpoints_deleted == 0
    assert thread.saver.sweep(KEEP, now=made(third) + DAY) == Swept(1, 0, 1, None)
    assert listed(thread.saver) == [third, second] and thread.get(first) is None
    assert thread.get(second).checkpoint["channel_values"] == {"n": 2}  # type: ignore[union-attr]
    assert thread.saver.sweep(KEEP, now=made(third) + 9 * DAY).checkpoints_deleted == 0


# ---- what is never removed ----


def waiting(thread: Thread) -> str:
    """A checkpoint at which a run waits for a decision."""
    id = thread.put({"n": 1})
    thread.saver.put_writes(at("t", id), [(INTERRUPT, ("sure?",))], TASK)
    return id


@pytest.mark.parametrize("retention", [DELETE, KEEP])
def test_a_thread_that_waits_is_left_alone(thread: Thread, retention: Retention) -> None:
    thread.put({"n": 0})
    now = made(waiting(thread)) + 2 * DAY
    thread.saver.sweep(retention, now=now - DAY)
    assert thread.saver.sweep(retention, now=now).checkpoints_deleted == 0
    told = Retention(strategy=retention.strategy, ttl=A_DAY, open_threads=True)
    assert thread.saver.sweep(told, now=now).checkpoints_deleted == (2 if retention is DELETE else 1)


@pytest.mark.parametrize(
    "values",
    [{"branch:to:node": None}, {"__start__": {"n": 1}}, {"__pregel_tasks": ["send"]}, {"join:a+b:c": {"a", "b"}}],
)
def test_a_thread_that_may_be_running_is_left_alone(thread: Thread, values: Any) -> None:
    thread.put({"n": 0})
    now = made(thread.put(values)) + DAY
    assert thread.saver.sweep(KEEP, now=now).checkpoints_deleted == 0


def test_a_join_that_waits_for_others_is_not_open(thread: Thread) -> None:
    thread.put({"n": 0})
    now = made(thread.put({"join:a+b:c": {"a"}})) + DAY
    assert thread.saver.sweep(KEEP, now=now).checkpoints_deleted == 1


def test_a_thread_that_failed_is_not_open(thread: Thread) -> None:
    thread.put({"n": 0})
    last = thread.put({"branch:to:node": None})
    thread.saver.put_writes(at("t", last), [("__error__", "ValueError('no')")], TASK)
    assert thread.saver.sweep(KEEP, now=made(last) + DAY).checkpoints_deleted == 1


def test_where_a_decision_was_taken_stays_until_its_own_time(thread: Thread) -> None:
    first = thread.put({"n": 0})
    asked = waiting(thread)
    between = thread.put({"n": 2})
    last = thread.put({"n": 3})
    week = Retention(strategy="keep_latest", ttl=A_DAY, incident_ttl=timedelta(days=7))
    assert thread.saver.sweep(KEEP, now=made(last) + 99 * DAY).checkpoints_deleted == 2
    assert listed(thread.saver) == [last, asked] and not {first, between} & {*listed(thread.saver)}
    assert thread.get(asked).pending_writes, "with the question"  # type: ignore[union-attr]
    assert thread.saver.sweep(week, now=made(asked) + 7 * DAY - 1).checkpoints_deleted == 0
    assert thread.saver.sweep(week, now=made(asked) + 7 * DAY).checkpoints_deleted == 1


@pytest.mark.parametrize("retention", [DELETE, KEEP])
def test_a_pin_stays(thread: Thread, retention: Retention) -> None:
    first = thread.put({"n": 1})
    thread.put({"n": 2})
    last = thread.put({"n": 3})
    thread.saver.pin(at("t", first), "audit 7")
    thread.saver.pin(at("t", first), "audit 8")
    thread.saver.pin(at("t", first), "audit 8")
    assert thread.saver.pins("t") == [Pin("", first, "audit 7"), Pin("", first, "audit 8")]
    start = made(last)
    thread.saver.sweep(retention, now=start)
    thread.saver.sweep(retention, now=start + DAY)
    assert listed(thread.saver) == ([first] if retention is DELETE else [last, first])
    assert thread.get(first).checkpoint["channel_values"] == {"n": 1}  # type: ignore[union-attr]
    thread.saver.unpin(at("t", first), "audit 7")
    assert thread.saver.sweep(retention, now=start + DAY).checkpoints_deleted == 0
    thread.saver.unpin(at("t", first))
    assert thread.saver.sweep(retention, now=start + DAY).checkpoints_deleted == 1
    assert thread.saver.pins("t") == []


def test_prune_keeps_pins_and_deleting_does_not(thread: Thread) -> None:
    first = thread.put({"n": 1})
    thread.put({"n": 2})
    last = thread.put({"n": 3})
    thread.saver.pin(at("t", first), "audit")
    thread.saver.prune(["t"])
    assert listed(thread.saver) == [last, first]
    thread.saver.copy_thread("t", "copy")
    assert thread.saver.pins("copy") == thread.saver.pins("t")
    thread.saver.delete_thread("t")
    assert thread.saver.pins("t") == [] and thread.saver.pins("copy") == [Pin("", first, "audit")]


def test_a_pin_goes_with_its_checkpoint(thread: Thread) -> None:
    first = thread.put({"n": 1}, metadata={"run_id": "r"})
    thread.put({"n": 2})
    thread.saver.pin(at("t", first), "audit")
    thread.saver.delete_for_runs(["r"])
    assert thread.saver.pins("t") == []


def test_without_an_id_the_latest_is_pinned(thread: Thread) -> None:
    thread.put({"n": 1})
    last = thread.put({"n": 2})
    thread.saver.pin(at("t"), "now")
    assert thread.saver.pins("t") == [Pin("", last, "now")]
    for missing in (at("other"), at("t", next_checkpoint_id(0, None))):
        with pytest.raises(ValueError, match="no checkpoint to pin"):
            thread.saver.pin(missing, "x")


# ---- how much at once ----


def test_a_sweep_is_bounded_and_goes_on(saver: Any) -> None:
    last = ""
    for number in range(5):
        a_thread = Thread(saver, f"t{number}")
        a_thread.put({"n": 1})
        last = a_thread.put({"n": 2})
    few = Retention(strategy="keep_latest", ttl=A_DAY, limit=2)
    now = made(last) + DAY
    first = saver.sweep(few, now=now)
    assert first == Swept(2, 0, 2, "t1")
    second = saver.sweep(few, now=now, after=first.after)
    assert second == Swept(2, 0, 2, "t3")
    assert saver.sweep(few, now=now, after=second.after) == Swept(1, 0, 1, None)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_a_sweeper(kind: str, place: Callable[[str], Any], caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()
    seen: list[str | None] = []
    always = Retention(strategy="keep_latest", ttl=timedelta(0), sweep_interval=timedelta(milliseconds=1), limit=2)
    with opened(kind, place(kind)) as saver:
        for number in range(3):
            thread = Thread(saver, f"t{number}")
            thread.put({"n": 1})
            thread.put({"n": 2})

        class Watched:
            pin, unpin, pins = saver.pin, saver.unpin, saver.pins

            def sweep(self, *args: Any, **kwargs: Any) -> Swept:
                seen.append(kwargs["after"])
                if len(seen) == 1:
                    raise OSError("disk full")
                swept: Swept = saver.sweep(*args, **kwargs)
                if swept.after is None:
                    done.set()
                return swept

        with Sweeper(Watched(), always):
            assert done.wait(60)
        assert len(listed(saver)) == 3
    assert seen[:3] == [None, None, "t1"] and "disk full" in caplog.text


def test_what_can_not_be_swept() -> None:
    with pytest.raises(TypeError, match="object can't be swept"):
        Sweeper(object(), DELETE)


# ---- from a graph ----


class State(TypedDict):
    n: Annotated[int, operator.add]


def test_pins_of_a_graph(saver: Any) -> None:
    base = getattr(saver, "saver", saver)  # what is behind the synchronous face
    graph = StateGraph(State).add_node("add", lambda state: {"n": 1}).add_edge(START, "add").compile(checkpointer=base)
    awaited = hasattr(saver, "runner")

    def call(name: str, *args: Any) -> Any:
        return saver.runner.run(getattr(graph, f"a{name}")(*args)) if awaited else getattr(graph, name)(*args)

    config: Any = {"configurable": {"thread_id": "t"}}
    call("invoke", {"n": 1}, config)
    place = call("get_state", config).config
    call("pin", config, "before the refund")
    call("invoke", {"n": 1}, config)
    assert call("get_pins", config) == [Pin("", place["configurable"]["checkpoint_id"], "before the refund")]
    saver.sweep(Retention(strategy="keep_latest", ttl=timedelta(0)))
    assert len(listed(saver)) == 2 and call("get_state", place).values == {"n": 2}
    call("unpin", place, "another")
    assert len(call("get_pins", config)) == 1
    call("unpin", place)
    assert call("get_pins", config) == []


def test_a_saver_without_pins() -> None:
    saver = langgraph.checkpoint.memory.InMemorySaver()
    graph = StateGraph(State).add_node("add", lambda state: {"n": 1}).add_edge(START, "add").compile(checkpointer=saver)
    with pytest.raises(TypeError, match="InMemorySaver has no pins"):
        graph.pin({"configurable": {"thread_id": "t"}}, "x")
