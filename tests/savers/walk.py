"""Walks through everything a saver has stored in a database: which pages are referred to, and which are there."""

from __future__ import annotations

from typing import Any

from surestep._sql import pages, rows, state
from surestep._sql.statement import Steps


def check_pages(saver: Any) -> None:
    """No orphaned and no missing page, and no row that builds on a row which isn't there."""
    runner = getattr(saver, "runner", None)
    saver = getattr(saver, "saver", saver)
    open = saver._desk.open

    def asked(sql: str) -> Steps[list[tuple[Any, ...]]]:
        return [*map(tuple, (yield (sql, ())))]

    def run(sql: str) -> list[tuple[Any, ...]]:
        steps = asked(sql)
        found: list[tuple[Any, ...]] = runner.run(saver._runner.aread(steps)) if runner else saver._runner.read(steps)
        return found

    used: dict[str, list[Any]] = {}
    there: dict[tuple[str, str, str], int] = {}
    chained = []
    sql = "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_id, depth, state, led_here FROM surestep_checkpoints"
    for thread, ns, id, parent, depth, data, led in run(sql):
        there[thread, ns, id] = depth
        if depth:
            chained.append((thread, ns, parent))
        used.setdefault(thread, []).extend(state.places(open(data)))
        for row in rows.unpack_writes(open(led)) if led else ():
            used[thread].append(pages.place_of_write(row[3]))
    for thread, value in run("SELECT thread_id, value FROM surestep_writes"):
        used.setdefault(thread, []).append(pages.place_of_write(open(value)))
    assert set(chained) <= there.keys()
    wanted = {
        (thread, log, page)
        for thread, places in used.items()
        for log, first, beyond in pages.wanted(places)
        for page in range(first, beyond)
    }
    assert set(run("SELECT thread_id, log, page FROM surestep_pages")) == wanted
