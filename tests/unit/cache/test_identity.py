"""What makes two nodes the same, where results are cached."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial
from typing import Any

import pytest

from surestep.graph import END, START, StateGraph
from surestep.pregel._identity import _tokens, identity_of
from surestep.pregel.node import ChannelWriteEntry, ChannelWriter, PregelNode


def named(state: Any) -> Any:
    return {}


class Callee:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, state: Any) -> Any:
        return self.value

    def method(self, state: Any) -> Any:
        return self.value


def closure(value: Any) -> Any:
    def inner(state: Any) -> Any:
        return value

    return inner


def default(value: Any) -> Any:
    def inner(state: Any, given: Any = value) -> Any:
        return given

    return inner


def mark(thing: Any, *writers: Any) -> bytes:
    return PregelNode(channels="x", triggers=[], bound=thing, writers=writers).identity.mark


LOCK, OTHER_LOCK = threading.Lock(), threading.Lock()


@pytest.mark.parametrize("make", [closure, default, Callee, lambda v: Callee(v).method, lambda v: partial(closure, v)])
@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (1, 1, 2),
        ("a", "a", b"a"),
        ([1, {"k": (2,)}], [1, {"k": (2,)}], [1, {"k": [2]}]),
        ({"a", "b"}, {"b", "a"}, {"a"}),
        ({0, 8}, {8, 0}, {0}),  # these two have an order of their own each
        ({"k": frozenset({0, 8})}, {"k": frozenset({8, 0})}, {"k": {0, 8}}),
        (named, named, mark),
        (Callee(1), Callee(1), Callee(2)),
    ],
)
def test_captured_values_count(make: Any, one: Any, same: Any, other: Any) -> None:
    assert mark(make(one)) == mark(make(same))
    assert mark(make(one)) != mark(make(other))


def test_functions_in_closures_count_by_what_they_captured() -> None:
    for make in (closure, default, lambda value: partial(closure, value), lambda value: closure({"k": [value]})):
        assert mark(make(closure(1))) == mark(make(closure(1))) != mark(make(closure(2)))


@pytest.mark.parametrize("make", [closure, default, Callee])
def test_what_cannot_be_looked_into_is_like_itself_alone(make: Any) -> None:
    one, other = Callee(LOCK), Callee(OTHER_LOCK)
    assert mark(make(one)) == mark(make(one)) or make is Callee, "the same object, in another closure"
    assert mark(make(one)) != mark(make(other))
    kept = make(one)
    assert mark(kept) == mark(kept)


def test_large_values_are_not_looked_into() -> None:
    large = Callee("x" * 2_000_000)
    assert mark(closure(large)) == mark(closure(large))
    assert mark(closure(large)) != mark(closure(Callee("x" * 2_000_000)))


def test_objects_that_are_gone_are_forgotten() -> None:
    known = len(_tokens.known)
    one = Callee(LOCK)
    mark(closure(one))
    assert len(_tokens.known) == known + 1
    del one
    assert len(_tokens.known) == known


def test_captured_values_count_as_they_were_at_first() -> None:
    runs: list[int] = []
    inner = closure(runs)
    before = mark(inner)
    runs.append(1)
    assert mark(inner) == before != mark(closure(runs))


def test_code_counts() -> None:
    def first(state: Any) -> Any:
        return {"x": 1}

    def second(state: Any) -> Any:
        return {"x": 2}

    second.__qualname__ = first.__qualname__
    assert mark(first) != mark(second)


def test_what_refers_to_itself_is_described() -> None:
    def make(depth: int) -> Any:
        items: list[Any] = [depth]
        items.append(items)

        def again(state: Any) -> Any:
            return again, items

        return again

    assert mark(make(1)) == mark(make(1)) != mark(make(2))


def test_graphs_count_by_their_nodes() -> None:
    def graph(body: Any) -> Any:
        return StateGraph(dict).add_node("n", body).add_edge(START, "n").compile()

    assert mark(graph(closure(1))) == mark(graph(closure(1))) != mark(graph(closure(2)))
    assert mark(closure(graph(named))) == mark(closure(graph(named))) != mark(closure(graph(closure(1))))


def test_edges_count_and_other_nodes_do_not() -> None:
    def node(*edges: tuple[str, str], more: str = "c", path: Any = None) -> bytes:
        builder = StateGraph(dict)
        for name in ("a", "b", more):
            builder.add_node(name, named)
        builder.add_edge(START, "a")
        for edge in edges:
            builder.add_edge(*edge)
        if path is not None:
            builder.add_conditional_edges("a", path, ["b", END])
        mark: bytes = builder.compile().nodes["a"].identity.mark
        return mark

    assert node() == node(more="d") == node(("b", "c"))
    assert len({node(), node(("a", "b")), node(path=closure("b")), node(path=closure(END))}) == 4


def test_writers_of_hand_made_nodes_count() -> None:
    one, same, other = (ChannelWriter([ChannelWriteEntry(name, mapper=closure(1))]) for name in "xxy")
    assert mark(named, one) == mark(named, same) != mark(named, other)


def test_names() -> None:
    def name(thing: Any) -> str | None:
        return PregelNode(channels="x", triggers=[], bound=thing).identity.name

    assert name(named) == f"{__name__}.named"
    assert name(closure(1)) == f"{__name__}.closure.<locals>.inner"
    assert name(Callee(1).method) == f"{__name__}.Callee.method"
    assert name(Callee(1)) is None is name(partial(named)) is identity_of(None, ()).name


def test_another_process_finds_the_same() -> None:
    code = """
import sys
sys.path.insert(0, "tests")
from unit.cache import test_identity as t
print(t.mark(t.closure({"k": [1, "x", None, 2.5]})).decode(), t.mark(t.Callee(("v", {3}))).decode())
"""
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in "12"
    }
    assert len(runs) == 1
