"""Two runs on one thread: never do both report success while the work of one of them is lost.

The one that comes too late gets `ThreadConflict`, which names the thread; of two answers to one question the
second gets `AlreadyAnswered`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases.jobs import turn
from cases.shared import Log, ids
from harness.engine import Engine
from harness.forge import Forge

DURABILITIES = ("sync", "async", "exit")


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    with Forge("cases.jobs", "surestep.checkpoint.sqlite", "surestep.checkpoint.sqlite.aio", "asyncio") as forge:
        yield forge


def together(E: Engine, calls: list[Any]) -> list[Any]:
    """What each of the calls returns or raises, all of them begun at once: threads, or tasks of one loop."""
    if E.is_async:

        async def gather() -> list[Any]:
            return await asyncio.gather(*(call() for call in calls), return_exceptions=True)

        return list(E.wait(gather()))
    results: list[Any] = [None] * len(calls)
    gate = threading.Barrier(len(calls))

    def run(n: int) -> None:
        gate.wait()
        results[n] = E.attempt(calls[n])

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def invoking(E: Engine, app: Any, given: Any, **options: Any) -> Any:
    method = app.ainvoke if E.is_async else app.invoke
    return lambda: method(given, E.config(), **options)


def slow(E: Engine, seconds: float = 0.03) -> Any:
    async def work(state: Any) -> Any:
        await E.sleep(seconds)
        return {"log": ["did " + state["log"][-1]]}

    return work


def chain(rows: list[Any]) -> bool:
    """Whether the checkpoints are one chain: no two with the same parent."""
    parents = [row.parent_config["configurable"]["checkpoint_id"] for row in rows if row.parent_config]
    return len(parents) == len(set(parents))


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("fresh", [True, False])
def test_two_inputs_at_once(E: Engine, durability: str, fresh: bool) -> None:
    for n in range(3):
        app = E.graph(Log, {"work": slow(E)}, "START > work").compile(checkpointer=E.saver())
        if not fresh:
            E.invoke(app, {"log": ["zero"]}, E.config())
        words = ["A", "B", "C"]
        results = together(E, [invoking(E, app, {"log": [w]}, durability=durability) for w in words])
        log = E.state(app, E.config()).values["log"]
        for word, result in zip(words, results, strict=True):
            if isinstance(result, Exception):
                assert isinstance(result, E.ThreadConflict), result
                assert result.thread_id == "1" and "'1'" in str(result)
            else:
                assert word in log, f"round {n}: {word} reported success and is lost"
        assert any(isinstance(result, dict) for result in results)
        assert chain(E.rows(app.checkpointer, E.config()))


@pytest.mark.parametrize("durability", DURABILITIES)
def test_two_answers_at_once(E: Engine, durability: str) -> None:
    """An operator who clicks twice."""
    for by_id in (False, True):
        effects: list[str] = []

        async def pay(state: Any, effects: list[str] = effects) -> Any:
            answer = E.interrupt("pay?")
            await E.sleep(0.03)
            effects.append(answer)
            return {"log": [answer]}

        app = E.graph(Log, {"pay": pay}, "START > pay").compile(checkpointer=E.saver())
        known = ids(E.invoke(app, {"log": []}, E.config()))["pay?"]
        command = E.Command(resume={known: "yes"} if by_id else "yes")
        results = together(E, [invoking(E, app, command, durability=durability) for _ in range(3)])
        assert effects == ["yes"], f"paid {len(effects)} times: {results}"
        lost = [result for result in results if isinstance(result, Exception)]
        assert len(lost) == 2 and all(isinstance(error, E.UnknownInterruptError) for error in lost), results
        assert E.state(app, E.config()).values == {"log": ["yes"]}


def test_an_answer_and_a_new_input_at_once(E: Engine) -> None:
    async def ask(state: Any) -> Any:
        answer = E.interrupt("?")
        await E.sleep(0.03)
        return {"log": [answer]}

    app = E.graph(Log, {"ask": ask}, "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": ["one"]}, E.config())
    calls = [invoking(E, app, E.Command(resume="yes")), invoking(E, app, {"log": ["two"]})]
    answered, asked = together(E, calls)
    log = E.state(app, E.config()).values["log"]
    if isinstance(answered, dict) and "__interrupt__" not in answered:
        assert "yes" in log, "the answer was taken, and is lost"
    if isinstance(asked, dict):
        assert "two" in log, "the input was taken, and is lost"
    assert isinstance(answered, dict) or isinstance(asked, dict)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_update_during_a_run(E: Engine, durability: str) -> None:
    """Either the edit is in the end's state, or the run says that it lost."""
    started, go = threading.Event(), threading.Event()

    async def work(state: Any) -> Any:
        started.set()
        while not go.is_set():
            await E.sleep(0.002)
        return {"log": ["work"]}

    app = E.graph(Log, {"work": work, "after": slow(E, 0)}, "START > work > after").compile(checkpointer=E.saver())

    if E.is_async:

        async def both() -> Any:
            run = asyncio.create_task(app.ainvoke({"log": ["in"]}, E.config(), durability=durability))
            while not started.is_set():
                await asyncio.sleep(0.002)
            edit = await asyncio.gather(
                app.aupdate_state(E.config(), {"log": ["edit"]}, as_node="work"), return_exceptions=True
            )
            go.set()
            return (await asyncio.gather(run, return_exceptions=True))[0], edit[0]

        result, edit = E.wait(both())
    else:
        results: list[Any] = []
        run = threading.Thread(
            target=lambda: results.append(E.attempt(invoking(E, app, {"log": ["in"]}, durability=durability)))
        )
        run.start()
        started.wait(10)
        edit = E.attempt(E.update, app, E.config(), {"log": ["edit"]}, as_node="work")
        go.set()
        run.join()
        (result,) = results
    log = E.state(app, E.config()).values["log"]
    assert isinstance(edit, dict) or isinstance(result, dict), "one of the two has won"
    assert isinstance(edit, Exception) or "edit" in log, "the edit reported success, and is lost"
    assert isinstance(result, (dict, E.ThreadConflict)), result
    assert isinstance(result, Exception) or "work" in log, "the run reported success, and is lost"


