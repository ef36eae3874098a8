"""What a driver tells the core while a step runs. Time enters only here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from surestep._core.effects import EffectCall, Outcome
    from surestep._core.task import Call, Task


class Loaded(NamedTuple):
    """A checkpoint as the saver returned it, and the newest id of the thread."""

    saved: Any | None  # CheckpointTuple
    head_id: str | None


class Ended(NamedTuple):
    """An attempt is over, with what it wrote. `error` is None, what the node raised, or an `Abandoned`."""

    task: Task
    attempt: int
    writes: list[tuple[str, Any]]
    error: BaseException | None


class Expired(NamedTuple):
    """An attempt's time is up. The driver goes on running it until the core abandons it."""

    task: Task
    attempt: int
    kind: Literal["run", "idle"]
    elapsed: float  # seconds


class StepExpired(NamedTuple):
    """The whole step's time is up."""

    step: int


class Called(NamedTuple):
    """A running task calls another one (`@task`)."""

    call: Call


class CallDropped(NamedTuple):
    """Whoever called a task does not wait for it any more."""

    call: Call


class Asked(NamedTuple):
    """A running attempt calls an effect, or a graph inside it wants to start some."""

    call: EffectCall


class Landed(NamedTuple):
    """The body of an admitted effect has ended."""

    call: EffectCall
    outcome: Outcome


class Awaited(NamedTuple):
    """A task waits for one that it called (None: a graph in a task has ended). Somebody may have settled by that."""

    call: Call | None


class Part(NamedTuple):
    """A node, or a graph inside it, put something on the stream."""

    ns: Sequence[str]
    mode: str
    payload: Any


class Abandoned(BaseException):
    """Stands for the outcome of an attempt that was stopped because the run asked for it."""

    def __init__(self, started: bool, error: BaseException | None = None) -> None:
        super().__init__("the run was stopped")
        self.started = started  # False: it was still waiting for its turn, so nothing of it happened
        self.error = error or self  # what the attempt ended with


class Stopped(NamedTuple):
    """The run is to end now: it was cancelled, or has lost its thread."""

    error: Exception


class RunStopped(BaseException):
    """Thrown into a run by its driver: the caller went away or was cancelled. The run settles and ends."""


Event: TypeAlias = Ended | Expired | StepExpired | Called | CallDropped | Asked | Landed | Awaited | Stopped
