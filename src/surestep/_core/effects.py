"""What an effect is to the core, and which states its record may go through.

Rules (E1 and so on; INVARIANTS.md says which tests prove them):
E1. The intent is in the ledger before the body starts, the outcome before anybody uses the result.
E2. A record moves as MOVES says, in one indivisible act; whoever comes second is told what is there.
E3. A record with an outcome is never run again: its result is handed out, or its error raised.
E4. A record belongs to a name and to arguments. The same id with others is a mismatch, never a wrong result.
E5. A record that was admitted and has no outcome, and whose body runs nowhere here, is in doubt: it may have happened.
E6. What is cancelled stays cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from surestep._records import EffectRecord, Move

if TYPE_CHECKING:
    from surestep._core.task import Task

# states
HELD: Final = "held"
ADMITTED: Final = "admitted"
DONE: Final = "done"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"
CANCELLED: Final = "cancelled"
FENCED: Final = "fenced"
NEW: Final = "new"  # no record

State: TypeAlias = Literal["held", "admitted", "done", "failed", "unknown", "cancelled", "fenced"]
OUTCOMES: Final = frozenset({DONE, FAILED})

# The state machine: move -> (the states that it starts from, the state that it leads to).
MOVES: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "hold": (frozenset({NEW, HELD, FENCED}), HELD),
    "admit": (frozenset({NEW, HELD, FENCED}), ADMITTED),
    "land": (frozenset({ADMITTED}), DONE),
    "fail": (frozenset({ADMITTED}), FAILED),
    "doubt": (frozenset({ADMITTED}), UNKNOWN),
    "cancel": (frozenset({HELD}), CANCELLED),
    "fence": (frozenset({NEW, FENCED}), FENCED),
    # what somebody, or a read-back, said of a doubt
    "complete": (frozenset({ADMITTED, UNKNOWN}), DONE),
    "retry": (frozenset({ADMITTED, UNKNOWN}), ADMITTED),
    "abort": (frozenset({ADMITTED, UNKNOWN}), FAILED),
}


def moved(kind: str, record: EffectRecord) -> Move:
    """A move of the state machine, to what the record is afterwards."""
    return Move(kind, MOVES[kind][0], record)


# answers to "it may have happened"


@dataclass(frozen=True, slots=True)
class Completed:
    """It did happen, with this result."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class Retry:
    """It did not happen, or the callee knows its idempotency key: run it again under the same key."""


@dataclass(frozen=True, slots=True)
class Abort:
    """Leave it: the call raises EffectAborted."""

    reason: str | None = None


Resolution: TypeAlias = Completed | Retry | Abort


def resolution_of(answer: Any) -> Resolution | None:
    """An answer to a doubt as one of the three; None if it is none of them. The dict forms have a `type`."""
    if isinstance(answer, (Completed, Retry, Abort)):
        return answer
    if isinstance(answer, Mapping):
        kind = answer.get("type")
        if kind == "completed":
            return Completed(answer.get("result"))
        if kind == "retry":
            return Retry()
        if kind == "abort":
            return Abort(answer.get("reason"))
    return None


class Options(NamedTuple):
    """How an effect was declared."""

    name: str
    eager: bool = False
    on_unknown: Literal["ask", "retry", "fail"] | Callable[..., Any] = "ask"
    retry: tuple[Any, ...] = ()


class EffectCall:
    """One call of an effect by a running attempt; and, without options, the wish of a graph inside a task to let its
    own effects go on (the enclosing graph answers for the scope)."""

    __slots__ = (
        "arguments", "attempt", "digest", "future", "id", "key", "options", "owner", "position", "resolution", "task",
    )  # fmt: skip

    def __init__(
        self,
        task: Task,
        attempt: int,
        id: str,
        options: Options | None = None,
        *,
        owner: str = "",
        key: str | None = None,
        position: int = 0,
        digest: str = "",
        arguments: Any = None,
    ) -> None:
        self.task = task
        self.attempt = attempt
        self.id = id
        self.options = options
        self.owner = owner or task.id  # the task whose effect it is: an enclosing one, where the graph keeps nothing
        self.key = key
        self.position = position
        self.digest = digest
        self.arguments = arguments
        self.future: Any = None  # of whoever waits for the next answer
        self.resolution: Resolution | None = None  # what its read-back function found

    @property
    def name(self) -> str:
        return self.options.name if self.options is not None else ""


class Verdict(NamedTuple):
    """The core's answer to a call of an effect."""

    kind: Literal["go", "replay", "read back"]
    value: Any = None  # replay: the result; read back: the record
    attempt: int = 1


class Outcome(NamedTuple):
    """What came of a body. state: done, failed or unknown."""

    state: str
    value: Any = None
    error: BaseException | None = None


def other_intent(record: EffectRecord, call: EffectCall) -> str | None:
    """What tells a record from the call that has its id; None if nothing does."""
    if record.name != call.name:
        return f"was '{record.name}'"
    if record.digest != call.digest:
        return "had other arguments"
    return None


def unasked(records: Sequence[EffectRecord], asked: set[str]) -> EffectRecord | None:
    """The first effect with an outcome that a task, running again, has not come to."""
    begun = [record for record in records if record.state in (DONE, FAILED, UNKNOWN, ADMITTED)]
    left = [record for record in begun if record.id not in asked and record.business_key is None]
    return min(left, key=lambda record: record.position, default=None)
