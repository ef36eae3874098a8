"""What comes back is what was saved: equal, and of the same type."""

from __future__ import annotations

import collections
import datetime
import decimal
import ipaddress
import math
import pathlib
import re
import uuid
import zoneinfo
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.serde.shapes import (
    ALL,
    EXTENDED,
    Account,
    Address,
    Aliased,
    Count,
    Counting,
    Customer,
    Derived,
    Failed,
    Flags,
    Grows,
    Holder,
    Level,
    Lines,
    Loose,
    Money,
    Names,
    Order,
    Outer,
    Pair,
    Phase,
    Point,
    Refusing,
    Sealed,
    Settings,
    Share,
    Table,
    Token,
    Word,
    same,
)

from surestep.checkpoint.serde.base import TypeNotAllowedError, UnsavableTypeError
from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer
from surestep.checkpoint.serde.types import _DeltaSnapshot
from surestep.types import Command, Interrupt, Overwrite, Send, StateSnapshot, TimeoutPolicy

STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)
SERDE = JsonPlusSerializer(allowed_msgpack_modules=ALL)

PLAIN = [
    None,
    True,
    0,
    -(2**63),
    2**64 - 1,
    2**64,
    -(2**70),
    1.5,
    math.inf,
    math.nan,
    "text",
    "nul \0 inside",
    "lone surrogate \ud83d end",
    ["deep", {"in": ["a", {"text": "\udcff"}]}],
    b"bytes",
    bytearray(b"array"),
    [],
    [1, [2, [3]]],
    (),
    (1, (2, [3, (4,)])),
    {},
    {"a": (1,), 1: "int key", 2.5: "float key", None: "none key", b"k": 1, (1, ("x",)): "tuple key"},
    {True: "bool key"},
    {1, 2},
    {(1, 2), (3, (4,))},
    frozenset({1, (2,)}),
    collections.deque([1, (2,)]),
    collections.deque([1, 2], maxlen=2),
    collections.OrderedDict([("b", 1), ("a", 2)]),
    collections.Counter("aab"),
    collections.defaultdict(list, {"a": [1]}),
    collections.defaultdict(None, {"a": 1}),
    collections.defaultdict(dict, {"a": {"b": (1,)}}),
    1 + 2j,
    range(1, 9, 2),
    datetime.date(2024, 4, 19),
    datetime.time(23, 4, 57, 51022, datetime.timezone.max),
    datetime.datetime(2024, 4, 19, 23, 4, 57, 51022, datetime.UTC),
    datetime.datetime(2024, 4, 19, 23, 4),
    datetime.timedelta(days=-3, microseconds=7),
    datetime.timezone(datetime.timedelta(hours=2), "there"),
    zoneinfo.ZoneInfo("Europe/Berlin"),
    decimal.Decimal("1.10101"),
    uuid.UUID(int=1),
    ipaddress.ip_address("192.168.0.1"),
    ipaddress.ip_network("fe80::/10"),
    pathlib.Path("foo", "bar"),
    re.compile(r"foo.*bar", re.DOTALL),
    Send("node", {"x": (1, 2)}),
    Send("node", 1, timeout=3),
    Command(update={"a": 1}, goto=[Send("b", 2)], resume={"q": (1,)}),
    Interrupt({"ask": ("?",)}, id="i"),
    Overwrite([1]),
    TimeoutPolicy(run_timeout=1.0),
    StateSnapshot({"a": 1}, ("b",), {}, None, None, None, (), ()),
    _DeltaSnapshot([1, (2,)]),
]


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: repr(value)[:40].encode("ascii", "replace").decode())
def test_plain_values_come_back_in_strict_mode(value: Any) -> None:
    for wrapped in (value, [value], {"deep": {"er": (value,)}}):
        assert same(STRICT.loads_typed(STRICT.dumps_typed(wrapped)), wrapped) or isinstance(value, bytearray)


@pytest.mark.parametrize(
    "value",
    [
        Order(1, ["a"]),
        Money(3),
        Sealed("name"),
        Phase.OPEN,
        Phase.CLOSED,
        Level.LOW,
        Point(1),
        Customer(name="n", address=Address(city="c"), extra=Phase.OPEN),
        Customer(name="n", address=Address(city="c"), extra=[{"a": (1, 2)}]),
        Aliased(firstName="f"),
        Names(["a", "b"]),
        Outer.Inner(3),
    ],
    ids=repr,
)
def test_objects_of_allowed_classes_come_back(value: Any) -> None:
    assert same(SERDE.loads_typed(SERDE.dumps_typed({"value": [value]})), {"value": [value]})


