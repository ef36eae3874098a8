"""Between nodes that put parts on a stream and its reader: who is too fast is held up.

Rules:

1. At most `LIMIT` parts wait for the reader. A thread that puts one more waits until the reader has taken one.
2. On an event loop nobody may wait inside of `put`: a node written as a coroutine is held up where it awaits something
   (`pace.py`). Between two awaits it can put as much as it likes.
3. Threads of an event loop's executor are few, and the reader may need one. They wait `PATIENCE` seconds for each
   part, and then put it all the same.
4. When nobody reads any more, nobody waits, and parts are dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from surestep._core.events import Part

LIMIT = 100
PATIENCE = 1.0


class Gate:
    """Counts the parts of one run's stream that its reader has not taken yet."""

    __slots__ = ("changed", "closed", "forward", "held", "patience", "reader", "waiting")

    def __init__(self, forward: Callable[[Any], None], patience: float | None) -> None:
        self.forward = forward
        self.patience = patience  # seconds that a thread waits at most; None: as long as it takes
        self.changed = threading.Condition()
        self.held = 0
        self.closed = False
        self.reader = threading.get_ident()  # waiting for itself it would wait for ever
        self.waiting: list[Callable[[], object]] = []  # what wakes coroutines that are held up

    def put(self, part: Part) -> None:
        """Put a part on the stream, when there is room."""
        with self.changed:
            if self.held >= LIMIT and threading.get_ident() != self.reader:
                self.changed.wait_for(self.has_room, self.patience)
            if self.closed:
                return
            self.held += 1
        self.forward(part)

    def has_room(self) -> bool:
        """Whether a part may be put on the stream without waiting."""
        return self.held < LIMIT or self.closed

    def taken(self) -> None:
        """The reader has taken a part."""
        with self.changed:
            self.held -= 1
            self.reader = threading.get_ident()
            self._let_in()

    def close(self) -> None:
        """Nobody reads any more."""
        with self.changed:
            self.closed = True
            self._let_in()

    def _let_in(self) -> None:
        if not self.has_room():
            return
        self.changed.notify_all()
        waiting, self.waiting = self.waiting, []
        for wake in waiting:
            wake()
