"""An async generator inside of another one."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from typing import TypeVar

T = TypeVar("T")


class Owned(AsyncIterator[T]):
    """Iterates a generator that is closed by the one around it, and by nobody else.

    An event loop that shuts down closes all the generators that it has heard of at the same time. Of a chain it must
    hear of the outermost only: that one closes the rest in order, while closing them from both sides is an error.
    """

    __slots__ = ("_begun", "_items")

    def __init__(self, items: AsyncGenerator[T, None]) -> None:
        self._items = items
        self._begun = False

    def __anext__(self) -> Awaitable[T]:
        if self._begun:
            return self._items.__anext__()
        self._begun = True
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)
        try:
            return self._items.__anext__()
        finally:
            sys.set_asyncgen_hooks(*hooks)

    async def aclose(self) -> None:
        """Close the generator, if it has begun."""
        if self._begun:
            await self._items.aclose()
