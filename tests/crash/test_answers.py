"""A process dies while it carries out an answer: the answer is neither lost nor carried out twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crash.asking import ORDER
from crash.test_crash import DRIVERS, KINDS, sample
from harness.forge import Forge

QUESTIONS = ("ask1?", "ask2?")


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    with Forge("crash.asking", "asyncio", "surestep.checkpoint.sqlite", "surestep.checkpoint.sqlite.aio") as forge:
        yield forge


class Thread:
    """A thread that has come to one of its questions."""

    def __init__(self, forge: Forge, folder: Path, driver: str, question: str) -> None:
        folder.mkdir()
        self.forge, self.log = forge, folder / "calls"
        self.common = {"db": str(folder / "db"), "log": str(self.log), "driver": driver}
        now = self.step()
        while question not in now["waiting"]:
            now = self.step()
        self.known = now["waiting"][question]

    def step(self, **more: Any) -> Any:
        return self.forge.result("crash.asking:run", **self.common, **more)

    def die(self, kind: str, deadly: int) -> None:
        died = self.forge.run("crash.asking:run", **self.common, kind=kind, deadly=deadly)
        assert died.killed or died.status == 0, died.value

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def finish(self, resend: bool) -> None:
        """Goes on to the end; with `resend` it begins with the answer once more."""
        if resend:
            before = self.lines()
            now = self.step(known=self.known, resend=True)
            assert self.lines() == before or not now["refused"], "an answer was refused, and something ran"
        for _ in range(4):
            now = self.step()
            if now["over"]:
                assert now["log"] == ORDER
                return
        raise AssertionError(f"the thread does not come to an end: {now}")


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_survives_its_process(forge: Forge, tmp_path: Path, driver: str, kind: str, question: str) -> None:
    every_point(forge, tmp_path, driver, kind, question, 5)


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_at_every_point(forge: Forge, tmp_path: Path, driver: str, kind: str, question: str) -> None:
    every_point(forge, tmp_path, driver, kind, question, 10_000)


def every_point(forge: Forge, folder: Path, driver: str, kind: str, question: str, wanted: int) -> None:
    whole = Thread(forge, folder / "whole", driver, question)
    points = whole.step(kind=kind)["points"]
    for deadly in sample(points, wanted):
        for resend in (False, True):
            where = f"{driver}, {question} killed at {kind} {deadly}, {'sent again' if resend else 'gone on'}"
            thread = Thread(forge, folder / f"{deadly}-{resend}", driver, question)
            thread.die(kind, deadly)
            killed_at = len(thread.lines())
            thread.finish(resend)
            check_calls(thread.lines(), killed_at, where)


def check_calls(lines: list[str], killed_at: int, where: str) -> None:
    """No process does a thing twice, and what comes after an answer is done again by one process at most."""
    for part in (lines[:killed_at], lines[killed_at:]):
        paid = Counter(line for line in part if line.startswith("paid"))
        assert max(paid.values(), default=0) <= 1, f"{where}: {paid}"
    starts = Counter(line.split()[1] for line in lines if line.startswith("start"))
    assert max(starts[key] for key in ("pre", "side", "x", "y", "end")) <= 2, f"{where}: {starts}"
    assert starts["pre"] == starts["side"] == 1, f"{where}: what was finished before has run again: {starts}"
