"""What hand-made graphs and entrypoints take and give, the same as LangGraph says of them."""

from __future__ import annotations

import importlib
import operator
import subprocess
import sys
import typing
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, RootModel
from typing_extensions import TypedDict

from surestep.graph import START, StateGraph
from surestep.warnings import LangGraphDeprecatedSinceV10


def names(root: str) -> Any:
    found = SimpleNamespace()
    for path in ("pregel", "channels", "func", "graph"):
        vars(found).update(vars(importlib.import_module(f"{root}.{path}")))
    return found


ours, theirs = names("surestep"), names("langgraph")


@dataclass
class Data:
    a: int
    b: str = "x"


class Keys(TypedDict):
    user: str


class Model(BaseModel):
    m: int


def one_value(E: Any, **settings: Any) -> Any:
    node = E.NodeBuilder().subscribe_only("in").do(lambda x: x).write_to("out")
    channels = {"in": E.LastValue(int), "out": E.LastValue(str)}
    return E.Pregel(nodes={"n": node}, channels=channels, input_channels="in", output_channels="out", **settings)


def several_values(E: Any, **settings: Any) -> Any:
    node = E.NodeBuilder().subscribe_to("in", "sum").do(lambda x: x).write_to("out")
    channels = {
        "in": E.LastValue(int),
        "sum": E.BinaryOperatorAggregate(list, operator.add),
        "topic": E.Topic(str),
        "out": E.LastValue(int | None),
    }
    ends = {"input_channels": ["in", "sum"], "output_channels": ["out", "topic"]}
    return E.Pregel(nodes={"n": node}, channels=channels, **ends, **settings)


def an_entrypoint(E: Any, **settings: Any) -> Any:
    def flow(x: Any, *, previous: Any = None) -> Any:
        return "a"

    flow.__annotations__ = {"x": int, "previous": list[int] | None, "return": str}
    return E.entrypoint(**settings)(flow)


def an_entrypoint_that_saves(E: Any, **settings: Any) -> Any:
    def flow(x: dict[str, int]) -> Any:
        return "a"

    flow.__annotations__ = {"x": dict[str, int], "return": E.entrypoint.final[str, int]}
    return E.entrypoint(**settings)(flow)


def an_entrypoint_without_types(E: Any, **settings: Any) -> Any:
    return E.entrypoint(**settings)(lambda x: x)


MAKERS = [one_value, several_values, an_entrypoint, an_entrypoint_that_saves, an_entrypoint_without_types]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("method", ["get_input_jsonschema", "get_output_jsonschema"])
def test_json_schemas(make: Any, method: str) -> None:
    assert getattr(make(ours), method)() == getattr(make(theirs), method)()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("side", ["input", "output"])
def test_models(make: Any, side: str) -> None:
    model, expected = (getattr(make(E), f"get_{side}_schema")() for E in (ours, theirs))
    assert model.__name__ == expected.__name__ == getattr(make(ours), f"{side}_schema").__name__
    assert issubclass(model, RootModel) == issubclass(expected, RootModel)
    fields = {name: (field.annotation, field.default) for name, field in model.model_fields.items()}
    assert fields == {name: (field.annotation, field.default) for name, field in expected.model_fields.items()}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("kind", ["InputType", "OutputType"])
def test_types(make: Any, kind: str) -> None:
    assert getattr(make(ours), kind) == getattr(make(theirs), kind)


@pytest.mark.parametrize("schema", [Data, Keys, Model, None])
@pytest.mark.parametrize("make", [one_value, an_entrypoint])
def test_context(make: Any, schema: Any) -> None:
    expected = make(theirs, context_schema=schema).get_context_jsonschema()
    assert make(ours, context_schema=schema).get_context_jsonschema() == expected


def test_a_context_that_is_no_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid context schema type"):
        one_value(ours, context_schema=int).get_context_jsonschema()


@pytest.mark.parametrize("schema", [Data, Keys, Model, None])
@pytest.mark.parametrize("include", [None, ["tags", "recursion_limit", "configurable", "unknown"]])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_config(schema: Any, include: Any) -> None:
    mine, other = (one_value(E, context_schema=schema, name="Graph") for E in (ours, theirs))
    assert mine.get_config_jsonschema(include=include) == other.get_config_jsonschema(include=include)
    assert mine.config_schema(include=include).__name__ == "GraphConfig"


def test_the_config_schema_is_deprecated() -> None:
    for method in ("config_schema", "get_config_jsonschema"):
        with pytest.warns(LangGraphDeprecatedSinceV10, match=f"`{method}` is deprecated. Use `get_context_jsonschema`"):
            getattr(one_value(ours), method)()


class Plain(typing.TypedDict, total=False):
    """Of the standard library, which pydantic takes from Python 3.12 on."""

    x: typing.Required[int]
    y: list[str]


def test_typed_dicts_of_the_standard_library() -> None:
    app = StateGraph(Plain, context_schema=Plain).add_node("n", lambda state: None).add_edge(START, "n").compile()
    schema = app.get_input_jsonschema()
    assert schema["required"] == ["x"] and list(schema["properties"]) == ["x", "y"]
    assert schema["title"] == "Plain" and schema["description"].startswith("Of the standard library")
    assert app.get_context_jsonschema() == app.get_output_jsonschema() == schema
    assert app.get_input_schema().model_validate({"x": 1})


@pytest.mark.parametrize("method", ["get_input_jsonschema", "get_output_jsonschema"])
def test_messages_are_spelled_out(method: str) -> None:
    seen = []
    for E in (ours, theirs):
        hints = typing.get_type_hints(E.MessagesState, include_extras=True)
        state = TypedDict("Chat", {**hints, "n": int})  # type: ignore[misc]
        seen.append(getattr(E.StateGraph(state).add_node("n", print).add_edge("__start__", "n").compile(), method)())
    assert seen[0] == seen[1]
    assert "AIMessage" in seen[0]["$defs"]


def test_messages_are_spelled_out_in_models_too() -> None:
    app = StateGraph(ours.MessagesState).add_node("n", print).add_edge(START, "n").compile()
    for model in (app.get_input_schema(), app.get_output_schema()):
        assert "AIMessage" in model.model_json_schema()["$defs"]


def test_pydantic_is_loaded_when_a_schema_is_asked_for() -> None:
    code = """
import sys
from surestep.graph import StateGraph, START
graph = StateGraph(dict).add_node("a", print).add_edge(START, "a").compile()
assert "pydantic" not in sys.modules
graph.get_input_jsonschema()
assert "pydantic" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
