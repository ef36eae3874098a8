"""Something fails beside, before or after something that does not."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pytest
from cases.shared import Bodies, Log, say
from harness.engine import Boom, Engine


@pytest.mark.parametrize("target", ["name", "map", "send", "several"])
def test_a_router_that_failed_is_asked_again(E: Engine, target: str) -> None:
    """langgraph#8834: after the resume the branch was gone and the run counted as complete."""
    bodies = Bodies(E)
    bodies.fails["router"] = 2

    def route(state: Any) -> Any:
        bodies.start("router")
        return {"name": "sink", "map": 1, "send": E.Send("sink", {"log": []}), "several": ["sink", "other"]}[target]

    path = {1: "sink"} if target == "map" else ["sink", "other"]
    g = E.graph(Log, {n: bodies.say(n) for n in ("src", "sink", "other")}, "START > src", ("src", route, path))
    app = g.compile(checkpointer=E.saver())
    for given in ({"log": []}, None):
        assert isinstance(E.attempt(E.invoke, app, given, E.config()), Boom)
        assert E.state(app, E.config()).next == ("src",), "the node whose router failed has not finished"
    end = E.invoke(app, None, E.config())
    assert end["log"] == (["src", "other", "sink"] if target == "several" else ["src", "sink"])
    assert bodies.runs["router"] == 3 and bodies.runs["sink"] == 1


def test_a_router_from_the_start_that_failed_is_asked_again(E: Engine) -> None:
    bodies = Bodies(E)
    bodies.fails["router"] = 1

    def route(state: Any) -> str:
        bodies.start("router")
        return "a"

    app = E.graph(Log, {"a": bodies.say("a")}, ("START", route, ["a"])).compile(checkpointer=E.saver())
    assert isinstance(E.attempt(E.invoke, app, {"log": ["in"]}, E.config()), Boom)
    assert E.invoke(app, None, E.config())["log"] == ["in", "a"]


@pytest.mark.parametrize("pause", ["question", "breakpoint", "failure"])
def test_a_handler_that_ran_does_not_run_again(E: Engine, pause: str) -> None:
    """langgraph#9002: whatever stops the step after the handler committed, the handler is done."""
    bodies = Bodies(E)
    bodies.fails["boom"], bodies.fails["other"] = 9, 1 if pause == "failure" else 0
    other = bodies.ask("other") if pause == "question" else bodies.late("other")
    nodes = {
        "boom": (bodies.say("boom"), {"error_handler": bodies.handler()}),
        "other": other,
        "end": bodies.say("end"),
    }
    g = E.graph(Log, nodes, "START > boom", "START > other > end")
    app = g.compile(checkpointer=E.saver(), interrupt_before=["end"] if pause == "breakpoint" else None)
    first = E.attempt(E.invoke, app, {"log": []}, E.config())
    assert isinstance(first, Boom) == (pause == "failure"), first
    end = E.invoke(app, E.Command(resume="ok") if pause == "question" else None, E.config())
    word = "other=ok" if pause == "question" else "other"
    assert sorted(end["log"]) == ["end", "handler", word]
    assert bodies.runs["handler"] == 1 and bodies.runs["boom"] == 1


@pytest.mark.parametrize("modes", ["values", "updates", "custom", ["tasks", "updates"]])
@pytest.mark.parametrize("deep", [False, True])
def test_a_handled_failure_is_not_raised(E: Engine, modes: Any, deep: bool) -> None:
    """langgraph#8277, #8608: it was, in parallel steps, depending on the stream mode."""
    bodies = Bodies(E)
    bodies.fails["boom"] = 9
    nodes = {"boom": (bodies.say("boom"), {"error_handler": bodies.handler()}), "other": bodies.say("other")}
    app = E.graph(Log, nodes, "START > boom", "START > other").compile()
    E.stream(app, {"log": []}, stream_mode=modes, subgraphs=deep)
    assert sorted(E.invoke(app, {"log": []})["log"]) == ["handler", "other"]
    outer = E.graph(Log, {"sub": app}, "START > sub").compile(checkpointer=E.saver())
    assert sorted(E.invoke(outer, {"log": []}, E.config())["log"]) == ["handler", "other"]


