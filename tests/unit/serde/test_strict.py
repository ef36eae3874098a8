"""What may not be saved or loaded is refused in words: which class, where, and what would allow it."""

from __future__ import annotations

import collections
import functools
import pickle
import threading
from typing import Any

import ormsgpack
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.serde import shapes
from unit.serde.shapes import (
    Address,
    Coded,
    Count,
    Customer,
    Derived,
    Holder,
    NeedsHelp,
    Order,
    Outer,
    Pair,
    Phase,
    RushOrder,
    Settings,
    Token,
)

from surestep.checkpoint.serde.base import (
    CorruptValueError,
    MissingTypeError,
    SerializationError,
    TypeNotAllowedError,
    UnsavableTypeError,
)
from surestep.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer

STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)
OPEN = JsonPlusSerializer(allowed_msgpack_modules=True)
HERE = shapes.__name__


@pytest.fixture
def events() -> Any:
    seen: list[SerdeEvent] = []
    stop = register_serde_event_listener(seen.append)
    yield seen
    stop()


@pytest.mark.parametrize("value", [Order(1), Phase.OPEN, Address(city="c"), [{"deep": Order(1)}], {Phase.OPEN}])
def test_a_type_that_is_not_allowed_is_named(value: Any, events: list[SerdeEvent]) -> None:
    saved = STRICT.dumps_typed(value)
    with pytest.raises(TypeNotAllowedError) as caught:
        STRICT.loads_typed(saved)
    name = caught.value.name
    assert caught.value.module == HERE and name in ("Order", "Phase", "Address")
    assert f"allowed_msgpack_modules=[({HERE!r}, {name!r})]" in str(caught.value)
    assert {"kind": "msgpack_blocked", "module": HERE, "name": name} in events
    # and that setting does allow it
    assert JsonPlusSerializer(allowed_msgpack_modules=[(HERE, name)]).loads_typed(saved) == value


def test_nested_models_need_no_entry_of_their_own() -> None:
    serde = JsonPlusSerializer(allowed_msgpack_modules=[Customer])
    customer = Customer(name="n", address=Address(city="c"))
    assert serde.loads_typed(serde.dumps_typed(customer)) == customer


@pytest.mark.parametrize("allowed", [Holder, (HERE, "Holder")])
def test_what_an_allowed_class_names_in_its_fields_is_allowed(allowed: Any) -> None:
    saved = STRICT.dumps_typed(Holder(base=Derived(y=3)))
    assert JsonPlusSerializer(allowed_msgpack_modules=[allowed]).loads_typed(saved).base == Derived(y=3)
    with pytest.raises(TypeNotAllowedError, match="Order"):
        JsonPlusSerializer(allowed_msgpack_modules=[allowed]).loads_typed(STRICT.dumps_typed(Order(1)))


def test_a_class_stands_for_its_subclasses() -> None:
    saved = STRICT.dumps_typed(RushOrder(1))
    assert STRICT.with_msgpack_allowlist([Order]).loads_typed(saved) == RushOrder(1)
    for narrower in (JsonPlusSerializer(allowed_msgpack_modules=[(HERE, "Order")]), STRICT):
        with pytest.raises(TypeNotAllowedError):
            narrower.loads_typed(saved)
    with pytest.raises(TypeNotAllowedError):
        STRICT.with_msgpack_allowlist([Order]).loads_typed(("msgpack", ext(0, "no.such.module", "Order", 1)))


def test_a_class_inside_a_class_is_allowed_by_its_full_name() -> None:
    saved = STRICT.dumps_typed(Outer.Inner(1))
    for allowed in ((HERE, "Outer.Inner"), Outer.Inner):
        assert JsonPlusSerializer(allowed_msgpack_modules=[allowed]).loads_typed(saved) == Outer.Inner(1)


@pytest.mark.parametrize(
    ("setting", "strict"), [(None, True), ("true", True), ("1", True), ("false", False), ("0", False)]
)
def test_the_environment_decides_the_default(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, strict: bool
) -> None:
    monkeypatch.delenv("LANGGRAPH_STRICT_MSGPACK", raising=False)
    if setting is not None:
        monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", setting)
    serde = JsonPlusSerializer()
    if strict:
        with pytest.raises(TypeNotAllowedError):
            serde.loads_typed(serde.dumps_typed(Order(1)))
    else:
        assert serde.loads_typed(serde.dumps_typed(Order(1))) == Order(1)


