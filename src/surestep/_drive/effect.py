"""The node's side of an effect: ask whether it may start, run its body, and tell what came of it.

Written once, as generators of `Post`, `Do` and `Sleep`; run by one runner for threads and one for event loops.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from surestep._calls import driven
from surestep._context import current_task
from surestep._core.digest import digest
from surestep._core.effects import DONE, FAILED, UNKNOWN, Completed, EffectCall, Options, Outcome, Retry, Verdict
from surestep._core.events import Asked, Landed
from surestep._core.ids import effect_id, keyed_effect_id
from surestep._core.retry import delay_before_retry
from surestep._records import EffectRecord
from surestep.errors import EffectError, EffectUnknown, GraphBubbleUp

if TYPE_CHECKING:
    from surestep._drive.context import TaskContext


class Post(NamedTuple):
    """Send an event to the core; the answer to its call comes back."""

    event: Asked | Landed

    def answer(self, context: TaskContext) -> Any:
        return hear(context, self.event)

    async def aanswer(self, context: TaskContext) -> Any:
        from surestep._drive.effect_async import ahear  # here: it brings asyncio along

        return await ahear(context, self.event)


class Do(NamedTuple):
    """Call user code."""

    function: Callable[[], Any]

    def answer(self, context: TaskContext) -> Any:
        return self.function()

    async def aanswer(self, context: TaskContext) -> Any:
        found = self.function()
        return await found if hasattr(found, "__await__") else found


class Sleep(NamedTuple):
    """Wait before the next try, in seconds."""

    seconds: float

    def answer(self, context: TaskContext) -> None:
        time.sleep(self.seconds)

    async def aanswer(self, context: TaskContext) -> None:
        from asyncio import sleep

        await sleep(self.seconds)


Steps = Generator[Any, Any, Any]  # yields a Post, a Do or a Sleep


class RunningEffect(NamedTuple):
    """What the body of an effect may know of itself. `idempotency_key` is stable over replay, retry and restart, and
    different for a different intent: give it to the callee. `attempt`: from 1, how often the body was started."""

    idempotency_key: str
    name: str
    key: str | None
    thread_id: str
    attempt: int


running_effect: ContextVar[RunningEffect | None] = ContextVar("surestep_effect", default=None)


declared: dict[str, Callable[..., Any]] = {}
"""How effects are undone, by name: those that were declared with `compensate=`."""


class Intent(NamedTuple):
    """One call of an effect, as its wrapper hands it over. `arguments`: what is stored and compared; `body`: the call
    itself; `read_back`: asks the callee whether it happened."""

    options: Options
    key: str | None
    arguments: Any
    body: Callable[[], Any]
    read_back: Callable[[EffectRecord], Any] | None = None


# what happens, in order


def asked(call: EffectCall, intent: Intent) -> Steps:
    """Wait until the effect may start; the verdict: go, or replay what is on record."""
    return (yield from _read_back(call, intent, (yield Post(Asked(call)))))


def _read_back(call: EffectCall, intent: Intent, verdict: Verdict) -> Steps:
    """The verdict, once the callee has said whether it happened, if that is to be known first."""
    if verdict.kind == "read back":
        assert intent.read_back is not None
        found = yield Do(partial(intent.read_back, verdict.value))
        call.resolution = _as_read(found, call)
        verdict = yield Post(Asked(call))
    return verdict


def _as_read(found: Any, call: EffectCall) -> Completed | Retry:
    if isinstance(found, (Completed, Retry)):
        return found
    if found is None:
        return Retry()
    raise TypeError(
        f"The read-back function of effect '{call.name}' returned {found!r}. It returns Completed(result) if the "
        "effect "
        "happened and None if it did not, and raises if it can't tell."
    )


def carried_out(call: EffectCall, intent: Intent, me: RunningEffect, verdict: Verdict) -> Steps:
    """Run the body, tell what came of it, and wait until the whole wave has landed; its result."""
    while verdict.kind == "go":
        outcome = yield from _tried(call, intent, me._replace(attempt=verdict.attempt))
        verdict = yield from _read_back(call, intent, (yield Post(Landed(call, outcome))))
    return verdict.value


def _tried(call: EffectCall, intent: Intent, me: RunningEffect) -> Steps:
    """The body, tried as often as its retry policy says, always under the same idempotency key."""
    number = 1
    while True:
        running_effect.set(me)
        try:
            return Outcome(DONE, (yield Do(intent.body)))
        except EffectUnknown as said:
            said.effect_id = said.effect_id or call.id
            return Outcome(UNKNOWN, error=said)
        except GraphBubbleUp as bubble:
            return Outcome(FAILED, error=_no_way_out(call, bubble))
        except Exception as error:
            delay = delay_before_retry(intent.options.retry, error, number)
            if delay is None:
                return Outcome(FAILED, error=error)
        except BaseException as error:
            doubt = EffectUnknown(f"The body of effect '{call.name}' was torn down ({type(error).__name__}).")
            doubt.__cause__ = error
            return Outcome(UNKNOWN, error=doubt)
        finally:
            running_effect.set(None)
        number += 1
        yield Sleep(delay)


def _no_way_out(call: EffectCall, bubble: GraphBubbleUp) -> EffectError:
    error = EffectError(
        f"The body of effect '{call.name}' raised {type(bubble).__name__}: an effect can't pause or steer its graph. "
        "Ask "
        "in front of the effect, with gate(), or return what the node needs to go on."
    )
    error.__cause__ = bubble
    return error


# calls


def call_of(context: TaskContext, intent: Intent) -> tuple[EffectCall, RunningEffect]:
    """The call of an effect by the task that is running here."""
    owner = context
    while owner.env.saver is None and owner.env.parent is not None:
        owner = owner.env.parent  # a graph that keeps nothing starts over when resumed: its effects are its task's
    name = intent.options.name
    _check_ledger(owner, name)
    thread_id = str(owner.env.config["configurable"].get("thread_id"))
    if intent.key is None:
        where = name if owner is context else f"{context.env.ns}|{context.task.name}|{name}"
        id = effect_id(thread_id, owner.task.id, name, owner.next_effect(where))
    else:
        id = keyed_effect_id(name, intent.key)
    call = EffectCall(
        context.task,
        context.attempt,
        id,
        intent.options,
        owner=owner.task.id,
        key=intent.key,
        position=owner.next_number("effects"),
        digest=digest(intent.arguments),
        arguments=intent.arguments,
    )
    return call, RunningEffect(id, name, intent.key, thread_id, 1)


def _check_ledger(owner: TaskContext, name: str) -> None:
    if owner.env.saver is None:
        raise EffectError(
            f"Effect '{name}' was called in a run that keeps nothing: there is no ledger to be safe with. Compile the "
            "graph with a saver, e.g. compile(checkpointer=SqliteSaver...), or call it unguarded with .direct(...)."
        )
    if not owner.env.run.request.ledger:
        kind = type(owner.env.saver)
        raise EffectError(
            f"Effect '{name}' needs a ledger, and {kind.__module__}.{kind.__qualname__} has none: it can't promise "
            "that "
            "an effect happens once, is held beside a decision, or is fenced after a cancel. Use a saver of "
            "surestep's, "
            "or call it unguarded with .direct(...)."
        )


def task_of(name: str) -> TaskContext:
    """The running task, or an error that says why an effect can't be called here."""
    context: TaskContext | None = current_task.get()
    if context is None:
        raise EffectError(
            f"Effect '{name}' was called outside of a run, so nothing guards it. In a node's own threads, run it "
            "with the "
            "node's context (contextvars.copy_context().run, asyncio.to_thread). In scripts and unit tests, call "
            f"{name}.direct(...)."
        )
    if (inside := running_effect.get()) is not None:
        raise EffectError(
            f"Effect '{name}' was called inside the body of effect '{inside.name}'. Make it one effect (call "
            f"{name}.direct(...) there), or call them one after the other in the node."
        )
    return context


# runners


def perform(intent: Intent) -> Any:
    """Call an effect from synchronous code."""
    context = task_of(intent.options.name)
    driver = context.env.driver
    if driver.env.is_async and driver.thread == threading.get_ident():
        raise EffectError(
            f"Effect '{intent.options.name}' is a synchronous function, called on the event loop: it would block the "
            "run "
            "that it waits for. Await asyncio.to_thread(...) around it, make it an async function, or the node a "
            "sync one."
        )
    call, me = call_of(context, intent)
    verdict = driven(asked(call, intent), lambda wanted: wanted.answer(context))
    if verdict.kind == "replay":
        return verdict.value
    return driven(carried_out(call, intent, me, verdict), lambda wanted: wanted.answer(context))


def hear(context: TaskContext, event: Asked | Landed) -> Any:
    """Post an event and wait, on this thread, for the answer."""
    driver = context.env.driver
    future = driver.post(context, event)
    with driver.aside(context):
        return future.result()
