"""The same with processes that share a database, and die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cases.shared import Log, say
from harness.engine import Engine
from harness.forge import TESTS, Forge

STRATEGIES = ("reject", "enqueue", "interrupt", "rollback")


@pytest.fixture(scope="module")
def forge() -> Any:
    with Forge("threads.jobs") as made:
        yield made


def log_of(db: Path) -> list[str]:
    with Engine("surestep", "sync", "sqlite") as E, E.SqliteSaver.from_conn_string(str(db)) as saver:
        app = E.graph(Log, {"work": say("x")}, "START > work").compile(checkpointer=saver)
        found: list[str] = app.get_state({"configurable": {"thread_id": "t"}}).values.get("log", [])
        return found


def collide(forge: Forge, tmp_path: Path, strategy: str, drivers: tuple[str, str], count: int) -> None:
    db, gate = tmp_path / "db", tmp_path / "gate"
    common = {"db": str(db), "count": count, "strategy": strategy, "gate": str(gate)}
    jobs = [forge.start("threads.jobs:turns", driver=d, who=w, **common) for d, w in zip(drivers, "ab", strict=True)]
    gate.touch()
    outcomes = [forge.wait(job) for job in jobs]
    assert [outcome.status for outcome in outcomes] == [0, 0], outcomes
    log = log_of(db)
    for outcome, who in zip(outcomes, "ab", strict=True):
        mine = [word for word in log if word.startswith(who)]
        if strategy == "enqueue":
            assert outcome.value == [f"{who}{number}" for number in range(count)] == mine
        if strategy != "rollback":  # there a later run takes back what an earlier one had reported, if it was not over
            assert set(outcome.value) <= set(mine), "a run that reported success is not in the state"
            assert {f"did {word}" for word in outcome.value} <= set(log)
    assert log


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("drivers", [("sync", "sync"), ("sync", "async")], ids="-".join)
def test_every_run_that_reported_success_is_in_the_state(
    forge: Forge, tmp_path: Path, strategy: str, drivers: tuple[str, str]
) -> None:
    collide(forge, tmp_path, strategy, drivers, 15)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_five_hundred_collisions(forge: Forge, tmp_path: Path, strategy: str) -> None:
    collide(forge, tmp_path, strategy, ("sync", "async"), 500)


@pytest.mark.parametrize("driver", ["sync", "async"])
def test_a_killed_holder_blocks_nobody_for_longer_than_its_lease(tmp_path: Path, driver: str, monkeypatch: Any) -> None:
    db, entered = tmp_path / "db", tmp_path / "entered"
    code = f"from threads.jobs import *; hold_for_ever({str(db)!r}, {driver!r}, {str(entered)!r})"
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path})
    while not entered.exists():
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    with Engine("surestep", "sync", "sqlite") as E, E.SqliteSaver.from_conn_string(str(db)) as saver:
        app = E.graph(Log, {"hangs": say("went on")}, "START > hangs").compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "t"}}
        from surestep._drive import tenure
        from surestep.errors import ThreadBusy

        assert isinstance(E.attempt(E.invoke, app, None, config, multitask_strategy="reject"), ThreadBusy)
        later = time.time() + tenure.LEASE_SECONDS
        monkeypatch.setattr(tenure.time, "time", lambda: later)
        assert E.invoke(app, None, config, multitask_strategy="reject")["log"] == ["held", "went on"]


@pytest.mark.parametrize("driver", ["sync", "async"])
def test_a_cancel_from_another_process(forge: Forge, tmp_path: Path, driver: str) -> None:
    db, entered = tmp_path / "db", tmp_path / "entered"
    job = forge.start("threads.jobs:wait_to_be_cancelled", db=str(db), driver=driver, entered=str(entered))
    while not entered.exists():
        time.sleep(0.01)
    with Engine("surestep", "sync", "sqlite") as E, E.SqliteSaver.from_conn_string(str(db)) as saver:
        app = E.graph(Log, {"hangs": say("went on")}, "START > hangs").compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "t"}}
        assert app.cancel(config, reason="stop")
        outcome = forge.wait(job)
        if driver == "async":  # a plain function in a thread can't be stopped: it ends by itself
            assert outcome.value == ["RunCancelled", "stop", True]
        else:
            assert outcome.value[:2] == ["RunCancelled", "stop"]
        assert E.invoke(app, None, config)["log"] == ["held", "went on"]
