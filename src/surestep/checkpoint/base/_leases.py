"""Leases: which run a thread belongs to, as savers keep it.

Rules (L1 and so on; INVARIANTS.md says which tests prove them):
L1. A thread has one holder at most. Whoever takes it from another makes that one's later writes fail.
L2. Every write of a run that holds a thread is made on condition that it still does, in the same transaction.
L3. A lease that is not renewed ends by itself: a holder that died blocks nobody for longer than that.
L4. Who waits for a thread gets it in the order of the tickets; a ticket that is not renewed is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from surestep.errors import ThreadConflict

HOLD_KEY: Final = "__surestep_hold"
"""In a config's `configurable`: the `Hold` of the run that writes."""
RELEASE_KEY: Final = "__surestep_release"
"""In a config's `configurable`: the run ends with this commit, and the thread is free."""

How = Literal["free", "turn", "take"]
"""How a thread is to be had: if nobody holds it; when it is one's turn; or from whoever holds it."""


class Hold:
    """A run's claim to a thread: one for a run and all runs inside it. `taken`: the saver knows of it."""

    __slots__ = ("holder", "released", "seconds", "taken", "thread_id")

    def __init__(self, thread_id: str, holder: str, seconds: float) -> None:
        self.thread_id = thread_id
        self.holder = holder
        self.seconds = seconds
        self.taken = False
        self.released = False  # with the run's last commit


class Lease(NamedTuple):
    """Who holds a thread. Times are seconds since 1970.

    epoch: grows with every run that takes the thread, and with every cancel. base_id: the thread's newest checkpoint
    when it was taken. stopped: "cancel" when the last holder was cancelled; reason, actor: why, and by whom.
    """

    thread_id: str
    epoch: int
    holder: str | None
    taken_at: float
    expires_at: float
    base_id: str | None = None
    stopped: str | None = None
    reason: str | None = None
    actor: str | None = None

    def held(self, now: float) -> bool:
        return self.holder is not None and self.expires_at > now


@runtime_checkable
class Leases(Protocol):
    """A saver that keeps leases. Every method is one transaction; each has an async form."""

    def acquire(self, hold: Hold, how: How, now: float, ticket: int | None = None) -> tuple[bool, Lease | None]:
        """Take the thread, if that may be; and the lease as it was before."""
        ...

    async def aacquire(
        self, hold: Hold, how: How, now: float, ticket: int | None = None
    ) -> tuple[bool, Lease | None]: ...

    def renew(self, hold: Hold, now: float) -> bool:
        """Prolong the lease; whether it is still the run's."""
        ...

    async def arenew(self, hold: Hold, now: float) -> bool: ...

    def release(self, hold: Hold) -> None:
        """Free the thread, if the run holds it."""
        ...

    async def arelease(self, hold: Hold) -> None: ...

    def stop(self, thread_id: str, now: float, reason: str | None = None, actor: str | None = None) -> Lease | None:
        """Take the thread from whoever holds it; the lease as it was, None if nobody held it."""
        ...

    async def astop(
        self, thread_id: str, now: float, reason: str | None = None, actor: str | None = None
    ) -> Lease | None: ...

    def queue(self, hold: Hold, now: float, ticket: int | None = None) -> int:
        """Draw a ticket, or renew the one drawn."""
        ...

    async def aqueue(self, hold: Hold, now: float, ticket: int | None = None) -> int: ...

    def leave_queue(self, hold: Hold) -> None:
        """Give the ticket back."""
        ...

    async def aleave_queue(self, hold: Hold) -> None: ...

    def get_lease(self, thread_id: str) -> Lease | None:
        """Who holds the thread, or did last."""
        ...

    async def aget_lease(self, thread_id: str) -> Lease | None: ...


def has_leases(saver: object) -> bool:
    """Does the saver keep leases?"""
    return isinstance(saver, Leases)


def hold_in(config: Mapping[str, Any]) -> Hold | None:
    """The hold of the run that writes, if it has one."""
    found: Hold | None = config["configurable"].get(HOLD_KEY)
    return found


def took(config: Mapping[str, Any]) -> None:
    """A write of the run has succeeded: it has the thread."""
    if (hold := hold_in(config)) is not None:
        hold.taken = True
        hold.released = RELEASE_KEY in config["configurable"]


def taken(before: Lease | None, hold: Hold, now: float, base_id: str | None) -> Lease:
    """The lease after the run has taken the thread."""
    epoch = before.epoch if before is not None else 0
    return Lease(hold.thread_id, epoch + 1, hold.holder, now, now + hold.seconds, base_id)


def stopped(before: Lease, now: float, reason: str | None, actor: str | None) -> Lease:
    """The lease after its holder was cancelled."""
    return before._replace(
        epoch=before.epoch + 1, holder=None, expires_at=now, stopped="cancel", reason=reason, actor=actor
    )


def lost(lease: Lease | None, hold: Hold) -> ThreadConflict:
    """The error for a run that writes and has lost the thread."""
    from surestep.errors import RunCancelled, RunFenced

    if lease is not None and lease.stopped == "cancel":
        return RunCancelled(hold.thread_id, lease.reason, lease.actor)
    return RunFenced(hold.thread_id)


def may_take(lease: Lease | None, hold: Hold, how: How, now: float) -> bool:
    """Whether a run may take the thread, its turn apart."""
    return how == "take" or lease is None or lease.holder == hold.holder or not lease.held(now)