def test_fields_that_the_constructor_does_not_take() -> None:
    account = Account(3)
    account.total = 17
    loaded = SERDE.loads_typed(SERDE.dumps_typed(account))
    assert (loaded.opening, loaded.total) == (3, 17)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_model_that_was_never_valid_comes_back_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    odd = Address.model_construct(city=5)
    assert SERDE.loads_typed(SERDE.dumps_typed(odd)) == odd
    assert "isn't valid" in caplog.text


KEYS = [
    *(Phase.OPEN, Level.LOW, Word.A, Point(1), Money(1), datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2)),
    *(uuid.UUID(int=3), decimal.Decimal("1.5"), frozenset({1}), 2**70, 1j, (1, Phase.OPEN), "\ud800", ()),
]


@pytest.mark.parametrize("key", KEYS, ids=ascii)
def test_keys_come_back(key: Any) -> None:
    for value in ({key: 1}, {1: {"a": {key: [key]}}}, collections.OrderedDict({key: 1}), [Order(1, {key: "x"})]):  # type: ignore[arg-type]
        assert same(SERDE.loads_typed(SERDE.dumps_typed(value)), value)


def test_a_model_comes_back_whatever_its_dump_says() -> None:
    inside = [Order(1), Phase.OPEN, {(1, 2)}, Derived(x=3, y=4), {"p": Phase.CLOSED}, collections.Counter("aab")]
    value = Holder(base=Derived(x=3, y=4), any=inside, hidden=7, shown=3.5, more=(1, Money(2)))
    value._private = {"kept": Phase.OPEN}
    loaded = SERDE.loads_typed(SERDE.dumps_typed({"v": value}))["v"]
    assert same(loaded, value) and same(loaded._private, value._private)
    assert type(loaded.base) is Derived and loaded._lock is not value._lock


@pytest.mark.parametrize(
    "value",
    [
        Counting(n=1),
        Loose(),
        Loose(share=2, tags=("a",), url="http://c.d/"),
        Loose.model_construct(share="not a number", tags=[1.5]),
        Table.model_construct(root={"a": 1}),
        Table({"a": 1, "root": 2}),
        Names.model_construct(root=("a",)),
        Refusing.model_construct(n=1),
    ],
    ids=repr,
)
def test_a_model_has_the_values_that_were_saved_whatever_its_class_makes_of_them(value: Any) -> None:
    loaded = SERDE.loads_typed(SERDE.dumps_typed([value]))[0]
    assert same(loaded, value) and repr(loaded) == repr(value)


def test_a_dataclass_comes_back_whatever_it_does_when_it_is_made() -> None:
    value = Grows(3)
    assert value.n == 4 and SERDE.loads_typed(SERDE.dumps_typed(value)).n == 4


EXTEND = JsonPlusSerializer(allowed_msgpack_modules=[*ALL, *EXTENDED])


@pytest.mark.parametrize(
    "value",
    [
        Token("t"),
        Settings(a=(1,)),
        Lines([1, (2,)]),
        Pair([1, [2]]),
        Count(3),
        Count(2**70),
        Share(1.5),
        Failed("a", 1),
    ],
    ids=repr,
)
def test_an_extended_basic_type_keeps_its_class_if_that_is_allowed(value: Any) -> None:
    assert same(EXTEND.loads_typed(EXTEND.dumps_typed({"v": [value]})), {"v": [value]})
    everything = JsonPlusSerializer(allowed_msgpack_modules=True)
    assert same(everything.loads_typed(everything.dumps_typed(value)), value)


def test_inside_of_a_model_an_extended_type_is_what_the_model_makes_of_it() -> None:
    value = Customer(name="n", address=Address(city="c"), extra=[Token("t"), {"s": Settings(a=1)}])
    assert same(SERDE.loads_typed(SERDE.dumps_typed(value)).extra, ["t", {"s": {"a": 1}}])


def test_texts_of_messages() -> None:
    from langchain_core.messages import AIMessage

    text = AIMessage("hello").text
    assert type(text) is not str and same(STRICT.loads_typed(STRICT.dumps_typed({"answer": text})), {"answer": text})


def test_exceptions() -> None:
    raised = ValueError("no", 3)
    raised.add_note("while testing")
    for error in (raised, KeyError("k"), OSError(2, "no such", "file"), UnicodeDecodeError("utf-8", b"x", 0, 1, "bad")):
        loaded = STRICT.loads_typed(STRICT.dumps_typed([error]))[0]
        assert type(loaded) is type(error) and loaded.args == error.args and str(loaded) == str(error)
    group = STRICT.loads_typed(STRICT.dumps_typed(ExceptionGroup("g", [ValueError(1), KeyError(2)])))
    assert isinstance(group, ExceptionGroup) and [type(error) for error in group.exceptions] == [ValueError, KeyError]
    with pytest.raises(TypeNotAllowedError, match="Failed"):
        STRICT.loads_typed(STRICT.dumps_typed(Failed("x")))
    assert same(STRICT.with_msgpack_allowlist([Exception]).loads_typed(STRICT.dumps_typed(Failed("x"))), Failed("x"))


