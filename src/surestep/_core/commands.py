"""What the core asks of a driver.

A run is a generator that yields these and is sent what came of them (see `events`).
They are named tuples: frozen, cheap to make (a step makes a handful), and easy to match in a test.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from surestep._core.effects import EffectCall
    from surestep._core.task import Call, Task

R = TypeVar("R")


class Load(NamedTuple):
    """Read a checkpoint. Answered with a `Loaded`."""

    ns: str
    checkpoint_id: str | None = None
    before: str | None = None  # the newest one older than this id


class ListCheckpoints(NamedTuple):
    """Read many checkpoints, newest first. Answered with a list of saver tuples."""

    ns: str | None
    checkpoint_id: str | None
    filter: Mapping[str, Any] | None
    before: str | None
    limit: int | None


class Replay(NamedTuple):
    """Read the stored writes of delta channels that a checkpoint holds no value of."""

    ns: str
    checkpoint_id: str
    channels: Sequence[str]


class TaskRows(NamedTuple):
    """Writes of one task as a saver keeps them."""

    task_id: str
    task_path: str
    writes: Sequence[tuple[str, Any]]


class Save(NamedTuple):
    """Keep a task's writes beside the checkpoint it ran from."""

    ns: str
    checkpoint_id: str
    rows: TaskRows
    claim: bool = False  # refuse (AlreadyAnswered) when the rows are there already
    urgent: bool = False  # durable before the run goes on, whatever the durability


class Commit(NamedTuple):
    """Keep a checkpoint and, in the same transaction where the saver can, the last writes of its step."""

    ns: str
    parent_id: str | None
    head_id: str | None  # the newest checkpoint of the thread as this run knows it
    checkpoint: Mapping[str, Any]
    metadata: Mapping[str, Any]
    new_versions: Mapping[str, Any]
    rows: Sequence[TaskRows]
    guarded: bool = True  # compare the thread's head with head_id and set it
    urgent: bool = False
    new_seen: Collection[str] | None = None  # nodes that have seen something new since the parent; None: any may have
    final: bool = False  # the run ends with it, and its thread is free


class Settle(NamedTuple):
    """Wait until everything handed to the saver so far is kept; raises the first failure."""


class Spawn(NamedTuple):
    """Start a further attempt at a task, or a task that came up on the way, `delay` seconds from now."""

    task: Task
    attempt: int
    delay: float


class Abandon(NamedTuple):
    """The run does not want this attempt any more. A driver that can stop it does so and reports `Ended`."""

    task: Task
    attempt: int


class Answer(NamedTuple):
    """Hand the outcome of a called task, or the verdict on an effect, to whoever waits for it."""

    call: Call | EffectCall
    value: Any
    error: BaseException | None


class UseLedger(NamedTuple):
    """Call a method of the saver's ledger of effects (`checkpoint.base.Ledger`). Answered with what it returns."""

    method: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}


class Unstorable(Exception):
    """Thrown into the core for a `UseLedger` with a value that can't be stored; its cause says which. Nothing was."""


class MoreLanded(NamedTuple):
    """Which other bodies of effects have ended in the meantime? Answered with their events, which count as heard."""


class AskAbove(NamedTuple):
    """Wait until the graph around this one lets effects of ours start; raises EffectHeld or EffectFenced."""


class LandedAbove(NamedTuple):
    """Tell the graph around this one that our wave has landed, and wait until all of its wave has."""


class Recall(NamedTuple):
    """Look results up in the cache. Answered with a dict of those that are there, by key."""

    keys: Sequence[tuple[tuple[str, ...], str]]  # namespace and key of each


class Remember(NamedTuple):
    """Put a task's writes into the cache."""

    key: tuple[tuple[str, ...], str]
    writes: Sequence[tuple[str, Any]]
    ttl: int | None  # seconds; None: for ever


class Next(NamedTuple):
    """Start the first attempts of some tasks, and wait for the next event."""

    starts: Sequence[Task] = ()
    step: int | None = None  # the step that the time counts for, if steps have a time limit


class Emit(NamedTuple):
    """Show a part of the stream."""

    mode: str
    payload: Any


Storage: TypeAlias = Load | ListCheckpoints | Replay | Save | Commit | Settle | Recall | Remember | UseLedger
Command: TypeAlias = Storage | Spawn | Abandon | Answer | MoreLanded | AskAbove | LandedAbove | Next | Emit
Step: TypeAlias = Generator[Any, Any, R]  # yields a Command, is sent what it asked for

NEXT = Next()
SETTLE = Settle()
