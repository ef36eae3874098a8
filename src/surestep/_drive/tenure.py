"""How a run comes to hold its thread, keeps it while it lives, and lets it go.

The decisions are the saver's (`checkpoint/base/_leases.py`); here is the waiting, and the heartbeat.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from surestep._core.events import Stopped
from surestep.checkpoint.base._leases import Hold, Lease, lost
from surestep.errors import RunFenced, ThreadBusy

if TYPE_CHECKING:
    from surestep._drive.driver import Driver

log = logging.getLogger("surestep")

LEASE_SECONDS: Final = 10.0
"""How long a thread stays held by a process that died."""

BEAT_SECONDS: Final = 1.0
"""How often leases are prolonged, and how soon a run hears that another process has taken its thread."""

STRATEGIES: Final = ("reject", "enqueue", "interrupt", "rollback")

_numbers = itertools.count()
_process = os.urandom(8).hex()


def new_holder() -> str:
    """A name for a run that no other has, in any process."""
    return f"{_process}-{os.getpid()}-{next(_numbers)}"


class Saver(NamedTuple):
    """A method of the saver to be called."""

    method: str
    args: tuple[Any, ...]

    def answer(self, saver: Any) -> Any:
        return getattr(saver, self.method)(*self.args)

    async def aanswer(self, saver: Any) -> Any:
        return await getattr(saver, f"a{self.method}")(*self.args)


class Pause(NamedTuple):
    """Wait a while, in seconds."""

    seconds: float

    def answer(self, saver: Any) -> None:
        time.sleep(self.seconds)

    async def aanswer(self, saver: Any) -> None:
        from asyncio import sleep  # here: runs on threads do without

        await sleep(self.seconds)


Steps = Generator[Any, Any, Any]  # yields a Saver or a Pause


def take(hold: Hold, strategy: str) -> Steps:
    """Get hold of the thread as the strategy says; the lease as it was before, None if nobody held it."""
    if strategy not in STRATEGIES:
        raise ValueError(f"multitask_strategy is one of {', '.join(map(repr, STRATEGIES))}, not {strategy!r}.")
    if strategy == "enqueue":
        return (yield from _wait_for_turn(hold))
    how = "free" if strategy == "reject" else "take"
    now = time.time()
    ok, before = yield Saver("acquire", (hold, how, now))
    if not ok:
        raise ThreadBusy(hold.thread_id)
    if before is None or not before.held(now):
        return None
    heart.stop(before.holder, RunFenced(hold.thread_id))
    return before


def _wait_for_turn(hold: Hold) -> Steps:
    """First come, first served; whoever waits renews his ticket, so that one that died is passed over."""
    ticket = yield Saver("queue", (hold, time.time()))
    renewed, pause = time.time(), 0.002
    try:
        while True:
            now = time.time()
            ok, _ = yield Saver("acquire", (hold, "turn", now, ticket))
            if ok:
                return None
            if now - renewed > hold.seconds / 3:
                yield Saver("queue", (hold, now, ticket))
                renewed = now
            yield Pause(pause)
            pause = min(pause * 1.5, 0.1)
    except BaseException:
        yield Saver("leave_queue", (hold,))
        raise


def leave(hold: Hold) -> Steps:
    """The run is over: the thread is free, if it did not let go with its last commit."""
    if hold.taken and not hold.released:
        yield Saver("release", (hold,))


class Heart:
    """Prolongs the leases of all runs of this process, from a thread of its own, and tells runs that lost theirs."""

    def __init__(self) -> None:
        self.runs: dict[str, Driver] = {}
        self.lock = threading.Lock()
        self.beating = False

    def add(self, driver: Driver) -> None:
        """A run begins."""
        hold = driver.env.hold
        assert hold is not None
        with self.lock:
            self.runs[hold.holder] = driver
            if self.beating:
                return
            self.beating = True
        threading.Thread(target=self._beat, name="surestep-heart", daemon=True).start()

    def drop(self, hold: Hold) -> None:
        """It is over."""
        self.runs.pop(hold.holder, None)

    def stop(self, holder: str | None, error: Exception) -> None:
        """Tell a run of this process, if it is one, that it is to end now."""
        driver = self.runs.get(holder or "")
        if driver is not None:
            driver.put(Stopped(error))

    def _beat(self) -> None:
        idle = 0
        while True:
            time.sleep(BEAT_SECONDS)
            with self.lock:
                runs = list(self.runs.values())
                idle = 0 if runs else idle + 1
                if idle > 10:
                    self.beating = False
                    return
            for driver in runs:
                try:
                    self._renew(driver)
                except Exception as error:  # the next beat comes before the lease ends
                    log.warning("A lease could not be prolonged: %s: %s", type(error).__name__, error)

    def _renew(self, driver: Driver) -> None:
        hold, saver = driver.env.hold, driver.env.saver
        if hold is None or not hold.taken or hold.released:
            return
        if saver.renew(hold, time.time()) or hold.holder not in self.runs:
            return
        lease: Lease | None = saver.get_lease(hold.thread_id)
        self.drop(hold)
        driver.put(Stopped(lost(lease, hold)))


heart = Heart()


def _after_fork() -> None:
    """A forked child has none of its parent's runs and threads."""
    global _process
    _process = os.urandom(8).hex()
    heart.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
