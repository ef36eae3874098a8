"""Deleting, pruning and copying: what is left has all of its pages, and no page is left that nothing refers to."""

from __future__ import annotations

from collections.abc import Sequence
from random import getrandbits

from surestep._sql import ledger, pages, queries, state
from surestep._sql.collect import collect
from surestep._sql.ops import make_whole, unride
from surestep._sql.reading import Desk
from surestep._sql.rows import split
from surestep._sql.statement import Many, Steps
from surestep._sql.turns import take_turn


def delete_thread(desk: Desk, thread_id: str) -> Steps[None]:
    """Delete everything of a thread."""
    yield from take_turn(desk.dialect, thread_id)
    for sql in (*queries.DELETE_THREAD, *ledger.FORGET):
        yield (sql, (thread_id,))


def delete_for_runs(desk: Desk, run_ids: Sequence[str]) -> Steps[None]:
    """Delete the checkpoints of these runs, their writes, and the values that only they had."""
    wanted = set(run_ids)
    found = yield (queries.ALL_METADATA, ())
    doomed: dict[str, dict[str, set[str]]] = {}
    for thread_id, ns, id, metadata in found:
        if desk.serde.loads_typed(split(desk.open(metadata))).get("run_id") in wanted:
            doomed.setdefault(thread_id, {}).setdefault(ns, set()).add(id)
    yield from take_turn(desk.dialect, *doomed)
    for thread_id, spaces in doomed.items():
        for ns, ids in spaces.items():
            yield from drop(desk, thread_id, ns, ids)
        yield from collect(desk, thread_id)


def prune(desk: Desk, thread_ids: Sequence[str], strategy: str) -> Steps[None]:
    """Keep the latest checkpoint of each namespace of the threads and what is pinned, or nothing."""
    yield from take_turn(desk.dialect, *thread_ids)
    for thread_id in thread_ids:
        if strategy == "delete":
            yield from delete_thread(desk, thread_id)
            continue
        pinned = {(ns, id) for ns, id, _ in (yield (queries.PINS, (thread_id,)))}
        found = yield (queries.HEADS, (thread_id,))
        for ns, head in found:
            earlier = yield (queries.EARLIER, (thread_id, ns, head))
            yield from drop(desk, thread_id, ns, {id for (id,) in earlier if (ns, id) not in pinned})
        yield from collect(desk, thread_id)


def drop(desk: Desk, thread_id: str, ns: str, doomed: set[str]) -> Steps[None]:
    """Delete checkpoints of a namespace, their writes and pins."""
    riders = yield (queries.RIDERS, (thread_id, ns))
    yield from unride(desk, thread_id, ns, [row for row in riders if row[0] in doomed and row[1] not in doomed])
    orphans = [(thread_id, ns, row[0]) for row in riders if row[0] not in doomed and row[1] in doomed]
    yield Many(queries.FORGET_LED, orphans)
    chained = yield (queries.CHAINED, (thread_id, ns))
    yield from make_whole(desk, thread_id, ns, [id for id, parent in chained if id not in doomed and parent in doomed])
    for sql in (queries.DELETE_CHECKPOINT, queries.DELETE_WRITES, queries.FORGET_PINS):
        yield Many(sql, [(thread_id, ns, id) for id in doomed])


def copy_thread(desk: Desk, source: str, target: str) -> Steps[None]:
    """Copy everything of a thread to another one; what is there under the same keys is replaced."""
    if source == target:
        return
    yield from take_turn(desk.dialect, source, target)
    seal, open = desk.seal, desk.open
    for thread_id in (source, target):
        riders = yield (queries.RIDERS_OF_THREAD, (thread_id,))
        for ns, *rider in riders:
            yield from unride(desk, thread_id, ns, [rider])
    spaces = yield (queries.HEADS, (target,))
    for ns, _ in spaces:
        chained = yield (queries.CHAINED, (target, ns))
        yield from make_whole(desk, target, ns, [id for id, _ in chained])
    found = yield (queries.LOGS, (target,))
    taken = {log for (log,) in found}
    found = yield (queries.LOGS, (source,))
    logs = {log: _free(log, taken) for (log,) in found}
    for log, new in logs.items():
        yield (queries.COPY_LOG, (target, new, source, log))
    found = yield (queries.ROWS_OF_THREAD, (source,))
    yield Many(
        queries.PUT,
        [
            (target, *key, seal(state.moved(open(data), lambda place: pages.moved(place, logs))), metadata, None)
            for *key, data, metadata in found
        ],
    )
    found = yield (queries.WRITES_OF_THREAD, (source,))
    moved = [(target, *row[:5], seal(pages.moved_write(open(row[5]), logs)), row[6]) for row in found]
    yield Many(queries.COPY_WRITE, moved)
    yield (queries.COPY_PINS, (target, source))
    yield from collect(desk, target)


def _free(log: int, taken: set[int]) -> int:
    while log in taken:
        log = getrandbits(31)
    taken.add(log)
    return log
