"""A process is killed at every point at which it could be, and another one goes on from what is on disk.

In `sync`: the end is that of a run that was not killed, and no task whose writes were on disk runs again; the
writes of a finished task are on disk before the next checkpoint is. In `async` the end is the same; tasks of the
last steps may run again, but no checkpoint is on disk without its parent, and what was accepted is there before
the first node starts. In `exit` nothing is promised but that a run ends as if it had not been tried before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crash.places import Place
from crash.plan import FINAL, KEYS
from harness.forge import Forge

DRIVERS = ("sync", "async")
KINDS = ("body", "call", "statement")
SAMPLE = 8  # points of each kind and driver in the short run


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    savers = [f"surestep.checkpoint.{kind}{aio}" for kind in ("sqlite", "postgres") for aio in ("", ".aio")]
    with Forge("crash.jobs", "asyncio", "psycopg", *savers) as forge:
        yield forge


class Trial:
    """One thread that is killed once and resumed once."""

    def __init__(
        self, forge: Forge, place: Place, folder: Path, driver: str, durability: str, kind: str, deadly: int
    ) -> None:
        folder.mkdir()
        self.forge, self.log = forge, folder / "calls"
        self.where = f"{driver} {durability}, killed at {kind} {deadly}"
        self.run = {"db": place(folder), "log": str(self.log), "driver": driver, "durability": durability}
        self.outcome = forge.run("crash.jobs:run", **self.run, kind=kind, deadly=deadly)
        assert self.outcome.killed or self.outcome.status == 0, self.outcome.value
        self.first = self.lines()
        self.disk = forge.result("crash.jobs:on_disk", db=self.run["db"])

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def resume(self) -> Counter[str]:
        """Runs the thread to its end in a new process; which bodies started there, and how often."""
        end = self.forge.result("crash.jobs:run", **self.run)
        assert end["log"] == FINAL, f"{self.where}: another end"
        return started(self.lines()[len(self.first) :])

    def said(self, word: str) -> set[str]:
        return {key for line in self.first if line[0] == word for key in line[1:]}


def started(lines: list[list[str]]) -> Counter[str]:
    return Counter(line[1] for line in lines if line[0] == "start")


def total(forge: Forge, place: Place, folder: Path, driver: str, durability: str, kind: str) -> int:
    """How many points of a kind an undisturbed run passes."""
    run = {"db": place(folder), "log": str(folder / "calls"), "driver": driver, "durability": durability}
    whole = forge.result("crash.jobs:run", **run, kind=kind)
    assert whole["log"] == FINAL
    lines = [line.split() for line in (folder / "calls").read_text().splitlines()]
    assert started(lines) == dict.fromkeys(KEYS, 1)
    return int(whole["points"])


def sample(points: int, wanted: int) -> list[int]:
    """`wanted` numbers from 1 to `points`, evenly spread, the first and the last among them."""
    if points <= wanted:
        return list(range(1, points + 1))
    return sorted({round(1 + i * (points - 1) / (wanted - 1)) for i in range(wanted)})


def check_sync(trial: Trial) -> None:
    durable = set(trial.disk["keys"]) - {"in"}
    assert trial.said("stored") <= durable, f"{trial.where}: reported as stored, and not on disk"
    check_order(trial)
    again = trial.resume()
    assert not durable & again.keys(), f"{trial.where}: finished and stored, and run again"
    assert max(again.values(), default=1) == 1, f"{trial.where}: run twice by one process"
    assert durable | again.keys() == KEYS, f"{trial.where}: never run"


def check_order(trial: Trial) -> None:
    """Before a checkpoint is handed to the saver, the saver has the writes of all tasks that led to it."""
    waiting: set[str] = set()
    for word, *rest in trial.first:
        if word == "start":
            waiting.add(rest[0])
        elif word == "stored":
            waiting -= set(rest)
        elif word == "put" and rest[0] == "loop":
            assert not waiting, f"{trial.where}: {waiting} led to step {rest[1]}, and are not stored"


def check_async(trial: Trial) -> None:
    assert not trial.disk["missing parents"], f"{trial.where}: a checkpoint without its parent"
    if started(trial.first):
        assert trial.disk["checkpoints"], f"{trial.where}: a node ran, and the input is not on disk"
    again = trial.resume()
    assert not set(trial.disk["root"]) & again.keys(), f"{trial.where}: stored, and run again"
    assert max(again.values(), default=1) == 1, f"{trial.where}: run twice by one process"


def check_exit(trial: Trial) -> None:
    durable = set(trial.disk["keys"]) - {"in"}
    assert durable in (set(), KEYS), f"{trial.where}: half a run is on disk"
    assert trial.resume().keys() == KEYS - durable


CHECKS = {"sync": check_sync, "async": check_async, "exit": check_exit}


def kill_everywhere(
    forge: Forge, place: Place, folder: Path, driver: str, durability: str, kind: str, wanted: int
) -> int:
    points = sample(total(forge, place, folder, driver, durability, kind), wanted)
    for deadly in points:
        trial = Trial(forge, place, folder / str(deadly), driver, durability, kind, deadly)
        CHECKS[durability](trial)
    return len(points)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("driver", DRIVERS)
def test_sync_keeps_what_was_finished(forge: Forge, place: Place, tmp_path: Path, driver: str, kind: str) -> None:
    assert kill_everywhere(forge, place, tmp_path, driver, "sync", kind, SAMPLE) == SAMPLE


@pytest.mark.parametrize("durability", ["async", "exit"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_weaker_promises_are_kept(forge: Forge, place: Place, tmp_path: Path, driver: str, durability: str) -> None:
    kill_everywhere(forge, place, tmp_path, driver, durability, "statement", 6)


@pytest.fixture(scope="module")
def killed() -> dict[Any, int]:
    """How often which kind of process was killed, over the tests of this module."""
    return {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_every_point(
    forge: Forge,
    place: Place,
    tmp_path: Path,
    killed: dict[Any, int],
    durability: str,
    driver: str,
    kind: str,
    request: pytest.FixtureRequest,
) -> None:
    where = request.node.callspec.params["place"]
    killed[where, durability, driver, kind] = kill_everywhere(forge, place, tmp_path, driver, durability, kind, 10_000)
    if len(killed) == 36:
        assert sum(count for (_, found, _, _), count in killed.items() if found == "sync") >= 800, killed
