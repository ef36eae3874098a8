"""Runs the node's side of an effect on an event loop; reads side by side with the runner in `effect.py`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from surestep._calls import adriven
from surestep._drive.effect import Intent, asked, call_of, carried_out, task_of

if TYPE_CHECKING:
    from surestep._core.events import Asked, Landed
    from surestep._drive.context import TaskContext


async def aperform(intent: Intent) -> Any:
    """Call an effect from a coroutine."""
    context = task_of(intent.options.name)
    call, me = call_of(context, intent)
    verdict = await adriven(asked(call, intent), lambda wanted: wanted.aanswer(context))
    if verdict.kind == "replay":
        return verdict.value
    # A body that has begun is not torn down with the attempt that called it: its outcome is recorded all the same.
    rest = adriven(carried_out(call, intent, me, verdict), lambda wanted: wanted.aanswer(context))
    body = asyncio.ensure_future(rest)
    body.add_done_callback(_heard)
    return await asyncio.shield(body)


def _heard(body: asyncio.Future[Any]) -> None:
    """Nobody may be left to ask how it ended."""
    if not body.cancelled():
        body.exception()


async def ahear(context: TaskContext, event: Asked | Landed) -> Any:
    """Post an event and await the answer, on whatever event loop this is."""
    driver = context.env.driver
    future = driver.post(context, event)
    if isinstance(future, asyncio.Future):
        if driver.limit is None and context.watch is None:
            return await future
        async with driver.turn_aside(context):
            return await future
    with driver.aside(context):
        return await asyncio.to_thread(future.result)
