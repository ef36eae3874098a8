"""A planned task with everything it takes to run it. Import it from `surestep.types`."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surestep.types import CacheKey, RetryPolicy, RunnableConfig, TimeoutPolicy


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PregelExecutableTask:
    """A task with everything it takes to run it."""

    name: str
    input: Any
    proc: Any
    writes: deque[tuple[str, Any]]
    config: RunnableConfig
    triggers: Sequence[str]
    retry_policy: Sequence[RetryPolicy]
    cache_key: CacheKey | None
    id: str
    path: tuple[str | int | tuple[Any, ...], ...]
    writers: Sequence[Any] = ()
    subgraphs: Sequence[Any] = ()
    timeout: TimeoutPolicy | None = None


PregelExecutableTask.__module__ = "surestep.types"
