"""A day at the bank: dialogues side by side, turn by turn, each refund answered after other work was done."""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from importlib import import_module
from typing import Any, NamedTuple

from databases import opened
from dialogue import MONEY_TURN, TURNS, build, question


class Figures(NamedTuple):
    """What a day came to; times in seconds."""

    engine: str
    saver: str
    dialogues: int
    turns_a_second: float
    cpu_a_turn: float
    median_turn: float
    p95_turn: float
    bytes_a_dialogue: float


class Day:
    """The turns that are still to be played, in the order in which clients come back."""

    def __init__(self, engine: str, graph: Any, dialogues: int) -> None:
        self._command = import_module(f"{engine}.types").Command
        self._graph = graph
        self._queue: deque[tuple[int, int, Any]] = deque((dialogue, 0, question(0)) for dialogue in range(dialogues))
        self._open = dialogues
        self._change = threading.Condition()
        self.failures: list[BaseException] = []
        self.seconds: list[float] = []
        self.approvals = 0

    def play(self, workers: int) -> None:
        """Play all of them with so many threads."""
        threads = [threading.Thread(target=self._work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                self._turn(*job)
            except BaseException as error:
                with self._change:
                    self.failures.append(error)
                    self._change.notify_all()

    def _next(self) -> tuple[int, int, Any] | None:
        with self._change:
            self._change.wait_for(lambda: self._queue or not self._open or self.failures)
            return self._queue.popleft() if self._queue and not self.failures else None

    def _turn(self, dialogue: int, turn: int, said: Any) -> None:
        start = time.perf_counter()
        result = self._graph.invoke(said, {"configurable": {"thread_id": f"dialogue-{dialogue}"}})
        taken = time.perf_counter() - start
        waits = bool(result.get("__interrupt__"))
        if not waits and len(result["messages"]) != 2 * (turn + 1):
            raise AssertionError(f"turn {turn} of dialogue {dialogue} ended with {len(result['messages'])} messages")
        with self._change:
            self.seconds.append(taken)
            if waits:
                self.approvals += 1
                self._queue.append((dialogue, turn, self._command(resume=True)))
            elif turn + 1 < TURNS:
                self._queue.append((dialogue, turn + 1, question(turn + 1)))
            else:
                self._open -= 1
            self._change.notify_all()


def played(engine: str, saver: str, dialogues: int, workers: int, work: float) -> Figures:
    """The figures of a day of so many dialogues; AssertionError if one of them didn't go as it should."""
    with opened(engine, saver) as database:
        day = Day(engine, build(engine, work).compile(checkpointer=database.saver), dialogues)
        start, cpu = time.perf_counter(), time.process_time()
        day.play(workers)
        taken, cpu = time.perf_counter() - start, time.process_time() - cpu
        assert day.approvals == dialogues, f"turn {MONEY_TURN} of each dialogue waits once, not {day.approvals} times"
        runs = len(day.seconds)
        return Figures(
            engine=engine,
            saver=saver,
            dialogues=dialogues,
            turns_a_second=runs / taken,
            cpu_a_turn=cpu / runs,
            median_turn=statistics.median(day.seconds),
            p95_turn=statistics.quantiles(day.seconds, n=20)[-1],
            bytes_a_dialogue=database.stored() / dialogues,
        )
