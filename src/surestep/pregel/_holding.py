"""A run that holds its thread: the parts of the run, with what comes before and after."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING, Any

from surestep._calls import adriven, driven
from surestep._core.events import Part
from surestep._drive.compensate import compensate
from surestep._drive.owned import Owned
from surestep._drive.tenure import Steps, heart, leave, take
from surestep.checkpoint.base._ledger import has_ledger
from surestep.pregel._prepare import now

if TYPE_CHECKING:
    from surestep._drive.driver import Driver


class Tenure:
    """How a run comes to hold its thread, and lets it go."""

    def __init__(self, driver: Driver, strategy: str | None) -> None:
        self.driver = driver
        self.strategy = strategy
        self.saver = driver.env.saver

    def begin(self) -> Steps:
        """Without a strategy the first write of the run takes the thread. With `rollback` the run that is put an end
        to is undone, and this one starts from the checkpoint before it."""
        hold, strategy = self.driver.env.hold, self.strategy
        assert hold is not None
        heart.add(self.driver)
        if strategy is None:
            return
        before = yield from take(hold, strategy)
        if strategy == "rollback" and before is not None:
            if has_ledger(self.saver):
                yield from compensate(before, now, self.driver.env.runtime)
            request = self.driver.env.run.request
            request.checkpoint_id, request.fresh = before.base_id, before.base_id is None

    def end(self) -> Steps:
        """The run is over, however it ended."""
        hold = self.driver.env.hold
        assert hold is not None
        heart.drop(hold)
        yield from leave(hold)


def holding(tenure: Tenure, parts: Iterator[Part]) -> Iterator[Part]:
    """The parts of a run that holds its thread while it lasts; returns its outcome."""
    try:
        driven(tenure.begin(), lambda asked: asked.answer(tenure.saver))
        return (yield from parts)
    finally:
        driven(tenure.end(), lambda asked: asked.answer(tenure.saver))


async def aholding(tenure: Tenure, parts: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    """The same on an event loop; yields the outcome last."""
    inner = Owned(parts)
    try:
        await adriven(tenure.begin(), lambda asked: asked.aanswer(tenure.saver))
        async for part in inner:
            yield part
    finally:
        await inner.aclose()
        await adriven(tenure.end(), lambda asked: asked.aanswer(tenure.saver))
