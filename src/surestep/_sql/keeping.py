"""Pins and sweeps, as generators of statements; the rules are those of all savers (checkpoint/base/_retention.py)."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from surestep._constants import INTERRUPT
from surestep._sql import forget, queries
from surestep._sql.collect import collect
from surestep._sql.reading import Desk, get_tuple
from surestep._sql.statement import Many, Steps
from surestep._sql.transaction import Transaction
from surestep._sql.turns import take_turn
from surestep.checkpoint.base._retention import (
    Pin,
    Place,
    Retention,
    Swept,
    is_due,
    is_open,
    kept,
    no_such_checkpoint,
)
from surestep.checkpoint.base._shared import address_of

if TYPE_CHECKING:
    from surestep.types import RunnableConfig


def pin(desk: Desk, config: RunnableConfig, label: str) -> Steps[None]:
    """Keep the addressed checkpoint, or the latest."""
    thread_id, ns, id = address_of(config)
    yield from take_turn(desk.dialect, thread_id)
    found = yield (queries.EXISTS, (thread_id, ns, id)) if id else (queries.HEAD_ID, (thread_id, ns))
    if not found:
        raise no_such_checkpoint(config)
    yield (queries.PUT_PIN, (thread_id, ns, found[0][0], label))


def unpin(config: RunnableConfig, label: str | None) -> Steps[None]:
    """Take pins away: those with the label, or all; from the addressed checkpoint, or from all of the thread."""
    thread_id, ns, id = address_of(config)
    found = yield (queries.PINS, (thread_id,))
    gone = [pin for pin in map(Pin._make, found) if label in (None, pin.label) and (id is None or pin[:2] == (ns, id))]
    yield Many(queries.DELETE_PIN, [(thread_id, *pin) for pin in gone])


def pins(thread_id: str) -> Steps[list[Pin]]:
    """The pins of a thread."""
    found = yield (queries.PINS, (thread_id,))
    return [Pin(*row) for row in found]


def sweep(
    desk: Desk, retention: Retention, now: float | None, after: str | None, dry_run: bool
) -> Generator[Transaction, Any, Swept]:
    """A sweep, each thread that goes in a transaction of its own: it holds nobody up."""
    now = time.time() if now is None else now
    page: Sequence[Sequence[Any]] = yield Transaction(_page(after or "", retention.limit + 1), writes=False)
    rest, page = page[retention.limit :], page[: retention.limit]
    new = [(thread_id, now) for thread_id, _, first_seen in page if first_seen is None]
    if new and not dry_run and retention.strategy == "delete" and retention.ttl is not None:
        yield Transaction(_note(new), writes=True)
    threads = checkpoints = 0
    for thread_id, latest, first_seen in page:
        first_seen = now if first_seen is None and not dry_run else first_seen
        if is_due(retention, now, first_seen, latest):
            steps = _sweep_thread(desk, thread_id, retention, now, dry_run)
            gone = yield Transaction(steps, writes=not dry_run)
            threads, checkpoints = threads + gone[0], checkpoints + gone[1]
    return Swept(len(page), threads, checkpoints, page[-1][0] if rest else None)


def _page(after: str, limit: int) -> Steps[Sequence[Sequence[Any]]]:
    """Threads in order: (id, greatest checkpoint id, when a sweep first saw it)."""
    return (yield (queries.THREADS, (after, limit)))


def _note(new: Sequence[tuple[str, float]]) -> Steps[None]:
    yield Many(queries.FIRST_SEEN, new)


def _sweep_thread(
    desk: Desk, thread_id: str, retention: Retention, now: float, dry_run: bool
) -> Steps[tuple[int, int]]:
    """How many threads (0 or 1) and checkpoints go."""
    if not dry_run:
        yield from take_turn(desk.dialect, thread_id)
    heads: list[Place] = [(ns, id) for ns, id in (yield (queries.HEADS, (thread_id,)))]
    latest = max((id for _, id in heads), default="")
    if not retention.open_threads:
        config: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
        if is_open((yield from get_tuple(desk, config))):
            return 0, 0
    if retention.strategy == "keep_latest" and not is_due(retention, now, None, latest):
        return 0, 0  # it has moved since the page was read
    pinned = [(pin.checkpoint_ns, pin.checkpoint_id) for pin in (yield from pins(thread_id))]
    decided: list[Place] = [(ns, id) for ns, id in (yield (queries.WITH_WRITE, (thread_id, INTERRUPT)))]
    stays = kept(retention, now, heads, pinned, decided)
    gone = 0
    for ns, _ in heads:
        stored = yield (queries.IDS, (thread_id, ns))
        doomed = {id for (id,) in stored if (ns, id) not in stays}
        gone += len(doomed)
        if doomed and stays and not dry_run:
            yield from forget.drop(desk, thread_id, ns, doomed)
    if gone and stays and not dry_run:
        yield from collect(desk, thread_id)
    if not stays and not dry_run:
        yield from forget.delete_thread(desk, thread_id)
    return int(not stays), gone
