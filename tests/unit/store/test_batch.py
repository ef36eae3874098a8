"""Concurrent calls of one turn of the event loop become one batch."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterable
from typing import Any

import pytest

from surestep.store.base import GetOp, InvalidNamespaceError, Item, Op, PutOp, Result, SearchOp
from surestep.store.base.batch import AsyncBatchedBaseStore
from surestep.store.memory import InMemoryStore


class Store(AsyncBatchedBaseStore):
    """Notes the batches it gets, and can be made to fail or to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = InMemoryStore()
        self.batches: list[list[Op]] = []
        self.fails: Exception | None = None
        self.gate: asyncio.Event | None = None

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        self.batches.append(list(ops))
        if self.gate is not None:
            await self.gate.wait()
        if self.fails is not None:
            raise self.fails
        return self.inner.batch(self.batches[-1])


async def test_calls_of_a_turn_are_one_batch() -> None:
    store = Store()
    await asyncio.gather(store.aput(("u",), "a", {"n": 1}), store.aput(("u",), "b", {"n": 2}))
    one, two = await asyncio.gather(store.aget(("u",), "a"), store.aget(("u",), "b"))
    assert one is not None and two is not None and (one.value, two.value) == ({"n": 1}, {"n": 2})
    assert [len(batch) for batch in store.batches] == [2, 2]


async def test_what_is_asked_twice_is_done_once() -> None:
    store = Store()
    searches = [store.asearch(("u",), filter={"n": {"$gt": 0}}) for _ in range(2)]
    puts = [store.aput(("u",), "a", {"n": n}) for n in (1, 2)]
    results = await asyncio.gather(*puts, store.aget(("u",), "a"), *searches, store.aget(("u",), "a"))
    assert results == [None, None, None, [], [], None]
    assert store.batches == [
        [PutOp(("u",), "a", {"n": 2}), GetOp(("u",), "a"), SearchOp(("u",), filter={"n": {"$gt": 0}})]
    ]


async def test_a_failure_of_the_database_reaches_everybody_and_ends_nothing() -> None:
    store = Store()
    store.fails = OSError("disk full")
    results = await asyncio.gather(store.aget(("u",), "a"), store.aput(("u",), "a", {}), return_exceptions=True)
    assert results == [store.fails, store.fails] and len(store.batches) == 1
    store.fails = None
    assert await store.aget(("u",), "a") is None


async def test_a_call_that_fails_fails_alone() -> None:
    store = Store()
    await store.aput(("u",), "old", {"n": 1})
    results = await asyncio.gather(
        store.aput(("u",), "old", {"n": 2}),
        store.asearch(("u",), filter={"n": {"$in": [1]}}),
        store.aget(("u",), "old"),
        store.aput(("u",), "new", {"n": 3}),
        return_exceptions=True,
    )
    assert isinstance(results[1], ValueError) and results[0] is results[3] is None
    assert isinstance(results[2], Item) and results[2].value == {"n": 1}, "it reads before it writes"
    assert {item.key: item.value["n"] for item in await store.asearch(("u",))} == {"old": 2, "new": 3}


async def test_who_waits_behind_a_call_that_failed_is_told_of_the_end() -> None:
    alone = asyncio.Event()

    class Stuck(Store):
        async def abatch(self, ops: Iterable[Op]) -> list[Result]:
            if len([*ops]) > 1:
                raise ValueError("one of them can't be done")
            alone.set()
            await asyncio.Event().wait()
            return []

    store = Stuck()
    calls = [asyncio.create_task(store.aget(("u",), key)) for key in "abc"]
    await alone.wait()
    assert store._task is not None
    store._task.cancel()
    await asyncio.wait(calls)
    assert all(call.cancelled() for call in calls)


async def test_who_asks_for_the_same_gets_a_value_of_ones_own() -> None:
    store = Store()
    await store.aput(("u",), "k", {"list": [1]})
    one, two = await asyncio.gather(store.aget(("u",), "k"), store.aget(("u",), "k"))
    found, again = await asyncio.gather(store.asearch(("u",)), store.asearch(("u",)))
    assert one is not None and two is not None and one == two and found == again
    one.value["list"].append(2)
    found[0].value["list"].append(2)
    assert two.value == again[0].value == {"list": [1]}


class Sly(dict[str, Any]):
    """Filters that look the same and are not."""

    def __repr__(self) -> str:
        return "{}"


async def test_what_looks_the_same_is_asked_for_each() -> None:
    store = Store()
    await store.aput(("u",), "k", {"n": 1})
    filters = [Sly(n=1), Sly(n=2), Sly(n=1)]
    assert [len(found) for found in await asyncio.gather(*[store.asearch((), filter=f) for f in filters])] == [1, 0, 1]


async def test_a_caller_that_gave_up_breaks_nothing() -> None:
    store = Store()
    caller = asyncio.create_task(store.aget(("u",), "a"))
    await asyncio.sleep(0)
    caller.cancel()
    assert await store.aget(("u",), "b") is None
    assert caller.cancelled() and store.batches == [[GetOp(("u",), "b")]]


async def test_who_waits_for_a_batch_that_was_cancelled_is_told() -> None:
    store = Store()
    store.gate = asyncio.Event()
    caller = asyncio.create_task(store.aget(("u",), "a"))
    while not store.batches:
        await asyncio.sleep(0)
    assert store._task is not None
    store._task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    store.gate = None
    assert await store.aget(("u",), "a") is None


async def test_sync_calls_belong_in_another_thread() -> None:
    store = Store()
    for call in (lambda: store.get(("u",), "a"), lambda: store.batch([GetOp(("u",), "a")])):
        with pytest.raises(asyncio.InvalidStateError, match=r"await store.aget"):
            call()
    await asyncio.to_thread(store.put, ("u",), "a", {"n": 1})
    item = await asyncio.to_thread(store.get, ("u",), "a")
    assert item is not None and item.value == {"n": 1}
    assert await asyncio.to_thread(store.batch, [GetOp(("u",), "a")]) == [item]
    assert await asyncio.to_thread(store.list_namespaces) == [("u",)]


async def test_bad_calls_fail_before_they_are_queued() -> None:
    store = Store()
    with pytest.raises(InvalidNamespaceError):
        await store.aput((), "a", {})
    with pytest.raises(NotImplementedError, match="TTL"):
        await store.aput(("u",), "a", {}, ttl=1)
    assert store.batches == []


async def test_a_store_that_is_dropped_leaves_no_task() -> None:
    store: Any = Store()
    await store.aget(("u",), "a")
    task, gone = store._task, weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_store_needs_an_event_loop() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        Store()
