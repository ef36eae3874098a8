"""Values that LangGraph wrote as JSON before 1.0 can be read, safe types and allowed ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from unit.serde import shapes
from unit.serde.shapes import Order

from surestep.checkpoint.serde.base import CorruptValueError, SerializationError
from surestep.checkpoint.serde.jsonplus import InvalidModuleError, JsonPlusSerializer

STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)


def stored(*id: str, **more: Any) -> tuple[str, bytes]:
    return "json", json.dumps({"lc": 2, "type": "constructor", "id": id, **more}).encode()


def test_messages_come_back() -> None:
    human = stored("langchain_core", "messages", "human", "HumanMessage", kwargs={"content": "hello", "type": "human"})
    assert STRICT.loads_typed(human) == HumanMessage("hello")


def test_plain_json_comes_back() -> None:
    value = {"a": [1, None, {"b": "c", "type": "constructor"}]}
    assert STRICT.loads_typed(("json", json.dumps(value).encode())) == value


def test_other_types_only_when_allowed() -> None:
    order = stored(*shapes.__name__.split("."), "Order", args=[7])
    with pytest.raises(InvalidModuleError, match="allowed_json_modules"):
        STRICT.loads_typed(order)
    for allowed in (True, [(*shapes.__name__.split("."), "Order")]):
        assert JsonPlusSerializer(allowed_json_modules=allowed).loads_typed(order) == Order(7)


def test_no_method_of_a_class_is_called() -> None:
    message = stored(
        *("langchain_core", "messages", "ai", "AIMessage"), method="parse_raw", args=["text"], kwargs={"name": "n"}
    )
    assert STRICT.loads_typed(message) == AIMessage("text", name="n")


def test_a_constructor_that_refuses_is_an_error() -> None:
    message = stored("langchain_core", "messages", "ai", "AIMessage", kwargs={"content": "x", "type": "other"})
    with pytest.raises(SerializationError, match="AIMessage"):
        STRICT.loads_typed(message)


def test_exceptions_are_not_made() -> None:
    assert (
        JsonPlusSerializer(allowed_json_modules=True).loads_typed(stored("builtins", "ValueError", args=["x"])) is None
    )


def test_objects_of_langchain_come_back() -> None:
    from langchain_core.load import dumpd

    document = {"message": dumpd(AIMessage("hi"))}
    assert STRICT.loads_typed(("json", json.dumps(document).encode()))["message"] == AIMessage("hi")


def test_damaged_json_is_an_error() -> None:
    with pytest.raises(CorruptValueError):
        STRICT.loads_typed(("json", b'{"a":'))
