"""How long threads are kept: the rules, for all savers. Savers collect the facts, and delete what is said here.

Rules
1. With `delete` a thread's time begins when a sweep first sees it, and activity doesn't prolong it: who sets a
   retention on an old database loses nothing at once. Afterwards the thread goes, all but its pins.
2. With `keep_latest` it begins anew with each checkpoint. Afterwards the latest checkpoint of each namespace stays, and
   what rule 3 names.
3. A pinned checkpoint stays. One at which a run waited for a decision stays until `incident_ttl` after it was made.
4. A thread that is open is left alone: one that waits for a decision, and one that has something to run and did not
   fail: its process may be alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from surestep._constants import ERROR, INTERRUPT
from surestep.checkpoint.base._pending import next_nodes
from surestep.checkpoint.base.id import seconds_of

if TYPE_CHECKING:
    from surestep.checkpoint.base import CheckpointTuple

Strategy = Literal["delete", "keep_latest"]
STRATEGIES = ("delete", "keep_latest")


@dataclass(frozen=True, kw_only=True, slots=True)
class Retention:
    """How long the threads of a saver are kept, for `saver.sweep` and `Sweeper`.

    strategy: what happens to a thread whose time is up. "delete": it goes; its time counts from when a sweep first
        saw it, whatever happens in it. "keep_latest": its history goes, the latest checkpoints stay; its time begins
        anew with each run and each update of its state.
    ttl: that time. None: for ever.
    sweep_interval: how often a `Sweeper` looks.
    limit: at most so many threads are looked at in a sweep; the next one goes on from there.
    incident_ttl: with "keep_latest", how long those checkpoints are kept at which a run waited for a decision, counted
        from when they were made. None: for ever.
    open_threads: whether also threads are swept that wait for a decision, or that may be running.
    """

    strategy: Strategy = "delete"
    ttl: timedelta | None = None
    sweep_interval: timedelta = timedelta(minutes=5)
    limit: int = 10_000
    incident_ttl: timedelta | None = None
    open_threads: bool = False

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ValueError(f"Unknown strategy {self.strategy!r}: use 'delete' or 'keep_latest'.")
        for name in ("ttl", "sweep_interval", "incident_ttl"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, timedelta):
                raise TypeError(f"{name} is a timedelta, not {value!r}: timedelta(minutes=...), timedelta(days=...).")
            if value is not None and value < timedelta(0):
                raise ValueError(f"{name} is negative: {value}.")
        if self.limit < 1:
            raise ValueError(f"limit={self.limit} threads a sweep would never get anywhere.")

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Retention:
        """What `checkpointer.ttl` of a langgraph.json says: `strategy`, and in minutes `default_ttl` and
        `sweep_interval_minutes`; `sweep_limit`.

        Raises ValueError for other keys: a misspelt one must not mean "for ever".
        """
        known = {"strategy", "default_ttl", "sweep_interval_minutes", "sweep_limit"}
        if unknown := config.keys() - known:
            raise ValueError(
                f"Unknown in checkpointer.ttl: {', '.join(sorted(unknown))}. Known: {', '.join(sorted(known))}."
            )
        given: dict[str, Any] = {}
        if config.get("strategy") is not None:
            given["strategy"] = config["strategy"]
        for key, name in (("default_ttl", "ttl"), ("sweep_interval_minutes", "sweep_interval")):
            if config.get(key) is not None:
                given[name] = timedelta(minutes=config[key])
        if config.get("sweep_limit") is not None:
            given["limit"] = config["sweep_limit"]
        return cls(**given)


class Swept(NamedTuple):
    """What a sweep did. `after`: the thread that it came to; None when it has seen all."""

    threads_seen: int
    threads_deleted: int
    checkpoints_deleted: int
    after: str | None


def no_such_checkpoint(config: Mapping[str, Any]) -> ValueError:
    """The error for a pin on what isn't there."""
    place = {key: config["configurable"].get(key) for key in ("thread_id", "checkpoint_ns", "checkpoint_id")}
    return ValueError(f"There is no checkpoint to pin at {place}. get_state_history() lists those of a thread.")


class Pin(NamedTuple):
    """A checkpoint that is kept, and why."""

    checkpoint_ns: str
    checkpoint_id: str
    label: str


Place = tuple[str, str]
"""A namespace and a checkpoint id."""


def is_due(retention: Retention, now: float, first_seen: float | None, latest: str) -> bool:
    """Whether the time of a thread is up: rules 1 and 2. `first_seen` by a sweep; `latest`: its greatest checkpoint id.
    Times are seconds since 1970."""
    if retention.ttl is None:
        return False
    since = first_seen if retention.strategy == "delete" else seconds_of(latest)
    return since is not None and now - since >= retention.ttl.total_seconds()


def is_open(head: CheckpointTuple | None) -> bool:
    """Rule 4, for the latest checkpoint of a thread."""
    if head is None:
        return False
    written = {channel for _, channel, _ in head.pending_writes or ()}
    if INTERRUPT in written:
        return True
    return bool(next_nodes(head)) and ERROR not in written


def kept(
    retention: Retention, now: float, heads: Iterable[Place], pins: Iterable[Place], decided: Iterable[Place]
) -> set[Place]:
    """The checkpoints of a thread that stay when its time is up. `decided`: those at which a run waited."""
    stays = set(pins)
    if retention.strategy == "keep_latest":
        stays.update(heads)
        lasting = retention.incident_ttl
        for place in decided:
            made = seconds_of(place[1])
            if lasting is None or made is None or now - made < lasting.total_seconds():
                stays.add(place)
    return stays
