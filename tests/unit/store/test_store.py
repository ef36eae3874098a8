"""The store in memory, which is also the model of what every store does."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import langgraph.store.base as their_base
import langgraph.store.memory as theirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import surestep.store.base as base
from surestep.store.base import (
    NOT_PROVIDED,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)
from surestep.store.memory import InMemoryStore


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


def keys(items: list[SearchItem]) -> list[str]:
    return [item.key for item in items]


# Like LangGraph's

LABELS = st.sampled_from(["u", "v", "w"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
PATTERNS = st.none() | st.lists(LABELS | st.just("*"), min_size=1, max_size=3).map(tuple)
VALUES: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {}, optional={"n": st.integers(0, 3) | st.none(), "d": st.fixed_dictionaries({"p": st.integers(0, 2)})}
)
FILTERS = st.none() | st.sampled_from(
    [
        {"n": 1},
        {"n": {"$ne": 1}},
        {"n": None},
        {"d": {"p": 1}},
        {"d": {"p": {"$gte": 1}}},
        {"n": {"$eq": 2}, "d": {}},
        {"missing": {"$eq": None}},
    ]
)
CALLS = st.one_of(
    st.builds(lambda ns, k, v: ("put", (ns, k, v), {}), NAMESPACES, st.sampled_from("ab"), VALUES),
    st.builds(lambda ns, k: ("get", (ns, k), {}), NAMESPACES, st.sampled_from("ab")),
    st.builds(
        lambda ns, f, limit, offset: ("search", (ns,), {"filter": f, "limit": limit, "offset": offset}),
        st.just(()) | NAMESPACES,
        FILTERS,
        st.integers(0, 3),
        st.integers(0, 2),
    ),
    st.builds(
        lambda p, s, depth: ("list_namespaces", (), {"prefix": p, "suffix": s, "max_depth": depth}),
        PATTERNS,
        PATTERNS,
        st.none() | st.integers(1, 3),
    ),
)


def seen(result: Any) -> Any:
    if isinstance(result, list):
        return [seen(part) for part in result]
    if hasattr(result, "namespace"):
        return result.namespace, result.key, result.value, getattr(result, "score", "none")
    return result


@given(st.lists(CALLS, max_size=15))
def test_a_store_behaves_alike(calls: list[Any]) -> None:
    mine, reference = InMemoryStore(), theirs.InMemoryStore()
    for name, args, kwargs in calls:
        ours_seen = seen(getattr(mine, name)(*args, **kwargs))
        if ours_seen is None and name == "get":
            continue  # looking for an item makes its namespace in LangGraph's, which is then listed
        assert ours_seen == seen(getattr(reference, name)(*args, **kwargs)), (name, args, kwargs)


def test_every_public_name_is_there() -> None:
    for name in (*their_base.__all__, "InvalidNamespaceError", "NOT_PROVIDED", "Result", "TTLConfig"):
        assert hasattr(base, name), name


@pytest.mark.parametrize("name", ["GetOp", "SearchOp", "PutOp", "ListNamespacesOp", "MatchCondition"])
def test_operations_have_the_same_fields(name: str) -> None:
    mine, reference = getattr(base, name), getattr(their_base, name)
    assert mine._fields == reference._fields and mine._field_defaults == reference._field_defaults
    assert mine.__module__ == "surestep.store.base"


# Items


def test_an_item_is_what_it_holds() -> None:
    fields: dict[str, Any] = {"value": {"a": 1}, "key": "k", "namespace": ["u", "1"]}
    times: dict[str, Any] = {"created_at": "2026-01-02T03:04:05+00:00", "updated_at": "2026-01-02T03:04:06+00:00"}
    item = Item(**fields, **times)
    assert item.namespace == ("u", "1") and item.created_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert item.dict() == {**fields, **times}
    assert item == Item(**fields, **times) != Item(**fields, **{**times, "updated_at": times["created_at"]})
    assert hash(item) == hash((("u", "1"), "k"))
    assert pickle.loads(pickle.dumps(item)) == item
    found = SearchItem(("u",), "k", {}, item.created_at, item.updated_at, 0.5)
    assert found.dict()["score"] == 0.5 and repr(found).startswith("SearchItem(namespace=['u'], key='k'")


def test_overwriting_keeps_when_it_was_made(store: InMemoryStore) -> None:
    # LangGraph's stores differ: memory and SQLite forget it, PostgreSQL keeps it.
    store.put(("u",), "k", {"n": 1})
    first = store.get(("u",), "k")
    store.put(("u",), "k", {"n": 2})
    second = store.get(("u",), "k")
    assert first is not None and second is not None
    assert first.value == {"n": 1} and second.value == {"n": 2}
    assert first.created_at == second.created_at <= first.updated_at <= second.updated_at


def test_nobody_shares_a_value(store: InMemoryStore) -> None:
    value = {"list": [{"n": 1}]}
    store.put(("u",), "k", value)
    value["list"][0]["n"] = 2
    got = store.get(("u",), "k")
    assert got is not None and got.value == {"list": [{"n": 1}]}
    got.value["list"].append("more")
    assert store.search(("u",))[0].value == {"list": [{"n": 1}]}


def test_keys_are_text(store: InMemoryStore) -> None:
    store.put(("u",), 5, {"n": 1})  # type: ignore[arg-type]
    assert store.get(("u",), "5") == store.get(("u",), 5)  # type: ignore[arg-type]
    store.delete(("u",), 5)  # type: ignore[arg-type]
    assert store.get(("u",), "5") is None


# Namespaces


@pytest.mark.parametrize(
    ("namespace", "reason"),
    [
        ((), "cannot be empty"),
        (("langgraph", "x"), "reserved"),
        (("a.b",), "periods"),
        (("",), "cannot be empty"),
        ((1,), "must be text, got int"),
        (("a", "\0"), "NUL"),
        ("users", r"write \('users',\)"),
    ],
)
def test_namespaces_that_cannot_be(store: InMemoryStore, namespace: Any, reason: str) -> None:
    with pytest.raises(InvalidNamespaceError, match=reason):
        store.put(namespace, "k", {})
    assert store.list_namespaces() == []


@pytest.mark.parametrize("namespace", [("a.b",), ("",), (1,), ("a", "\0"), "users"])
def test_labels_that_cannot_be_are_refused_everywhere(store: InMemoryStore, namespace: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: store.get(namespace, "k"),
        lambda: store.delete(namespace, "k"),
        lambda: store.search(namespace),
        lambda: store.list_namespaces(prefix=namespace),
        lambda: validate_op_namespace(GetOp(namespace, "k")),
        lambda: validate_op_namespace(SearchOp(namespace)),
        lambda: validate_op_namespace(PutOp(namespace, "k", None)),
        lambda: validate_op_namespace(ListNamespacesOp((MatchCondition("suffix", namespace),))),
    ]
    for call in calls:
        with pytest.raises(InvalidNamespaceError):
            call()


def test_a_list_of_labels_is_a_namespace(store: InMemoryStore) -> None:
    store.put(["u", "1"], "k", {})  # type: ignore[arg-type]
    assert store.get(("u", "1"), "k") is not None


def test_a_prefix_is_made_of_whole_labels(store: InMemoryStore) -> None:
    for namespace in (("u", "1"), ("u", "10"), ("u",)):
        store.put(namespace, "k", {})
    assert [item.namespace for item in store.search(("u", "1"))] == [("u", "1")]
    assert store.list_namespaces(prefix=("u", "1")) == [("u", "1")]


def test_a_namespace_without_items_is_gone(store: InMemoryStore) -> None:
    store.put(("u",), "k", {})
    store.delete(("u",), "k")
    store.delete(("u",), "k")
    assert store.list_namespaces() == []


# Batches


def test_a_batch_reads_before_it_writes(store: InMemoryStore) -> None:
    results = store.batch(
        [
            PutOp(("u",), "k", {"n": 1}),
            GetOp(("u",), "k"),
            PutOp(("u",), "k", {"n": 2}),
            SearchOp(("u",)),
            ListNamespacesOp(),
        ]
    )
    assert results == [None, None, None, [], []]
    item = store.get(("u",), "k")
    assert item is not None and item.value == {"n": 2}


def test_what_no_store_does(store: InMemoryStore) -> None:
    with pytest.raises(ValueError, match="Unknown operation"):
        store.batch([5])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="Unsupported match type"):
        store.put(("u",), "k", {})
        store.batch([ListNamespacesOp((MatchCondition("middle", ("u",)),))])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cannot be negative"):
        store.search((), limit=-1)
    with pytest.raises(ValueError, match="cannot be negative"):
        store.list_namespaces(offset=-1)


def test_no_time_to_live(store: InMemoryStore) -> None:
    with pytest.raises(NotImplementedError, match="TTL is not supported by InMemoryStore"):
        store.put(("u",), "k", {}, ttl=5)
    store.put(("u",), "k", {}, ttl=None)
    assert repr(NOT_PROVIDED) == "NOT_GIVEN" and not NOT_PROVIDED


class Remembers(InMemoryStore):
    """A store with times to live, which notes what it is asked."""

    supports_ttl = True
    ttl_config = base.TTLConfig(default_ttl=7, refresh_on_read=False)
    asked: list[Any]

    def batch(self, ops: Any) -> Any:
        self.asked = list(ops)
        return super().batch(self.asked)


def test_times_to_live_as_configured() -> None:
    store = Remembers()
    for given_ttl, ttl in (({}, 7), ({"ttl": None}, None), ({"ttl": 3}, 3)):
        store.put(("u",), "k", {}, **given_ttl)
        assert store.asked[0].ttl == ttl
    for given_refresh, refresh in (({}, False), ({"refresh_ttl": True}, True)):
        store.get(("u",), "k", **given_refresh)
        assert store.asked == [GetOp(("u",), "k", refresh)]
        store.search(("u",), **given_refresh)
        assert store.asked[0].refresh_ttl is refresh


async def test_the_async_methods_do_the_same(store: InMemoryStore) -> None:
    await store.aput(("u",), "a", {"n": 1})
    item = await store.aget(("u",), "a")
    assert item == store.get(("u",), "a") and item is not None
    assert keys(await store.asearch(("u",), filter={"n": 1})) == ["a"]
    assert await store.alist_namespaces(prefix=("u",)) == [("u",)]
    await store.adelete(("u",), "a")
    assert await store.aget(("u",), "a") is None
    with pytest.raises(InvalidNamespaceError):
        await store.aput((), "a", {})


def test_several_threads_at_once(store: InMemoryStore) -> None:
    start = threading.Barrier(4)

    def work(number: int) -> None:
        start.wait()
        for i in range(100):
            store.put(("u", str(i % 7)), f"{number}-{i}", {"n": i})
            store.search(("u",), limit=5)
            store.list_namespaces()
            if i % 3 == 0:
                store.delete(("u", str(i % 7)), f"{number}-{i}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.search((), limit=1000)) == 4 * 66


# Filters: one meaning for all stores

FILTERED = {
    "int": {"a": 1, "s": "x", "n": {"p": 1, "q": 2}, "l": [1, {"z": 1}], "o": None},
    "digits": {"a": "10", "s": "y"},
    "float": {"a": 2.5, "n": {"p": 1}},
    "text": {"a": "abc"},
    "none": {"a": None},
}


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ({}, ["int", "digits", "float", "text", "none"]),
        ({"a": 1}, ["int"]),
        ({"a": {"$ne": 1}}, ["digits", "float", "text", "none"]),
        ({"a": {"$gt": 1}}, ["float"]),
        ({"a": {"$gte": 1, "$lt": 2.5}}, ["int"]),
        ({"a": {"$lt": "5"}}, ["digits"]),
        ({"a": {"$lte": "b"}}, ["digits", "text"]),
        ({"missing": None}, ["int", "digits", "float", "text", "none"]),
        ({"missing": {"$gt": 0}}, []),
        ({"missing": {"$ne": 1}}, ["int", "digits", "float", "text", "none"]),
        ({"n": {"p": 1}}, ["int", "float"]),
        ({"n": {"p": {"$gt": 0}, "q": 2}}, ["int"]),
        ({"n": {"$eq": {"p": 1}}}, ["float"]),
        ({"n": {}}, ["int", "float"]),
        ({"n.p": 1}, ["int", "float"]),
        ({"l": [1, {"z": 1}]}, ["int"]),
        ({"l": [1]}, []),
        ({"s": "x", "a": 1}, ["int"]),
        ({"s": "x", "a": 2}, []),
    ],
    ids=repr,
)
def test_filters(store: InMemoryStore, filter: dict[str, Any], found: list[str]) -> None:
    for key, value in FILTERED.items():
        store.put(("f",), key, value)
    assert keys(store.search(("f",), filter=filter)) == found


@pytest.mark.parametrize("operators", [{"$in": [1]}, {"$gt": 1, "x": 1}], ids=repr)
def test_operators_that_nobody_knows(store: InMemoryStore, operators: dict[str, Any]) -> None:
    store.put(("f",), "k", {"a": 2})
    with pytest.raises(ValueError, match=r"Unsupported operator: .*\$gte"):
        store.search(("f",), filter={"a": operators})
