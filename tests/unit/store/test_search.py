"""Finding by meaning: what is embedded, and what comes first."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import langgraph.store.base as theirs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding

from surestep.store.base import (
    Embeddings,
    IndexConfig,
    PutOp,
    SearchOp,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)
from surestep.store.base._nearness import DISTANCES, Packed, nearness, packed
from surestep.store.base.embed import EmbeddingsLambda
from surestep.store.memory import InMemoryStore

# Paths

OBJECT = {
    "a": [{"b": 1, "c": "x"}, {"b": 2}],
    "b": "text",
    "n": {"x": {"y": [1, 2]}, "z": None, "t": True, "f": 1.5},
    "e": {},
    "el": [],
    "ö": "é",
}
PATHS = (
    "$ a a[0] a[*].b a[-1].b a[5] a[x] a[*] b n.x n.x.y n.x.y[*] n.z n.t n.f {b,n.x.y} a[*].{b,c} * n.* e el "
    "missing b.c b[0] a[*].* n.{x,z} $.b n.x.*[0] *.x a[-5] ö el[*] a..b .a a. {a a[0].{b,c} "
).split()


@pytest.mark.parametrize("path", ["", *PATHS])
def test_paths_are_read_alike(path: str) -> None:
    assert tokenize_path(path) == theirs.tokenize_path(path)
    assert get_text_at_path(OBJECT, path) == theirs.get_text_at_path(OBJECT, path)
    tokens = tokenize_path(path)
    assert get_text_at_path(OBJECT, tokens) == theirs.get_text_at_path(OBJECT, tokens)


@given(st.text("ab.[]*0{},$", max_size=8))
def test_any_path_is_cut_alike(path: str) -> None:
    assert "".join(tokenize_path(path)).replace(".", "") == path.replace(".", "")
    if not set(path) & set("{}[]"):
        assert tokenize_path(path) == theirs.tokenize_path(path)


@pytest.mark.parametrize("obj", ["text", 5, None, [1, "b"], {"b": 1, "a": "é"}], ids=repr)
@pytest.mark.parametrize("path", ["$", "", "a", "*", "[*]"])
def test_texts_of_anything(obj: Any, path: str) -> None:
    assert get_text_at_path(obj, path) == theirs.get_text_at_path(obj, path)


def test_several_ways_go_as_deep_as_one() -> None:
    # LangGraph finds nothing where a field of several has an index, and drops what follows the braces.
    assert get_text_at_path(OBJECT, "{a[0].b,b}") == ["1", "text"]
    assert get_text_at_path(OBJECT, "{n.x,missing}.y[*]") == ["1", "2"]


# What is embedded


class Letters:
    """Counts letters: texts with many a's are near to each other."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append(list(texts))
        return [[float(text.count("a")), float(text.count("b")), 0.1] for text in texts]


@pytest.fixture
def letters() -> Letters:
    return Letters()


def indexed(embed: Any, **more: Any) -> InMemoryStore:
    return InMemoryStore(index=IndexConfig(dims=3, embed=embed, **more))


def found(store: InMemoryStore, query: str, **more: Any) -> list[tuple[str, float | None]]:
    items = store.search(("n",), query=query, **more)
    return [(item.key, None if item.score is None else round(item.score, 3)) for item in items]


def test_what_is_embedded(letters: Letters) -> None:
    store = indexed(letters, fields=["t", "x[*].y"])
    store.put(("n",), "1", {"t": "aaa", "x": [{"y": "1"}, {"y": "2"}], "z": "no"})
    store.put(("n",), "2", {"t": "aaa"}, index=["u", "v"])
    store.put(("n",), "3", {"t": "aaa"}, index=False)
    store.put(("n",), "4", {"t": "aaa", "u": "b"}, index=["u"])
    assert letters.asked == [["aaa", "1", "2"], ["b"]]


def test_a_batch_is_embedded_at_once(letters: Letters) -> None:
    searches = [SearchOp(("n",), query=query) for query in ("x", "x", "y")]
    indexed(letters).batch([PutOp(("n",), "1", {"t": "q"}), PutOp(("n",), "2", {"t": "w"}, ["t"]), *searches])
    assert letters.asked == [["x"], ["y"], ['{"t": "q"}', "w"]]


def test_the_nearest_come_first_and_the_rest_last(letters: Letters) -> None:
    store = indexed(letters)
    store.put(("n",), "no vector", {"t": "aaa"}, index=False)
    store.put(("n",), "b", {"t": "bbb"})
    store.put(("n",), "both", {"t": "aab", "u": "bb"}, index=["t", "u"])
    store.put(("n",), "a", {"t": "aaa"})
    ranked = [("a", 0.998), ("both", 0.894), ("b", 0.003), ("no vector", None)]
    assert found(store, "a") == ranked
    assert found(store, "a", limit=2, offset=1) == ranked[1:3]
    assert found(store, "b", filter={"t": "bbb"}) == [("b", 0.998)]
    assert found(store, "") == [("no vector", None), ("b", None), ("both", None), ("a", None)]


