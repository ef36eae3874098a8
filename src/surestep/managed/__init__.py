"""Managed values: computed when a node reads its input, never stored."""

from __future__ import annotations

from surestep.managed.is_last_step import IsLastStep, RemainingSteps

__all__ = ("IsLastStep", "RemainingSteps")
