"""Failing, cancelling, timing out: what is settled when the call has ended."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
import traceback
from typing import Any

import pytest
from cases.shared import Bodies, Log, say
from harness.engine import Boom, Engine


class Stop(BaseException):
    """Neither an Exception nor one that Python knows."""


@pytest.mark.parametrize("error", [Boom, Stop, KeyboardInterrupt])
@pytest.mark.parametrize("alone", [True, False])
def test_what_a_node_raises_reaches_the_caller(E: Engine, error: type[BaseException], alone: bool) -> None:
    if E.driver == "async" and error is KeyboardInterrupt:
        return  # an event loop lets it out at once, past whoever waits

    def bad(state: Any) -> Any:
        raise error("bad")

    nodes = {"bad": bad} if alone else {"bad": bad, "good": say("good")}
    app = E.graph(Log, nodes, *(f"START > {n}" for n in nodes)).compile()
    with pytest.raises(error):
        E.invoke(app, {"log": []})


def test_the_traceback_shows_the_node(E: Engine) -> None:
    def deep(state: Any) -> Any:
        raise Boom("here")

    def bad(state: Any) -> Any:
        return deep(state)

    app = E.graph(Log, {"bad": bad}, "START > bad").compile()
    error = E.attempt(E.invoke, app, {"log": []})
    frames = traceback.extract_tb(error.__traceback__)
    assert [frame.name for frame in frames][-2:] == ["bad", "deep"]
    assert any("'bad'" in note for note in error.__notes__)


def test_the_same_error_object_arrives(E: Engine) -> None:
    mine = Boom("mine")

    def bad(state: Any) -> Any:
        raise mine

    inner = E.graph(Log, {"bad": bad}, "START > bad").compile()
    app = E.graph(Log, {"sub": inner, "other": say("o")}, "START > sub", "START > other").compile(
        checkpointer=E.saver()
    )
    assert E.attempt(E.invoke, app, {"log": []}, E.config()) is mine


def test_of_several_failures_one_is_raised_and_all_are_stored(E: Engine) -> None:
    def bad(name: str) -> Any:
        def body(state: Any) -> Any:
            raise Boom(name)

        return body

    app = E.graph(Log, {n: bad(n) for n in "abc"}, *(f"START > {n}" for n in "abc")).compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, {"log": []}, E.config())
    assert isinstance(error, Boom)
    assert all(task.error for task in E.state(app, E.config()).tasks) or E.driver != "sync"


@pytest.mark.parametrize("driver", ["async", "mixed"])
@pytest.mark.parametrize("when", ["in a node", "between chunks", "in an inner graph"])
@pytest.mark.parametrize("savers", ["memory", "sqlite"])
def test_after_a_cancelled_run_nothing_is_written(driver: str, when: str, savers: str) -> None:
    with Engine("surestep", driver, savers) as E:
        bodies = Bodies(E)
        nodes = {"a": bodies.say("a"), "slow": bodies.late("slow", 0.05), "end": bodies.say("end")}
        graph = E.graph(Log, nodes, "START > a > slow > end")
        if when == "in an inner graph":
            graph = E.graph(Log, {"sub": graph.compile(), "late": bodies.say("late")}, "START > sub > late")
        app = graph.compile(checkpointer=E.saver())

        async def run() -> None:
            if when == "between chunks":
                async for _ in app.astream({"log": []}, E.config(), stream_mode="updates"):
                    await asyncio.sleep(10)
            else:
                await app.ainvoke({"log": []}, E.config())

        async def cancel() -> None:
            task = asyncio.create_task(run())
            while not bodies.runs["a"]:
                await asyncio.sleep(0.002)
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        E.wait(cancel())
        before = len(E.rows(app.checkpointer, E.config())), dict(bodies.runs), writes(E, app)
        E.wait(asyncio.sleep(0.08))
        assert (len(E.rows(app.checkpointer, E.config())), dict(bodies.runs), writes(E, app)) == before
        assert E.invoke(app, None, E.config())["log"][:3] == ["a", "slow", "end"]
        assert bodies.runs["a"] == 1


def writes(E: Engine, app: Any) -> int:
    return sum(len(row.pending_writes or ()) for row in E.rows(app.checkpointer, E.config()))


def test_a_thread_that_outlives_its_cancelled_run_writes_nothing() -> None:
    """A plain function cannot be stopped; what it returns must not arrive any more."""
    with Engine("surestep", "mixed") as E:
        gate, done = threading.Event(), threading.Event()

        def blocks(state: Any) -> Any:
            gate.wait(10)
            E.get_stream_writer()("late")
            done.set()
            return {"log": ["late"]}

        app = E.graph(Log, {"blocks": blocks}, "START > blocks").compile(checkpointer=E.saver())

        async def cancel() -> None:
            task = asyncio.create_task(app.ainvoke({"log": []}, E.config()))
            await asyncio.sleep(0.03)
            task.cancel()
            threading.Timer(0.03, gate.set).start()
            with pytest.raises(asyncio.CancelledError):
                await task

        E.wait(cancel())
        before = writes(E, app)
        gate.set()
        done.wait(10)
        E.wait(asyncio.sleep(0.02))
        assert writes(E, app) == before


def test_a_late_attempt_is_not_heard(E: Engine) -> None:
    """An attempt that timed out, and goes on in spite of it, changes nothing and shows nothing."""
    if E.driver != "async":
        return  # only coroutines may have a time limit
    tries: list[int] = []
    finished = asyncio.Event()

    async def stubborn(state: Any) -> Any:
        tries.append(1)
        if len(tries) > 1:
            return {"log": ["second"]}
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            await asyncio.sleep(0.02)
        E.get_stream_writer()("late words")
        finished.set()
        return {"log": ["first"]}

    policy = E.RetryPolicy(initial_interval=0.001, jitter=False)
    options = {"timeout": 0.02, "retry_policy": policy}
    g = E.graph(Log, {"n": (stubborn, options), "z": (lambda s: {"log": ["z"]})}, "START > n > z")
    app = g.compile(checkpointer=E.saver())
    chunks = E.stream(app, {"log": []}, E.config(), stream_mode=["custom", "updates"])
    E.wait(finished.wait())
    assert chunks == [("updates", {"n": {"log": ["second"]}}), ("updates", {"z": {"log": ["z"]}})]
    assert E.state(app, E.config()).values == {"log": ["second", "z"]}


def test_a_node_that_cancels_itself(E: Engine) -> None:
    async def body(state: Any) -> Any:
        raise asyncio.CancelledError("by itself")

    app = E.graph(Log, {"n": body}, "START > n").compile()
    if E.is_async:
        error = E.attempt(E.invoke, app, {"log": []})
        assert isinstance(error, E.NodeCancelledError) and error.node == "n"
    else:
        with pytest.raises((asyncio.CancelledError, E.NodeCancelledError)):
            E.invoke(app, {"log": []})


@pytest.mark.parametrize("limit", [0.03])
def test_a_step_has_a_time_limit(E: Engine, limit: float) -> None:
    bodies = Bodies(E)

    async def slow(state: Any) -> Any:
        await E.sleep(0.25)
        return {"log": ["slow"]}

    app = E.graph(Log, {"a": bodies.say("a"), "slow": slow}, "START > a > slow").compile(checkpointer=E.saver())
    app.step_timeout = limit
    error = E.attempt(E.invoke, app, {"log": []}, E.config())
    assert isinstance(error, TimeoutError)
    app.step_timeout = None
    assert E.invoke(app, None, E.config())["log"] == ["a", "slow"] and bodies.runs["a"] == 1


def test_waits_between_attempts(E: Engine, monkeypatch: Any) -> None:
    """initial, times the factor, up to the longest; with the clock as witness, not the stopwatch."""
    starts: list[float] = []

    def bad(state: Any) -> Any:
        starts.append(time.monotonic())
        raise Boom("again")

    policy = E.RetryPolicy(initial_interval=0.02, backoff_factor=2.0, max_interval=0.03, max_attempts=4, jitter=False)
    app = E.graph(
        Log, {"bad": (bad, {"retry_policy": policy}), "good": say("g")}, "START > bad", "START > good"
    ).compile()
    assert isinstance(E.attempt(E.invoke, app, {"log": []}), Boom)
    waits = [b - a for a, b in itertools.pairwise(starts)]
    assert len(waits) == 3 and all(wait >= least for wait, least in zip(waits, (0.019, 0.029, 0.029), strict=True))


def test_siblings_are_not_held_up_by_a_retry(E: Engine) -> None:
    """While one task waits for its next attempt, another one runs and ends."""
    order: list[str] = []

    def flaky(state: Any) -> Any:
        order.append("flaky")
        if len([o for o in order if o == "flaky"]) < 2:
            raise Boom("once")
        return {"log": ["flaky"]}

    async def other(state: Any) -> Any:
        await E.sleep(0.01)
        order.append("other")
        return {"log": ["other"]}

    policy = E.RetryPolicy(initial_interval=0.1, jitter=False)
    app = E.graph(
        Log, {"flaky": (flaky, {"retry_policy": policy}), "other": other}, "START > flaky", "START > other"
    ).compile()
    assert E.invoke(app, {"log": []})["log"] == ["flaky", "other"]
    assert order == ["flaky", "other", "flaky"]


def test_a_run_after_a_failed_one_is_clean(E: Engine) -> None:
    bodies = Bodies(E)
    bodies.fails["a"] = 1
    app = E.graph(Log, {"a": bodies.say("a")}, "START > a").compile()
    assert isinstance(E.attempt(E.invoke, app, {"log": []}), Boom)
    assert E.invoke(app, {"log": []}) == {"log": ["a"]}
    assert threading.active_count() < 60


class Refusing:
    """Makes a saver raise `error` for the rows of tasks that end with `channel`, while the disk is full."""

    def __init__(self, saver: Any, channel: str, error: BaseException) -> None:
        self.full = True
        self.channel, self.error = channel, error
        self.put_writes, self.aput_writes = saver.put_writes, saver.aput_writes
        saver.put_writes, saver.aput_writes = self.put, self.aput

    def put(self, config: Any, writes: Any, *rest: Any) -> None:
        if self.full and any(channel == self.channel for channel, _ in writes):
            raise self.error
        self.put_writes(config, writes, *rest)

    async def aput(self, config: Any, writes: Any, *rest: Any) -> None:
        self.put(config, writes, *rest)


ENDS_OF_CALLED = {"returns": "__return__", "fails": "__error__", "asks": "__interrupt__"}


def ending(E: Engine, refusing: Refusing, end: str) -> Any:
    """A task that returns, fails or asks while the disk is full, and returns after that."""

    @E.task
    def work() -> str:
        if refusing.full and end == "fails":
            raise Boom("work")
        if refusing.full and end == "asks":
            E.interrupt("?")
        return "done"

    return work


@pytest.mark.parametrize("end", ENDS_OF_CALLED)
@pytest.mark.parametrize("catches", [True, False])
@pytest.mark.parametrize("siblings", [0, 1])
def test_a_saver_that_fails_while_a_node_waits_for_a_task(E: Engine, end: str, catches: bool, siblings: int) -> None:
    """The node hears of it too, and the run ends with it whatever the node makes of it."""
    heard: list[str] = []
    saver = E.saver()
    refusing = Refusing(saver, ENDS_OF_CALLED[end], OSError("the disk is full"))

    work = ending(E, refusing, end)

    async def calls(state: Any) -> Any:
        try:
            result = await work() if E.is_async else work().result()
        except OSError as error:
            heard.append(str(error))
            if not catches:
                raise
            result = "caught"
        return {"log": [result]}

    nodes = {"calls": calls, **{f"s{n}": say(f"s{n}") for n in range(siblings)}}
    app = E.graph(Log, nodes, *(f"START > {n}" for n in nodes)).compile(checkpointer=saver)
    failed = E.attempt(E.invoke, app, {"log": []}, E.config(), durability="sync")
    assert isinstance(failed, OSError)
    # An event loop cancels a node that has a sibling, before it could hear of anything.
    assert heard == ([] if E.is_async and siblings else ["the disk is full"])
    refusing.full = False
    caught = catches and bool(heard)
    expected = ["caught" if caught else "done", *(f"s{n}" for n in range(siblings))]
    assert E.invoke(app, None, E.config())["log"] == expected, "nothing of it is lost: the thread goes on"


@pytest.mark.parametrize("end", ENDS_OF_CALLED)
@pytest.mark.parametrize("catches", [True, False])
def test_a_save_that_is_broken_off_while_a_node_waits_for_a_task(E: Engine, end: str, catches: bool) -> None:
    """Ctrl-C, or a cancel, in the middle of a save: the run ends with it, and nobody waits for what can't come."""
    error = asyncio.CancelledError if E.is_async else KeyboardInterrupt
    saver = E.saver()
    refusing = Refusing(saver, ENDS_OF_CALLED[end], error())

    work = ending(E, refusing, end)

    async def calls(state: Any) -> Any:
        for attempt in (1, 2):
            try:
                result = await work() if E.is_async else work().result()
            except error:
                if not catches or attempt == 2:
                    raise
            else:
                return {"log": [result]}

    app = E.graph(Log, {"calls": calls}, "START > calls").compile(checkpointer=saver)
    with pytest.raises(error):
        E.invoke(app, {"log": []}, E.config(), durability="sync")
    refusing.full = False
    assert E.invoke(app, None, E.config())["log"] == ["done"], "nothing of it is lost: the thread goes on"


