"""Several writers on one thread, as threads and as processes: one history, no lost write, each answer given once."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from savers import writer
from savers.history import at
from savers.kinds import opened

WRITERS, STEPS = 4, 12


def check_history(saver: Any, results: list[tuple[int, int]]) -> None:
    """What everybody reported as done is there, in one chain."""
    history = list(saver.list(at("shared")))
    entries = history[0].checkpoint["channel_values"]["log"]
    assert sorted(entries) == sorted(f"w{w}s{n}" for w in range(WRITERS) for n in range(STEPS))
    assert len(history) == WRITERS * STEPS
    for later, earlier in itertools.pairwise(history):
        assert later.parent_config == earlier.config
        log = later.checkpoint["channel_values"]["log"]
        assert earlier.checkpoint["channel_values"]["log"] == log[:-1]
        assert earlier.pending_writes == [(log[-1], "log", log[-1])]
    for thread, expected in (("writes", WRITERS * STEPS), ("claims", STEPS)):
        saver.put(at(thread), checkpoint("1"), {}, {})
        assert len(saver.get_tuple(at(thread)).pending_writes) == expected
    assert sum(claims for _, claims in results) == STEPS


def checkpoint(id: str) -> Any:
    empty: dict[str, Any] = {"channel_values": {}, "channel_versions": {}, "versions_seen": {}}
    return {"v": 4, "id": id, "ts": "", "updated_channels": None, **empty}


@pytest.mark.parametrize(
    "kind", ["memory", "sqlite", "sqlite-one-each", "postgres", "postgres-one-each", "postgres-pool"]
)
def test_threads(kind: str, place: Callable[[str], Any]) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    path = place(kind.removesuffix("-one-each"))
    start = threading.Barrier(WRITERS)

    def run(number: int) -> tuple[int, int]:
        start.wait()
        if not kind.endswith("-one-each"):
            return writer.work(shared, f"w{number}s", STEPS)
        with opened(kind.removesuffix("-one-each"), path) as own:
            return writer.work(own, f"w{number}s", STEPS)

    try:
        with opened(kind.removesuffix("-one-each"), path) as shared:
            with ThreadPoolExecutor(WRITERS) as pool:
                results = list(pool.map(run, range(WRITERS)))
            check_history(shared, results)
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_processes(kind: str, place: Callable[[str], Any]) -> None:
    path = place(kind)  # nothing is there yet: setting it up is part of the race
    processes = [
        subprocess.Popen(
            [sys.executable, writer.__file__, kind, str(path), f"w{number}s", str(STEPS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    results = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        conflicts, claims = map(int, out.split())
        results.append((conflicts, claims))
    with opened(kind, path) as saver:
        check_history(saver, results)
