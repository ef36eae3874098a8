"""Holding up a coroutine that puts parts on a stream faster than its reader takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any

from surestep._drive.gate import Gate


class Paced:
    """`await Paced(coroutine, gate)`: what the coroutine returns; whenever it has awaited something, it goes on when
    the gate has room.
    """

    __slots__ = ("coroutine", "gate")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], gate: Gate) -> None:
        self.coroutine = coroutine
        self.gate = gate

    def __await__(self) -> Generator[Any, Any, Any]:
        coroutine, gate = self.coroutine, self.gate
        try:
            waits_for = coroutine.send(None)
            while True:
                try:
                    value = yield waits_for
                    while not gate.has_room():
                        yield from _woken(gate).__await__()
                except BaseException as error:
                    waits_for = coroutine.throw(error)
                else:
                    waits_for = coroutine.send(value)
        except StopIteration as end:
            return end.value


async def _woken(gate: Gate) -> None:
    room = asyncio.Event()
    gate.waiting.append(room.set)
    await room.wait()
