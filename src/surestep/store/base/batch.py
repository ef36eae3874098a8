"""A store that gathers what is asked of it in one turn of the event loop into one batch."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Coroutine, Iterable, Sequence
from copy import copy
from typing import Any

from surestep.store.base import BaseStore, Item, Op, PutOp, Result
from surestep.store.base._ops import copied

__all__ = ("AsyncBatchedBaseStore",)

_Waiting = tuple[Op, "asyncio.Future[Any]"]


class AsyncBatchedBaseStore(BaseStore):
    """Base of async stores: subclasses implement `abatch`, which gets the operations of concurrent calls
    together.

    Equal reads are done once, and of several writes to a key only the last. A call that can't be done fails
    alone: those beside it are done without it. Must be made in a running event loop. The sync methods work from
    other threads; in the loop's own they raise asyncio.InvalidStateError, because they would wait for
    themselves.
    """

    __slots__ = ("_aqueue", "_loop", "_task")

    def __init__(self) -> None:
        super().__init__()
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._aqueue: asyncio.Queue[_Waiting | None] = asyncio.Queue()  # None: stop
        self._ensure_task()

    def __del__(self) -> None:
        # An instance whose __init__ failed has no task.
        task = getattr(self, "_task", None)
        if task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(task.cancel)

    def _ensure_task(self) -> None:
        """Start the task that does the batches, again if somebody cancelled it."""
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(_serve(self._aqueue, weakref.ref(self)))

    async def stop(self) -> None:
        """Wait until what was asked for is done, and end the task that does it. A later call starts it
        again."""
        self._ensure_task()
        task = self._task
        assert task is not None
        self._aqueue.put_nowait(None)
        await asyncio.wait([task])

    async def _ado(self, op: Op) -> Any:
        self._ensure_task()
        future = self._loop.create_future()
        self._aqueue.put_nowait((op, future))
        return await future

    def _do(self, op: Op) -> Any:
        return self._from_thread(self._ado(op))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the operations from another thread than the event loop's; their results, in order."""
        results: list[Result] = self._from_thread(self.abatch(ops))
        return results

    def _from_thread(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            in_the_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            in_the_loop = False
        if in_the_loop:
            work.close()
            raise asyncio.InvalidStateError(
                f"A sync method of {type(self).__name__} was called in the thread of its event loop, where it would "
                "wait for itself. Use the async method (await store.aget(...), store.aput(...), ...) or another "
                "thread (asyncio.to_thread)."
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _serve(queue: asyncio.Queue[_Waiting | None], ref: weakref.ref[AsyncBatchedBaseStore]) -> None:
    """Do what comes, for as long as the store is there."""
    while True:
        taken = [await queue.get()]
        while not queue.empty():
            taken.append(queue.get_nowait())
        store = ref()
        waiting = [entry for entry in taken if entry is not None and not entry[1].done()]
        if store is not None and waiting:
            await _answer(store, waiting)
        if store is None or None in taken:
            break
        del store  # or the store would live for as long as this waits


async def _answer(store: AsyncBatchedBaseStore, waiting: Sequence[_Waiting]) -> None:
    """Give every caller its result, or what went wrong; raise only what ends the task that serves them."""
    try:
        await _answer_together(store, waiting)
    except Exception as error:
        if len(waiting) == 1 or _concerns_all(error):
            _tell(waiting, error)
            return
        # One of the calls can't be done, and the others are not to blame. Nothing was written: a batch that fails
        # changes nothing. In a batch reads come first, and so they do here.
        try:
            for entry in sorted(waiting, key=lambda entry: isinstance(entry[0], PutOp)):
                await _answer(store, [entry])
        except BaseException as error:
            _tell(waiting, error)
            raise
    except BaseException as error:
        _tell(waiting, error)
        raise


async def _answer_together(store: AsyncBatchedBaseStore, waiting: Sequence[_Waiting]) -> None:
    ops, places = _without_repeats([op for op, _ in waiting])
    results = await store.abatch(ops)
    given = set()
    for (_, future), place in zip(waiting, places, strict=True):
        if not future.done():
            # Who asked for the same gets a copy: what one caller does to it is not seen by another.
            future.set_result(_copied_result(results[place]) if place in given else results[place])
            given.add(place)


def _tell(waiting: Iterable[_Waiting], error: BaseException) -> None:
    for _, future in waiting:
        if isinstance(error, asyncio.CancelledError):
            future.cancel()
        elif not future.done():
            future.set_exception(error)


def _concerns_all(error: Exception) -> bool:
    """Whether the database itself can't be used, so that no call would fare better by itself."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return not names.isdisjoint({"OSError", "OperationalError", "InterfaceError"})


def _copied_result(result: Any) -> Any:
    if isinstance(result, Item):
        twin = copy(result)
        twin.value = copied(twin.value)
        return twin
    return [*map(_copied_result, result)] if isinstance(result, list) else result


def _without_repeats(ops: Sequence[Op]) -> tuple[list[Op], list[int]]:
    """The operations that are worth doing, and for each given one the index of that which answers it."""
    kept: list[Op] = []
    known: dict[Any, int] = {}
    places = []
    for op in ops:
        place = known.setdefault(_identity(op), len(kept))
        if place == len(kept):
            kept.append(op)
        elif isinstance(op, PutOp):
            kept[place] = op
        elif kept[place] != op:  # written alike, and not the same
            place = len(kept)
            kept.append(op)
        places.append(place)
    return kept, places


def _identity(op: Op) -> Any:
    """What operations have in common that one answer is enough for."""
    if isinstance(op, PutOp):
        return PutOp, tuple(op.namespace), op.key
    try:
        hash(op)
    except TypeError:  # a filter has no hash
        return type(op), repr(op)
    return type(op), op
