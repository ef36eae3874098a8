"""What a consumer sees while the run goes on, and what happens when it stops looking."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from cases.shared import Bodies, Log, say
from harness.engine import Boom, Engine

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
