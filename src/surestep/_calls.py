"""Work written once for callers that wait and callers that await: a generator yields what is to be done, and is sent
what came of it, or thrown what went wrong.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar, cast

R = TypeVar("R")

Calls = Generator[Any, Any, R]
"""Yields something to be done, is sent its result, and returns an `R`."""


def driven(calls: Calls[R], do: Callable[[Any], Any]) -> R:
    """What the generator returns; `do` carries out what it yields."""

    async def done(asked: Any) -> Any:
        return do(asked)

    try:
        adriven(calls, done).send(None)  # it never has to wait
    except StopIteration as end:
        return cast(R, end.value)
    raise AssertionError("something that is not to wait has waited")


async def adriven(calls: Calls[R], do: Callable[[Any], Awaitable[Any]]) -> R:
    """The same, where `do` gives something to be awaited."""
    result: Any = None
    failure: BaseException | None = None
    while True:
        try:
            asked = calls.send(result) if failure is None else calls.throw(failure)
        except StopIteration as end:
            return cast(R, end.value)
        result, failure = None, None
        try:
            result = await do(asked)
        except BaseException as error:
            failure = error


def itself(asked: Any) -> Any:
    """For generators that yield what has been done already, or what can be awaited as it is."""
    return asked
