"""What steps and a database say to each other, in as few round trips as possible.

Rules
1. A statement whose rows nobody wants waits for the next one whose rows somebody does, or for the end, and goes with
   it. So does BEGIN with the first, and COMMIT with the last.
2. A statement that is alone in its transaction needs neither BEGIN nor COMMIT.
3. After `Last` (reading) the transaction ends at once: what comes nevertheless sees the database anew. `Whole` is a
   transaction of its own, and doing it twice is doing it once.
4. What changes the schema is said one by one: where psycopg prepares statements, it forgets them after a DROP, an ALTER
   or a ROLLBACK, and in a pipeline it does so too late.
5. As long as the steps have heard nothing from the database, everything can be said again on another connection, unless
   it may have been stored already.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

from surestep._calls import Calls
from surestep._sql.dialect import POSTGRES
from surestep._sql.postgres.words import Phrase, Words
from surestep._sql.statement import Last, Many, Rows, Statement, Steps, Whole

R = TypeVar("R")

Answers = Sequence[Rows]

BEGIN_READ = Phrase(POSTGRES.begin_read, [()], False, False)
BEGIN_WRITE = Phrase(POSTGRES.begin_write, [()], False, False)
COMMIT = Phrase("COMMIT", [()], False, False)
ROLLBACK = Phrase("ROLLBACK", [()], False, False)
# Until the transaction ends: behind a pooler the next one may be somebody else's.
_SET_TENANT = "SELECT set_config('surestep.tenant', %s, true)"


def set_tenant(tenant: str) -> Phrase:
    """Work for this tenant until the transaction ends."""
    return Phrase(_SET_TENANT, [(tenant,)], False, False)


class Talk(Generic[R]):
    """A conversation of steps with a connection that is in no transaction. What `held` yields are lists of phrases, one
    round trip each."""

    def __init__(
        self, words: Words, steps: Steps[R], statement: Statement, reads: bool, one_by_one: bool = False
    ) -> None:
        self.words = words
        self.steps = steps
        self.reads = reads
        self.one_by_one = one_by_one
        self.statement: Statement | None = statement
        self.waiting: list[Phrase] = []
        self.result: R | None = None
        self.opening = [BEGIN_READ if reads else BEGIN_WRITE]
        if words.tenant is not None:
            self.opening.append(set_tenant(words.tenant))
        self.alone = words.tenant is None  # a statement may be alone
        self.heard = False
        self.open = False
        self.committing = False
        self.may_be_repeated = True  # what was said so far

    @property
    def may_go_again(self) -> bool:
        """Rule 5."""
        return not self.heard and not self.committing

    def held(self) -> Calls[R]:
        """What the steps come to."""
        self.open = False
        try:
            return (yield from self._held())
        except Exception:
            if self.open:
                with suppress(Exception):  # a cut connection: nothing is open any more
                    yield [ROLLBACK]
            raise

    def _held(self) -> Calls[R]:
        while (statement := self.statement) is not None:
            self.may_be_repeated &= isinstance(statement, Whole)
            if isinstance(statement, Many):
                if statement.params:
                    self.waiting.append(self.words.phrase(statement))
                rows: Rows = ()
            else:
                phrase = self.words.phrase(statement)
                if phrase.has_rows or self.one_by_one:
                    rows = yield from self._asked(statement, phrase)
                    self.heard = self.open
                else:
                    self.waiting.append(phrase)
                    rows = ()
            self.tell(rows)
        yield from self._end()
        return cast(R, self.result)

    def tell(self, rows: Rows) -> None:
        """Send the steps the rows of their statement: now they say the next one, or are through."""
        try:
            self.statement = self.steps.send(rows)
        except StopIteration as stop:
            self.statement, self.result = None, stop.value

    def _asked(self, statement: Statement, phrase: Phrase) -> Calls[Rows]:
        ends = isinstance(statement, Whole | Last)
        if ends and self.alone and not self.open and not self.waiting:
            answers: Answers = yield [phrase]
            return answers[0]
        opening = [] if self.open else self.opening
        self.open = True
        answers = yield [*opening, *self.waiting, phrase, *([COMMIT] if ends else [])]
        at = len(opening) + len(self.waiting)
        self.waiting.clear()
        self.open = not ends
        return answers[at]

    def _end(self) -> Calls[None]:
        if not self.open and not self.waiting:
            return
        self.committing = not self.may_be_repeated and not self.reads
        if self.open:
            yield [*self.waiting, COMMIT]
        elif self.alone and len(self.waiting) == 1 and len(self.waiting[0].params) == 1:
            yield self.waiting
        else:
            self.open = True
            yield [*self.opening, *self.waiting, COMMIT]


def sent(conn: Any, phrases: Sequence[Phrase], binary: bool) -> Calls[list[list[Any]]]:
    """Send phrases; the cursors from which the rows of each will come."""
    from psycopg.rows import tuple_row

    cursors: list[list[Any]] = []
    silent = None
    for phrase in phrases:
        of_phrase: list[Any] = []
        for params in phrase.params:
            if phrase.has_rows:
                cursor = conn.cursor(binary=binary, row_factory=tuple_row)
                of_phrase.append(cursor)
            else:
                cursor = silent = silent or conn.cursor()
            yield cursor.execute(phrase.sql, params, prepare=phrase.prepare)
        cursors.append(of_phrase)
    return cursors


def received(cursors: Sequence[Sequence[Any]]) -> Calls[Answers]:
    """The rows of each phrase."""
    answers: list[Rows] = []
    for of_phrase in cursors:
        rows: list[Any] = []
        for cursor in of_phrase:
            rows += yield cursor.fetchall()
        answers.append(rows)
    return answers
