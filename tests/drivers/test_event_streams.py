"""Event streams of real runs: the reader sets the pace, and a run that is left stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from cases.shared import Bodies, Log
from harness.engine import Engine


def chain(E: Engine, bodies: Bodies, **options: Any) -> Any:
    names = "abcde"
    return E.graph(Log, {n: bodies.say(n) for n in names}, " > ".join(["START", *names])).compile(
        checkpointer=E.saver(), **options
    )


def first(E: Engine, app: Any, count: int) -> Any:
    """The first values of a run that is then left, and how many items waited for the reader at most."""
    waiting = 0
    if not E.is_async:
        with app.stream_events({"log": []}, E.config(), version="v3", durability="sync") as run:
            seen = []
            for values in run.values:
                waiting = max(waiting, len(run.values._items))
                seen.append(values)
                if len(seen) == count:
                    break
        return seen, waiting

    async def read() -> Any:
        nonlocal waiting
        async with await app.astream_events({"log": []}, E.config(), version="v3", durability="sync") as run:
            seen = []
            async for values in run.values:
                waiting = max(waiting, len(run.values._items))
                seen.append(values)
                if len(seen) == count:
                    break
        return seen

    return E.wait(read()), waiting


def test_the_reader_sets_the_pace_and_what_was_left_goes_on(E: Engine) -> None:
    bodies = Bodies(E)
    app = chain(E, bodies)
    seen, waiting = first(E, app, 3)
    assert [values["log"] for values in seen] == [[], ["a"], ["a", "b"]]
    assert waiting == 0, "one event at a time"
    assert set(bodies.runs) <= {"a", "b", "c"}, "nothing runs ahead of its reader by more than the step it is in"
    assert E.invoke(app, None, E.config())["log"] == list("abcde")
    assert all(count == 1 for name, count in bodies.runs.items() if name in "ab")


def test_nothing_runs_until_somebody_reads(E: Engine) -> None:
    bodies = Bodies(E)
    app = chain(E, bodies)
    run = app.astream_events({"log": []}, E.config(), version="v3") if E.is_async else None
    run = E.wait(run) if E.is_async else app.stream_events({"log": []}, E.config(), version="v3")
    assert not bodies.runs
    output = E.wait(run.output()) if E.is_async else run.output
    assert output["log"] == list("abcde")


@pytest.fixture
def async_engine() -> Iterator[Engine]:
    with Engine("surestep", "async") as engine:
        yield engine


def test_an_abort_cancels_what_is_under_way(async_engine: Engine) -> None:
    E = async_engine

    async def scenario() -> None:
        started, cancelled = asyncio.Event(), asyncio.Event()

        async def slow(state: Any) -> Any:
            started.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.set()
                raise

        inner = E.graph(Log, {"slow": slow}, "START > slow").compile()
        app = E.graph(Log, {"sub": inner}, "START > sub").compile()
        run = await app.astream_events({"log": []}, version="v3")

        async def read() -> list[Any]:
            return [values async for values in run.values]

        reader = asyncio.create_task(read())
        await asyncio.wait_for(started.wait(), 30)
        await run.abort()
        assert cancelled.is_set()
        assert await asyncio.wait_for(reader, 30) == [{"log": []}]

    E.wait(scenario())


def test_a_reader_that_is_cancelled_leaves_the_event_to_the_next_one(async_engine: Engine) -> None:
    E = async_engine

    async def scenario() -> None:
        go = asyncio.Event()

        async def waits(state: Any) -> Any:
            await go.wait()
            return {"log": ["went on"]}

        app = E.graph(Log, {"waits": waits}, "START > waits").compile()
        run = await app.astream_events({"log": []}, version="v3")
        impatient = asyncio.create_task(run.output())
        await asyncio.sleep(0.05)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        go.set()
        assert await run.output() == {"log": ["went on"]}

    E.wait(scenario())


def test_several_readers_of_one_async_run(async_engine: Engine) -> None:
    E = async_engine
    app = chain(E, Bodies(E))

    async def scenario() -> Any:
        run = await app.astream_events({"log": []}, E.config(), version="v3")

        async def read(projection: Any) -> int:
            return len([item async for item in projection])

        return await asyncio.gather(read(run), read(run.values), run.output())

    events, values, output = E.wait(scenario())
    assert values == 6 and events >= values and output["log"] == list("abcde")
