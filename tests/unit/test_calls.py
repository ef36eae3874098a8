"""One generator, played for a caller that waits and for one that awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from surestep._calls import Calls, adriven, driven, itself

Play = Callable[[Calls[Any], Callable[[Any], Any]], Any]


def waiting(calls: Calls[Any], do: Callable[[Any], Any]) -> Any:
    return driven(calls, do)


def awaiting(calls: Calls[Any], do: Callable[[Any], Any]) -> Any:
    async def done(asked: Any) -> Any:
        await asyncio.sleep(0)
        return do(asked)

    return asyncio.run(adriven(calls, done))


@pytest.fixture(params=[waiting, awaiting])
def play(request: pytest.FixtureRequest) -> Play:
    found: Play = request.param
    return found


def halved(number: int) -> int:
    if number % 2:
        raise ValueError(number)
    return number // 2


def test_it_is_sent_the_results(play: Play) -> None:
    def calls() -> Calls[list[int]]:
        return [(yield 8), (yield 6)]

    assert play(calls(), halved) == [4, 3]


def test_it_is_thrown_what_goes_wrong_and_may_go_on(play: Play) -> None:
    def calls() -> Calls[list[Any]]:
        heard: list[Any] = []
        for number in (1, 2, 3):
            try:
                heard.append((yield number))
            except ValueError as error:
                heard.append(str(error))
        return heard

    assert play(calls(), halved) == ["1", 1, "3"]


def test_what_it_does_not_catch_is_raised(play: Play) -> None:
    def calls() -> Calls[None]:
        yield 3

    with pytest.raises(ValueError, match="3"):
        play(calls(), halved)


def test_a_generator_that_yields_what_was_done_already() -> None:
    def calls() -> Calls[int]:
        return (yield 5) + 1

    assert driven(calls(), itself) == 6


def test_a_caller_that_is_broken_off() -> None:
    """Ctrl-C is nobody's business but the caller's: the generator is closed, and can't go on."""
    ended: list[str] = []

    def calls() -> Calls[None]:
        try:
            yield 1
            ended.append("went on")
        finally:
            ended.append("closed")

    def interrupted(asked: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        driven(calls(), interrupted)
    assert ended == ["closed"]