def test_everything_allowed_warns_once(caplog: pytest.LogCaptureFixture, events: list[SerdeEvent]) -> None:
    class Never(Order):  # a name that no other test has warned about
        pass

    serde = JsonPlusSerializer(allowed_msgpack_modules=True)
    Never.__module__, Never.__qualname__ = HERE, "Never"
    shapes.Never = Never  # type: ignore[attr-defined]
    try:
        for _ in range(2):
            serde.loads_typed(serde.dumps_typed(Never(1)))
    finally:
        del shapes.Never  # type: ignore[attr-defined]
    assert caplog.text.count("unregistered type") == 1
    assert events.count({"kind": "msgpack_unregistered_allowed", "module": HERE, "name": "Never"}) == 2


def test_a_listener_that_raises_disturbs_nobody(events: list[SerdeEvent]) -> None:
    stop = register_serde_event_listener(lambda event: 1 / 0)
    OPEN.loads_typed(OPEN.dumps_typed(Order(1)))
    stop()
    stop()
    assert len(events) == 1


# ---- deploys ----


def test_a_class_that_was_moved_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    serde = JsonPlusSerializer(allowed_msgpack_modules=[(HERE, "Order")])
    saved = serde.dumps_typed({"order": Order(5)})
    monkeypatch.delattr(shapes, "Order")
    with pytest.raises(MissingTypeError, match=r"shapes\.Order.*moved or renamed"):
        serde.loads_typed(saved)
    with pytest.raises(MissingTypeError):
        OPEN.loads_typed(saved)


def test_a_class_whose_fields_changed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class NewAddress(pydantic.BaseModel):
        city: str
        zip: str

    serde = JsonPlusSerializer(allowed_msgpack_modules=[(HERE, "Order"), (HERE, "Address")])
    saved = [serde.dumps_typed(Order(5)), serde.dumps_typed(Address(city="c"))]
    monkeypatch.setattr(shapes, "Order", type("Order", (), {"__init__": lambda self, *, number: None}))
    monkeypatch.setattr(shapes, "Address", NewAddress)
    for value in saved:
        with pytest.raises(SerializationError, match="Have its fields changed"):
            serde.loads_typed(value)


def test_a_constructor_that_needs_more_than_the_fields_is_an_error() -> None:
    serde = JsonPlusSerializer(allowed_msgpack_modules=[NeedsHelp])
    with pytest.raises(SerializationError, match="NeedsHelp"):
        serde.loads_typed(("msgpack", ext(2, HERE, "NeedsHelp", {"value": 3})))


# ---- what can't be saved ----


class Plain:
    pass


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (threading.Lock(), "value)"),
        ({"a": [1, {"b": threading.Lock()}]}, "value['a'][1]['b']"),
        (Order(1, [lambda: 0]), "value.lines[0]"),
        (Customer(name="n", address=Address(city="c"), extra=Plain()), "value.extra"),
        (Plain(), "value)"),
        ([Plain], "value[0]"),
        ((i for i in ()), "value)"),
        ({"d": collections.defaultdict(lambda: 0)}, "value['d']"),
        (functools.partial(print), "value)"),
        ({(1, threading.Lock()): 1}, "value)"),
        ([Token("t")], "value[0]"),
        ({"s": Settings(a=1)}, "value['s']"),
        ([Pair([1, 2])], "value[0]"),
        ({"n": Count(3)}, "value['n']"),
        ([Coded(3, "m")], "value[0]"),
        (NeedsHelp(3), "value)"),
    ],
)
def test_what_cannot_be_saved_is_named_with_its_place(value: Any, where: str) -> None:
    with pytest.raises(UnsavableTypeError) as caught:
        STRICT.dumps_typed(value)
    assert isinstance(caught.value, TypeError)
    assert f"at {where}" in str(caught.value)


def test_a_value_that_contains_itself_is_an_error() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(UnsavableTypeError):
        STRICT.dumps_typed(value)


def test_secrets_are_not_stored_in_clear_unless_that_is_allowed() -> None:
    class Login(pydantic.BaseModel):
        password: pydantic.SecretStr

    secret = pydantic.SecretStr("hunter2")
    for value in (secret, {"a": [secret]}, Login(password=secret)):
        with pytest.raises(UnsavableTypeError, match="clear text"):
            STRICT.dumps_typed(value)
        with pytest.raises(UnsavableTypeError):  # a state schema that names the type doesn't allow this
            STRICT.with_msgpack_allowlist([pydantic.SecretStr]).dumps_typed(value)
    for serde in (JsonPlusSerializer(allowed_msgpack_modules=[("pydantic.types", "SecretStr")]), OPEN):
        assert serde.loads_typed(serde.dumps_typed(secret)) == secret


def test_an_error_leaves_nothing_behind() -> None:
    with pytest.raises(UnsavableTypeError):
        STRICT.dumps_typed(Plain())
    with pytest.raises(CorruptValueError, match="damaged"):
        STRICT.loads_typed(("msgpack", b"\xdc"))
    with pytest.raises(TypeNotAllowedError):
        STRICT.loads_typed(STRICT.dumps_typed(Order(1)))


