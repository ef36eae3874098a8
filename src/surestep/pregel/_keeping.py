"""The methods that keep single checkpoints of a thread from being forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surestep.pregel._state import Look

if TYPE_CHECKING:
    from surestep.checkpoint.base._retention import Pin
    from surestep.types import RunnableConfig


class KeepingMethods:
    """Pins: what no sweep and no prune removes. The checkpointer has to be one of surestep's."""

    def pin(self, config: RunnableConfig, label: str) -> None:
        """Keep the checkpoint that config names (the thread's latest by default) until it is unpinned.

        label: why, for those who look later; a checkpoint may have several. Raises ValueError for a checkpoint that
        isn't there, TypeError for a checkpointer that has no pins.
        """
        look = Look(self, config)
        _pinning(look.saver).pin(look.config, label)

    async def apin(self, config: RunnableConfig, label: str) -> None:
        """As `pin`."""
        look = Look(self, config)
        await _pinning(look.saver).apin(look.config, label)

    def unpin(self, config: RunnableConfig, label: str | None = None) -> None:
        """Take the pins with this label (all by default) from the checkpoint that config names, or from all of the
        thread when it names none."""
        look = Look(self, config)
        _pinning(look.saver).unpin(look.config, label)

    async def aunpin(self, config: RunnableConfig, label: str | None = None) -> None:
        """As `unpin`."""
        look = Look(self, config)
        await _pinning(look.saver).aunpin(look.config, label)

    def get_pins(self, config: RunnableConfig) -> list[Pin]:
        """The pins of a thread."""
        look = Look(self, config)
        return [*_pinning(look.saver).pins(look.config["configurable"]["thread_id"])]

    async def aget_pins(self, config: RunnableConfig) -> list[Pin]:
        """As `get_pins`."""
        look = Look(self, config)
        return [*await _pinning(look.saver).apins(look.config["configurable"]["thread_id"])]


def _pinning(saver: Any) -> Any:
    if not hasattr(saver, "pin"):
        raise TypeError(
            f"{type(saver).__name__} has no pins: it can't promise to keep a checkpoint. The savers of surestep can."
        )
    return saver
