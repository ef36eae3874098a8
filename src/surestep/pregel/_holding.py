"""A run that holds its thread: the parts of the run, with what comes before and after."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING, Any

from surestep._calls import adriven, driven
from surestep._core.events import Part
from surestep._drive.compensate import compensate
from surestep._drive.owned import Owned
from surestep._drive.tenure import Steps, heart, leave, take
from surestep.checkpoint.base._leases import Hold
from surestep.checkpoint.base._ledger import has_ledger
from surestep.pregel._prepare import now

if TYPE_CHECKING:
    from surestep._drive.async_ import AsyncDriver
    from surestep._drive.driver import Driver
    from surestep._drive.sync import SyncDriver


def holding(driver: SyncDriver, parts: Iterator[Part], strategy: str | None) -> Iterator[Part]:
    """The parts of a run that holds its thread while it lasts; returns its outcome."""
    env = driver.env
    hold, saver = env.hold, env.saver
    assert hold is not None
    heart.add(driver)
    try:
        if strategy is not None:
            driven(_begin(driver, hold, strategy), lambda asked: asked.answer(saver))
        return (yield from parts)
    finally:
        heart.drop(hold)
        driven(leave(hold), lambda asked: asked.answer(saver))


async def aholding(
    driver: AsyncDriver, parts: AsyncGenerator[Any, None], strategy: str | None
) -> AsyncGenerator[Any, None]:
    """The same on an event loop; yields the outcome last."""
    env = driver.env
    hold, saver = env.hold, env.saver
    assert hold is not None
    heart.add(driver)
    inner = Owned(parts)
    try:
        if strategy is not None:
            await adriven(_begin(driver, hold, strategy), lambda asked: asked.aanswer(saver))
        async for part in inner:
            yield part
    finally:
        heart.drop(hold)
        await inner.aclose()
        await adriven(leave(hold), lambda asked: asked.aanswer(saver))


def _begin(driver: Driver, hold: Hold, strategy: str) -> Steps:
    """Get hold of the thread. With `rollback` the run that is put an end to is undone, and this one starts from the
    checkpoint before it."""
    before = yield from take(hold, strategy)
    if strategy == "rollback" and before is not None:
        if has_ledger(driver.env.saver):
            yield from compensate(before, now)
        request = driver.env.run.request
        request.checkpoint_id, request.fresh = before.base_id, before.base_id is None
