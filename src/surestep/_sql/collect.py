"""Collecting pages: those that no row of a thread refers to."""

from __future__ import annotations

from collections.abc import Iterable

from surestep._sql import pages, queries, state
from surestep._sql.pages import Place
from surestep._sql.reading import Desk
from surestep._sql.rows import unpack_writes
from surestep._sql.statement import Many, Steps


def collect(desk: Desk, thread_id: str) -> Steps[None]:
    """Delete the pages of a thread that nothing refers to any more."""
    stored = yield (queries.PAGE_KEYS, (thread_id,))
    unused = {(log, page) for log, page in stored}
    if unused:
        found = yield (queries.REFERENCES, (thread_id,))
        for data, led in found:
            unused -= _pages_of(state.places(desk.open(data)))
            if led is not None:
                unused -= _pages_of(pages.place_of_write(row[3]) for row in unpack_writes(desk.open(led)))
        found = yield (queries.WRITES_OF_THREAD, (thread_id,))
        unused -= _pages_of(pages.place_of_write(desk.open(row[5])) for row in found)
    if unused:
        yield Many(queries.DELETE_PAGE, [(thread_id, *key) for key in unused])


def _pages_of(places: Iterable[Place]) -> set[tuple[int, int]]:
    return {(log, page) for log, first, beyond in pages.wanted(places) for page in range(first, beyond)}
