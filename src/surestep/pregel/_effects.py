"""The methods that show what a thread did, or may not do, outside of its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surestep.checkpoint.base._ledger import has_ledger
from surestep.pregel._state import Look

if TYPE_CHECKING:
    from surestep.effects import ThreadEffects
    from surestep.types import RunnableConfig


class EffectMethods:
    """What was asked for, what was decided, what came of it. The checkpointer has to be one of surestep's."""

    def get_effects(self, config: RunnableConfig) -> ThreadEffects:
        """The effects of a thread, in the order in which they were asked for, and what was decided about it.

        Raises TypeError for a checkpointer that keeps no ledger.
        """
        from surestep.effects import ThreadEffects  # here: most runs have none

        thread_id, ledger = _ledger_of(Look(self, config))
        return ThreadEffects(tuple(ledger.get_effects(thread_id)), tuple(ledger.get_decisions(thread_id)))

    async def aget_effects(self, config: RunnableConfig) -> ThreadEffects:
        """As `get_effects`."""
        from surestep.effects import ThreadEffects

        thread_id, ledger = _ledger_of(Look(self, config))
        effects = await ledger.aget_effects(thread_id)
        return ThreadEffects(tuple(effects), tuple(await ledger.aget_decisions(thread_id)))


def _ledger_of(look: Look) -> tuple[str, Any]:
    if not has_ledger(look.saver):
        raise TypeError(f"{type(look.saver).__name__} keeps no ledger of effects. The savers of surestep do.")
    return look.config["configurable"]["thread_id"], look.saver