def test_two_forks_at_once_are_two_branches(E: Engine) -> None:
    """Whoever names a checkpoint wants a branch of their own."""
    app = E.graph(Log, {"work": slow(E)}, "START > work").compile(checkpointer=E.saver())
    E.invoke(app, {"log": ["zero"]}, E.config())
    base = E.state(app, E.config()).config
    method = app.ainvoke if E.is_async else app.invoke
    results = together(E, [lambda w=w: method({"log": [w]}, base) for w in ("A", "B")])  # type: ignore[misc]
    for word, result in zip("AB", results, strict=True):
        if isinstance(result, dict):
            assert result["log"][-2:] == [word, "did " + word]
            assert any(snapshot.values.get("log") == result["log"] for snapshot in E.history(app, E.config()))
        else:
            assert isinstance(result, E.ThreadConflict)
    assert any(isinstance(result, dict) for result in results)


def test_other_threads_and_namespaces_do_not_conflict(E: Engine) -> None:
    app = E.graph(Log, {"work": slow(E)}, "START > work").compile(checkpointer=E.saver())
    method = app.ainvoke if E.is_async else app.invoke
    calls = [lambda n=n: method({"log": [str(n)]}, E.config(str(n))) for n in range(8)]  # type: ignore[misc]
    assert [result["log"] for result in together(E, calls)] == [[str(n), f"did {n}"] for n in range(8)]


@pytest.mark.parametrize("drivers", [("sync", "sync"), ("sync", "async"), ("async", "async")])
@pytest.mark.parametrize("fresh", [True, False])
def test_two_processes_with_an_input_each(forge: Forge, tmp_path: Path, drivers: Any, fresh: bool) -> None:
    for n in range(3):
        db, gate = str(tmp_path / f"db{n}"), tmp_path / f"gate{n}"
        if not fresh:
            (tmp_path / "open").touch()
            assert turn(db, "sync", "zero", str(tmp_path / "open")) == "dict"
        jobs = [
            forge.start("cases.jobs:turn", db=db, driver=d, word=f"w{i}", gate=str(gate)) for i, d in enumerate(drivers)
        ]
        gate.touch()
        results = [forge.wait(job).value for job in jobs]
        assert set(results) <= {"dict", "ThreadConflict", "RunFenced"} and "dict" in results, results
        with Engine() as E, E.SqliteSaver.from_conn_string(db) as saver:
            rows = list(saver.list(E.config("t")))
            log = rows[0].checkpoint["channel_values"]["log"]
            assert chain(rows)
        for i, result in enumerate(results):
            assert result != "dict" or f"w{i}" in log, f"{results}, and the log is {log}"


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("drivers", [("sync", "sync", "async"), ("async", "async", "sync")])
def test_processes_that_approve_at_once(forge: Forge, tmp_path: Path, drivers: Any, by_id: bool) -> None:
    for n in range(2):
        db, gate, effects = str(tmp_path / f"db{n}"), tmp_path / f"gate{n}", tmp_path / f"effects{n}"
        common = {"db": db, "effects": str(effects)}
        known = forge.result("cases.jobs:approve", **common, driver="sync", gate="", by_id=None)
        more = {"gate": str(gate), "by_id": known if by_id else None}
        jobs = [forge.start("cases.jobs:approve", **common, **more, driver=driver) for driver in drivers]
        gate.touch()
        results = sorted(forge.wait(job).value for job in jobs)
        assert effects.read_text() == "yes\n", results
        assert results.count("dict") == 1 and set(results) <= {"dict", "AlreadyAnswered", "UnknownInterruptError"}, (
            results
        )
