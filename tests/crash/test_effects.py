"""A process is killed at every point of an effect's life and at every statement that is written; others go on with the
thread. What happened outside happened exactly once; where nobody could know, somebody was asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crash.places import Place
from harness.forge import Forge

from surestep.testing import EffectServer

END = ["Approve", "a", "b", "c", "d"]


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    savers = [f"surestep.checkpoint.{kind}{aio}" for kind in ("sqlite", "postgres") for aio in ("", ".aio")]
    with Forge("crash.effects", "asyncio", "psycopg", *savers) as forge:
        yield forge


class Thread:
    """One thread, from its beginning to its end, however often its process dies."""

    def __init__(self, forge: Forge, db: str, server: EffectServer, driver: str, durability: str) -> None:
        self.forge, self.server = forge, server
        self.job = {"db": db, "url": server.url, "driver": driver, "durability": durability}
        self.points: list[int] = []  # that each process passed
        self.asked = 0

    def play(self, kind: str = "none", process: int = 0, deadly: int = 0) -> None:
        """Kills the process with that number at that point."""
        answers: dict[str, Any] = {}
        for number in range(12):
            more = {"kind": kind, "deadly": deadly if number == process else 0}
            outcome = self.forge.run("crash.effects:act", **self.job, **more, answers=answers)
            answers = {}
            if outcome.killed:
                continue
            assert outcome.status == 0, outcome.value
            self.points.append(outcome.value["points"])
            if outcome.value["log"] is not None:
                assert outcome.value["log"] == END
                return
            answers = {id: self.answer(value) for id, value in outcome.value["questions"].items()}
        raise AssertionError("it comes to no end")

    def answer(self, question: Any) -> list[Any]:
        """An approval; or what the books of the world outside say."""
        if question == "pay?":
            assert self.server.happened() == 0, "something happened while a question was open"
            return ["approve"]
        self.asked += 1
        name = question["arguments"]["name"]
        return ["completed", name] if self.server.happened(f"{name} {question['idempotency_key']}") else ["retry"]

    def check(self, where: str) -> None:
        names = Counter(call.key.partition(" ")[0] for call in self.server.calls if call.happened)
        assert names == {"a": 1, "b": 1, "c": 1, "d": 1}, f"{where}: {names}"


def trials(forge: Forge, place: Place, folder: Path, driver: str, durability: str, step: int) -> int:
    """One trial for every `step`th point of each kind, in the process that begins and in the one that goes on."""
    with EffectServer() as server:
        count: dict[str, list[int]] = {}
        for kind in ("body", "call", "statement"):
            (folder / kind).mkdir()
            whole = Thread(forge, place(folder / kind), server, driver, durability)
            whole.play(kind)
            assert whole.asked == 0
            whole.check(f"{kind}, not killed")
            server.calls.clear()
            count[kind] = whole.points
    done = 0
    for kind, passed in count.items():
        for process, points in enumerate(passed):
            for deadly in range(1 + (process + len(kind)) % step, points + 1, step):
                where = folder / f"{kind}-{process}-{deadly}"
                where.mkdir()
                with EffectServer() as server:
                    thread = Thread(forge, place(where), server, driver, durability)
                    thread.play(kind, process, deadly)
                    thread.check(f"{driver} {durability}, process {process} killed at {kind} {deadly}")
                done += 1
    return done


@pytest.mark.parametrize(("driver", "durability"), [("sync", "sync"), ("async", "exit")])
def test_killed_at_a_sample_of_points(
    forge: Forge,
    place: Place,
    tmp_path: Path,
    driver: str,
    durability: str,
) -> None:
    assert trials(forge, place, tmp_path, driver, durability, step=25) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["sync", "async"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_killed_at_every_point(
    forge: Forge,
    place: Place,
    tmp_path: Path,
    driver: str,
    durability: str,
) -> None:
    done = trials(forge, place, tmp_path, driver, durability, step=1)
    print(f"{driver} {durability}: {done} trials")
    assert done >= 60
