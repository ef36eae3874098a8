"""Awaiting a coroutine in another context (of context variables), without a task of its own."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextvars import Context
from typing import Any


class InScope:
    """`await InScope(coroutine, context)`: what the coroutine returns. It runs in the caller's task, so timeouts and
    cancels mean what they say; what it sets in context variables stays in `context`.
    """

    __slots__ = ("context", "coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], context: Context) -> None:
        self.coroutine = coroutine
        self.context = context

    def __await__(self) -> Generator[Any, Any, Any]:
        run, coroutine = self.context.run, self.coroutine
        try:
            waits_for = run(coroutine.send, None)
            while True:
                try:
                    value = yield waits_for
                except BaseException as error:
                    waits_for = run(coroutine.throw, error)
                else:
                    waits_for = run(coroutine.send, value)
        except StopIteration as end:
            return end.value
