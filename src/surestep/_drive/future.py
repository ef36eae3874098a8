"""What a node holds while a task it called runs, or an effect it called is under way."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from surestep._core.events import Awaited

if TYPE_CHECKING:
    from surestep._core.task import Call
    from surestep._drive.driver import Driver


class CalledFuture(Future[Any]):
    """A future that may be waited for on the run's own thread too: then whoever waits goes on with the run.

    `call`: the task that was called, None for an effect. The core hears that its caller waits for it: a caller that
    goes on meanwhile may still come to a question.
    """

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self.driver = driver
        self.call: Call | None = None
        self._waiters = _Waiters(self)  # as_completed() and wait() put theirs there

    def awaited(self) -> None:
        """Its caller waits for it."""
        if self.call is not None and not self.call.awaited:
            self.call.awaited = True
            if self.driver.admitting:
                self.driver.put(Awaited(self.call))

    def _go_on(self) -> None:
        if not self.done():
            self.awaited()
            if (pump := getattr(self.driver, "pump_for", None)) is not None:
                pump(self.done)

    def result(self, timeout: float | None = None) -> Any:
        self._go_on()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._go_on()
        return super().exception(timeout)


class _Waiters(list[Any]):
    """Who is told when a future is done; the future hears of them."""

    def __init__(self, future: CalledFuture) -> None:
        super().__init__()
        self.future = future

    def append(self, waiter: Any) -> None:
        super().append(waiter)
        self.future.awaited()
