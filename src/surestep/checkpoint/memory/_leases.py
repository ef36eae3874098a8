"""Leases of the memory saver (`checkpoint/base/_leases.py`): they end with the process, as its threads do."""

from __future__ import annotations

import time
from collections.abc import Mapping
from threading import RLock
from typing import Any

from surestep.checkpoint.base._leases import RELEASE_KEY, Hold, How, Lease, hold_in, lost, may_take, stopped, taken


class MemoryLeases:
    """Leases and tickets in dictionaries of the saver."""

    __slots__ = ()

    _lock: RLock
    _leases: dict[str, Lease]
    _tickets: dict[str, dict[int, tuple[str, float]]]  # by thread: number -> holder, and when it ends

    def _newest(self, thread_id: str) -> str | None:
        raise NotImplementedError

    def _need(self, config: Mapping[str, Any]) -> None:
        """A run is about to write: it must still have the thread. The caller holds the lock."""
        hold = hold_in(config)
        if hold is not None and hold.taken:
            lease = self._leases.get(hold.thread_id)
            if lease is None or lease.holder != hold.holder:
                raise lost(lease, hold)

    def _take(self, config: Mapping[str, Any]) -> None:
        """A run's first write takes the thread. The caller holds the lock."""
        hold = hold_in(config)
        if hold is not None and not hold.taken:
            before = self._leases.get(hold.thread_id)
            self._leases[hold.thread_id] = taken(before, hold, time.time(), self._newest(hold.thread_id))
            hold.taken = True

    def _let_go(self, config: Mapping[str, Any]) -> None:
        """After a run's last write."""
        if config["configurable"].get(RELEASE_KEY) and (hold := hold_in(config)) is not None:
            self.release(hold)
            hold.released = True

    def acquire(self, hold: Hold, how: How, now: float, ticket: int | None = None) -> tuple[bool, Lease | None]:
        """See `Leases`."""
        with self._lock:
            before = self._leases.get(hold.thread_id)
            if not may_take(before, hold, how, now) or (how == "turn" and not self._is_turn(hold, now, ticket)):
                return False, before
            self._leases[hold.thread_id] = taken(before, hold, now, self._newest(hold.thread_id))
            self.leave_queue(hold)
            hold.taken = True
            return True, before

    def _is_turn(self, hold: Hold, now: float, ticket: int | None) -> bool:
        waiting = self._tickets.get(hold.thread_id, {})
        return ticket == min((number for number, (_, ends) in waiting.items() if ends > now), default=None)

    async def aacquire(self, hold: Hold, how: How, now: float, ticket: int | None = None) -> tuple[bool, Lease | None]:
        """See `Leases`."""
        return self.acquire(hold, how, now, ticket)

    def renew(self, hold: Hold, now: float) -> bool:
        """See `Leases`."""
        with self._lock:
            lease = self._leases.get(hold.thread_id)
            if lease is None or lease.holder != hold.holder:
                return False
            self._leases[hold.thread_id] = lease._replace(expires_at=now + hold.seconds)
            return True

    async def arenew(self, hold: Hold, now: float) -> bool:
        """See `Leases`."""
        return self.renew(hold, now)

    def release(self, hold: Hold) -> None:
        """See `Leases`."""
        with self._lock:
            lease = self._leases.get(hold.thread_id)
            if lease is not None and lease.holder == hold.holder:
                self._leases[hold.thread_id] = lease._replace(holder=None)

    async def arelease(self, hold: Hold) -> None:
        """See `Leases`."""
        self.release(hold)

    def stop(self, thread_id: str, now: float, reason: str | None = None, actor: str | None = None) -> Lease | None:
        """See `Leases`."""
        with self._lock:
            before = self._leases.get(thread_id)
            if before is None or before.holder is None:
                return None
            self._leases[thread_id] = stopped(before, now, reason, actor)
            return before

    async def astop(
        self, thread_id: str, now: float, reason: str | None = None, actor: str | None = None
    ) -> Lease | None:
        """See `Leases`."""
        return self.stop(thread_id, now, reason, actor)

    def queue(self, hold: Hold, now: float, ticket: int | None = None) -> int:
        """See `Leases`."""
        with self._lock:
            waiting = self._tickets.setdefault(hold.thread_id, {})
            number = max(waiting, default=0) + 1 if ticket is None else ticket
            waiting[number] = hold.holder, now + hold.seconds
            return number

    async def aqueue(self, hold: Hold, now: float, ticket: int | None = None) -> int:
        """See `Leases`."""
        return self.queue(hold, now, ticket)

    def leave_queue(self, hold: Hold) -> None:
        """See `Leases`."""
        with self._lock:
            waiting = self._tickets.get(hold.thread_id, {})
            for number in [number for number, (holder, _) in waiting.items() if holder == hold.holder]:
                del waiting[number]

    async def aleave_queue(self, hold: Hold) -> None:
        """See `Leases`."""
        self.leave_queue(hold)

    def get_lease(self, thread_id: str) -> Lease | None:
        """See `Leases`."""
        return self._leases.get(thread_id)

    async def aget_lease(self, thread_id: str) -> Lease | None:
        """See `Leases`."""
        return self.get_lease(thread_id)
