"""What every store does, whatever it keeps its items in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from stores.kinds import Face

from surestep.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

VALUES: list[dict[str, Any]] = [
    {},
    {"text": "é\n\"quoted\" 'single' \\ / 日本 🎉", "": "empty key"},
    {"numbers": [0, -1, 1.5, 1.0, 1e300, -1e22, 10**22, 5e-324, -0.1, 2**53, 2**70], "flags": [True, False, None]},
    {"text": '1e+22 " 1e+22 \\', "number": 1e22},
    {"deep": {"est": [{"a": [[]]}, {}]}, "dotted.key": 1, "$eq": 2},
    {"': DROP TABLE store; --": "x' OR '1'='1", "%s ? :name": "%d ?"},
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_what_was_put_comes_back(store: Face, value: dict[str, Any]) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    store.put(("users", "é"), "key", value)
    item = store.get(("users", "é"), "key")
    assert (item.namespace, item.key, item.value) == (("users", "é"), "key", value)
    assert repr(sorted(item.value.items())) == repr(sorted(value.items()))
    assert before < item.created_at <= item.updated_at < datetime.now(UTC) + timedelta(seconds=1)
    assert item.created_at.utcoffset() == timedelta(0)
    (found,) = store.search(())
    assert (found.value, found.score, found.created_at) == (value, None, item.created_at)


def test_what_was_given_is_nobody_elses(store: Face) -> None:
    value = {"list": [1]}
    store.put(("u",), "k", value)
    value["list"].append(2)
    first, second = store.batch([GetOp(("u",), "k"), GetOp(("u",), "k")])
    first.value["list"].append(3)
    assert second.value == store.get(("u",), "k").value == {"list": [1]}


def test_an_item_that_is_overwritten(store: Face) -> None:
    store.put(("u",), "k", {"a": 1, "b": 2})
    before = store.get(("u",), "k")
    store.put(("u",), "k", {"a": 3})
    after = store.get(("u",), "k")
    assert after.value == {"a": 3}
    assert after.created_at == before.created_at and after.updated_at > before.updated_at


def test_an_item_that_is_deleted(store: Face) -> None:
    store.put(("u",), "k", {"a": 1})
    store.delete(("u",), "k")
    store.delete(("u",), "never there")
    assert store.get(("u",), "k") is None and store.search(()) == [] and store.list_namespaces() == []


def test_a_batch_reads_before_it_writes_and_the_last_write_counts(store: Face) -> None:
    store.put(("u",), "old", {"n": 0})
    results = store.batch(
        [
            PutOp(("u",), "old", {"n": 1}),
            GetOp(("u",), "old"),
            PutOp(("u",), "new", {"n": 1}),
            PutOp(("u",), "old", {"n": 2}),
            SearchOp(("u",)),
            PutOp(("u",), "new", None),
            ListNamespacesOp((MatchCondition("prefix", ("*",)),)),
            GetOp(("u",), "new"),
        ]
    )
    assert [results[i] for i in (0, 2, 3, 5, 7)] == [None] * 5
    assert results[1].value == {"n": 0} and results[6] == [("u",)]
    assert [item.key for item in results[4]] == ["old"]
    assert [(item.key, item.value) for item in store.search(())] == [("old", {"n": 2})]
    assert store.batch([]) == []


def test_a_batch_that_fails_changes_nothing(store: Face) -> None:
    with pytest.raises(ValueError, match=r"Unsupported operator: \$in"):
        store.batch([PutOp(("u",), "k", {"a": 1}), SearchOp((), {"a": {"$in": [1]}})])
    with pytest.raises(ValueError, match="limit and offset cannot be negative"):
        store.batch([PutOp(("u",), "k", {"a": 1}), SearchOp((), limit=-1)])
    with pytest.raises(ValueError, match="Unknown operation type"):
        store.batch([PutOp(("u",), "k", {"a": 1}), "get"])
    assert store.search(()) == []


def test_namespaces_end_where_their_labels_end(store: Face) -> None:
    namespaces = [("u", "1"), ("u", "10"), ("u", "1", "sub"), ("u", "1_"), ("u", "1%"), ("u", "1/"), ("u",), ("U", "1")]
    for namespace in namespaces:
        store.put(namespace, "k", {})
    assert sorted(item.namespace for item in store.search(("u", "1"))) == [("u", "1"), ("u", "1", "sub")]
    assert sorted(item.namespace for item in store.search(("u",))) == sorted(namespaces[:-1])
    assert store.list_namespaces(prefix=("u", "1")) == [("u", "1"), ("u", "1", "sub")]
    assert store.list_namespaces(suffix=("1",)) == [("U", "1"), ("u", "1")]
    assert store.list_namespaces(prefix=("*", "1"), suffix=("sub",)) == [("u", "1", "sub")]
    assert store.list_namespaces(max_depth=1) == [("U",), ("u",)]
    assert store.list_namespaces(limit=2, offset=1) == sorted(namespaces)[1:3]


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("a", "\0"), ("langgraph",), ("a", 1)], ids=repr)
def test_namespaces_that_cannot_be(store: Face, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k", {})


def test_keys_may_be_anything(store: Face) -> None:
    keys = ["", " ", "a.b", "é", "日本", "'", '"', "%", "_", "?", "a/b\\c", "x" * 1000]
    for number, key in enumerate(keys):
        store.put(("u",), key, {"n": number})
    assert [store.get(("u",), key).value["n"] for key in keys] == [*range(len(keys))]
    assert [item.value["n"] for item in store.batch([GetOp(("u",), key) for key in keys])] == [*range(len(keys))]
    store.put(("u",), 5, {"n": 5})
    assert store.get(("u",), "5").value == store.get(("u",), 5).value == {"n": 5}


def test_pages_of_a_search(store: Face) -> None:
    for number in range(25):
        store.put(("u",), str(number), {"n": number, "even": number % 2 == 0})
    numbers = [item.value["n"] for item in store.search((), limit=100)]
    assert numbers == sorted(numbers, reverse=store.lasts)
    assert [item.value["n"] for item in store.search(())] == numbers[:10]
    assert [item.value["n"] for item in store.search((), limit=7, offset=20)] == numbers[20:]
    even = [number for number in numbers if number % 2 == 0]
    for filter in ({"even": True}, {"n": {"$ne": 1}, "even": {"$eq": True}}):
        for limit, offset in ((5, 0), (5, 5), (5, 10), (100, 3), (0, 0)):
            found = store.search((), filter=filter, limit=limit, offset=offset)
            assert [item.value["n"] for item in found] == even[offset : offset + limit]


class Color(Enum):
    RED = "red"


def test_values_that_json_has_no_form_for(lasting: str, open_store: Callable[..., Face]) -> None:
    store = open_store(lasting)
    moment, id = datetime(2026, 1, 2, 3, 4, tzinfo=UTC), UUID(int=1)
    store.put(("u",), "k", {"at": moment, "id": id, "color": Color.RED, "pair": (1, 2)})
    said = {"at": moment.isoformat(), "id": str(id), "color": "red", "pair": [1, 2]}
    assert store.get(("u",), "k").value == said
    with pytest.raises(TypeError, match=r"value\['a'\]\[1\] is a object, and items of this store are JSON"):
        store.put(("u",), "k", {"a": [1, object()]})
    with pytest.raises(TypeError, match="keys of stored values must be text"):
        store.put(("u",), "k", {"a": {1: 2}})
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.put(("u",), "k", {"a": float("nan")})
    assert store.get(("u",), "k").value == said


# Time to live


@pytest.fixture
def living(lasting: str, open_store: Callable[..., Face]) -> Face:
    return open_store(lasting, ttl={"default_ttl": 10, "refresh_on_read": True})


def test_what_has_expired_is_not_there(living: Face) -> None:
    living.put(("u",), "short", {"a": 1})
    living.put(("u", "long"), "long", {"a": 1}, ttl=30)
    living.put(("u", "ever"), "ever", {"a": 1}, ttl=None)
    created = living.get(("u",), "short", refresh_ttl=False).created_at
    living.age(11)
    assert living.get(("u",), "short") is None
    assert {item.key for item in living.search((), filter={"a": 1}, refresh_ttl=False)} == {"long", "ever"}
    assert {item.key for item in living.search((), refresh_ttl=False)} == {"long", "ever"}
    assert living.list_namespaces() == [("u", "ever"), ("u", "long")]
    assert living.sweep_ttl() == 1 and living.sweep_ttl() == 0
    living.age(30)
    living.put(("u", "long"), "long", {"a": 2})
    again = living.get(("u", "long"), "long", refresh_ttl=False)
    assert again.created_at == again.updated_at > created
    assert living.sweep_ttl() == 0


def test_reading_starts_the_time_anew_where_it_is_asked_for(living: Face) -> None:
    for key in ("read", "searched", "quiet", "silent", "page two"):
        living.put(("u",), key, {"key": key})
    living.age(6)
    living.get(("u",), "read")
    living.search((), filter={"key": "searched"})
    living.search((), refresh_ttl=False)
    living.batch([GetOp(("u",), "quiet", False), SearchOp((), {"key": "silent"}, refresh_ttl=False)])
    living.search((), filter={"key": {"$ne": "read"}}, limit=0, offset=1)
    living.age(6)
    assert {item.key for item in living.search((), refresh_ttl=False)} == {"read", "searched"}
    living.age(6)
    assert living.search(()) == [] and living.sweep_ttl() == 5


def test_a_batch_that_reads_and_writes_refreshes_what_it_only_read(living: Face) -> None:
    living.put(("u",), "a", {"n": 1})
    living.put(("u",), "b", {"n": 1})
    living.age(6)
    living.batch([GetOp(("u",), "a"), PutOp(("u",), "b", {"n": 2}, ttl=2), GetOp(("u",), "b")])
    living.age(3)
    assert [item.key for item in living.search((), refresh_ttl=False)] == ["a"]


def test_fractions_of_minutes_and_very_long_times(living: Face) -> None:
    living.put(("u",), "half", {}, ttl=0.5)
    living.put(("u",), "long", {}, ttl=1e15)
    living.age(0.4)
    assert living.get(("u",), "half") is not None
    living.age(0.4)
    assert living.get(("u",), "half") is not None, "the refresh gives it half a minute again"
    living.age(0.6)
    assert living.get(("u",), "half") is None and living.get(("u",), "long") is not None


def test_a_store_in_memory_has_no_time_to_live(open_store: Callable[..., Face]) -> None:
    with pytest.raises(NotImplementedError, match="TTL is not supported by InMemoryStore"):
        open_store("memory").put(("u",), "k", {}, ttl=1)


# By meaning


def letters(texts: Any) -> list[list[float]]:
    """How often each of four letters is in the text."""
    return [[float(text.count(letter)) for letter in "abcd"] for text in texts]


INDEX: Any = {"dims": 4, "embed": letters, "fields": ["text", "more[*]"]}


def test_the_nearest_first(kind: str, open_store: Callable[..., Face]) -> None:
    store = open_store(kind, index=INDEX)
    store.put(("u",), "a", {"text": "aaa", "n": 1})
    store.put(("u",), "ab", {"text": "ab", "n": 2})
    store.put(("u",), "b or a", {"more": ["bb", "a"], "n": 3})
    store.put(("u",), "hidden", {"text": "a", "n": 4}, index=False)
    store.put(("u",), "by n", {"text": "d", "other": "c"}, index=["other"])
    store.put(("v",), "elsewhere", {"text": "a"})
    found = store.search(("u",), query="aa")
    scores = {item.key: item.score for item in found}
    assert scores == pytest.approx({"a": 1, "b or a": 1, "ab": 0.5**0.5, "by n": 0, "hidden": None})
    assert [item.key for item in found][2:] == ["ab", "by n", "hidden"]
    some = store.search(("u",), query="a", filter={"n": {"$gte": 2}})
    assert [item.key for item in some] == ["b or a", "ab", "hidden"]
    assert [item.key for item in store.search(("u",), query="b", limit=1)] == ["b or a"]
    assert [item.key for item in store.search(("u",), query="b", limit=1, offset=1)] == ["ab"]
    assert len(store.search((), query="a")) == 6 and store.search(("w",), query="a") == []
    assert {item.score for item in store.search(("u",), query="")} == {None}


def test_a_vector_goes_with_its_item(kind: str, open_store: Callable[..., Face]) -> None:
    store = open_store(kind, index=INDEX)
    store.put(("u",), "k", {"text": "a", "more": ["b", "c"]})
    store.put(("u",), "k", {"more": ["d"]})
    store.put(("u",), "gone", {"text": "a"})
    store.delete(("u",), "gone")
    store.put(("u",), "gone", {"text": "a"}, index=False)
    assert {item.key: item.score for item in store.search((), query="abc")} == {"k": 0, "gone": None}
    store.batch([PutOp(("u",), "k", {"text": "a"}), PutOp(("u",), "k", {"text": "b"})])
    assert [item.score for item in store.search((), query="b", limit=1)] == pytest.approx([1])
    with pytest.raises(ValueError, match=r"a vector of 4 numbers, and the index has dims=3"):
        open_store(kind, index={**INDEX, "dims": 3}).put(("u",), "k", {"text": "x"})


def test_a_store_without_an_index_leaves_no_old_vectors(lasting: str, open_store: Callable[..., Face]) -> None:
    indexed = open_store(lasting, index=INDEX, ttl={"default_ttl": 5})
    indexed.put(("u",), "k", {"text": "a"})
    indexed.put(("u",), "expires", {"text": "a"})
    plain = open_store(lasting)
    plain.put(("u",), "k", {"text": "b"})
    scores = {item.key: item.score for item in indexed.search((), query="a", refresh_ttl=False)}
    assert scores == {"expires": pytest.approx(1), "k": None}
    indexed.age(6)
    assert plain.sweep_ttl() == 1
    assert indexed.sql is not None and indexed.sql("SELECT * FROM store_vectors") == []


DISTANCES = {
    "cosine": {"same": 1, "long": 6 / 52**0.5, "other": 0},
    "l2": {"same": 0, "long": -(32**0.5), "other": -(8**0.5)},
    "inner_product": {"same": 4, "long": 12, "other": 0},
}


@pytest.mark.parametrize("distance", DISTANCES)
def test_distances(lasting: str, open_store: Callable[..., Face], distance: str) -> None:
    store = open_store(lasting, index={**INDEX, "distance_type": distance})
    for key, text in (("same", "aa"), ("long", "aaaaaabbbb"), ("other", "bb")):
        store.put(("u",), key, {"text": text})
    found = [(item.key, item.score) for item in store.search((), query="aa")]
    assert dict(found) == pytest.approx(DISTANCES[distance], abs=1e-6)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


def test_a_distance_that_there_is_not(lasting: str, open_store: Callable[..., Face]) -> None:
    with pytest.raises(ValueError, match="Unknown distance_type 'near'"):
        open_store(lasting, index={**INDEX, "distance_type": "near"})
