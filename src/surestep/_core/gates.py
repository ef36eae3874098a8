"""Gates: questions whose answer is an approval or a rejection.

Rules (G1 and so on; INVARIANTS.md says which tests prove them):
G1. A question's id is made of where it was asked and of what it binds: when what is about to be executed changes, it
    is another question, and the old answer is not its answer.
G2. A question is answered once (`_core/resume.py`, rule 4). One whose time is up is answered by that: with a rejection.
G3. A rejection cancels every effect that its scope holds, for good, before anything of the thread runs again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Approve:
    """Yes. `value`: what the decider adds, for the code behind the gate."""

    value: Any = None

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Reject:
    """No: effects held beside the gate are cancelled. `expired`: nobody decided in time."""

    reason: str | None = None
    expired: bool = False

    def __bool__(self) -> bool:
        return False


Answer: TypeAlias = Approve | Reject

# The words that approval UIs use in `{"type": ...}`.
_YES = frozenset({"approve", "approved", "accept", "edit"})
_NO = frozenset({"reject", "rejected", "deny", "ignore"})


def as_decision(answer: Any) -> Answer | None:
    """An answer as an approval or a rejection; None if it is neither."""
    if isinstance(answer, (Approve, Reject)):
        return answer
    if isinstance(answer, Mapping):
        kind = answer.get("type")
        if kind in _NO:
            return Reject(_text(answer.get("reason") or answer.get("message") or answer.get("args")))
        if kind in _YES:
            return Approve(answer.get("value", answer.get("args")))
    return None


def rejection_in(answer: Any) -> Reject | None:
    """The first rejection in an answer, which may carry several decisions, as that of the human-in-the-loop
    middleware does."""
    found = as_decision(answer)
    if found is not None:
        return found if isinstance(found, Reject) else None
    if isinstance(answer, Mapping):
        answer = answer.get("decisions")
    if isinstance(answer, (list, tuple)):
        decisions = map(as_decision, answer)
        return next((one for one in decisions if isinstance(one, Reject)), None)
    return None


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)
