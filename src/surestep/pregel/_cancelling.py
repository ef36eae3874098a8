"""Cancelling the run of a thread, from wherever it can be seen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from surestep._calls import adriven, driven
from surestep._drive.tenure import Saver, Steps, heart
from surestep._records import Decision
from surestep.checkpoint.base._leases import has_leases
from surestep.checkpoint.base._ledger import has_ledger
from surestep.errors import RunCancelled
from surestep.pregel._prepare import now
from surestep.pregel._state import Look

if TYPE_CHECKING:
    from surestep.types import RunnableConfig


class CancelMethods:
    """The checkpointer has to be one of surestep's."""

    def cancel(self, config: RunnableConfig, *, reason: str | None = None, actor: str | None = None) -> bool:
        """End the run that holds the thread, in whatever process it is; whether there was one.

        When this returns, nothing of the run is saved any more and no effect of it starts. The run's caller gets
        RunCancelled, and the thread can be used. Raises TypeError for a checkpointer that keeps no leases.
        """
        look = Look(self, config)
        found: bool = driven(_cancel(look, reason, actor), lambda asked: asked.answer(look.saver))
        return found

    async def acancel(self, config: RunnableConfig, *, reason: str | None = None, actor: str | None = None) -> bool:
        """As `cancel`."""
        look = Look(self, config)
        found: bool = await adriven(_cancel(look, reason, actor), lambda asked: asked.aanswer(look.saver))
        return found


def _cancel(look: Look, reason: str | None, actor: str | None) -> Steps:
    saver: Any = look.saver
    if not has_leases(saver):
        raise TypeError(
            f"{type(saver).__name__} keeps no leases: a run on it can be cancelled by its own RunControl, or by the "
            "asyncio task that awaits it. The savers of surestep keep them."
        )
    configurable = look.config["configurable"]
    thread_id, actor = configurable["thread_id"], actor or configurable.get("actor")
    held = yield Saver("stop", (thread_id, time.time(), reason, actor))
    if held is None:
        return False
    heart.stop(held.holder, RunCancelled(thread_id, reason, actor))
    if has_ledger(saver):
        decided = Decision(
            thread_id, str(held.holder), "cancel", now(), actor, reason, checkpoint_id=held.base_id or ""
        )
        yield Saver("decide", ([decided],))
    return True
