"""Encrypting everything with the current key: after a key was changed, or a cipher was given to a database in use."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from surestep._sql import ledger, queries
from surestep._sql.reading import Desk
from surestep._sql.sealing import label
from surestep._sql.statement import Many, Steps
from surestep._sql.transaction import Transaction
from surestep._sql.turns import take_turn

_THREADS = 100
_EFFECTS = 500


def reencrypt(desk: Desk) -> Generator[Transaction, Any, int]:
    """Thread by thread, then effects, page by page, each in a transaction of its own; how many rows were rewritten."""
    again = _Again(desk)
    after, rewritten = "", 0
    while True:
        page: Sequence[Sequence[Any]] = yield Transaction(_threads(after), writes=False)
        for thread_id, *_ in page:
            rewritten += yield Transaction(_thread(thread_id, again), writes=True)
        if len(page) < _THREADS:
            break
        after = page[-1][0]
    last: str | None = ""
    while last is not None:
        last, done = yield Transaction(_effects(last, again), writes=True)
        rewritten += done
    return rewritten


def _threads(after: str) -> Steps[Sequence[Sequence[Any]]]:
    return (yield (queries.THREADS, (after, _THREADS)))


class _Again:
    """Seals columns with the current key, and tells which are not."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.current = label(desk.seal(b"\0"))

    def __call__(self, column: bytes | None) -> bytes | None:
        return None if column is None else self.desk.seal(self.desk.open(column))

    def wanted(self, *columns: bytes | None) -> bool:
        return any(column is not None and label(column) != self.current for column in columns)


def _thread(thread_id: str, again: _Again) -> Steps[int]:
    yield from take_turn(again.desk.dialect, thread_id)
    found = yield (queries.COLUMNS_OF_THREAD, (thread_id,))
    rows = [(*map(again, columns), thread_id, ns, id) for ns, id, *columns in found if again.wanted(*columns)]
    yield Many(queries.SET_COLUMNS, rows)
    found = yield (queries.PAGES_OF_THREAD, (thread_id,))
    pages = [(again(data), thread_id, log, page) for log, page, data in found if again.wanted(data)]
    yield Many(queries.SET_PAGE, pages)
    found = yield (queries.WRITES_OF_THREAD, (thread_id,))
    writes = [(again(row[5]), thread_id, *row[:4]) for row in found if again.wanted(row[5])]
    yield Many(queries.SET_VALUE, writes)
    found = yield (ledger.SEALED_REASONS, (thread_id,))
    reasons = [(again(reason), thread_id, *key) for *key, reason in found if again.wanted(reason)]
    yield Many(ledger.SEAL_REASON_AGAIN, reasons)
    return len(rows) + len(pages) + len(writes) + len(reasons)


def _effects(after: str, again: _Again) -> Steps[tuple[str | None, int]]:
    """The last effect of a page, None if there are no more; and how many were rewritten."""
    found = yield (ledger.SEALED, (after, _EFFECTS))
    rows = [(*map(again, columns), id) for id, *columns in found if again.wanted(*columns)]
    yield Many(ledger.SEAL_AGAIN, rows)
    return (found[-1][0] if len(found) == _EFFECTS else None), len(rows)
