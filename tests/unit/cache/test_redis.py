"""The cache in Redis, on a real server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import langgraph.cache.redis as theirs
import pytest
import redis
import redis.asyncio

from surestep.cache.memory import InMemoryCache
from surestep.cache.redis import RedisCache
from surestep.cache.sqlite import SqliteCache

NS, OTHER = ("writes", "node"), ("writes", "other")


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
def cache(client: redis.Redis) -> RedisCache[Any]:
    return RedisCache(client)


def test_what_was_stored_is_found(cache: RedisCache[Any]) -> None:
    cache.set({(NS, "a"): ([("k", [1])], None), (NS, "b"): ("text", None)})
    assert cache.get([(NS, "b"), (NS, "c"), (OTHER, "b")]) == {(NS, "b"): "text"}
    assert [tuple(pair) for pair in cache.get([(NS, "a")])[NS, "a"]] == [("k", [1])]
    assert cache.get([]) == {}
    cache.set({(NS, "b"): ("newer", None)})
    cache.set({})
    assert cache.get([(NS, "b")]) == {(NS, "b"): "newer"}


def test_a_value_lives_for_its_time(cache: RedisCache[Any], client: redis.Redis) -> None:
    every = [(NS, key) for key in ("long", "ever", "never", "gone")]
    cache.set({every[3]: (4, None)})
    cache.set({every[0]: (1, 20), every[1]: (2, None), every[2]: (3, 0), every[3]: (4, -1)})
    assert cache.get(every) == {every[0]: 1, every[1]: 2}
    assert 0 < client.pttl("langgraph:cache:writes:node:long") <= 20_000  # type: ignore[operator]
    assert client.pttl("langgraph:cache:writes:node:ever") == -1
    cache.set({every[0]: (1, None)})
    assert client.pttl("langgraph:cache:writes:node:long") == -1


SIMILAR = [
    *(((), "a:b"), (("a",), "b"), (("a", "b"), ""), (("a:b",), ""), (("a",), "b:"), (("a", ""), "b"), (("", "a"), "b")),
    *((("a%3Ab",), ""), (("a,b",), "c"), (("a", "b"), "c"), (("a%2Cb",), "c"), (("",), "c"), ((), "c"), (("%",), "c")),
]


@pytest.mark.parametrize("kind", ["redis", "sqlite", "memory"])
def test_no_two_entries_are_the_same(kind: str, request: pytest.FixtureRequest, tmp_path: Any) -> None:
    if kind == "redis":
        cache: Any = request.getfixturevalue("cache")
    else:
        cache = InMemoryCache() if kind == "memory" else SqliteCache(path=str(tmp_path / "cache.db"))
    cache.set({full: (number, None) for number, full in enumerate(SIMILAR)})
    assert cache.get(SIMILAR) == {full: number for number, full in enumerate(SIMILAR)}
    for namespace in {namespace for namespace, _ in SIMILAR}:
        cache.clear([namespace])
        left = cache.get(SIMILAR)
        assert not [full for full in left if full[0] == namespace]
        cache.set({full: (number, None) for number, full in enumerate(SIMILAR) if full[0] == namespace})
        assert len(cache.get(SIMILAR)) == len(SIMILAR)


def test_clearing(cache: RedisCache[Any], client: redis.Redis) -> None:
    other = RedisCache[Any](client, prefix="an*other?:")
    client.set("of somebody else", b"1")
    for one in (cache, other):
        one.set({(NS, str(number)): (number, None) for number in range(3000)})
        one.set({(OTHER, "a"): (1, None), (("writes",), "node"): (2, None), ((*NS, "below"), "a"): (3, None)})
    cache.clear([NS, ("never", "there")])
    left = [(NS, "5"), (OTHER, "a"), (("writes",), "node"), ((*NS, "below"), "a")]
    assert [*cache.get(left)] == left[1:] and [*other.get(left)] == left
    cache.clear()
    assert cache.get(left) == {} and [*other.get(left)] == left
    other.clear([])
    other.clear()
    assert client.keys() == [b"of somebody else"]


@pytest.mark.filterwarnings("ignore:Call to deprecated setex")
def test_langgraphs_entries_are_found_and_ours_by_it(cache: RedisCache[Any], client: redis.Redis) -> None:
    their: Any = theirs.RedisCache(client)
    their.set({(NS, "theirs"): ({"n": [1]}, 60)})
    cache.set({(NS, "ours"): ({"n": [2]}, 60)})
    both = [(NS, "theirs"), (NS, "ours")]
    assert cache.get(both) == their.get(both) == {both[0]: {"n": [1]}, both[1]: {"n": [2]}}


def test_an_entry_that_cannot_be_read(
    cache: RedisCache[Any], client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    cache.set({(NS, "good"): (1, None), (NS, "bad"): (2, None)})
    client.set("langgraph:cache:writes:node:bad", b"no such tag:...")
    assert cache.get([(NS, "good"), (NS, "bad")]) == {(NS, "good"): 1}
    assert "cannot be read" in caplog.text


async def test_a_server_that_cannot_be_reached(caplog: pytest.LogCaptureFixture, tmp_path: Any) -> None:
    nowhere = f"unix://{tmp_path}/nobody"
    for cache in (RedisCache[Any](redis.Redis.from_url(nowhere)), RedisCache[Any](redis.asyncio.from_url(nowhere))):
        await cache.aset({(NS, "a"): (1, None)})
        assert await cache.aget([(NS, "a")]) == {}
        await cache.aclear()
    assert caplog.text.count("The cache's server cannot be used") == 6
    with pytest.raises(TypeError, match="cannot unpack"):
        RedisCache[Any](redis.Redis.from_url(nowhere)).set({(NS, "a"): 1})  # type: ignore[dict-item]


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_on_an_event_loop(redis_url: str, kind: str) -> None:
    make = redis.Redis.from_url if kind == "sync" else redis.asyncio.from_url
    client: Any = make(redis_url)
    cache = RedisCache[Any](client)
    await asyncio.gather(*[cache.aset({(NS, str(number)): (number, None)}) for number in range(10)])
    keys = [(NS, str(number)) for number in range(10)]
    assert [*(await cache.aget(keys)).values()] == [*range(10)]
    await cache.aclear([NS])
    assert await cache.aget(keys) == await cache.aget([]) == {}
    if kind == "async":
        with pytest.raises(TypeError, match="only the async methods"):
            cache.get(keys)
        await client.aclose()
    else:
        client.close()


def test_a_client_that_decodes(redis_url: str) -> None:
    with (
        redis.Redis.from_url(redis_url, decode_responses=True) as client,
        pytest.raises(ValueError, match="decode_responses=False"),
    ):
        RedisCache(client)


def test_a_graph_with_a_cache_in_redis(cache: RedisCache[Any], caplog: pytest.LogCaptureFixture) -> None:
    from typing import TypedDict

    from surestep.graph import START, StateGraph
    from surestep.types import CachePolicy

    class State(TypedDict):
        x: int

    ran: list[int] = []

    def node(state: State) -> State:
        ran.append(state["x"])
        if len(ran) == 1:
            raise RuntimeError("down")
        return {"x": state["x"] + 1}

    builder = StateGraph(State).add_node("node", node, cache_policy=CachePolicy(ttl=60)).add_edge(START, "node")
    graph = builder.compile(cache=cache)
    with pytest.raises(RuntimeError, match="down"):
        graph.invoke({"x": 1})
    assert [graph.invoke({"x": 1}) for _ in range(3)] == [{"x": 2}] * 3 and ran == [1, 1]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
