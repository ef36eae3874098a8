"""Threads at work for one run, at most so many at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from surestep._drive import crew

if TYPE_CHECKING:
    from surestep._drive.context import TaskContext


class Lanes:
    """Runs attempts on up to `limit` threads. What fits into the limit counts as started when it is handed over.

    `run` runs an attempt; `tell` hears what came of it.
    """

    __slots__ = ("away", "busy", "free", "limit", "lock", "queue", "returning", "run", "tell")

    def __init__(self, limit: int, run: Callable[[TaskContext], Any], tell: Callable[[Any], None]) -> None:
        self.limit = limit
        self.run = run
        self.tell = tell
        self.lock = threading.Lock()
        self.free = threading.Condition(self.lock)
        self.queue: deque[TaskContext] = deque()
        self.busy = 0
        self.away = 0  # attempts that stepped aside
        self.returning = 0  # attempts that stepped aside and want to go on

    def start(self, context: TaskContext) -> None:
        """Run the attempt now, or as soon as a lane is free."""
        with self.lock:
            if self.busy >= self.limit:
                self.queue.append(context)
                return
            self.busy += 1
        crew.start(partial(self._work, context))

    def take_back(self, context: TaskContext) -> bool:
        """Whether the attempt had not started, and now never will."""
        with self.lock:
            if context not in self.queue:
                return False
            self.queue.remove(context)
            return True

    def step_aside(self) -> None:
        """An attempt waits for others: its lane is theirs meanwhile."""
        with self.lock:
            self.away += 1
            if not self.queue:
                self.busy -= 1
                self.free.notify()
                return
            context = self.queue.popleft()
        crew.start(partial(self._work, context))

    def come_back(self) -> None:
        """It goes on, as soon as a lane is free: before those that have not started."""
        with self.lock:
            self.returning += 1
            while self.busy >= self.limit:
                self.free.wait()
            self.returning -= 1
            self.away -= 1
            self.busy += 1

    def _work(self, context: TaskContext) -> None:
        """One lane: attempt after attempt, until none is left."""
        while True:
            self.tell(context.scope.run(self.run, context))
            with self.lock:
                if not self.queue or self.returning:
                    self.busy -= 1
                    self.free.notify()
                    return
                context = self.queue.popleft()
