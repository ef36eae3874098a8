"""The wire format is LangGraph's: each reads what the other wrote."""

from __future__ import annotations

import collections
import datetime
import decimal
import pathlib
import re
import uuid
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph import types as theirs
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer as Theirs
from langgraph.checkpoint.serde.types import _DeltaSnapshot as TheirSnapshot
from langgraph.store.base import Item as TheirItem
from unit.serde.shapes import ALL, Address, Customer, Money, Order, Phase, Point

from surestep import types as ours
from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer
from surestep.checkpoint.serde.types import _DeltaSnapshot
from surestep.store.base import Item

OURS = JsonPlusSerializer(allowed_msgpack_modules=ALL)
THEIRS = Theirs(allowed_msgpack_modules=[(cls.__module__, cls.__name__) for cls in ALL])

SAME = [
    None,
    "text",
    b"bytes",
    bytearray(b"array"),
    {"a": [1, 2.5, None, True, "x"], 3: b"y", (1, 2): "z"},
    {1, 2, "3"},
    frozenset({1}),
    collections.deque([1, 2]),
    datetime.datetime(2024, 4, 19, 23, 4, 57, 51022, datetime.UTC),
    datetime.date(2024, 4, 19),
    datetime.time(23, 4, 57, tzinfo=datetime.UTC),
    datetime.timedelta(1, 2, 3),
    datetime.UTC,
    decimal.Decimal("1.1"),
    uuid.UUID(int=7),
    pathlib.Path("a", "b"),
    re.compile("x", re.IGNORECASE),
    Order(1, ["a"]),
    Money(1),
    Phase.OPEN,
    Point(1, 2),
    HumanMessage("hi", id="1"),
    AIMessage("", tool_calls=[{"name": "t", "args": {"x": 1}, "id": "c"}], id="2"),
    [SystemMessage("s"), ToolMessage("t", tool_call_id="c"), RemoveMessage(id="1")],
    Document(page_content="p", metadata={"k": "v"}),
]


@pytest.mark.parametrize("value", SAME, ids=lambda value: repr(value)[:40])
def test_the_bytes_are_the_same(value: Any) -> None:
    saved = OURS.dumps_typed(value)
    assert saved == THEIRS.dumps_typed(value)
    assert OURS.loads_typed(saved) == THEIRS.loads_typed(saved)


ITEM = {"value": {"a": 1}, "key": "k", "namespace": ("n",)}
NOW = datetime.datetime(2024, 9, 24, 17, 29, 10, 128397)


def own(module: Any, item: Any, snapshot: Any) -> list[Any]:
    """Values of the types that both engines have, made by one of them."""
    return [
        module.Send("n", {"x": 1}),
        module.Send("n", 1, timeout=3),
        module.Command(update={"a": 1}, goto=["x"], resume={"q": 1}),
        module.Command(goto=[module.Send("b", 2)], graph="__parent__"),
        module.Interrupt({"ask": "?"}, id="i"),
        module.Overwrite([1]),
        module.TimeoutPolicy(run_timeout=1.0),
        module.StateUpdate({"a": 1}, "n"),
        item(**ITEM, created_at=NOW, updated_at=NOW),
        snapshot([1, 2]),
    ]


@pytest.mark.parametrize("index", range(10))
def test_own_types_become_the_readers_types(index: int) -> None:
    mine = own(ours, Item, _DeltaSnapshot)[index]
    others = own(theirs, TheirItem, TheirSnapshot)[index]
    lenient = Theirs(allowed_msgpack_modules=True)
    assert OURS.loads_typed(THEIRS.dumps_typed(others)) == mine
    assert lenient.loads_typed(OURS.dumps_typed(mine)) == others
    if "Item" not in type(mine).__name__:  # whose namespace tuple we keep and they don't
        assert OURS.dumps_typed(mine) == THEIRS.dumps_typed(others)


FAITHFUL = [
    (1, (2, [3])),
    {(1, 2), (3, 4)},
    collections.OrderedDict(b=1, a=2),
    collections.Counter("aab"),
    collections.defaultdict(list, {"a": [1]}),
    collections.deque([1], maxlen=3),
    2**70,
    1 + 2j,
    range(3),
    "\ud800",
    {Phase.OPEN: 1},
    {datetime.date(2024, 1, 2): 1},
    Customer(name="n", address=Address(city="c"), extra=[Order(1), Phase.OPEN]),
    Customer(name="n", address=Address(city="c"), extra={(1, 2)}),
]


@pytest.mark.parametrize("value", FAITHFUL, ids=lambda value: ascii(value)[:40])
def test_what_langgraph_would_lose_it_reads_from_us_in_full(value: Any) -> None:
    loaded = Theirs(allowed_msgpack_modules=True).loads_typed(OURS.dumps_typed({"v": value}))["v"]
    assert loaded == value and type(loaded) is type(value)


def test_exceptions_are_exceptions_to_langgraph_too() -> None:
    loaded = Theirs(allowed_msgpack_modules=True).loads_typed(OURS.dumps_typed([ValueError("x", 1)]))[0]
    assert type(loaded) is ValueError and loaded.args == ("x", 1)
    assert OURS.loads_typed(THEIRS.dumps_typed([ValueError("x")])) == ["ValueError('x')"]


def test_models_that_langgraph_wrote_can_be_read() -> None:
    customer = Customer(name="n", address=Address(city="c"), extra={"a": [1]})
    assert OURS.loads_typed(THEIRS.dumps_typed(customer)) == customer
    assert THEIRS.loads_typed(OURS.dumps_typed(customer)) == customer


def test_sets_of_tuples_that_langgraph_wrote_can_be_read() -> None:
    assert OURS.loads_typed(THEIRS.dumps_typed({(1, (2, 3))})) == {(1, (2, 3))}
