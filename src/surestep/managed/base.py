"""What a managed value is: a class with a static `get` that computes the value from the task's scratchpad."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, Protocol, TypeAlias, TypeGuard, TypeVar

__all__ = ("ManagedValueMapping", "ManagedValueSpec")

V = TypeVar("V")


class StepCounter(Protocol):
    """The part of a scratchpad that managed values read: the current step and the one the run must stop
    at."""

    @property
    def step(self) -> int: ...

    @property
    def stop(self) -> int: ...


class ManagedValue(ABC, Generic[V]):
    """Base of managed values. Subclass it and annotate a state key with `Annotated[type, Subclass]`."""

    __slots__ = ()

    @staticmethod
    @abstractmethod
    def get(scratchpad: StepCounter) -> Any:
        """The value for the task that `scratchpad` belongs to."""


ManagedValueSpec: TypeAlias = type[ManagedValue[Any]]
ManagedValueMapping: TypeAlias = dict[str, ManagedValueSpec]


def is_managed_value(value: Any) -> TypeGuard[ManagedValueSpec]:
    """True when `value` is a class derived from ManagedValue."""
    return isinstance(value, type) and issubclass(value, ManagedValue)
