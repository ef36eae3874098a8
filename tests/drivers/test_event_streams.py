"""Event streams (version 3) whose readers leave, are cancelled, or are several."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from cases.shared import Bodies, Log, say
from harness.engine import Engine

from surestep.stream import UpdatesTransformer

PATIENCE = 10.0


def opened(E: Engine, app: Any, config: Any = None, **options: Any) -> Any:
    """A run's event stream, under any driver."""
    if E.is_async:
        return E.wait(app.astream_events({"log": []}, config, version="v3", **options))
    return app.stream_events({"log": []}, config, version="v3", **options)


def first(E: Engine, projection: Any) -> Any:
    """The first item of a projection, whose reader leaves then."""
    if not E.is_async:
        return next(iter(projection))

    async def read() -> Any:
        async for item in projection:
            return item

    return E.wait(read())


def time_passes(E: Engine) -> None:
    """Garbage is collected, and what was scheduled for it is done."""
    gc.collect()
    if E.is_async:
        E.wait(asyncio.sleep(0.05))


def test_a_run_that_is_dropped_keeps_what_its_finished_tasks_did(E: Engine) -> None:
    bodies = Bodies(E)
    nodes = {"fast": bodies.say("fast"), "slow": bodies.late("slow", 0.05), "end": bodies.say("end")}
    app = E.graph(Log, nodes, "START > fast", "START > slow", "fast, slow > end").compile(checkpointer=E.saver())
    stream = opened(E, app, E.config(), transformers=[UpdatesTransformer])
    assert first(E, stream.updates) == {"fast": {"log": ["fast"]}}
    del stream
    time_passes(E)
    assert bodies.runs["end"] == 0, "nothing runs that nobody reads"
    assert E.invoke(app, None, E.config())["log"] == ["fast", "slow", "end"]
    assert bodies.runs["fast"] == 1


def test_what_nobody_reads_is_not_kept(E: Engine) -> None:
    app = E.graph(Log, {n: say(n) for n in "abc"}, "START > a > b > c").compile()
    stream = opened(E, app)
    assert first(E, stream.values) == {"log": []}  # and then its reader leaves
    output = E.wait(stream.output()) if E.is_async else stream.output
    assert output == {"log": ["a", "b", "c"]}
    assert [channel for channel in (*stream.extensions.values(), stream._mux._events) if channel._items] == []


def test_a_graph_inside_that_has_ended_is_let_go(E: Engine) -> None:
    inner = E.graph(Log, {"x": say("x")}, "START > x").compile()
    app = E.graph(Log, {"one": inner, "two": inner}, "START > one > two").compile()
    stream, alive = opened(E, app), []

    async def follow() -> None:
        async for handle in stream.subgraphs:
            async for _ in handle.values:
                pass
            alive.append(weakref.ref(handle))

    if E.is_async:
        E.wait(follow())
    else:
        for handle in stream.subgraphs:
            list(handle.values)
            alive.append(weakref.ref(handle))
        del handle
    gc.collect()
    assert [handle() for handle in alive] == [None, None]


class Slow:
    """A graph of two nodes; the second takes long, the first time."""

    def __init__(self, E: Engine) -> None:
        self.begun, self.cancelled, self.bodies = asyncio.Event(), 0, Bodies(E)
        self.goes_on = asyncio.Event()
        nodes = {"a": self.bodies.say("a"), "slow": self.node}
        self.app = E.graph(Log, nodes, "START > a > slow").compile(checkpointer=E.saver())

    async def node(self, state: Any) -> Any:
        if not self.begun.is_set():
            self.begun.set()
            try:
                await asyncio.wait_for(self.goes_on.wait(), PATIENCE)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return {"log": ["slow"]}


async def read_all(projection: Any) -> list[Any]:
    return [item async for item in projection]


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_run_stops_when_its_only_reader_is_cancelled() -> None:
    with Engine("surestep", "async") as E:
        slow = Slow(E)

        async def run() -> Any:
            stream = await slow.app.astream_events({"log": []}, E.config(), version="v3")
            reader = asyncio.create_task(read_all(stream.values))
            await asyncio.wait_for(slow.begun.wait(), PATIENCE)
            await cancelled(reader)
            assert slow.cancelled == 1, "the node goes on behind the back of a reader that is gone"
            return await slow.app.ainvoke(None, E.config())

        assert E.wait(run())["log"] == ["a", "slow"]
        assert slow.bodies.runs["a"] == 1


def test_the_run_goes_on_while_another_reader_waits() -> None:
    with Engine("surestep", "async") as E:
        slow = Slow(E)

        async def run() -> Any:
            stream = await slow.app.astream_events({"log": []}, E.config(), version="v3")
            readers = [asyncio.create_task(read_all(projection)) for projection in (stream.values, stream)]
            await asyncio.wait_for(slow.begun.wait(), PATIENCE)
            await cancelled(readers[0])
            slow.goes_on.set()
            return await readers[1], await stream.output()

        events, output = E.wait(run())
        assert output == {"log": ["a", "slow"]} and slow.cancelled == 0
        assert [event["params"]["data"]["log"] for event in events] == [[], ["a"], ["a", "slow"]]


def test_abort_frees_a_reader_that_waits() -> None:
    with Engine("surestep", "async") as E:
        slow = Slow(E)

        async def run() -> Any:
            stream = await slow.app.astream_events({"log": []}, E.config(), version="v3")
            reader = asyncio.create_task(read_all(stream.values))
            await asyncio.wait_for(slow.begun.wait(), PATIENCE)
            await stream.abort()
            return await asyncio.wait_for(reader, PATIENCE)

        assert [values["log"] for values in E.wait(run())] == [[], ["a"]]
        assert slow.cancelled == 1


@pytest.mark.parametrize("events", [False, True])
def test_a_loop_that_ends_with_an_open_stream(events: bool) -> None:
    """The loop closes all generators at once. They are closed in order all the same, and nothing is reported."""
    with Engine("surestep", "async") as E:
        slow, reports, kept = Slow(E), [], []

        async def leave() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context))
            if events:
                kept.append(await slow.app.astream_events({"log": []}, E.config(), version="v3"))
                kept.append(aiter(kept[0].values))
            else:
                kept.append(slow.app.astream({"log": []}, E.config(), stream_mode="values"))
            assert await anext(kept[-1]) == {"log": []}
            assert await anext(kept[-1]) == {"log": ["a"]}

        asyncio.run(leave())
        kept.clear()
        gc.collect()
        assert reports == []
        slow.begun.set()
        assert E.invoke(slow.app, None, E.config())["log"] == ["a", "slow"]
        assert slow.bodies.runs["a"] == 1
