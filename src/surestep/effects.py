"""Calls that change the world outside the graph: a payment, an e-mail, a ticket.

A function with `@effect` is guarded when a node calls it: it starts only when nothing beside it waits for a decision,
it happens once however often the node runs, it is refused after a cancel, and what may have happened is asked about.
See docs/effects.md.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

from surestep._core.effects import Abort, Completed, Options, Retry
from surestep._core.gates import Approve, Reject
from surestep._drive.effect import Intent, RunningEffect, declared, perform, running_effect
from surestep._policies import RetryPolicy
from surestep._records import Decision, EffectRecord
from surestep.errors import (
    EffectAborted,
    EffectCancelled,
    EffectError,
    EffectFenced,
    EffectHeld,
    EffectUnknown,
)
from surestep.gates import gate

__all__ = (
    "Abort",
    "Approve",
    "Completed",
    "Decision",
    "EffectAborted",
    "EffectCancelled",
    "EffectError",
    "EffectFenced",
    "EffectFunction",
    "EffectHeld",
    "EffectRecord",
    "EffectUnknown",
    "Reject",
    "Retry",
    "RunningEffect",
    "ThreadEffects",
    "current_effect",
    "effect",
    "gate",
)


class ThreadEffects(NamedTuple):
    """What a thread did outside of its graph, or is not to do, and what was decided about it."""

    effects: tuple[EffectRecord, ...]
    decisions: tuple[Decision, ...]


for _class in (Abort, Approve, Completed, Decision, EffectRecord, Reject, Retry, RunningEffect):
    _class.__module__ = __name__  # where they are public, and what they are stored under

P = ParamSpec("P")
T = TypeVar("T", covariant=True)
OnUnknown = Literal["ask", "retry", "fail"] | Callable[..., Any]


class EffectFunction(Protocol[P, T]):
    """A function made an effect. `direct` is the function itself, unguarded."""

    direct: Callable[..., Any]
    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T: ...


@overload
def effect(function: Callable[P, T], /) -> EffectFunction[P, T]: ...


@overload
def effect(
    *,
    key: Callable[..., Any] | None = None,
    name: str | None = None,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
    on_unknown: OnUnknown = "ask",
    compensate: Callable[..., Any] | None = None,
    eager: bool = False,
) -> Callable[[Callable[P, T]], EffectFunction[P, T]]: ...


def effect(
    function: Any = None,
    /,
    *,
    key: Callable[..., Any] | None = None,
    name: str | None = None,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
    on_unknown: OnUnknown = "ask",
    compensate: Callable[..., Any] | None = None,
    eager: bool = False,
) -> Any:
    """Declare that a function (sync, async, or a method) changes the world outside the graph.

    key: a function of the same arguments; its result, as text, is the intent's identity over all threads and all time.
    Without one an effect is known by its place: thread, task, name, and the how manyth call of that name it is.
    name: default the function's; part of its identity, so keep it when you rename the function. retry_policy: tries of
    the body, all under one idempotency key. on_unknown: what to do when it may have happened: "ask" somebody (default),
    "retry", "fail", or a function of the same arguments that asks the callee and returns Completed(result), or None if
    it did not happen. compensate: called when its run is rolled back, with the same arguments by name, and with
    `result` and `runtime` if it has such parameters. eager: don't wait for siblings; open questions hold it all the
    same.

    The call raises EffectHeld, EffectCancelled, EffectFenced, EffectUnknown, ReplayMismatch (the place or key has the
    record of another call), EffectError (not in a run, no ledger), and what the function itself raises.
    """
    policies = (retry_policy,) if isinstance(retry_policy, RetryPolicy) else tuple(retry_policy or ())
    if not callable(on_unknown) and on_unknown not in ("ask", "retry", "fail"):
        raise ValueError(f"on_unknown is 'ask', 'retry', 'fail' or a read-back function, not {on_unknown!r}.")

    def declare(function: Any) -> Any:
        options = Options(name or function.__name__, eager, on_unknown, policies)
        if compensate is not None:
            declared[options.name] = compensate
        return _wrapped(function, options, key)

    return declare if function is None else declare(function)


def current_effect() -> RunningEffect:
    """The effect whose body is running, with its `idempotency_key` for the callee.

    Raises EffectError outside of a body; a function called with `.direct(...)` has none.
    """
    found = running_effect.get()
    if found is None:
        raise EffectError(
            "current_effect() was called outside the body of an effect: there is no idempotency key here."
        )
    return found


def _wrapped(function: Any, options: Options, key: Callable[..., Any] | None) -> Any:
    signature = inspect.signature(function)
    method = _is_method(function, signature)

    def intent_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Intent:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        if method:  # the object that it is a method of says who acts, not what is meant
            given.pop(next(iter(signature.parameters)))
        business = str(key(*args, **kwargs)) if key is not None else None
        read_back = None
        if callable(options.on_unknown):
            ask = options.on_unknown

            def read_back(record: EffectRecord) -> Any:
                return ask(*args, **kwargs)

        return Intent(options, business, given, lambda: function(*args, **kwargs), read_back)

    guarded: Any
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def guarded(*args: Any, **kwargs: Any) -> Any:
            from surestep._drive.effect_async import aperform  # here: it brings asyncio along

            return await aperform(intent_of(args, kwargs))

    else:

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            return perform(intent_of(args, kwargs))

    guarded.direct = function
    return cast(Any, guarded)


def _is_method(function: Any, signature: inspect.Signature) -> bool:
    outer = function.__qualname__.rpartition(".")[0]
    first = next(iter(signature.parameters), "")
    return bool(outer) and not outer.endswith("<locals>") and first in ("self", "cls")