def test_a_class_inside_a_function_comes_back_when_it_is_allowed_as_a_class() -> None:
    class Local(Order):
        pass

    serde = STRICT.with_msgpack_allowlist([Local])
    loaded = serde.loads_typed(serde.dumps_typed(Local(1)))
    assert type(loaded) is Local and loaded == Local(1)


def test_tags() -> None:
    tags = [STRICT.dumps_typed(value)[0] for value in (None, b"", bytearray(), "")]
    assert tags == ["null", "bytes", "bytearray", "msgpack"]
    buffer = bytearray(b"before")
    saved = STRICT.dumps_typed(buffer)
    buffer[:] = b"after!"
    assert STRICT.loads_typed(saved) == b"before"


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
    | st.complex_numbers(allow_nan=False)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.fractions()
    | st.sampled_from(
        [Phase.OPEN, Phase.CLOSED, Level.LOW, Word.A, Flags.A | Flags.B, Token("t"), Count(3), Share(1.5)]
    )
    | st.builds(ValueError, st.text())
    | st.builds(Failed, st.integers(), st.binary())
)
keys = (
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers(-(2**65), 2**65)
    | st.binary()
    | st.booleans()
    | st.dates()
    | st.uuids()
    | st.sampled_from(Phase)
    | st.tuples(st.integers(), st.sampled_from(Phase) | st.text())
    | st.frozensets(st.integers())
)
atoms = st.integers() | st.text()
hashable = atoms | st.tuples(atoms, st.tuples(atoms)) | st.frozensets(atoms | st.tuples(atoms))
models = (  # what may stand in a model, with nothing in it that extends a basic type
    st.integers()
    | st.sampled_from(Phase)
    | st.builds(Order, st.integers())
    | st.dictionaries(keys, st.sets(st.dates()))
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(keys, inner)
        | st.sets(hashable)
        | st.builds(collections.deque, st.lists(inner), st.none() | st.integers(5, 9))
        | st.builds(collections.OrderedDict, st.dictionaries(keys, inner))
        | st.builds(Order, st.integers(), st.lists(st.text()))
        | st.builds(Settings, st.dictionaries(keys, inner))
        | st.builds(Lines, st.lists(inner))
        | st.builds(Pair, st.lists(inner))
        | st.builds(Point, st.integers(), inner)
        | st.builds(collections.defaultdict, st.none() | st.just(list), st.dictionaries(keys, inner))
        | st.builds(lambda a, b: Holder(base=Derived(y=3), any=a, shown=b), models, models)
        | st.builds(Send, st.text(), inner)
        | st.builds(Overwrite, inner)
    ),
    max_leaves=20,
)


@given(values)
def test_any_value_comes_back(value: Any) -> None:
    assert same(EXTEND.loads_typed(EXTEND.dumps_typed(value)), value)


def test_numpy_scalars() -> None:
    import numpy as np

    names = "bool_ int8 int16 int32 int64 uint8 uint64 longlong float16 float32 float64 complex64 str_ bytes_".split()
    numbers = [getattr(np, name)("1" if name == "str_" else b"1" if name == "bytes_" else 1) for name in names]
    times = [np.datetime64("2024-01-02T03:04:05.678901234"), np.datetime64("NaT"), np.timedelta64(3, "25s")]
    for value in (*numbers, *times, np.float32(1.1)):
        loaded = STRICT.loads_typed(STRICT.dumps_typed({"v": [value]}))["v"][0]
        assert type(loaded) is type(value) and loaded.dtype == value.dtype and (loaded == value or loaded != loaded)
    assert STRICT.loads_typed(STRICT.dumps_typed({np.int64(1): 2})) == {1: 2}
    for unsupported in (np.longdouble(1), np.void(b"x")):
        with pytest.raises(UnsavableTypeError, match="numpy"):
            STRICT.dumps_typed(unsupported)


def test_numpy_arrays() -> None:
    import numpy as np

    arrays = [np.arange(9, dtype=np.int32).reshape(3, 3), np.asfortranarray(np.eye(3)), np.arange(12)[::2], np.array(7)]
    for array in arrays:
        loaded = STRICT.loads_typed(STRICT.dumps_typed({"a": array}))["a"]
        assert loaded.dtype == array.dtype and np.array_equal(loaded, array)
        loaded[...] = 0  # a copy that may be written to
