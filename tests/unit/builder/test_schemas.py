"""JSON schemas of what a graph takes and gives, the same as LangGraph's."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict
from unit.builder.engines import ours, theirs


class Nested(BaseModel):
    deep: int = 1


class Keys(TypedDict):
    """A docstring is a description."""

    x: Annotated[list[int], operator.add]
    y: NotRequired[int]
    nested: Nested | None


class Model(BaseModel):
    x: list[str] = []
    y: int | None = None


@dataclass
class Data:
    required: str
    optional: int | None
    x: list[int] = field(default_factory=lambda: [1])
    note: Annotated[str, "note"] = "none"


class Attributes:
    required: str
    given: int = 3


class Out(TypedDict):
    y: int


SCHEMAS: list[Any] = [Keys, Model, Data, Attributes, int, dict, Annotated[list, operator.add]]


def compiled(E: Any, schema: Any, **settings: Any) -> Any:
    graph = E.StateGraph(schema, **settings).add_node("n", lambda state: None).add_edge("__start__", "n")
    return graph.compile(name="Named")


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@pytest.mark.parametrize("method", ["get_input_jsonschema", "get_output_jsonschema"])
def test_json_schemas(schema: Any, method: str) -> None:
    assert getattr(compiled(ours, schema), method)() == getattr(compiled(theirs, schema), method)()


@pytest.mark.parametrize("schema", [s for s in SCHEMAS if s is not Attributes], ids=str)
@pytest.mark.parametrize("name", ["input_schema", "output_schema"])
def test_models(schema: Any, name: str) -> None:
    mine, reference = (getattr(compiled(E, schema), name) for E in (ours, theirs))
    assert mine.__name__ == reference.__name__
    assert mine.model_json_schema() == reference.model_json_schema()


def test_input_and_output_of_their_own() -> None:
    for method in ("get_input_jsonschema", "get_output_jsonschema"):
        mine, reference = (
            getattr(compiled(E, Keys, input_schema=Model, output_schema=Out), method)() for E in (ours, theirs)
        )
        assert mine == reference
    assert compiled(ours, Keys, output_schema=Out).OutputType is Out
    assert compiled(ours, Keys, output_schema=Out).InputType is Keys


@pytest.mark.parametrize("schema", [None, Keys, Model, Data], ids=str)
def test_contexts(schema: Any) -> None:
    mine, reference = (compiled(E, Out, context_schema=schema).get_context_jsonschema() for E in (ours, theirs))
    assert mine == reference


def test_a_context_that_is_no_class_has_no_schema(engine: Any) -> None:
    with pytest.raises(ValueError, match="Invalid context schema type"):
        compiled(engine, Out, context_schema=int).get_context_jsonschema()


def test_results_of_version_2_are_of_the_schema(engine: Any) -> None:
    graph = engine.StateGraph(Model).add_node("n", lambda state: {"x": ["a"]}).add_edge("__start__", "n").compile()
    assert graph.invoke({"x": []}, version="v2").value == Model(x=["a"])
    assert [part["data"] for part in graph.stream({"x": []}, stream_mode="values", version="v2")] == [
        Model(x=[]), Model(x=["a"]),
    ]  # fmt: skip


def test_private_keys_are_no_part_of_the_result() -> None:
    """LangGraph hands them to the class, which refuses them."""
    graph = ours.StateGraph(Data).add_node("n", lambda state: {"y": 1}, input_schema=Out).add_edge("__start__", "n")
    given = {"required": "r", "optional": None, "x": [2]}
    parts = list(graph.compile().stream(given, stream_mode="values", version="v2"))
    assert parts[-1]["data"] == Data("r", None, [2])
