"""Where values are: in the row of their checkpoint, or on pages that checkpoints and writes share.

A place is one of
    bytes                        the typed value itself (see rows)
    [kind, ranges, tail, open]   pages, and what comes after them

    [PARTS, dict, {key: place}]  a dict, with nil for the lists that lie elsewhere, typed; and the places of those

    kind     WHOLE: one page has the typed value. LIST: each page has a list, the value is all of them one after the
             other. DELTA: the same in a `_DeltaSnapshot`
    ranges   [log, from, to, log, from, to, ...]: pages of logs of the thread, in order
    tail     the last items, as a typed list; nil for none
    open     1 if the last range ended where its log did when this was stored

Rules
1. A page is written once and never changes. Pages of one log are written in order, so that what belongs together lies
   together; a log belongs to a thread.
2. A list that goes on where it was adds its new items: a page for every write that brought them, or for up to
   UNIT_ITEMS of them and UNIT_BYTES. The place of a list that only grows is one range, however long it is.
3. Fewer items than TAIL bytes stay in the place; they go to a page when more come.
4. A write that brought the items of a page, or a value that lies on one, is stored as a reference to the page.
5. What is the same is decided by content: the pages that a list had before and has again are found by the digests of
   their typed values, which stay in memory: an encrypted database doesn't show what is equal. That the known items of
   a list are the very same objects, with the very same things in them (see sameness), is proof enough and costs less.
6. A log is continued where it ends by the checkpoint that follows the one with an open place there, and by nobody else:
   the statement looks whether it does end there. Else a new log begins, with a random number for a name.
7. A dict whose entries are called like channels (an input) may have lists that those channels will have at their end:
   they go where the channel's own list goes on, and that finds them there (rule 5). If it did not, for a reducer made
   other items of them (messages get ids), there is a gap before its last range: then they go to a log of their own.
8. What no row refers to any more is deleted with the last row that did: see collect.py.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from operator import is_
from random import getrandbits
from typing import Any, NamedTuple

import ormsgpack

from surestep._sql import queries
from surestep._sql.rows import PAGE_TAG, join, split
from surestep._sql.sameness import Chunk, by_first_unit, chunked
from surestep._sql.statement import Many, Steps
from surestep.checkpoint.base._shared import Typed
from surestep.checkpoint.serde.types import _DeltaSnapshot

INLINE = 512
"""A value of up to so many bytes is stored in the row of its checkpoint."""
TAIL = 256
UNIT_ITEMS = 64
UNIT_BYTES = 4096
MAX_RANGES = 24
"""A list in more pieces than this is written anew."""
REFERENCE = 64
"""The value of a write that is shorter than this is not worth a reference."""
RECENT = 64
"""So many pages at the end of a list are looked through for what was written."""
LONG = 8
"""In an input, a list of so many items may be the one that the channel has already."""

WHOLE, LIST, DELTA, PARTS = range(1, 5)

Place = bytes | list[Any]
Unit = tuple[int, bytes]
"""A page as it is known: how many items it has, and its digest."""
Ranges = list[int]


class Memo(NamedTuple):
    """What is known of a value on pages. The chunks are those of all units, in their order."""

    kind: int
    ranges: Ranges
    open: int
    units: list[Unit]
    chunks: list[Chunk]
    parts: Mapping[str, Memo] = {}


class Draft(NamedTuple):
    """A value that needs pages: `pieces` are (from, to) of the units it had before, or new pages."""

    kind: int
    pieces: list[tuple[int, int] | list[bytes]]
    units: list[Unit]
    tail: bytes | None
    chunks: list[Chunk]


class Parts(NamedTuple):
    """A dict some of whose lists need pages."""

    column: bytes
    lists: dict[str, Draft]


Written = Sequence[tuple[list[Any], bytes]]
"""The lists that were written to a channel, with their typed values."""
Where = dict[bytes, Place]
"""Where single pages are, by their digests."""


def digest(page: bytes) -> bytes:
    return blake2b(page, digest_size=16).digest()


# ---- before the transaction ----


def draft(dumps: Callable[[Any], Typed], value: Any, memo: Memo | None, written: Written = ()) -> Place | Draft:
    """What a value will be stored as. `memo`: what is known of the value before it."""
    if type(value) is list:
        return _Drafting(dumps, memo, written).draft(LIST, value)
    if type(value) is _DeltaSnapshot and type(value.value) is list:
        found = _Drafting(dumps, memo, written).draft(DELTA, value.value)
        return join(dumps(value)) if isinstance(found, bytes) else found
    return draft_typed(join(dumps(value)), memo)


def draft_typed(column: bytes, memo: Memo | None) -> Place | Draft:
    """The same for a value that is no list."""
    if len(column) <= INLINE:
        return column
    unit = (0, digest(column))
    if memo is not None and memo.kind == WHOLE and memo.units == [unit]:
        return Draft(WHOLE, [(0, 1)], [unit], None, [])
    return Draft(WHOLE, [[column]], [unit], None, [])


def draft_dict(
    dumps: Callable[[Any], Typed], value: dict[Any, Any], column: bytes, memo: Memo | None, memos: Mapping[str, Memo]
) -> Place | Draft | Parts:
    """The same for a dict, given also as `column`. `memos`: what is known of all channels."""
    if len(column) <= INLINE:
        return column
    lists = {}
    for key, entry in value.items():
        if type(entry) is list and key in memos:
            drafted = draft(dumps, entry, memos[key] if len(entry) >= LONG else None)
            if isinstance(drafted, Draft):
                lists[key] = drafted
    if not lists:
        return draft_typed(column, memo)
    return Parts(join(dumps({key: None if key in lists else entry for key, entry in value.items()})), lists)


def apart(memo: Memo) -> bool:
    """Whether a list did not take over what came before its last items (rule 7)."""
    return len(memo.ranges) > 3 and memo.ranges[-6] == memo.ranges[-3] and memo.ranges[-4] < memo.ranges[-2]


def with_part(memo: Memo | None, part: Memo) -> Memo:
    """What is known of a list, and of items that may come next (rule 7)."""
    if memo is None or memo.kind not in (LIST, DELTA) or apart(memo):
        return memo if memo is not None and apart(memo) else part
    ranges = [*memo.ranges]
    _extend(ranges, part.ranges)
    return Memo(memo.kind, ranges, part.open, [*memo.units, *part.units], [*memo.chunks, *part.chunks])


class _Drafting:
    """Divides a list into pages that are there already and new ones."""

    def __init__(self, dumps: Callable[[Any], Typed], memo: Memo | None, written: Written) -> None:
        self.dumps = dumps
        self.memo = memo if memo is not None and memo.kind in (LIST, DELTA) else None
        self.written = written
        self.pieces: list[tuple[int, int] | list[bytes]] = []
        self.units: list[Unit] = []
        self.chunks: list[Chunk] = []

    def draft(self, kind: int, value: list[Any]) -> Place | Draft:
        rest = value if self.memo is None else self._known(value, self.memo)
        if len(self.pieces) > MAX_RANGES:  # broken up
            self.pieces, self.units, self.chunks, rest = [], [], [], value
        tail = None
        if rest and len(rest) <= UNIT_ITEMS:
            tail = self._join(rest)
            if len(tail) > (TAIL if self.pieces else INLINE):
                self._add(rest, tail)
                tail = None
        elif rest:
            self._add(rest)
        if not self.pieces:
            return tail if tail is not None else self._join(value)
        return Draft(kind, self.pieces, self.units, tail, chunked(self.chunks, value))

    def _known(self, value: list[Any], memo: Memo) -> list[Any]:
        """Take over the pages that the list had before; the items that come after them."""
        chunks = by_first_unit(memo.chunks)
        matching = _Matching(self._join, value, memo.units)
        at = expected = 0  # an item of the list, and the page that it should be on
        fresh = 0  # the items before it that are on none
        while at < len(value):
            chunk = chunks.pop(expected, None)
            if chunk is not None and chunk.print and chunk.print.same(value[at : at + chunk.items]):
                hit: int | None = expected
            else:
                chunk, hit = None, matching.page(at, expected)
            if hit is None:
                fresh, at = fresh + 1, at + 1
                continue
            if fresh:
                self._add(value[at - fresh : at])
                fresh = 0
            chunk = chunk or Chunk(1, memo.units[hit][0], None)
            self._keep(hit, hit + chunk.units, memo)
            self.chunks.append(chunk)
            at, expected = at + chunk.items, hit + chunk.units
        return value[at - fresh :]

    def _keep(self, first: int, beyond: int, memo: Memo) -> None:
        last = self.pieces[-1] if self.pieces else None
        if isinstance(last, tuple) and last[1] == first:
            self.pieces[-1] = (last[0], beyond)
        else:
            self.pieces.append((first, beyond))
        self.units += memo.units[first:beyond]

    def _join(self, items: list[Any]) -> bytes:
        """Items as a typed list: the very bytes of the write that brought them, if one did."""
        columns = [column for found, column in self.written if len(found) == len(items)]
        for found, column in self.written:
            if len(found) == len(items) and all(map(is_, found, items)):
                return column
        made = join(self.dumps(items))
        return columns[columns.index(made)] if made in columns else made

    def _add(self, items: list[Any], column: bytes | None = None) -> None:
        """New pages."""
        pages = list(self._pages(items, column))
        self.pieces.append([page for _, page in pages])
        self.units += [(count, digest(page)) for count, page in pages]
        self.chunks.append(Chunk(len(pages), len(items), None))

    def _pages(self, items: list[Any], column: bytes | None) -> Iterable[tuple[int, bytes]]:
        """One for each write that brought the items, or as many as they need."""
        brought = sum(len(found) for found, _ in self.written)
        at = len(items) - brought
        if at < 0 or not brought or (at == 0 and len(self.written) == 1):
            yield from self._halves(items, column)
            return
        yield from self._halves(items[:at], None)
        for found, page in self.written:
            part = items[at : at + len(found)]
            yield from self._halves(part, self._join(part) if len(page) <= UNIT_BYTES else None)
            at += len(found)

    def _halves(self, items: list[Any], column: bytes | None) -> Iterable[tuple[int, bytes]]:
        if not items:
            return
        if len(items) <= UNIT_ITEMS:
            page = self._join(items) if column is None else column
            if len(items) == 1 or len(page) <= UNIT_BYTES:
                yield len(items), page
                return
        middle = len(items) // 2
        yield from self._halves(items[:middle], None)
        yield from self._halves(items[middle:], None)


class _Matching:
    """Finds known pages in a list by their content."""

    SIZES = 4  # how many different sizes of pages are tried, the usual ones
    PATIENCE = 64  # after so many items in a row that are on no page the rest is taken to be on none

    def __init__(self, typed: Callable[[list[Any]], bytes], value: list[Any], units: list[Unit]) -> None:
        self.typed, self.value, self.units = typed, value, units
        self.missed = 0

    @cached_property
    def _index(self) -> dict[Unit, int]:
        return {unit: index for index, unit in reversed(list(enumerate(self.units)))}

    @cached_property
    def _sizes(self) -> list[int]:
        return [size for size, _ in Counter(size for size, _ in self.units).most_common(self.SIZES)]

    def page(self, at: int, expected: int) -> int | None:
        """The page that has the items from `at` on, by preference the expected one."""
        if expected < len(self.units):
            size = self.units[expected][0]
            if self._unit(at, size) == self.units[expected]:
                self.missed = 0
                return expected
        if self.missed < self.PATIENCE:
            for size in self._sizes:
                if (unit := self._unit(at, size)) in self._index:
                    self.missed = 0
                    return self._index[unit]
        self.missed += 1
        return None

    def _unit(self, at: int, size: int) -> Unit:
        if size > len(self.value) - at:
            return 0, b""
        return size, digest(self.typed(self.value[at : at + size]))


# ---- in the transaction ----


class Settled(NamedTuple):
    """A draft that has its place."""

    place: Place
    memo: Memo


class Shelf(NamedTuple):
    """Where pages are put: those of a thread. `seal`: how they are stored. `later`: who puts them himself wants them
    here, as (log, number, data)."""

    thread_id: str
    seal: Callable[[bytes], bytes]
    later: list[tuple[int, int, bytes]] | None = None


def settle(shelf: Shelf, drafted: Draft, memo: Memo | None, where: Where) -> Steps[Settled]:
    """Write the new pages of a draft. `where` learns where they are."""
    new = [page for piece in drafted.pieces if isinstance(piece, list) for page in piece]
    log, at = 0, 0
    if new:
        log, at = yield from _append(shelf, new, memo)
    ranges: Ranges = []
    for piece in drafted.pieces:
        if isinstance(piece, list):
            _extend(ranges, [log, at, at + len(piece)])
            at += len(piece)
        elif memo is not None:
            _extend(ranges, _cut(memo.ranges, *piece))
    last = drafted.pieces[-1]
    at_the_end = isinstance(last, list) or (memo is not None and not new and last[1] == len(memo.units) and memo.open)
    open = int(bool(at_the_end))
    place = [drafted.kind, ranges, drafted.tail, open]
    for (_, digest), key in zip(drafted.units[-RECENT:], _last(ranges, RECENT), strict=True):
        where[digest] = [WHOLE, [*key, key[1] + 1], None, 0]
    return Settled(place, Memo(drafted.kind, ranges, open, drafted.units, drafted.chunks))


def settle_parts(shelf: Shelf, parts: Parts, memos: Mapping[str, Memo], where: Where) -> Steps[Settled]:
    """The same for a dict."""
    places, found = {}, {}
    for key, drafted in parts.lists.items():
        memo = memos.get(key)
        memo = memo._replace(open=0) if memo is not None and apart(memo) else memo
        places[key], found[key] = yield from settle(shelf, drafted, memo, where)
    return Settled([PARTS, parts.column, places], Memo(PARTS, [], 0, [], [], found))


def _append(shelf: Shelf, pages: Sequence[bytes], memo: Memo | None) -> Steps[tuple[int, int]]:
    """Put pages at the end of the log that a value has, or of a new one; (log, number of the first)."""
    thread_id, pages = shelf.thread_id, list(map(shelf.seal, pages))
    log, start = (memo.ranges[-3], memo.ranges[-1]) if memo is not None and memo.open else (getrandbits(31), 0)
    if shelf.later is not None:
        if any(log == taken for taken, _, _ in shelf.later):
            log, start = getrandbits(31), 0
        shelf.later.extend((log, start + i, page) for i, page in enumerate(pages))
        return log, start
    while not (yield (queries.APPEND_PAGE, (thread_id, log, start, pages[0], thread_id, log, start))):
        log, start = getrandbits(31), 0
    if len(pages) > 1:
        yield Many(queries.PUT_PAGE, [(thread_id, log, start + i, page) for i, page in enumerate(pages) if i])
    return log, start


def _extend(ranges: Ranges, more: Ranges) -> None:
    for log, first, beyond in triples(more):
        if ranges and ranges[-3] == log and ranges[-1] == first:
            ranges[-1] = beyond
        else:
            ranges += (log, first, beyond)


def _cut(ranges: Ranges, start: int, end: int) -> Ranges:
    """The ranges of the pages from `start` to `end`, counted over all ranges."""
    found: Ranges = []
    at = 0
    for log, first, beyond in triples(ranges):
        low, high = max(first, first + start - at), min(beyond, first + end - at)
        if low < high:
            found += (log, low, high)
        at += beyond - first
    return found


def _last(ranges: Ranges, count: int) -> list[tuple[int, int]]:
    """The last pages: (log, page)s."""
    found: list[tuple[int, int]] = []
    for log, first, beyond in reversed(triples(ranges)):
        start = max(first, beyond - count + len(found))
        found[:0] = [(log, page) for page in range(start, beyond)]
        if len(found) == count:
            break
    return found


# ---- reading ----


def triples(ranges: Ranges) -> list[Sequence[int]]:
    """The ranges one by one."""
    return [ranges[i : i + 3] for i in range(0, len(ranges), 3)]


def wanted(found: Iterable[Place]) -> list[Sequence[int]]:
    """The ranges of pages that places refer to."""
    ranges: list[Sequence[int]] = []
    for place in found:
        if type(place) is list:
            ranges += wanted(place[2].values()) if place[0] == PARTS else triples(place[1])
    return ranges


def as_json(ranges: Iterable[Sequence[int]]) -> str:
    """Ranges as the dialect's queries take them, each once."""
    return json.dumps([*{tuple(triple): None for triple in ranges}])


