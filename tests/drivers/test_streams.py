"""What a consumer sees while the run goes on, and what happens when it stops looking."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from cases.shared import Bodies, Log, say
from harness.engine import Boom, Engine

from surestep._drive.gate import LIMIT

PATIENCE = 10.0


def open_stream(E: Engine, app: Any, *args: Any, **kwargs: Any) -> Any:
    """A function that gives the next chunk, and one that closes the stream."""
    if not E.is_async:
        stream = app.stream(*args, **kwargs)
        return lambda: next(stream), stream.close
    stream = app.astream(*args, **kwargs)
    return lambda: E.wait(asyncio.wait_for(anext(stream), PATIENCE)), lambda: E.wait(stream.aclose())


def held(E: Engine, gate: threading.Event, body: Any) -> Any:
    """A node that does nothing until the gate is open; it fails rather than waits for ever."""

    async def run(state: Any) -> Any:
        for _ in range(int(PATIENCE / 0.002)):
            if gate.is_set():
                return body(state)
            await E.sleep(0.002)
        raise AssertionError("the gate was never opened: the consumer did not get its chunk in time")

    return run


@pytest.mark.parametrize("inside", [False, True])
def test_a_chunk_comes_when_its_task_ends_and_not_when_the_step_does(E: Engine, inside: bool) -> None:
    gate = threading.Event()
    nodes = {"fast": say("fast"), "slow": held(E, gate, say("slow"))}
    graph = E.graph(Log, nodes, "START > fast", "START > slow")
    if inside:
        graph = E.graph(Log, {"sub": graph.compile()}, "START > sub")
    app = graph.compile()
    following, close = open_stream(E, app, {"log": []}, stream_mode="updates", subgraphs=True)
    assert following()[1] == {"fast": {"log": ["fast"]}}
    gate.set()
    assert following()[1] == {"slow": {"log": ["slow"]}}
    close()


def test_custom_chunks_come_while_their_node_runs(E: Engine) -> None:
    gate = threading.Event()

    def body(state: Any) -> Any:
        E.get_stream_writer()("after")
        return {"log": []}

    async def talks(state: Any) -> Any:
        E.get_stream_writer()("before")
        return await held(E, gate, body)(state)

    app = E.graph(Log, {"talks": talks}, "START > talks").compile()
    following, close = open_stream(E, app, {"log": []}, stream_mode="custom")
    assert following() == "before"
    gate.set()
    assert following() == "after"
    close()


def test_nothing_runs_before_somebody_looks(E: Engine) -> None:
    bodies = Bodies(E)
    app = E.graph(Log, {"a": bodies.say("a")}, "START > a").compile(checkpointer=E.saver())
    stream = app.astream({"log": []}, E.config()) if E.is_async else app.stream({"log": []}, E.config())
    assert not bodies.runs and E.rows(app.checkpointer, E.config()) == []
    del stream
    gc.collect()


def test_a_stream_that_is_dropped_can_be_taken_up_again(E: Engine) -> None:
    bodies = Bodies(E)
    app = E.graph(Log, {n: bodies.say(n) for n in "abc"}, "START > a > b > c").compile(checkpointer=E.saver())
    following, close = open_stream(E, app, {"log": []}, E.config(), stream_mode="updates")
    assert following() == {"a": {"log": ["a"]}}
    close()
    del following, close
    gc.collect()
    assert E.invoke(app, None, E.config())["log"] == ["a", "b", "c"]
    assert bodies.runs == {"a": 1, "b": 1, "c": 1}


def test_a_stream_that_is_left_in_a_parallel_step(E: Engine) -> None:
    bodies = Bodies(E)
    nodes = {"fast": bodies.say("fast"), "slow": bodies.late("slow", 0.05), "end": bodies.say("end")}
    app = E.graph(Log, nodes, "START > fast", "START > slow", "fast, slow > end").compile(checkpointer=E.saver())
    following, close = open_stream(E, app, {"log": []}, E.config(), stream_mode="updates")
    assert following() == {"fast": {"log": ["fast"]}}
    close()
    assert bodies.runs["end"] == 0
    assert E.invoke(app, None, E.config())["log"] == ["fast", "slow", "end"]
    assert bodies.runs["fast"] == 1 and bodies.runs["slow"] <= 1 + E.is_async


def test_chunks_of_the_steps_before_a_failure_are_seen(E: Engine) -> None:
    bodies = Bodies(E)
    bodies.fails["b"] = 1
    app = E.graph(Log, {n: bodies.say(n) for n in "ab"}, "START > a > b").compile()
    following, _ = open_stream(E, app, {"log": []}, stream_mode="updates")
    assert following() == {"a": {"log": ["a"]}}
    with pytest.raises(Boom):
        following()


def test_many_chunks_of_one_node(E: Engine) -> None:
    def talks(state: Any) -> Any:
        writer = E.get_stream_writer()
        for n in range(1000):
            writer(n)

    app = E.graph(Log, {"talks": talks}, "START > talks").compile()
    assert E.stream(app, {"log": []}, stream_mode="custom") == list(range(1000))


def test_streams_of_two_runs_do_not_mix(E: Engine) -> None:
    def talks(state: Any) -> Any:
        E.get_stream_writer()(state["log"][0])
        return {"log": ["end"]}

    app = E.graph(Log, {"talks": talks}, "START > talks").compile()
    runs = [open_stream(E, app, {"log": [n]}, stream_mode="custom") for n in range(5)]
    assert [following() for following, _ in reversed(runs)] == [4, 3, 2, 1, 0]
    for _, close in runs:
        close()


def test_a_consumer_in_another_thread_than_the_one_that_began(E: Engine) -> None:
    """A web server may hand a generator from one worker thread to another."""
    if E.is_async:
        return  # an event loop belongs to one thread
    app = E.graph(Log, {n: say(n) for n in "abc"}, "START > a > b > c").compile(checkpointer=E.saver())
    stream = app.stream({"log": []}, E.config(), stream_mode="updates")
    chunks = [next(stream)]
    thread = threading.Thread(target=lambda: chunks.extend(stream))
    thread.start()
    thread.join()
    assert [list(chunk) for chunk in chunks] == [["a"], ["b"], ["c"]]


def test_print_mode_prints(E: Engine, capsys: Any) -> None:
    app = E.graph(Log, {"a": say("a")}, "START > a").compile()
    E.invoke(app, {"log": []}, print_mode=["updates", "values"])
    printed = capsys.readouterr().out
    assert "[updates]" in printed and "[values]" in printed


# -- a reader that is slow, or leaves ------------------------------------------------------------------------


def time_passes(E: Engine, until: Any = None) -> None:
    """Lets nodes run without reading: for a while, or until something has happened."""

    async def run() -> None:
        for _ in range(50 if until is None else 5000):
            if until is not None and until():
                return
            await asyncio.sleep(0.001)

    if E.is_async:
        E.wait(run())
    else:
        asyncio.run(run())


class Talker:
    """A node that writes `count` chunks and counts them."""

    def __init__(self, E: Engine, count: int) -> None:
        self.E, self.count, self.written, self.runs = E, count, 0, 0

    async def talk(self, state: Any) -> Any:
        writer = self.E.get_stream_writer()
        self.runs += 1
        for n in range(self.count):
            writer(n)
            self.written += 1
            await self.E.sleep(0)
        return {"log": ["talked"]}

    def talk_in_a_thread(self, state: Any) -> Any:
        return asyncio.run(Talker.talk(self, state))

    def is_far_ahead(self) -> bool:
        return self.written >= LIMIT


def talking(E: Engine, count: int, inside: bool = False, **options: Any) -> tuple[Talker, Any]:
    talker = Talker(E, count)
    talk = talker.talk_in_a_thread if E.driver == "mixed" else talker.talk
    graph = E.graph(Log, {"talks": talk, "end": say("end")}, "START > talks > end")
    if inside:
        graph = E.graph(Log, {"sub": graph.compile()}, "START > sub")
    return talker, graph.compile(**options)


@pytest.mark.parametrize("inside", [False, True])
def test_a_slow_reader_slows_a_node_down(E: Engine, inside: bool) -> None:
    talker, app = talking(E, 3 * LIMIT, inside)
    following, close = open_stream(E, app, {"log": []}, stream_mode="custom", subgraphs=inside)
    seen = [following()]
    time_passes(E, talker.is_far_ahead)
    time_passes(E)
    assert talker.written <= LIMIT + 2, "the node ran ahead of its reader"
    while len(seen) < 3 * LIMIT:
        seen.append(following())
        assert talker.written <= len(seen) + LIMIT + 1
    assert [chunk[1] if inside else chunk for chunk in seen] == list(range(3 * LIMIT))
    close()


def test_a_reader_that_leaves_lets_a_node_go_that_it_held_up(E: Engine) -> None:
    talker, app = talking(E, 3 * LIMIT, checkpointer=E.saver())
    following, close = open_stream(E, app, {"log": []}, E.config(), stream_mode="custom")
    assert following() == 0
    time_passes(E, talker.is_far_ahead)
    close()
    assert E.invoke(app, None, E.config())["log"] == ["talked", "end"]
    assert talker.runs == 1 + E.is_async  # there the node was cancelled; a thread of our own comes to its end


def test_a_reader_that_is_cancelled_while_it_waits(E: Engine) -> None:
    if not E.is_async:
        return  # there is no cancelling a thread
    bodies = Bodies(E)
    hold = asyncio.Event()

    async def slow(state: Any) -> Any:
        if not hold.is_set():
            hold.set()
            await asyncio.sleep(PATIENCE)
        return {"log": ["slow"]}

    app = E.graph(Log, {"a": bodies.say("a"), "slow": slow}, "START > a > slow").compile(checkpointer=E.saver())
    seen: list[Any] = []

    async def read() -> None:
        async for chunk in app.astream({"log": []}, E.config(), stream_mode="updates"):
            seen.append(chunk)

    async def run() -> Any:
        reader = asyncio.create_task(read())
        await asyncio.wait_for(hold.wait(), PATIENCE)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        return await app.ainvoke(None, E.config())

    assert E.wait(run())["log"] == ["a", "slow"]
    assert seen == [{"a": {"log": ["a"]}}] and bodies.runs["a"] == 1


def test_a_break_in_the_middle_and_the_rest_of_the_run(E: Engine) -> None:
    bodies = Bodies(E)
    app = E.graph(Log, {n: bodies.say(n) for n in "abc"}, "START > a > b > c").compile(checkpointer=E.saver())

    async def read() -> None:
        async for chunk in app.astream({"log": []}, E.config(), stream_mode="updates"):
            if "b" in chunk:
                break

    if E.is_async:
        E.wait(read())
        time_passes(E)
    else:
        for chunk in app.stream({"log": []}, E.config(), stream_mode="updates"):
            if "b" in chunk:
                break
    gc.collect()
    assert E.invoke(app, None, E.config())["log"] == ["a", "b", "c"]
    assert bodies.runs == {"a": 1, "b": 1, "c": 1}


def test_a_stream_read_inside_a_stream(E: Engine) -> None:
    """A node streams a graph for itself, and leaves early; the outer reader sees the same parts until then."""
    bodies = Bodies(E)
    inner = E.graph(Log, {n: bodies.say(n) for n in "xyz"}, "START > x > y > z").compile()
    seen: list[Any] = []

    def call(state: Any) -> Any:
        stream = inner.stream({"log": []}, stream_mode="updates")
        seen.append(next(stream))
        stream.close()
        return {"log": ["called"]}

    async def acall(state: Any) -> Any:
        stream = inner.astream({"log": []}, stream_mode="updates")
        seen.append(await anext(stream))
        await stream.aclose()
        return {"log": ["called"]}

    app = E.graph(Log, {"call": acall if E.is_async else call}, "START > call").compile()
    parts = E.stream(app, {"log": []}, stream_mode="updates", subgraphs=True)
    assert seen == [{"x": {"log": ["x"]}}]
    assert [(len(ns), [*update]) for ns, update in parts] == [(1, ["x"]), (0, ["call"])]
    assert bodies.runs == {"x": 1}
