"""Whether a failed attempt is tried again, and after how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def delay_before_retry(policies: Sequence[Any], error: Exception, attempt: int) -> float | None:
    """Seconds until the next attempt, or None when there is none. The first policy that matches decides."""
    from random import uniform  # here: it brings hashlib along, and most runs need neither

    for policy in policies:
        if _matches(policy.retry_on, error):
            if attempt >= policy.max_attempts:
                return None
            wait = min(policy.max_interval, policy.initial_interval * policy.backoff_factor ** (attempt - 1))
            return float(wait + uniform(0, 1)) if policy.jitter else float(wait)
    return None


def _matches(retry_on: Any, error: Exception) -> bool:
    if isinstance(retry_on, type) and issubclass(retry_on, Exception):
        return isinstance(error, retry_on)
    if isinstance(retry_on, Sequence):
        return isinstance(error, tuple(retry_on))
    if callable(retry_on):
        return bool(retry_on(error))
    raise TypeError("RetryPolicy.retry_on must be an exception class, a sequence of them, or a function of the error.")