Pages = Mapping[tuple[int, int], bytes]


def has(there: Pages, wanted: Sequence[int]) -> bool:
    """Whether the pages of a range were read."""
    log, first, beyond = wanted
    return all((log, page) in there for page in range(first, beyond))


def load(loads: Callable[[Typed], Any], place: list[Any], pages: Pages) -> tuple[Any, Memo]:
    """The value at a place, and what is known of it then."""
    if place[0] == PARTS:
        return _load_parts(loads, place, pages)
    kind, ranges, tail, open = place
    columns = [pages[log, page] for log, first, beyond in triples(ranges) for page in range(first, beyond)]
    if kind == WHOLE:
        return loads(split(columns[0])), Memo(kind, ranges, open, [(0, digest(columns[0]))], [])
    parts = [loads(split(column)) for column in columns]
    items = [item for part in parts for item in part]
    units = [(len(part), digest(column)) for part, column in zip(parts, columns, strict=True)]
    chunks = chunked([Chunk(len(units), len(items), None)], items)
    value = items if tail is None else [*items, *loads(split(tail))]
    return _DeltaSnapshot(value) if kind == DELTA else value, Memo(kind, ranges, open, units, chunks)


def _load_parts(loads: Callable[[Typed], Any], place: list[Any], pages: Pages) -> tuple[Any, Memo]:
    value = loads(split(place[1]))
    memos = {}
    for key, part in place[2].items():
        value[key], memos[key] = load(loads, part, pages)
    return value, Memo(PARTS, [], 0, [], [], memos)


# ---- moving ----


def moved(place: Place, logs: Mapping[int, int]) -> Place:
    """The place when the logs are called otherwise."""
    if isinstance(place, bytes):
        return place
    if place[0] == PARTS:
        return [PARTS, place[1], {key: moved(part, logs) for key, part in place[2].items()}]
    kind, ranges, *rest = place
    return [kind, [number for log, start, end in triples(ranges) for number in (logs[log], start, end)], *rest]


def moved_write(column: bytes, logs: Mapping[int, int]) -> bytes:
    """The same for the column of a write."""
    place = place_of_write(column)
    return column if isinstance(place, bytes) else as_write(moved(place, logs))


# ---- writes ----


def as_write(place: Place) -> bytes:
    """A reference in the column of a write."""
    return join((PAGE_TAG, ormsgpack.packb(place)))


def refer(column: bytes, where: Where) -> bytes:
    """The column of a write: a reference, when its value is on a page."""
    if len(column) <= REFERENCE:
        return column
    place = where.get(digest(column))
    return column if place is None else as_write(place)


def place_of_write(column: bytes) -> Place:
    """The place of a write's value."""
    tag, data = split(column)
    found: Place = ormsgpack.unpackb(data) if tag == PAGE_TAG else column
    return found
