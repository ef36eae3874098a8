"""Threads that outlive a run and are used again by the next: starting one costs more than most nodes.

There is no limit here. Each run limits itself (`max_concurrency`), and a run inside a run never waits for a thread
that the outer one holds.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

IDLE_SECONDS = 10.0

Job = Callable[[], None]


class _Worker(threading.Thread):
    def __init__(self, first: Job) -> None:
        super().__init__(name="surestep", daemon=True)
        self.jobs: SimpleQueue[Job] = SimpleQueue()
        self.jobs.put(first)

    def run(self) -> None:
        while True:
            try:
                job = self.jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                if _retire(self):
                    return
                continue  # somebody has just taken it: a job is on its way
            job()
            del job  # an idle worker holds nothing of the run it served
            with _lock:
                _idle.append(self)


_lock = threading.Lock()
_idle: list[_Worker] = []


def start(job: Job) -> None:
    """Run a job on a thread of the crew. The job handles its own errors."""
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None:
        _Worker(job).start()
    else:
        worker.jobs.put(job)


def _retire(worker: _Worker) -> bool:
    with _lock:
        if worker in _idle:
            _idle.remove(worker)
            return True
        return False


def _forget_after_fork() -> None:
    """A forked child has none of its parent's threads."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