@pytest.mark.parametrize("driver", ["sync", "mixed"])
def test_a_call_that_waits_for_its_turn_when_the_run_stops_is_answered(driver: str) -> None:
    """A thread can't be stopped: one that waits for a task that will never start has to hear of it."""
    E = Engine(driver=driver)
    begun, over, ended = threading.Semaphore(0), threading.Event(), threading.Event()
    heard: list[str] = []

    @E.task
    def work(number: int) -> int:
        begun.release()
        over.wait()
        return number

    def calls(state: Any) -> Any:
        try:
            return {"log": [[work(number) for number in range(3)][2].result()]}
        except BaseException as error:
            heard.append(str(error))
            raise
        finally:
            over.set()
            ended.set()

    def bad(state: Any) -> Any:
        begun.acquire()
        begun.acquire()
        raise Boom("bad")

    app = E.graph(Log, {"calls": calls, "bad": bad}, "START > calls", "START > bad").compile()
    with E:
        assert isinstance(E.attempt(E.invoke, app, {"log": []}, {"max_concurrency": 2}), Boom)
    ended.wait()
    assert heard == ["the run was stopped"]


def test_a_thread_that_waits_for_a_task_of_a_cancelled_run_is_answered() -> None:
    begun, ended = threading.Event(), threading.Event()
    heard: list[str] = []
    E = Engine(driver="mixed")

    @E.task
    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    def calls(state: Any) -> Any:
        try:
            work().result()
        except BaseException as error:
            heard.append(str(error))
            raise
        finally:
            ended.set()

    app = E.graph(Log, {"calls": calls}, "START > calls").compile()

    async def main() -> None:
        running = asyncio.create_task(app.ainvoke({"log": []}))
        await asyncio.to_thread(begun.wait)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()

    with E:
        E.wait(main())
    ended.wait()
    assert heard == ["the run was stopped"]
