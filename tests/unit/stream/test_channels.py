"""A channel has one reader, keeps nothing for nobody, and hands on what came before a failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surestep.stream import StreamChannel


def bound(*, is_async: bool = False, name: str | None = None) -> StreamChannel[Any]:
    channel: StreamChannel[Any] = StreamChannel(name)
    channel._bind(is_async=is_async)
    return channel


async def all_of(reader: Any) -> list[Any]:
    return [item async for item in reader]


def test_what_is_pushed_before_somebody_reads_is_not_kept() -> None:
    channel = bound()
    channel.push(1)
    reader = iter(channel)
    channel.push(2)
    channel.close()
    assert list(reader) == [2]


@pytest.mark.parametrize("is_async", [False, True])
def test_items_come_before_the_failure(is_async: bool) -> None:
    channel = bound(is_async=is_async)
    reader: Any = aiter(channel) if is_async else iter(channel)
    channel.push(1)
    channel.fail(ValueError("late"))
    seen: list[Any] = []

    async def read() -> None:
        async for item in reader:
            seen.append(item)

    with pytest.raises(ValueError, match="late"):
        if is_async:
            asyncio.run(read())
        else:
            for item in reader:
                seen.append(item)
    assert seen == [1]


def test_there_is_one_reader() -> None:
    channel = bound()
    reader = iter(channel)
    with pytest.raises(RuntimeError, match="already has a subscriber"):
        iter(channel)
    channel.push(1)
    assert next(reader) == 1


def test_a_reader_that_leaves_lets_go() -> None:
    channel = bound()
    reader = iter(channel)
    channel.push(1)
    channel.push(2)
    assert next(reader) == 1
    del reader
    channel.push(3)
    assert not channel._items, "kept for nobody"
    later = iter(channel)
    channel.push(4)
    channel.close()
    assert list(later) == [4]


@pytest.mark.parametrize(
    ("channel", "words"),
    [(StreamChannel(), "not been bound"), (bound(is_async=True), "bound to async mode: read it with `async for`")],
)
def test_a_channel_is_read_as_its_run_is(channel: StreamChannel[Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        iter(channel)


def test_a_sync_channel_is_not_read_asynchronously() -> None:
    with pytest.raises(TypeError, match="bound to sync mode: read it with `for`"):
        aiter(bound())


def test_a_channel_belongs_to_one_run() -> None:
    with pytest.raises(RuntimeError, match="already bound"):
        bound()._bind(is_async=True)


@pytest.mark.parametrize("end", ["close", "fail"])
def test_nothing_is_pushed_after_the_end(end: str) -> None:
    channel = bound()
    channel.close() if end == "close" else channel.fail(ValueError())
    with pytest.raises(RuntimeError, match="closed StreamChannel"):
        channel.push(1)


def test_the_reader_asks_for_more() -> None:
    channel, more = bound(), iter(range(3))

    def produce() -> bool:
        item = next(more, None)
        channel.close() if item is None else channel.push(item)
        return item is not None

    channel._request_more = produce
    reader = iter(channel)
    assert next(reader) == 0 and next(more) == 1, "one at a time, and no sooner than asked"
    assert list(reader) == [2]


def test_several_readers() -> None:
    channel = bound()
    one, other = channel.tee()
    channel.push(1)
    channel.push(2)
    channel.close()
    assert (list(one), list(other)) == ([1, 2], [1, 2])


def test_several_async_readers() -> None:
    channel = bound(is_async=True)
    one, other = channel.atee()
    channel.push(1)
    channel.push(2)
    channel.close()

    async def read() -> Any:
        return await asyncio.gather(all_of(one), all_of(other))

    assert asyncio.run(read()) == [[1, 2], [1, 2]]


@pytest.mark.parametrize("maxlen", [0, -1])
def test_a_length_is_positive(maxlen: int) -> None:
    with pytest.raises(ValueError, match="positive int or None"):
        StreamChannel(maxlen=maxlen)