def test_two_handled_failures_in_one_step(E: Engine) -> None:
    bodies = Bodies(E)
    bodies.fails.update({"a": 9, "b": 9})
    nodes = {n: (bodies.say(n), {"error_handler": bodies.handler(f"h{n}")}) for n in "ab"}
    app = E.graph(Log, nodes, "START > a", "START > b").compile(checkpointer=E.saver())
    assert sorted(E.invoke(app, {"log": []}, E.config())["log"]) == ["ha", "hb"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("driver", ["sync", "mixed"])
@pytest.mark.parametrize("savers", ["memory", "sqlite"])
def test_siblings_that_finish_as_one_fails_are_kept(durability: str, driver: str, savers: str) -> None:
    """langgraph#8115 and its neighbour: results that came in while another task failed were dropped.

    The bodies run in threads, which race; coroutines end one after the other.
    """
    interval, width = sys.getswitchinterval(), 16 if driver == "sync" else 4  # the loop's own threads are few
    sys.setswitchinterval(1e-6)
    try:
        with Engine("surestep", driver, savers) as E:
            for n in range(4):
                _race_of_siblings(E, durability, width, str(n))
    finally:
        sys.setswitchinterval(interval)


def _race_of_siblings(E: Engine, durability: str, width: int, thread: str) -> None:
    ran: list[int] = []
    first, gate = [True], threading.Barrier(width)

    def body(i: int) -> Any:
        def run(state: Any) -> Any:
            if first[0]:
                gate.wait(10)
            ran.append(i)
            if i == 0 and first[0]:
                raise Boom("x")
            return {"log": [i]}

        return run

    g = E.graph(Log, {f"n{i}": body(i) for i in range(width)}, *(f"START > n{i}" for i in range(width)))
    app = g.compile(checkpointer=E.saver())
    config = {**E.config(thread), "max_concurrency": width}
    assert isinstance(E.attempt(E.invoke, app, {"log": []}, config, durability=durability), Boom)
    first[0] = False
    ran.clear()
    end = E.invoke(app, None, config)
    assert sorted(end["log"]) == list(range(width))
    assert E.is_async or ran == [0], "a sibling that had finished ran again"


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_slow_sibling_of_a_failure_acts_once(E: Engine, durability: str) -> None:
    """Under the sync driver it finishes and is kept; under the async driver it is cancelled before it acts."""
    bodies = Bodies(E)
    bodies.fails["bad"] = 1
    g = E.graph(Log, {"slow": bodies.late("slow", 0.1), "bad": bodies.say("bad")}, "START > slow", "START > bad")
    app = g.compile(checkpointer=E.saver())
    assert isinstance(E.attempt(E.invoke, app, {"log": []}, E.config(), durability=durability), Boom)
    assert bodies.runs["slow"] == (0 if E.is_async else 1)
    assert sorted(E.invoke(app, None, E.config(), durability=durability)["log"]) == ["bad", "slow"]
    assert bodies.runs["slow"] == 1


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("savers", ["memory", "sqlite"])
def test_a_cancelled_run_keeps_what_was_finished(durability: str, savers: str) -> None:
    """langgraph#5672: the finished sibling survives, the one that was cancelled says so."""
    with Engine("surestep", "async", savers) as E:
        bodies = Bodies(E)
        g = E.graph(Log, {"fast": bodies.say("fast"), "slow": bodies.late("slow", 0.2)}, "START > fast", "START > slow")
        app = g.compile(checkpointer=E.saver())

        async def cancelled() -> None:
            run = asyncio.create_task(app.ainvoke({"log": []}, E.config(), durability=durability))
            while not bodies.runs["fast"]:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.01)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

        E.wait(cancelled())
        tasks = {task.name: task for task in E.state(app, E.config()).tasks}
        assert tasks["slow"].error and not tasks["fast"].error
        assert E.state(app, E.config()).next == ("slow",)
        end = E.invoke(app, None, E.config(), durability=durability)
        assert sorted(end["log"]) == ["fast", "slow"] and bodies.runs["fast"] == 1


def test_a_failed_node_that_recovers_shows_no_error_any_more(E: Engine) -> None:
    bodies = Bodies(E)
    bodies.fails["b"] = 1
    nodes = {"a": say("a"), "b": bodies.say("b"), "c": bodies.ask("c")}
    app = E.graph(Log, nodes, "START > a > b", "a > c").compile(checkpointer=E.saver())
    assert isinstance(E.attempt(E.invoke, app, {"log": []}, E.config()), Boom)
    assert [bool(task.error) for task in E.state(app, E.config()).tasks if task.name == "b"] == [True]
    E.invoke(app, None, E.config())
    done = [task for task in E.state(app, E.config()).tasks if task.name == "b"]
    assert [(task.error, task.result) for task in done] == [(None, {"log": ["b"]})]
