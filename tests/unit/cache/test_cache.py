"""The cache in memory."""

from __future__ import annotations

import time
from typing import Any

import pytest

from surestep.cache.base import BaseCache
from surestep.cache.memory import FEW, InMemoryCache

NS = ("writes", "node")


@pytest.fixture
def cache() -> InMemoryCache[Any]:
    return InMemoryCache()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be moved."""
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def test_what_was_stored_is_found(cache: InMemoryCache[Any]) -> None:
    cache.set({(NS, "a"): ({"k": [1, None]}, None), (NS, "b"): ("text", None)})
    found = cache.get([(NS, "a"), (NS, "b"), (NS, "c"), (("other",), "a")])
    assert found == {(NS, "a"): {"k": [1, None]}, (NS, "b"): "text"}
    assert cache.get([]) == {}


def test_nobody_shares_a_value(cache: InMemoryCache[Any]) -> None:
    value = [1]
    cache.set({(NS, "a"): (value, None)})
    value.append(2)
    cache.get([(NS, "a")])[NS, "a"].append(3)
    assert cache.get([(NS, "a")]) == {(NS, "a"): [1]}


def test_a_value_lives_for_its_time(cache: InMemoryCache[Any], clock: list[float]) -> None:
    cache.set({(NS, "short"): (1, 10), (NS, "long"): (2, 20), (NS, "ever"): (3, None), (NS, "never"): (4, 0)})
    every = [(NS, key) for key in ("short", "long", "ever", "never")]
    assert set(cache.get(every).values()) == {1, 2, 3}
    clock[0] += 10
    assert set(cache.get(every).values()) == {2, 3}
    cache.set({(NS, "short"): (5, 10)})
    assert cache.get([(NS, "short")]) == {(NS, "short"): 5}
    clock[0] += 1000
    assert set(cache.get(every).values()) == {3}


def test_what_has_expired_takes_no_room(cache: InMemoryCache[Any], clock: list[float]) -> None:
    cache.set({(NS, "ever"): (0, None)})
    for number in range(5 * FEW):
        cache.set({((str(number),), "short"): (number, 1), (NS, f"short {number}"): (number, 1)})
        clock[0] += 0.01
        assert sum(map(len, cache._cache.values())) <= 2 * FEW and len(cache._cache) <= 2 * FEW
    assert cache.get([(NS, "ever")]) == {(NS, "ever"): 0}


def test_clearing(cache: InMemoryCache[Any]) -> None:
    other = ("writes", "other")
    entries: Any = {(NS, "a"): (1, None), (other, "a"): (2, None)}
    cache.set(entries)
    cache.clear([NS, ("unknown",)])
    assert cache.get([(NS, "a"), (other, "a")]) == {(other, "a"): 2}
    cache.clear([])
    assert cache.get([(other, "a")]) == {(other, "a"): 2}
    cache.clear()
    assert cache.get([(other, "a")]) == {}


async def test_the_async_methods_do_the_same(cache: InMemoryCache[Any]) -> None:
    await cache.aset({(NS, "a"): (1, None)})
    assert await cache.aget([(NS, "a")]) == {(NS, "a"): 1} == cache.get([(NS, "a")])
    await cache.aclear([NS])
    assert await cache.aget([(NS, "a")]) == {}


def test_a_cache_uses_the_serializer_it_is_given() -> None:
    class Text:
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            return "text", str(obj).encode()

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            return data[1].decode()

    cache: InMemoryCache[Any] = InMemoryCache(serde=Text())  # type: ignore[arg-type]
    cache.set({(NS, "a"): (1, None)})
    assert cache.get([(NS, "a")]) == {(NS, "a"): "1"}


def test_a_cache_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        BaseCache()  # type: ignore[abstract]
