"""One run per thread: what a second run does, and what becomes of the first."""

from __future__ import annotations

import asyncio
import operator
import threading
import time
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from harness.engine import Engine

from surestep._drive import tenure
from surestep.errors import RunCancelled, RunFenced, ThreadBusy
from surestep.runtime import RunControl


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


class Scene:
    """A graph of two nodes, the first of which waits until it is let go; runs of it in threads of their own."""

    def __init__(self, E: Engine) -> None:
        self.E = E
        self.entered = threading.Semaphore(0)
        self.go_on = threading.Event()
        scene = self

        async def first(state: Any) -> Any:
            scene.entered.release()
            while not scene.go_on.is_set():
                await E.sleep(0.002)
            return {"log": ["first"]}

        nodes = {"first": E.node(first), "second": E.node(lambda state: {"log": ["second"]})}
        self.builder = E.graph(Log, nodes, "START > first > second")
        self.app = self.builder.compile(checkpointer=E.saver())

    def start(self, name: str, **options: Any) -> Run:
        return Run(self, name, options)

    def log(self) -> list[Any]:
        found: list[Any] = self.E.state(self.app, self.E.config()).values.get("log", [])
        return found


class Run:
    """A run in a thread of its own; on the engine's loop if it has one."""

    def __init__(self, scene: Scene, name: str, options: dict[str, Any]) -> None:
        self.result: Any = None
        E, app, config = scene.E, scene.app, scene.E.config()
        given = {"log": [name]}

        def run() -> None:
            try:
                if E.is_async:
                    self.result = asyncio.run_coroutine_threadsafe(
                        app.ainvoke(given, config, **options), E.loop
                    ).result()
                else:
                    self.result = app.invoke(given, config, **options)
            except Exception as error:
                self.result = error

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def end(self) -> Any:
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.result


@pytest.fixture
def scene(E: Engine) -> Any:
    found = Scene(E)
    if not E.is_async:
        yield found
        return
    spin = threading.Thread(target=E.loop.run_forever)
    spin.start()
    wait, E.wait = (
        E.wait,
        lambda awaitable: asyncio.run_coroutine_threadsafe(_as_coroutine(awaitable), E.loop).result(20),
    )  # type: ignore[method-assign,assignment]
    yield found
    E.loop.call_soon_threadsafe(E.loop.stop)
    spin.join()
    E.wait = wait  # type: ignore[method-assign]


async def _as_coroutine(awaitable: Any) -> Any:
    return await awaitable


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_reject_refuses_while_another_run_holds_the_thread(scene: Scene) -> None:
    one = scene.start("one")
    scene.entered.acquire()
    assert isinstance(scene.start("two", multitask_strategy="reject").end(), ThreadBusy)
    scene.go_on.set()
    assert one.end()["log"] == ["one", "first", "second"]
    assert scene.start("three", multitask_strategy="reject").end()["log"][-3:] == ["three", "first", "second"]


def test_enqueue_waits_in_the_order_of_arrival(scene: Scene) -> None:
    runs = [scene.start("r0")]
    scene.entered.acquire()
    for number in range(1, 4):
        runs.append(scene.start(f"r{number}", multitask_strategy="enqueue"))
        until(lambda number=number: waiting(scene) == number)  # type: ignore[misc]
    scene.go_on.set()
    assert [type(run.end()) for run in runs] == [dict] * 4
    assert [name for name in scene.log() if name.startswith("r")] == ["r0", "r1", "r2", "r3"]


def waiting(scene: Scene) -> int:
    """How many runs wait for the thread."""
    saver = scene.app.checkpointer
    if hasattr(saver, "_tickets"):
        return len(saver._tickets.get("1", {}))
    return saver_rows(scene, "SELECT count(*) FROM surestep_queue")[0][0]  # type: ignore[no-any-return]


def saver_rows(scene: Scene, sql: str) -> Any:
    def rows() -> Any:
        yielded = yield (sql, ())
        return yielded

    runner = scene.app.checkpointer._runner
    return scene.E.wait(runner.aread(rows())) if scene.E.is_async else runner.read(rows())


def test_interrupt_fences_the_running_one_and_keeps_what_it_had_saved(scene: Scene) -> None:
    one = scene.start("one")
    scene.entered.acquire()
    two = scene.start("two", multitask_strategy="interrupt")
    scene.entered.acquire()
    scene.go_on.set()
    assert two.end()["log"] == ["one", "two", "first", "second"]
    assert isinstance(one.end(), RunFenced)
    assert scene.log() == ["one", "two", "first", "second"]


@pytest.mark.parametrize("history", [False, True])
def test_rollback_returns_to_before_the_running_one(scene: Scene, history: bool) -> None:
    before = []
    if history:
        scene.go_on.set()
        before = scene.start("zero").end()["log"]
        scene.entered.acquire()
        scene.go_on.clear()
    one = scene.start("one")
    scene.entered.acquire()
    two = scene.start("two", multitask_strategy="rollback")
    scene.entered.acquire()
    scene.go_on.set()
    assert two.end()["log"] == [*before, "two", "first", "second"]
    assert isinstance(one.end(), RunFenced)
    assert scene.log() == [*before, "two", "first", "second"]


def test_without_a_strategy_the_newer_run_takes_over(scene: Scene) -> None:
    one = scene.start("one")
    scene.entered.acquire()
    two = scene.start("two")
    scene.entered.acquire()
    scene.go_on.set()
    assert two.end()["log"] == ["one", "two", "first", "second"]
    assert isinstance(one.end(), RunFenced)


