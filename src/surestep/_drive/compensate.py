"""Rolling a run back: what it did outside of the graph is undone in reverse order, where it was declared how."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from surestep._core.digest import digest
from surestep._core.effects import ADMITTED, DONE, FAILED, moved
from surestep._core.ids import keyed_effect_id
from surestep._drive.effect import Do, RunningEffect, declared, running_effect
from surestep._drive.tenure import BEAT_SECONDS, LEASE_SECONDS, Pause, Saver, Steps
from surestep._records import Decision, EffectRecord
from surestep.checkpoint.base._leases import Lease
from surestep.runtime import Runtime

log = logging.getLogger("surestep")


def compensate(rolled_back: Lease, now: Callable[[], str], runtime: Runtime[Any]) -> Steps:
    """Undo the effects of the run that held this lease. Each is undone once: that is an effect by itself.

    runtime: of the run that takes its place.
    """
    done = yield from _done_by(rolled_back)
    for record in reversed(done):
        undo = declared.get(record.name)
        if undo is None:
            reason = "its declaration doesn't say how, or is not loaded here"
            note = Decision(record.thread_id, record.id, "not compensated", now(), reason=reason)
            yield Saver("decide", ([note],))
        else:
            yield from _undo(record, undo, now, runtime)


def _done_by(lease: Lease) -> Steps:
    """What the run did; an effect of it that is under way is waited for."""
    since = datetime.fromtimestamp(lease.taken_at, UTC).isoformat(timespec="microseconds")
    waited = 0.0
    while True:
        found = yield Saver("get_effects", (lease.thread_id,))
        mine = [record for record in found if record.asked_at >= since]
        if waited >= LEASE_SECONDS or not any(record.state == ADMITTED for record in mine):
            return [record for record in mine if record.state == DONE]
        yield Pause(BEAT_SECONDS / 10)
        waited += BEAT_SECONDS / 10


def _undo(record: EffectRecord, undo: Callable[..., Any], now: Callable[[], str], runtime: Runtime[Any]) -> Steps:
    own = EffectRecord(
        keyed_effect_id("compensate", record.id),
        record.thread_id,
        f"compensate {record.name}",
        ADMITTED,
        checkpoint_id=record.checkpoint_id,
        business_key=record.id,
        digest=digest(record.id),
        attempt=1,
        arguments=record.arguments,
        asked_at=now(),
        changed_at=now(),
    )
    (there,) = yield Saver("move_effects", ([moved("admit", own)],))
    if there is not None:
        return
    known = {"result": record.result, "runtime": runtime}
    wanted = known.keys() & inspect.signature(undo).parameters
    arguments = {**(record.arguments or {}), **{name: known[name] for name in wanted}}
    running_effect.set(RunningEffect(own.id, own.name, own.business_key, own.thread_id, 1))
    try:
        result = yield Do(lambda: undo(**arguments))
        outcome = moved("land", own._replace(state=DONE, result=result, changed_at=now()))
    except Exception as error:
        log.warning("Effect '%s' could not be compensated: %s: %s", record.name, type(error).__name__, error)
        outcome = moved("fail", own._replace(state=FAILED, result=error, changed_at=now()))
    finally:
        running_effect.set(None)
    yield Saver("move_effects", ([outcome],))
