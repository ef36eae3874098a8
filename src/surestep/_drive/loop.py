"""What a run on an event loop hangs on that loop: futures of calls, the clocks of attempts, saves in the background."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from surestep._core.events import Awaited, Expired
from surestep._drive.saving import BACKLOG, SaverCall, SaverPort

if TYPE_CHECKING:
    from surestep._core.task import Call
    from surestep._drive.async_ import AsyncDriver
    from surestep._drive.context import TaskContext


class LoopFuture(asyncio.Future[Any]):
    """A future of a called task, or of an answer, on the run's own loop; the core hears when somebody waits for it."""

    def __init__(self, driver: AsyncDriver) -> None:
        super().__init__(loop=driver.loop)
        self.driver = driver
        self.call: Call | None = None

    def add_done_callback(self, callback: Any, *, context: Any = None) -> None:
        super().add_done_callback(callback, context=context)
        if self.call is not None and not self.call.awaited:
            self.call.awaited = True
            if self.driver.admitting:
                self.driver.put(Awaited(self.call))


class Watch:
    """The clocks of one attempt. Fires once; the core decides what follows."""

    __slots__ = ("context", "driver", "held", "idle", "last", "policy", "run", "started")

    def __init__(self, driver: AsyncDriver, context: TaskContext) -> None:
        self.driver = driver
        self.context = context
        self.policy = context.task.timeout
        self.started = self.last = self.held = time.monotonic()
        loop = driver.loop
        self.run = loop.call_later(self.policy.run_timeout, self._fire, "run") if self.policy.run_timeout else None
        self.idle = loop.call_later(self.policy.idle_timeout, self._look) if self.policy.idle_timeout else None
        if self.policy.idle_timeout:
            context.progressed = self._progress

    def _progress(self, heartbeat: bool) -> None:
        if heartbeat or self.policy.refresh_on == "auto":
            self.last = time.monotonic()

    def _look(self) -> None:
        left = self.last + self.policy.idle_timeout - time.monotonic()
        if left > 0:
            self.idle = self.driver.loop.call_later(left, self._look)
        else:
            self._fire("idle")

    def _fire(self, kind: Any) -> None:
        self.cancel()
        elapsed = time.monotonic() - self.started
        self.driver.put(Expired(self.context.task, self.context.attempt, kind, elapsed))

    def hold(self) -> None:
        """The clocks stand still."""
        self.cancel()
        self.held = time.monotonic()

    def go_on(self) -> None:
        """They go on from where they stood."""
        stood = time.monotonic() - self.held
        self.started, self.last = self.started + stood, self.last + stood
        if self.policy.run_timeout:
            left = self.started + self.policy.run_timeout - time.monotonic()
            self.run = self.driver.loop.call_later(max(left, 0.0), self._fire, "run")
        if self.policy.idle_timeout:
            self._look()

    def cancel(self) -> None:
        for timer in (self.run, self.idle):
            if timer is not None:
                timer.cancel()


async def through(coroutine: Any) -> Any:
    """Await something to its end; a cancel that comes meanwhile is passed on afterwards."""
    inner = asyncio.ensure_future(coroutine)
    cancelled: asyncio.CancelledError | None = None
    while not inner.done():
        try:
            await asyncio.shield(inner)
        except asyncio.CancelledError as error:
            if inner.cancelled():
                raise
            cancelled = error
        except BaseException:
            break
    if cancelled is not None:
        if not inner.cancelled() and inner.exception() is not None:
            raise cancelled from inner.exception()
        raise cancelled
    return inner.result()


class Background:
    """Saves that a run in `async` durability does not wait for: kept in order, at most `BACKLOG` of them waiting."""

    def __init__(self, port: SaverPort) -> None:
        self.saver = port.saver
        self.queue: asyncio.Queue[list[SaverCall]] = asyncio.Queue(BACKLOG)
        self.error: BaseException | None = None
        self.worker: asyncio.Task[None] | None = None

    async def put(self, calls: list[SaverCall]) -> None:
        """Hand over calls; raises the first failure of earlier ones."""
        self._raise()
        if self.worker is None:
            self.worker = asyncio.get_running_loop().create_task(self._work())
        await self.queue.put(calls)

    async def settle(self) -> None:
        """Wait until nothing is left; raises the first failure."""
        await through(self.queue.join())
        self._raise()

    async def close(self) -> None:
        if self.worker is not None:
            await self.queue.join()
            self.worker.cancel()
            with suppress(asyncio.CancelledError):
                await self.worker

    def _raise(self) -> None:
        if self.error is not None:
            raise self.error

    async def _work(self) -> None:
        while True:
            calls = await self.queue.get()
            try:
                if self.error is None:
                    for call in calls:
                        await getattr(self.saver, f"a{call.name}")(*call.args, **call.kwargs)
            except Exception as error:
                self.error = error
            finally:
                self.queue.task_done()