def test_a_cancel_ends_the_run_and_leaves_the_thread_usable(scene: Scene) -> None:
    E, app = scene.E, scene.app
    one = scene.start("one")
    scene.entered.acquire()
    cancel = {"reason": "changed my mind", "actor": "ann"}
    if E.is_async:
        assert E.wait(app.acancel(E.config(), **cancel))
    else:
        assert app.cancel(E.config(), **cancel)
    scene.go_on.set()
    error = one.end()
    assert isinstance(error, RunCancelled) and (error.reason, error.actor) == ("changed my mind", "ann")
    assert scene.log() in ([], ["one"])  # its input is there, taken in or not
    assert E.wait(app.acancel(E.config())) is False if E.is_async else app.cancel(E.config()) is False
    found = E.wait(app.aget_effects(E.config())) if E.is_async else app.get_effects(E.config())
    assert [(one.kind, one.reason, one.actor) for one in found.decisions] == [("cancel", "changed my mind", "ann")]
    assert E.invoke(app, None, E.config())["log"] == ["one", "first", "second"]


def test_a_control_cancels_its_run(scene: Scene) -> None:
    control = RunControl()
    one = scene.start("one", control=control)
    scene.entered.acquire()
    control.cancel("enough")
    scene.go_on.set()
    error = one.end()
    assert isinstance(error, RunCancelled) and error.reason == "enough"
    assert scene.E.invoke(scene.app, None, scene.E.config())["log"] == ["one", "first", "second"]


def test_a_holder_that_died_blocks_for_no_longer_than_its_lease(scene: Scene, monkeypatch: Any) -> None:
    one = scene.start("one")
    scene.entered.acquire()
    (hold,) = [run.env.hold for run in tenure.heart.runs.values()]
    assert hold is not None
    tenure.heart.drop(hold)  # it is prolonged no more
    later = time.time() + hold.seconds + 1
    monkeypatch.setattr(tenure.time, "time", lambda: later)
    two = scene.start("two", multitask_strategy="reject")
    scene.entered.acquire()
    scene.go_on.set()
    assert two.end()["log"][:2] == ["one", "two"]
    assert isinstance(one.end(), RunFenced)


def test_a_lease_lost_to_another_process_ends_the_run(scene: Scene, monkeypatch: Any) -> None:
    """Told by the heart, while a node is running that would run for ever."""
    monkeypatch.setattr(tenure, "BEAT_SECONDS", 0.01)
    one = scene.start("one")
    scene.entered.acquire()
    E, saver = scene.E, scene.app.checkpointer
    if E.is_async:
        E.wait(saver.astop("1", time.time(), "elsewhere", None))
        if E.driver == "async":
            assert isinstance(one.end(), RunCancelled)  # the node was never let go
        scene.go_on.set()
    else:
        saver.stop("1", time.time(), "elsewhere", None)
        scene.go_on.set()
    assert isinstance(one.end(), RunCancelled)


def test_an_unknown_strategy_is_refused(E: Engine) -> None:
    app = E.graph(Log, {"a": E.node(lambda state: {})}, "START > a").compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, {"log": []}, E.config(), multitask_strategy="queue")
    assert isinstance(error, ValueError) and "'enqueue'" in str(error)


def test_rollback_undoes_what_was_done_outside_in_reverse_order(scene: Scene) -> None:
    from effects.world import World, effects_of

    E, undone = scene.E, []
    world = World(E)
    book = world.effect("book", lambda seat: f"ticket {seat}", compensate=lambda args, result: undone.append(result))
    tell = world.effect("tell")
    entered, go_on = threading.Event(), threading.Event()

    async def waits(state: Any) -> Any:
        entered.set()
        while not go_on.is_set():
            await E.sleep(0.002)

    nodes = {"books": world.calling((book, 1), (tell, "you"), (book, 2)), "waits": E.node(waits)}
    scene.app = E.graph(Log, nodes, "START > books > waits").compile(checkpointer=E.saver())
    one = scene.start("one")
    entered.wait(20)
    two = scene.start("two", multitask_strategy="rollback")
    until(lambda: len(undone) == 2)
    go_on.set()
    assert two.end()["log"][0] == "two" and isinstance(one.end(), RunFenced)
    assert undone == ["ticket 2", "ticket 1"]
    found = effects_of(E, scene.app)
    assert [one.kind for one in found.decisions] == ["not compensated"]
    assert [one.state for one in found.effects if one.name == "compensate book"] == ["done", "done"]


def test_a_run_that_lost_its_thread_starts_no_effect(scene: Scene) -> None:
    from effects.world import World

    E = scene.E
    world = World(E)
    pay = world.effect("pay")
    entered, go_on = threading.Event(), threading.Event()

    async def waits(state: Any) -> Any:
        entered.set()
        while not go_on.is_set():
            await E.sleep(0.002)

    inner = world.calling((pay, 1))
    if E.driver == "async":

        async def pays(state: Any) -> Any:
            await waits(state)
            return await inner(state)

    else:

        def pays(state: Any) -> Any:
            entered.set()
            go_on.wait(20)
            return inner(state)

    scene.app = E.graph(Log, {"pays": pays}, "START > pays").compile(checkpointer=E.saver())
    one = scene.start("one")
    assert entered.wait(20)
    saver = scene.app.checkpointer
    other = tenure.Hold("1", "elsewhere", 10.0)
    assert (
        E.wait(saver.aacquire(other, "take", time.time())) if E.is_async else saver.acquire(other, "take", time.time())
    )[0]
    go_on.set()
    assert isinstance(one.end(), RunFenced)
    assert world.happened == []
