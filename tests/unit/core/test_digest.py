"""Equal values have equal digests, in every process; different ones have different digests."""

from __future__ import annotations

import copy
import dataclasses
import enum
import os
import subprocess
import sys
import threading
from collections import OrderedDict, deque
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep._core.digest import digest

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
hashable = st.recursive(scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=4), max_leaves=6)
values = st.recursive(
    scalars | hashable,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(hashable, inner, max_size=4) | st.sets(hashable, max_size=4)
    ),
    max_leaves=12,
)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Point:
    x: Any
    tags: set[str] = dataclasses.field(default_factory=set)


class Plain:
    def __init__(self, **content: Any) -> None:
        self.__dict__.update(content)


@given(values)
def test_a_copy_has_the_same_digest(value: Any) -> None:
    assert digest(copy.deepcopy(value)) == digest(value)


@given(st.dictionaries(st.text(), scalars))
def test_the_order_of_a_dict_does_not_count(value: dict[str, Any]) -> None:
    assert digest(dict(reversed(value.items()))) == digest(value)


@given(values, values)
def test_what_looks_different_has_another_digest(one: Any, other: Any) -> None:
    if type(one) is not type(other) or one != other:
        assert digest(one) != digest(other)


DIFFERENT = [
    *(1, 1.0, True, "1", b"1", None, "None", [1], (1,), {1}, frozenset({1}), {1: 1}, [[1]], [1, 1], ["11"]),
    *(Colour.RED, Colour.BLUE, Point(1), Point(2), Point(1, {"a"}), Plain(x=1), Plain(x=2), Plain(y=1)),
    *(datetime(2026, 1, 1), datetime(2026, 1, 2), timedelta(1), Decimal("1"), Decimal("1.0"), deque([1]), deque([2])),
    *(OrderedDict(a=1), OrderedDict(a=2), Colour, Point, len, digest, [["a"], "b"], [["a", "b"]], ["a", ["b"]]),
]


def test_each_of_these_has_its_own() -> None:
    seen: dict[str, Any] = {}
    for value in DIFFERENT:
        assert seen.setdefault(digest(value), value) is value, (value, seen[digest(value)])


def test_models_and_messages() -> None:
    pydantic = pytest.importorskip("pydantic")
    messages = pytest.importorskip("langchain_core.messages")

    class Model(pydantic.BaseModel):
        a: int = 1
        b: tuple[str, ...] = ()

    assert digest(Model()) == digest(Model(a=1)) != digest(Model(a=2))
    assert (
        digest(messages.HumanMessage("hi")) == digest(messages.HumanMessage("hi")) != digest(messages.AIMessage("hi"))
    )


def test_what_cannot_be_pickled_counts_by_its_type() -> None:
    assert digest(threading.Lock()) == digest(threading.Lock()) != digest(threading.Event())


def test_a_value_that_contains_itself_has_one() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    assert digest(ring) == digest(ring) != digest([1])


PROGRAM = """
from surestep._core.digest import digest
from unit.core.test_digest import Colour, Plain, Point
words = {f"word{n}" for n in range(50)}
print(digest([words, {w: {w} for w in words}, Point(words, words), Plain(words=frozenset(words)), Colour.RED, Plain]))
"""


def test_every_process_finds_the_same() -> None:
    tests = str(Path(__file__).parents[2])
    found = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1


def test_shared_parts_cost_once() -> None:
    value: list[Any] = []
    for _ in range(200):
        value = [value, value]
    assert digest(value) == digest(copy.deepcopy(value))
