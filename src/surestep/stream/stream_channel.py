"""A projection of an event stream: what one reader may read, as it comes.

Rules:
1. There is one reader. What is pushed before somebody reads is not kept: nothing piles up that nobody asked for.
2. The reader drives: when nothing is there it asks for more, and one more event of the run is produced. So a slow
   reader slows the run down, and what waits is what one event brought.
3. What was pushed before a failure is read before the failure is raised.
4. A reader that leaves before the end (its iterator is gone) lets go of the channel: what waits is dropped, and another
   may read on.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Generic, TypeVar

__all__ = ("StreamChannel",)

T = TypeVar("T")


class StreamChannel(Generic[T]):
    """What a transformer pushes and one reader reads, by `for` or `async for` as the run is sync or async.

    name: items also go to the log of raw events, as `name` or `custom:name`. maxlen: a positive number or None; it is
    checked only, since the reader's pace is what bounds the buffer. `tee` and `atee` make several readers of one.
    """

    def __init__(self, name: str | None = None, *, maxlen: int | None = None) -> None:
        if maxlen is not None and maxlen <= 0:
            raise ValueError(f"maxlen must be a positive int or None, got {maxlen!r}.")
        self.name = name
        self.maxlen = maxlen
        self._items: deque[tuple[int, T]] = deque()  # with the order in which they came, over all channels of a run
        self._subscribed = False
        self._closed = False
        self._error: BaseException | None = None
        self._is_async: bool | None = None  # not bound yet
        self._stamp: Callable[[], int] = lambda: 0
        self._wire_fn: Callable[[T], None] | None = None
        self._request_more: Callable[[], bool] | None = None
        self._arequest_more: Callable[[], Awaitable[bool]] | None = None

    # the writer's side

    def push(self, item: T) -> None:
        """Hand an item to the reader, if there is one. RuntimeError when the channel is closed."""
        if self._closed:
            raise RuntimeError("Cannot push to a closed StreamChannel")
        if self._wire_fn is not None:
            self._wire_fn(item)
        if self._subscribed:
            self._items.append((self._stamp(), item))

    def close(self) -> None:
        """Nothing comes any more."""
        self._closed = True

    def fail(self, err: BaseException) -> None:
        """Nothing comes any more: the reader gets this error after what is there."""
        self._error = err
        self._closed = True

    # becoming part of a run

    def _bind(self, *, is_async: bool, stamp: Callable[[], int] | None = None) -> None:
        if self._is_async is not None:
            raise RuntimeError("This StreamChannel is already bound to a run.")
        self._is_async = is_async
        self._stamp = stamp or self._stamp

    def _wire(self, forward: Callable[[T], None]) -> None:
        self._wire_fn = forward

    # the reader's side

    def _subscribe(self, is_async: bool) -> None:
        if self._is_async is None:
            raise TypeError("This StreamChannel has not been bound to a run: it is read from the run's projections.")
        if self._is_async is not is_async:
            kind, way = ("async", "async for") if self._is_async else ("sync", "for")
            raise TypeError(f"This StreamChannel is bound to {kind} mode: read it with `{way}`.")
        if self._subscribed:
            raise RuntimeError("This StreamChannel already has a subscriber; make several with tee() or atee().")
        self._subscribed = True

    def _release(self) -> None:
        self._subscribed = False
        self._items.clear()

    def __iter__(self) -> Iterator[T]:
        self._subscribe(is_async=False)
        return _Reader(self)

    def __aiter__(self) -> AsyncIterator[T]:
        self._subscribe(is_async=True)
        return _AsyncReader(self)

    def _over(self) -> bool:
        """Whether the reader has read all that will come; raises what ended it."""
        if self._closed and not self._items and self._error is not None:
            raise self._error
        return self._closed and not self._items

    def tee(self, n: int = 2) -> tuple[Iterator[T], ...]:
        """Several readers. What one has not read yet is kept for it."""
        return itertools.tee(iter(self), n)

    def atee(self, n: int = 2) -> tuple[AsyncIterator[T], ...]:
        """Several readers in an async run. What one has not read yet is kept for it."""
        source = aiter(self)
        waiting: list[deque[T]] = [deque() for _ in range(n)]
        return tuple(_branch(source, mine, waiting) for mine in waiting)


class _Reader(Iterator[T]):
    """The reader of a channel. No generator: one that was never started would not notice that its reader has left."""

    __slots__ = ("_channel",)

    def __init__(self, channel: StreamChannel[T]) -> None:
        self._channel = channel

    def __next__(self) -> T:
        channel, more = self._channel, True
        while not channel._items:
            if channel._over() or not more or channel._request_more is None:
                raise StopIteration
            more = channel._request_more()
        return channel._items.popleft()[1]

    def __del__(self) -> None:
        if not self._channel._closed:
            self._channel._release()


class _AsyncReader(AsyncIterator[T]):
    """The reader of a channel in an async run."""

    __slots__ = ("_channel",)

    def __init__(self, channel: StreamChannel[T]) -> None:
        self._channel = channel

    async def __anext__(self) -> T:
        channel, more = self._channel, True
        while not channel._items:
            if channel._over() or not more or channel._arequest_more is None:
                raise StopAsyncIteration
            more = await channel._arequest_more()
        return channel._items.popleft()[1]

    def __del__(self) -> None:
        if not self._channel._closed:
            self._channel._release()


async def _branch(source: AsyncIterator[Any], mine: deque[Any], everyone: list[deque[Any]]) -> AsyncIterator[Any]:
    while True:
        if not mine:
            try:
                item = await anext(source)
            except StopAsyncIteration:
                if not mine:
                    return
            else:
                for queue in everyone:
                    queue.append(item)
        yield mine.popleft()
