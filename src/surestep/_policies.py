"""Policies of a node: when to retry it, how long it may run, what may be cached, what tracers record.

Import them from `surestep.types`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from datetime import timedelta

_NEVER_RETRIED = (
    ValueError,
    TypeError,
    ArithmeticError,
    ImportError,
    LookupError,
    NameError,
    SyntaxError,
    RuntimeError,
    ReferenceError,
    StopIteration,
    StopAsyncIteration,
    OSError,
)


def default_retry_on(exc: BaseException) -> bool:
    """True for errors that may go away: lost connections, HTTP 5xx, and whatever is not a sign of a bug in
    the code.

    HTTP errors of httpx and requests count by status (a requests error without a response counts as lost).
    Built-in errors that say the code or its input is wrong (ValueError, TypeError, OSError, ...) are never
    retried.
    """
    if isinstance(exc, ConnectionError):
        return True
    # An error of a library that was never imported cannot be at hand, so nothing is imported to look.
    httpx, requests = sys.modules.get("httpx"), sys.modules.get("requests")
    if httpx is not None and isinstance(exc, httpx.HTTPStatusError):
        return _is_server_error(exc.response)
    if requests is not None and isinstance(exc, requests.HTTPError):
        return exc.response is None or _is_server_error(exc.response)
    return not isinstance(exc, _NEVER_RETRIED)


def _is_server_error(response: Any) -> bool:
    return bool(500 <= response.status_code < 600)


class RetryPolicy(NamedTuple):
    """How often and how long to wait before a failed node is tried again.

    The wait before try n+1 is `min(max_interval, initial_interval * backoff_factor ** (n - 1))` seconds, plus
    up to a second at random with `jitter`. `max_attempts` counts the first try. `retry_on` is an exception
    class, a sequence of them, or a function of the exception.
    """

    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    max_attempts: int = 3
    jitter: bool = True
    retry_on: type[Exception] | Sequence[type[Exception]] | Callable[[Exception], bool] = default_retry_on


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeoutPolicy:
    """How long one attempt of a node may take, in seconds or as timedelta. Async nodes only.

    `run_timeout` limits the whole attempt, `idle_timeout` the time without progress. Progress is any write,
    streamed output or `runtime.heartbeat()`; with `refresh_on="heartbeat"` only the latter.
    """

    run_timeout: float | timedelta | None = None
    idle_timeout: float | timedelta | None = None
    refresh_on: Literal["auto", "heartbeat"] = "auto"

    @classmethod
    def coerce(cls, value: float | timedelta | TimeoutPolicy | None) -> TimeoutPolicy | None:
        """The policy with both limits as float seconds; None when nothing is limited.

        A bare number or timedelta is the run timeout. Raises ValueError for limits that are not greater than
        0 and for an unknown `refresh_on`.
        """
        if value is None:
            return None
        policy = value if isinstance(value, cls) else cls(run_timeout=value)  # type: ignore[arg-type]
        if policy.refresh_on not in ("auto", "heartbeat"):
            raise ValueError(f"refresh_on must be 'auto' or 'heartbeat', got {policy.refresh_on!r}")
        run = _seconds(policy.run_timeout, "run_timeout")
        idle = _seconds(policy.idle_timeout, "idle_timeout")
        if run is None and idle is None:
            return None
        return cls(run_timeout=run, idle_timeout=idle, refresh_on=policy.refresh_on)


def _seconds(limit: float | timedelta | None, field: str) -> float | None:
    if limit is None:
        return None
    total = getattr(limit, "total_seconds", None)
    seconds = float(total() if total is not None else limit)  # type: ignore[arg-type]
    if seconds <= 0:
        raise ValueError(f"{field} must be greater than 0, got {limit!r}")
    return seconds


def default_cache_key(*args: Any, **kwargs: Any) -> bytes:
    """Bytes that are equal for equal arguments, whatever the order of their mappings and sets.

    Arguments must be picklable. Arrays (anything with `tobytes`) count by type, dtype, shape and content.
    """
    return _pickled((_freeze(args, 0), _freeze(kwargs, 0)))


_MAX_DEPTH = 10


def _freeze(value: Any, depth: int) -> Any:
    """`value` with mappings and sets in a fixed order, so that equal values pickle alike."""
    if depth > _MAX_DEPTH or isinstance(value, (str, bytes)):
        return value
    if isinstance(value, Mapping):
        items = [(_freeze(k, depth + 1), _freeze(v, depth + 1)) for k, v in value.items()]
        return "mapping", tuple(sorted(items, key=lambda item: _pickled(item[0])))
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple(_freeze(v, depth + 1) for v in value)
    if isinstance(value, (set, frozenset)):
        return "set", tuple(sorted((_freeze(v, depth + 1) for v in value), key=_pickled))
    if hasattr(value, "tobytes"):
        kind, dtype = type(value).__name__, getattr(value, "dtype", "")
        return kind, str(dtype), value.tobytes(), getattr(value, "shape", None)
    return value


def _pickled(value: Any) -> bytes:
    import io
    import pickle

    # Without the memo: it would tell apart equal values by whether they share objects.
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5, fix_imports=False)
    pickler.fast = True
    try:
        pickler.dump(value)
    except (ValueError, RecursionError):  # an object that contains itself needs the memo
        return pickle.dumps(value, protocol=5, fix_imports=False)
    return buffer.getvalue()


KeyFuncT = TypeVar("KeyFuncT", bound=Callable[..., str | bytes])


@dataclass(frozen=True, kw_only=True, slots=True)
class CachePolicy(Generic[KeyFuncT]):
    """What makes two inputs of a node the same (`key_func`) and how many seconds a result lives (`ttl`, None:
    for ever)."""

    key_func: KeyFuncT = default_cache_key  # type: ignore[assignment]
    ttl: int | None = None


class CacheKey(NamedTuple):
    """Where the result of a task is cached: namespace, key, and seconds to live (None: for ever)."""

    ns: tuple[str, ...]
    key: str
    ttl: int | None


def omit_payload(_value: Any) -> dict[str, Any]:
    """An empty dict, whatever is given: a TracePolicy function that hides the payload."""
    return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class TracePolicy:
    """What tracers record for the node's own run instead of its input and output. The node itself is not
    affected.

    Each function gets the payload and returns what to record; an exception in it is logged and the payload
    recorded as it is.
    """

    process_inputs: Callable[[Any], Any] | None = None
    process_outputs: Callable[[Any], Any] | None = None
