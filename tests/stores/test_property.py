"""Any batches, one after the other, give the same in every store as in a plain model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores.kinds import Face
from stores.model import Model

from surestep.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp

LABELS = st.sampled_from(["u", "u1", "v", "é", "*"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
PREFIXES = st.lists(LABELS, max_size=2).map(tuple)
KEYS = st.sampled_from(["a", "b", "B", "é"])

FIELDS = st.sampled_from(["n", "t", "d", "n.x", "it's", 'say "hi"', "ключ", ""])
ODD_NUMBERS = [0, 1, -1, 0.1, 0.1 + 0.2, 0.3, 1.5, 1e22, -0.0, 2**53, 2**53 + 1, 2**63, 2**70, 10**400, 5e-324]
ODD_TEXTS = ["", "a", "b", "ab", "A", "1", "true", "null", "é", "日本", "🎉", "\uffff", "'", '"', "\\", "%", "[]", "{}"]
SCALARS = st.none() | st.booleans() | st.sampled_from(ODD_NUMBERS) | st.sampled_from(ODD_TEXTS)
PARTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(FIELDS, inner, max_size=2), max_leaves=4
)
VALUES = st.dictionaries(FIELDS, PARTS, max_size=3)

OPERATORS = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
NUMBERS = st.sampled_from([*ODD_NUMBERS, float("inf"), float("-inf")])
CONDITIONS = SCALARS | st.dictionaries(OPERATORS, SCALARS | NUMBERS, min_size=1, max_size=2)
CONDITIONS = CONDITIONS | st.lists(SCALARS, max_size=2) | st.dictionaries(FIELDS, CONDITIONS, max_size=2)
FILTERS = st.none() | st.dictionaries(FIELDS, CONDITIONS, max_size=2)

GETS = st.tuples(NAMESPACES, KEYS).map(lambda given: GetOp(*given))
PUTS = st.tuples(NAMESPACES, KEYS, st.none() | VALUES).map(lambda given: PutOp(*given))
SEARCHES = st.tuples(PREFIXES, FILTERS, st.sampled_from([0, 1, 2, 10]), st.integers(0, 2)).map(
    lambda given: SearchOp(*given)
)
PATTERNS = st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), NAMESPACES)
LISTS = st.tuples(
    st.none() | st.lists(PATTERNS, max_size=2).map(tuple),
    st.none() | st.integers(1, 3),
    st.sampled_from([0, 1, 2, 10]),
    st.integers(0, 2),
).map(lambda given: ListNamespacesOp(*given))
BATCHES = st.lists(st.lists(PUTS | PUTS | SEARCHES | GETS | LISTS, min_size=1, max_size=5), max_size=6)


def plain(result: Any, *, in_order: bool) -> Any:
    """A result of a store as the model puts it."""
    if isinstance(result, Item):
        return result.value
    if isinstance(result, list) and result and isinstance(result[0], Item):
        found = [(item.namespace, item.key, item.value) for item in result]
        return found if in_order else sorted(found, key=lambda item: item[:2])
    return result


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(batches=BATCHES)
def test_every_store_is_the_same(store: Face, batches: list[list[Any]]) -> None:
    store.clear()
    model = Model()
    for batch in batches:
        if not store.lasts:
            # A store in memory has an order of its own, so that a page of it is another.
            batch = [op._replace(limit=1000, offset=0) if isinstance(op, SearchOp) else op for op in batch]
        wanted = model.batch(batch)
        results = [plain(result, in_order=store.lasts) for result in store.batch(batch)]
        if not store.lasts:
            wanted = [
                sorted(result, key=lambda item: item[:2]) if isinstance(op, SearchOp) else result
                for op, result in zip(batch, wanted, strict=True)
            ]
        assert results == wanted


@pytest.mark.parametrize("text", ["a\0b", "\0", "a\0", "\ud800"], ids=ascii)
def test_texts_that_a_database_reads_in_its_own_way(store: Face, text: str) -> None:
    if store.lasts and "\ud800" in text:
        with pytest.raises(UnicodeError):
            store.put(("u",), "k", {"t": text})
        return
    if "Postgres" in type(store.store).__name__:
        with pytest.raises(ValueError, match=r"value\['d'\] has the character NUL"):
            store.put(("u",), "k", {"d": text})
        return
    store.put(("u",), "k", {"t": text, "d": {"t": text}})
    store.put(("u",), "other", {"t": "a", "d": {"t": "a"}})
    assert [item.key for item in store.search((), filter={"t": text})] == ["k"]
    assert [item.key for item in store.search((), filter={"t": "a", "d": {"t": "a"}})] == ["other"]
    assert [item.key for item in store.search((), filter={"t": {"$ne": "a"}})] == ["k"]
    for operator in ("$gt", "$gte", "$lt", "$lte"):
        wanted = [key for key, value in (("k", text), ("other", "a")) if _holds(value, operator)]
        found = store.search((), filter={"d": {"t": {operator: "a"}}})
        assert sorted(item.key for item in found) == wanted


def _holds(value: str, operator: str) -> bool:
    return {"$gt": value > "a", "$gte": value >= "a", "$lt": value < "a", "$lte": value <= "a"}[operator]
