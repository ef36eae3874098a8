"""What a process remembers of the threads it works on, so that a step costs what it changes.

Rules
1. What is remembered of a checkpoint is used only after its row was read again, or written, and has the very same
   `state`: another process may have moved the thread on, or deleted it. The rest follows from that, for pages
   never change.
2. Nothing depends on it: whoever remembers nothing reads it from the database.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from surestep._sql.pages import Memo
from surestep._sql.state import State

THREADS = 1024
"""Of so many threads (and namespaces) something is remembered."""
EACH = 2
"""So many checkpoints of each: the one that a run stands on, and the latest."""


class Known(NamedTuple):
    """A checkpoint: its maps, and what is known of its values on pages."""

    state: State
    memos: Mapping[str, Memo]


class Recall:
    """The last checkpoints that were read or written, for each thread and namespace."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[Known, ...]] = OrderedDict()
        self._written: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, thread_id: str, ns: str, id: str | None = None) -> Known | None:
        """What is known of a checkpoint, or of the one that was read or written last."""
        key = thread_id, ns
        with self._lock:
            found = self._known.get(key, ())
            if found:
                self._known.move_to_end(key)
        return next((known for known in found if id is None or known.state.id == id), None)

    def keep(self, thread_id: str, ns: str, known: Known, instead: str | None = None) -> None:
        """Remember a checkpoint. `instead`: of which other one nobody is going to ask any more."""
        key = thread_id, ns
        gone = known.state.id, instead
        with self._lock:
            others = [other for other in self._known.get(key, ()) if other.state.id not in gone]
            self._known[key] = (known, *others[: EACH - 1])
            self._known.move_to_end(key)
            if len(self._known) > THREADS:
                self._known.popitem(last=False)

    def note_writes(self, thread_id: str, ns: str, id: str) -> None:
        """A checkpoint has got writes in rows of their own."""
        with self._lock:
            self._written[thread_id, ns] = id
            self._written.move_to_end((thread_id, ns))
            if len(self._written) > THREADS:
                self._written.popitem(last=False)

    def has_writes(self, thread_id: str, ns: str, id: str) -> bool:
        """Whether that was noted: a guess that the database corrects."""
        return self._written.get((thread_id, ns)) == id
