"""Encrypting everything with the current key: after a key was changed, or a cipher was given to a database in use."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from surestep._sql import queries
from surestep._sql.reading import Desk
from surestep._sql.sealing import label
from surestep._sql.statement import Many, Steps
from surestep._sql.transaction import Transaction

_THREADS = 100


def reencrypt(desk: Desk) -> Generator[Transaction, Any, int]:
    """Thread by thread, each in a transaction of its own; how many rows were rewritten."""
    current = label(desk.seal(b"\0"))
    after, rewritten = "", 0
    while True:
        page: Sequence[Sequence[Any]] = yield Transaction(_threads(after), writes=False)
        for thread_id, *_ in page:
            rewritten += yield Transaction(_thread(desk, thread_id, current), writes=True)
        if len(page) < _THREADS:
            return rewritten
        after = page[-1][0]


def _threads(after: str) -> Steps[Sequence[Sequence[Any]]]:
    return (yield (queries.THREADS, (after, _THREADS)))


def _thread(desk: Desk, thread_id: str, current: bytes) -> Steps[int]:
    def again(column: bytes | None) -> bytes | None:
        return None if column is None else desk.seal(desk.open(column))

    def old(*columns: bytes | None) -> bool:
        return any(column is not None and label(column) != current for column in columns)

    found = yield (queries.COLUMNS_OF_THREAD, (thread_id,))
    rows = [(*map(again, columns), thread_id, ns, id) for ns, id, *columns in found if old(*columns)]
    yield Many(queries.SET_COLUMNS, rows)
    found = yield (queries.PAGES_OF_THREAD, (thread_id,))
    pages = [(again(data), thread_id, log, page) for log, page, data in found if old(data)]
    yield Many(queries.SET_PAGE, pages)
    found = yield (queries.WRITES_OF_THREAD, (thread_id,))
    writes = [(again(row[5]), thread_id, *row[:4]) for row in found if old(row[5])]
    yield Many(queries.SET_VALUE, writes)
    return len(rows) + len(pages) + len(writes)
