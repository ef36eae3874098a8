"""Deleting what has expired from time to time: in a thread, or in a task."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

from surestep._sql.store import ops
from surestep._sql.store.face import SqlStore

if TYPE_CHECKING:
    import asyncio

MINUTES = 5.0
"""How often to sweep when nobody says."""

log = logging.getLogger(__name__)


def _seconds(store: SqlStore, minutes: float | None) -> float:
    asked = minutes if minutes is not None else (store.ttl_config or {}).get("sweep_interval_minutes")
    return 60.0 * (MINUTES if asked is None else asked)


class Swept(SqlStore):
    """The sweeping of a store that works in the caller's thread."""

    _sweeper: tuple[threading.Event, Future[None]] | None = None

    def sweep_ttl(self) -> int:
        """Delete the items that have expired; how many they were."""
        return self._runner.write(ops.sweep(self._tools.dialect))

    def start_ttl_sweeper(self, sweep_interval_minutes: int | None = None) -> Future[None]:
        """Sweep from time to time in a thread, until `stop_ttl_sweeper` or until the future is cancelled; the
        future ends with it.

        sweep_interval_minutes: how often, by default what `ttl` says, else 5. Without a `ttl` config nothing
        is started, and the future is done. Started once; a sweep that fails is logged and tried again.
        """
        if self._sweeper is not None and not self._sweeper[1].done():
            return self._sweeper[1]
        done: Future[None] = Future()
        if not self.ttl_config:
            done.set_result(None)
            return done
        stop = threading.Event()
        done.add_done_callback(lambda _: stop.set())  # by whoever cancels it
        self._sweeper = (stop, done)
        seconds = _seconds(self, sweep_interval_minutes)
        threading.Thread(
            target=_sweep, args=(self.sweep_ttl, seconds, stop, done), name="surestep-ttl", daemon=True
        ).start()
        return done

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; False when it has not ended after `timeout` seconds."""
        if self._sweeper is None:
            return True
        stop, done = self._sweeper
        stop.set()
        if wait([done], timeout).not_done:
            return False
        self._sweeper = None
        return True


def _sweep(sweep: Callable[[], int], seconds: float, stop: threading.Event, done: Future[None]) -> None:
    while not stop.wait(seconds):
        try:
            sweep()
        except Exception:
            log.exception("Items that have expired could not be deleted; the next sweep tries again.")
    if done.set_running_or_notify_cancel():
        done.set_result(None)


class AsyncSwept(SqlStore):
    """The sweeping of a store on an event loop."""

    _sweeper: asyncio.Task[None] | None = None

    async def sweep_ttl(self) -> int:
        """Delete the items that have expired; how many they were."""
        return await self._runner.awrite(ops.sweep(self._tools.dialect))

    async def start_ttl_sweeper(self, sweep_interval_minutes: int | None = None) -> asyncio.Task[None]:
        """Sweep from time to time in a task, until `stop_ttl_sweeper`; see `start_ttl_sweeper` of the sync
        store."""
        import asyncio

        if self._sweeper is None or self._sweeper.done():
            work = self._sweep(_seconds(self, sweep_interval_minutes)) if self.ttl_config else _nothing()
            self._sweeper = asyncio.create_task(work, name="surestep-ttl")
        return self._sweeper

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; False when it has not ended after `timeout` seconds."""
        import asyncio

        if self._sweeper is None or self._sweeper.done():
            return True
        self._sweeper.cancel()
        ended, _ = await asyncio.wait([self._sweeper], timeout=timeout)
        return bool(ended)

    async def _sweep(self, seconds: float) -> None:
        import asyncio

        while True:
            await asyncio.sleep(seconds)
            try:
                await self.sweep_ttl()
            except Exception:
                log.exception("Items that have expired could not be deleted; the next sweep tries again.")


async def _nothing() -> None:
    pass