def test_a_new_value_has_new_vectors(letters: Letters) -> None:
    store = indexed(letters)
    store.put(("n",), "1", {"t": "aaa"})
    store.put(("n",), "1", {"t": "bbb"})
    assert found(store, "a") == [("1", 0.003)]
    # LangGraph goes on finding it by its old text.
    store.put(("n",), "1", {"t": "ccc"}, index=False)
    assert found(store, "a") == [("1", None)]
    store.put(("n",), "1", {"t": "aaa"})
    store.delete(("n",), "1")
    store.put(("n",), "1", {"t": "ccc"}, index=False)
    assert found(store, "a") == [("1", None)]


def test_without_an_index_a_query_is_ignored() -> None:
    store = InMemoryStore()
    store.put(("n",), "1", {"t": "a"})
    assert found(store, "a") == [("1", None)]


def test_a_vector_without_a_direction_is_near_to_nothing() -> None:
    store = InMemoryStore(index={"dims": 1, "embed": lambda texts: [[0.0] for _ in texts]})
    store.put(("n",), "1", {"t": "a"})
    assert found(store, "a") == [("1", 0.0)]


VECTORS = st.lists(st.floats(-10, 10).map(lambda x: round(x, 2)), min_size=2, max_size=2)


@given(VECTORS, st.lists(VECTORS, max_size=4))
def test_with_and_without_numpy_it_is_the_same(query: list[float], vectors: list[list[float]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numpy", None)
        slow = {distance: nearness(query, vectors, distance) for distance in DISTANCES}
    for distance in DISTANCES:
        assert nearness(query, vectors, distance) == pytest.approx(slow[distance], rel=1e-6, abs=1e-6)
        stored = Packed(b"".join(map(packed, vectors)), 2)
        assert nearness(query, stored, distance) == pytest.approx(slow[distance], rel=1e-3, abs=1e-3)
    assert [x for vector in stored for x in vector] == pytest.approx([x for vector in vectors for x in vector])
    assert [[*vector] for vector in stored[1:]] == [[*vector] for vector in stored][1:]
    assert all(-1.0001 <= cosine <= 1.0001 for cosine in slow["cosine"])


@pytest.mark.parametrize(
    ("embed", "message"),
    [
        (lambda texts: [[1.0]] * len(texts), "a vector of 1 numbers, and the index has dims=3"),
        (lambda texts: [], "0 vectors for 1 texts"),
    ],
)
def test_vectors_that_do_not_fit(embed: Any, message: str) -> None:
    store = indexed(embed)
    with pytest.raises(ValueError, match=message):
        store.put(("n",), "1", {"t": "a"})
    assert store.search(("n",)) == []


# What can embed


def test_a_function_of_either_kind(letters: Letters) -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return letters(texts)

    class Object:
        async def __call__(self, texts: Sequence[str]) -> list[list[float]]:
            return letters(texts)

    async def use(store: InMemoryStore) -> Any:
        await store.aput(("n",), "1", {"t": "a"})
        return [(item.key, item.score) for item in await store.asearch(("n",), query="a")]

    for function in (letters, embed, Object()):
        assert asyncio.run(use(indexed(function))) == [("1", pytest.approx(1.0))]
    for function in (embed, Object()):
        with pytest.raises(ValueError, match=r"async.*await store.aput"):
            indexed(function).put(("n",), "1", {"t": "a"})


def test_embeddings_of_langchain_and_lookalikes() -> None:
    class Lookalike:
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0] for _ in texts]

        def embed_query(self, text: str) -> list[float]:
            return [1.0]

    for embeddings in (DeterministicFakeEmbedding(size=3), Lookalike()):
        assert isinstance(embeddings, Embeddings)
        assert ensure_embeddings(embeddings) is embeddings  # type: ignore[arg-type]
    assert not isinstance(Letters(), Embeddings)
    assert isinstance(ensure_embeddings(Letters()), EmbeddingsLambda)
    assert not isinstance(Lookalike(), EmbeddingsLambda)


@pytest.mark.parametrize(
    ("embed", "error", "message"),
    [
        (None, ValueError, "embed must be provided"),
        ("provider:model", ValueError, "'provider:model'.*needs langchain"),
        (5, TypeError, "got 5"),
    ],
)
def test_what_cannot_embed(embed: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ensure_embeddings(embed)


def test_a_name_is_looked_up_in_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import ModuleType

    model = ensure_embeddings(Letters())
    langchain, module = ModuleType("langchain"), ModuleType("langchain.embeddings")
    module.init_embeddings = {"provider:model": model}.__getitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "langchain", langchain)
    monkeypatch.setitem(sys.modules, "langchain.embeddings", module)
    assert ensure_embeddings("provider:model") is model
