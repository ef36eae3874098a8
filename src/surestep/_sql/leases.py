"""Leases in a database (`checkpoint/base/_leases.py`), as generators of statements."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from surestep._sql.dialect import Dialect
from surestep._sql.statement import Steps
from surestep._sql.turns import take_turn
from surestep.checkpoint.base._leases import (
    RELEASE_KEY,
    Hold,
    How,
    Lease,
    hold_in,
    lost,
    may_take,
    stopped,
    taken,
)

if TYPE_CHECKING:
    from surestep._sql.run import Runner

_COLUMNS: Final = Lease._fields
_SET: Final = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[1:])

# Parameter: thread.
LEASE: Final = f"SELECT {', '.join(_COLUMNS)} FROM surestep_leases WHERE thread_id = ?"
NEWEST: Final = "SELECT max(checkpoint_id) FROM surestep_checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
NEXT_TICKET: Final = "SELECT coalesce(max(ticket), 0) + 1 FROM surestep_queue WHERE thread_id = ?"

# All columns of the table.
PUT: Final = (
    f"INSERT INTO surestep_leases VALUES ({', '.join('?' * len(_COLUMNS))}) "
    f"ON CONFLICT (thread_id) DO UPDATE SET {_SET}"
)

# One row when it is the run's. Parameters: when it ends, thread, holder.
RENEW: Final = "UPDATE surestep_leases SET expires_at = ? WHERE thread_id = ? AND holder = ? RETURNING 1"

# Parameters: thread, holder.
RELEASE: Final = "UPDATE surestep_leases SET holder = NULL WHERE thread_id = ? AND holder = ?"
LEAVE: Final = "DELETE FROM surestep_queue WHERE thread_id = ? AND holder = ?"

# Parameters: thread, now.
FIRST: Final = "SELECT min(ticket) FROM surestep_queue WHERE thread_id = ? AND expires_at > ?"

# All columns of the table.
QUEUE: Final = """
INSERT INTO surestep_queue VALUES (?, ?, ?, ?)
ON CONFLICT (thread_id, ticket) DO UPDATE SET expires_at = excluded.expires_at"""


def guard(dialect: Dialect, config: Mapping[str, Any]) -> Steps[None]:
    """A run is about to write: its first write takes the thread, a later one needs it until the transaction ends."""
    hold = hold_in(config)
    if hold is None:
        return
    if not hold.taken:
        yield from take_turn(dialect, hold.thread_id)
        lease = yield from get_lease(hold.thread_id)
        yield from _take(lease, hold, time.time())
    else:
        lease = yield from get_lease(hold.thread_id, dialect.share)
        if lease is None or lease.holder != hold.holder:
            raise lost(lease, hold)


def let_go(config: Mapping[str, Any]) -> Steps[None]:
    """After a run's last write."""
    if config["configurable"].get(RELEASE_KEY) and (hold := hold_in(config)) is not None:
        yield from release(hold)


def terms(config: Mapping[str, Any]) -> tuple[str | None, bool, float, bool]:
    """The same for a statement that does it all: the run, whether it takes the thread and for how many seconds, and
    whether it lets it go."""
    hold = hold_in(config)
    if hold is None:
        return None, False, 0.0, False
    return hold.holder, not hold.taken, hold.seconds, bool(config["configurable"].get(RELEASE_KEY))


def get_lease(thread_id: str, share: str = "") -> Steps[Lease | None]:
    found = yield (LEASE + share, (thread_id,))
    return Lease(*found[0]) if found else None


def _take(before: Lease | None, hold: Hold, now: float) -> Steps[None]:
    ((newest,),) = yield (NEWEST, (hold.thread_id,))
    yield (PUT, taken(before, hold, now, newest))


def acquire(dialect: Dialect, hold: Hold, how: How, now: float, ticket: int | None) -> Steps[tuple[bool, Lease | None]]:
    yield from take_turn(dialect, hold.thread_id)
    before = yield from get_lease(hold.thread_id)
    if not may_take(before, hold, how, now):
        return False, before
    if how == "turn":
        ((first,),) = yield (FIRST, (hold.thread_id, now))
        if first != ticket:
            return False, before
    yield from _take(before, hold, now)
    yield (LEAVE, (hold.thread_id, hold.holder))
    return True, before