def test_an_interrupt_of_the_program_is_not_taken_for_an_error() -> None:
    class Stops(Order):
        @property
        def lines(self) -> Any:  # type: ignore[override]
            raise KeyboardInterrupt

        @lines.setter
        def lines(self, value: Any) -> None: ...

    with pytest.raises(KeyboardInterrupt):
        STRICT.dumps_typed(Stops(1))


# ---- bytes that somebody else wrote ----


def ext(code: int, *payload: Any) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(payload)))


@pytest.mark.parametrize("allowed", [None, True])
def test_no_stored_value_calls_a_method(allowed: Any, events: list[SerdeEvent]) -> None:
    serde = JsonPlusSerializer(allowed_msgpack_modules=allowed)
    for module, name, method in [("pathlib", "Path", "read_text"), ("datetime", "datetime", "fromtimestamp")]:
        with pytest.raises(TypeNotAllowedError, match=method):
            serde.loads_typed(("msgpack", ext(3, module, name, "x", method)))
    assert [event["kind"] for event in events] == ["msgpack_method_blocked"] * 2


def test_no_stored_value_calls_what_is_not_allowed() -> None:
    for module, name in [("os", "system"), ("builtins", "eval"), ("subprocess", "run"), ("builtins", "list")]:
        for code in (0, 1, 2, 4, 5):
            with pytest.raises(TypeNotAllowedError):
                STRICT.loads_typed(("msgpack", ext(code, module, name, {})))


def test_no_stored_value_makes_a_class() -> None:
    with pytest.raises(SerializationError):
        STRICT.loads_typed(("msgpack", ext(1, "builtins", "type", ["Name", [], {}])))


def test_unknown_tags_and_codes() -> None:
    with pytest.raises(NotImplementedError, match="Unknown serialization type: yaml"):
        STRICT.loads_typed(("yaml", b""))
    with pytest.raises(NotImplementedError, match="pickle_fallback"):
        STRICT.loads_typed(("pickle", pickle.dumps(1)))
    with pytest.raises(CorruptValueError, match="code 99"):
        STRICT.loads_typed(("msgpack", ormsgpack.packb(ormsgpack.Ext(99, b""))))


def test_pickle_only_when_asked_for() -> None:
    serde = JsonPlusSerializer(pickle_fallback=True)
    saved = serde.dumps_typed({"f": functools.partial(int, "3")})
    assert saved[0] == "pickle" and serde.loads_typed(saved)["f"]() == 3
    assert serde.dumps_typed({"a": 1})[0] == "msgpack"


@given(st.binary(max_size=60), st.sampled_from(["msgpack", "json", "null", "bytes"]))
def test_damaged_bytes_are_an_error_or_a_value(data: bytes, tag: str) -> None:
    try:
        STRICT.loads_typed((tag, data))
    except SerializationError:
        pass


@given(st.data())
def test_a_cut_off_value_is_an_error(data: st.DataObject) -> None:
    saved = STRICT.dumps_typed({"a": [1, (2, 3)], "b": {"c"}, "d": "text"})[1]
    cut = data.draw(st.integers(0, len(saved) - 1))
    with pytest.raises(SerializationError):
        STRICT.loads_typed(("msgpack", saved[:cut]))


# ---- copies with more allowed ----


def test_extending_the_allowlist_leaves_the_original_alone() -> None:
    extended = STRICT.with_msgpack_allowlist([Order])
    assert extended is not STRICT
    assert extended.loads_typed(extended.dumps_typed(Order(1))) == Order(1)
    with pytest.raises(TypeNotAllowedError):
        STRICT.loads_typed(extended.dumps_typed(Order(1)))


def test_extending_by_nothing_new_gives_the_same_object() -> None:
    extended = STRICT.with_msgpack_allowlist([Order])
    assert STRICT.with_msgpack_allowlist(()) is STRICT
    assert OPEN.with_msgpack_allowlist([Order]) is OPEN
    assert extended.with_msgpack_allowlist([Order]) is extended


def test_extending_a_subclass_and_a_custom_hook() -> None:
    class Mine(JsonPlusSerializer):
        def __init__(self) -> None:
            super().__init__(allowed_msgpack_modules=None)

    assert isinstance(Mine().with_msgpack_allowlist([Order]), Mine)
    hooked = JsonPlusSerializer(allowed_msgpack_modules=None, __unpack_ext_hook__=lambda code, data: code)
    assert hooked.with_msgpack_allowlist([Order]).loads_typed(hooked.dumps_typed([Order(1)])) == [2]
    assert pickle.loads(pickle.dumps(STRICT)).loads_typed(STRICT.dumps_typed((1,))) == (1,)
