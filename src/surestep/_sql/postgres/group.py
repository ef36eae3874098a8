"""Transactions of many callers that go to the database together: one round trip, one commit.

Rules
1. Only `Whole` statements go together: each calls a function that has one result, and may be said twice. When one
   fails nothing of the group is stored, and each caller says his own alone.
2. A group is what came while the one before was under way: who is alone never waits for others.
3. Within a group they are in the order of their first parameters, the threads, so that groups of two processes don't
   wait for each other in a circle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from surestep._sql.postgres.talk import BEGIN_WRITE, COMMIT, Answers, Talk, set_tenant
from surestep._sql.postgres.words import Phrase
from surestep._sql.statement import Rows

GROUP = 64
"""So many statements go together at most."""


class _Caller(NamedTuple):
    phrase: Phrase
    answer: asyncio.Future[Rows | None]


class Group:
    """Collects statements of callers on one event loop. `exchange` sends phrases on a connection; None: it can't be
    done together there. `senders`: how many groups may be under way at once."""

    def __init__(self, exchange: Callable[[Sequence[Phrase]], Awaitable[Answers | None]], senders: int) -> None:
        self._exchange = exchange
        self._free = senders
        self._callers: list[_Caller] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def say(self, talk: Talk[Any]) -> asyncio.Future[Rows | None]:
        """The rows of the talk's statement, once that is stored; None if it isn't, and has to be said alone."""
        assert talk.statement is not None
        caller = _Caller(talk.words.phrase(talk.statement), asyncio.get_running_loop().create_future())
        self._callers.append(caller)
        if self._free:
            self._free -= 1
            task = asyncio.get_running_loop().create_task(self._send(talk.words.tenant))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return caller.answer

    async def _send(self, tenant: str | None) -> None:
        try:
            while self._callers:
                callers, self._callers = self._callers[:GROUP], self._callers[GROUP:]
                callers.sort(key=lambda caller: str(caller.phrase.params[0][0]))
                await self._together(callers, tenant)
        finally:
            self._free += 1

    async def _together(self, callers: Sequence[_Caller], tenant: str | None) -> None:
        answers: Sequence[Rows | None] = [None] * len(callers)
        try:
            with suppress(Exception):  # rule 1: they will see for themselves
                answers = await self._answers([caller.phrase for caller in callers], tenant) or answers
        finally:
            for caller, rows in zip(callers, answers, strict=True):
                if not caller.answer.done():
                    caller.answer.set_result(rows)

    async def _answers(self, phrases: list[Phrase], tenant: str | None) -> Sequence[Rows] | None:
        opening = [] if tenant is None else [BEGIN_WRITE, set_tenant(tenant)]
        answers = await self._exchange([*opening, _as_one(phrases), *([COMMIT] if opening else [])])
        if answers is None:
            return None
        (done,) = answers[len(opening)]
        return [[(one,)] for one in done]


def _as_one(phrases: Sequence[Phrase]) -> Phrase:
    """One statement that calls the functions one after the other. Each sees what was committed until its turn came."""
    calls = [phrase.sql.removeprefix("SELECT ") for phrase in phrases]
    params = [param for phrase in phrases for param in phrase.params[0]]
    return Phrase(f"SELECT {', '.join(calls)}", [params], True, None if len(phrases) == 1 else False)