def renew(hold: Hold, now: float) -> Steps[bool]:
    found = yield (RENEW, (now + hold.seconds, hold.thread_id, hold.holder))
    return bool(found)


def release(hold: Hold) -> Steps[None]:
    yield (RELEASE, (hold.thread_id, hold.holder))


def stop(dialect: Dialect, thread_id: str, now: float, reason: str | None, actor: str | None) -> Steps[Lease | None]:
    yield from take_turn(dialect, thread_id)
    before = yield from get_lease(thread_id)
    if before is None or before.holder is None:
        return None
    yield (PUT, stopped(before, now, reason, actor))
    return before


def queue(dialect: Dialect, hold: Hold, now: float, ticket: int | None) -> Steps[int]:
    yield from take_turn(dialect, hold.thread_id)
    if ticket is None:
        ((ticket,),) = yield (NEXT_TICKET, (hold.thread_id,))
    assert ticket is not None
    yield (QUEUE, (hold.thread_id, ticket, hold.holder, now + hold.seconds))
    return ticket


def leave_queue(hold: Hold) -> Steps[None]:
    yield (LEAVE, (hold.thread_id, hold.holder))


class SqlLeases:
    """The methods of `Leases`, as a saver on a database has them."""

    _runner: Runner
    _dialect: Dialect

    def acquire(self, hold: Hold, how: How, now: float, ticket: int | None = None) -> tuple[bool, Lease | None]:
        """See `Leases`."""
        ok, before = self._runner.write(acquire(self._dialect, hold, how, now, ticket))
        hold.taken = hold.taken or ok
        return ok, before

    async def aacquire(self, hold: Hold, how: How, now: float, ticket: int | None = None) -> tuple[bool, Lease | None]:
        """See `Leases`."""
        ok, before = await self._runner.awrite(acquire(self._dialect, hold, how, now, ticket))
        hold.taken = hold.taken or ok
        return ok, before

    def renew(self, hold: Hold, now: float) -> bool:
        """See `Leases`."""
        return self._runner.write(renew(hold, now))

    async def arenew(self, hold: Hold, now: float) -> bool:
        """See `Leases`."""
        return await self._runner.awrite(renew(hold, now))

    def release(self, hold: Hold) -> None:
        """See `Leases`."""
        self._runner.write(release(hold))

    async def arelease(self, hold: Hold) -> None:
        """See `Leases`."""
        await self._runner.awrite(release(hold))

    def stop(self, thread_id: str, now: float, reason: str | None = None, actor: str | None = None) -> Lease | None:
        """See `Leases`."""
        return self._runner.write(stop(self._dialect, thread_id, now, reason, actor))

    async def astop(
        self, thread_id: str, now: float, reason: str | None = None, actor: str | None = None
    ) -> Lease | None:
        """See `Leases`."""
        return await self._runner.awrite(stop(self._dialect, thread_id, now, reason, actor))

    def queue(self, hold: Hold, now: float, ticket: int | None = None) -> int:
        """See `Leases`."""
        return self._runner.write(queue(self._dialect, hold, now, ticket))

    async def aqueue(self, hold: Hold, now: float, ticket: int | None = None) -> int:
        """See `Leases`."""
        return await self._runner.awrite(queue(self._dialect, hold, now, ticket))

    def leave_queue(self, hold: Hold) -> None:
        """See `Leases`."""
        self._runner.write(leave_queue(hold))

    async def aleave_queue(self, hold: Hold) -> None:
        """See `Leases`."""
        await self._runner.awrite(leave_queue(hold))

    def get_lease(self, thread_id: str) -> Lease | None:
        """See `Leases`."""
        return self._runner.read(get_lease(thread_id))

    async def aget_lease(self, thread_id: str) -> Lease | None:
        """See `Leases`."""
        return await self._runner.aread(get_lease(thread_id))
