"""How many steps a run has left, as values a node can ask for in its input."""

from __future__ import annotations

from typing import Annotated

from surestep.managed.base import ManagedValue, StepCounter

__all__ = ("IsLastStep", "RemainingSteps", "RemainingStepsManager")


class IsLastStepManager(ManagedValue[bool]):
    """Whether this is the last step that `recursion_limit` allows."""

    @staticmethod
    def get(scratchpad: StepCounter) -> bool:
        """True when the run must have stopped after this step."""
        return scratchpad.step == scratchpad.stop - 1


class RemainingStepsManager(ManagedValue[int]):
    """How many steps `recursion_limit` leaves, this one included."""

    @staticmethod
    def get(scratchpad: StepCounter) -> int:
        """The number of steps left, counting the current one."""
        return scratchpad.stop - scratchpad.step


IsLastStep = Annotated[bool, IsLastStepManager]
"""State annotation: True in the last step before the recursion limit ends the run."""

RemainingSteps = Annotated[int, RemainingStepsManager]
"""State annotation: the number of steps left before the recursion limit ends the run."""
