"""Places where a branch waits for a decision: an approval or a rejection. See docs/gates.md."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from surestep._context import current_task
from surestep._core.digest import digest
from surestep._core.gates import Answer, Approve, Reject

__all__ = ("Approve", "Reject", "gate")


def gate(value: Any, *, binds: Any = None, expires: timedelta | float | None = None) -> Answer:
    """Pause until somebody decides: returns Approve (true) or Reject (false).

    value: what is shown to the decider. binds: what the decision is about; if that has changed when the answer is used,
    the gate asks again. expires: a timedelta or seconds, after which it counts as rejected. It is answered by
    `Command(resume=Approve(...))` or `Reject("why")`, by id where several questions wait, or by the dicts
    `{"type": "approve"}` and `{"type": "reject", "reason": ...}`. While it waits no effect beside it executes, and a
    rejection cancels those that it holds.

    Raises TypeError for an answer that is no decision; the question is then open again.
    """
    context = current_task.get()
    if context is None:
        raise RuntimeError("gate() was called outside of a run: call it in a node.")
    deadline = None
    if expires is not None:
        seconds = expires.total_seconds() if isinstance(expires, timedelta) else float(expires)
        deadline = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="microseconds")
    decision: Answer = context.gate(value, "" if binds is None else digest(binds), deadline)
    return decision
