"""From annotations to channels, the same as in LangGraph but for the differences that the last tests name."""

from __future__ import annotations

import dataclasses
import functools
import operator
import typing
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple, NotRequired, Optional, Required

import pytest
import typing_extensions
from pydantic import BaseModel
from unit.builder.engines import ours, theirs

from surestep.channels import EphemeralValue, LastValue, Topic
from surestep.graph import StateGraph
from surestep.graph._schema import analyse, mapper_of
from surestep.managed import IsLastStep, RemainingSteps


def fold(state: Any, update: Any) -> Any:
    return update


class Folder:
    def __repr__(self) -> str:
        return "Folder"

    def __call__(self, state: Any, update: Any) -> Any:
        return update


ANNOTATIONS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda E: int,
    "optional": lambda E: str | None,
    "reducer": lambda E: Annotated[list, operator.add],
    "reducer of an optional": lambda E: Annotated[Optional[list], operator.add],  # noqa: UP045
    "reducer of an abstract type": lambda E: Annotated[typing.Sequence, operator.add],
    "partial": lambda E: Annotated[list, functools.partial(fold)],
    "callable object": lambda E: Annotated[list, Folder()],
    "reducer that is not last": lambda E: Annotated[list, operator.add, "note"],
    "nested": lambda E: Annotated[Annotated[list, operator.add], "note"],
    "reducer inside of an optional": lambda E: Optional[Annotated[list, operator.add]],  # noqa: UP045
    "not required": lambda E: NotRequired[int],
    "required reducer": lambda E: Required[Annotated[list, operator.add]],
    "not required inside": lambda E: Annotated[NotRequired[list], operator.add],
    "channel class": lambda E: Annotated[int, E.EphemeralValue],
    "channel class among others": lambda E: NotRequired[Annotated[str | None, E.EphemeralValue, "marker"]],
    "channel class after others": lambda E: Annotated[int, "marker", E.UntrackedValue],
    "channel": lambda E: Annotated[list[int], E.Topic(int, True), "marker"],
    "the first of two channels": lambda E: Annotated[list, E.Topic, E.EphemeralValue],
    "channel and reducer": lambda E: Annotated[list, E.Topic, operator.add],
    "delta": lambda E: Annotated[list, E.DeltaChannel(fold, snapshot_frequency=7)],
    "managed": lambda E: E.IsLastStep,
    "managed and optional": lambda E: Optional[E.IsLastStep],  # noqa: UP045
    "managed and not required": lambda E: NotRequired[E.RemainingSteps],
}


def channels_of(E: Any, schema: Any) -> tuple[dict[str, Any], dict[str, str]]:
    graph = E.StateGraph(schema)
    found = {}
    for key, channel in graph.channels.items():
        details = [getattr(channel, name, None) for name in ("accumulate", "snapshot_frequency", "guard")]
        found[key] = (type(channel).__name__, str(channel.typ).replace(E.root, ""), channel.key, *details)
    return found, {key: value.__name__ for key, value in graph.managed.items()}


@pytest.mark.parametrize("declare", ANNOTATIONS.values(), ids=ANNOTATIONS)
def test_an_annotation_makes_the_same_channel(declare: Callable[[Any], Any]) -> None:
    mine, reference = (
        channels_of(E, typing.TypedDict("State", {"key": declare(E), "other": int})) for E in (ours, theirs)
    )
    assert mine == reference


class Parent(typing.TypedDict):
    a: int


class Child(Parent, total=False):
    b: Annotated[list, operator.add]


class Model(BaseModel):
    a: int = 1
    b: Annotated[list, operator.add] = []


class Grandchild(Model):
    c: str | None = None


@dataclasses.dataclass
class Data:
    a: int
    b: Annotated[list, operator.add] = dataclasses.field(default_factory=list)


class Plain:
    a: int
    b: Annotated[list, operator.add]


class Tuple(NamedTuple):
    a: int
    b: str


class Extended(typing_extensions.TypedDict, total=False):
    a: typing_extensions.Required[int]
    b: typing_extensions.Annotated[list, operator.add]


@pytest.mark.parametrize(
    "schema",
    [
        Parent,
        Child,
        Model,
        Grandchild,
        Data,
        Plain,
        Tuple,
        Extended,
        int,
        dict,
        list[str],
        Annotated[list, operator.add],
    ],
    ids=str,
)
def test_a_class_makes_the_same_channels(schema: Any) -> None:
    assert channels_of(ours, schema) == channels_of(theirs, schema)


def test_annotations_of_typing_extensions_may_be_read_only() -> None:
    Frozen = typing_extensions.TypedDict("Frozen", {"a": typing_extensions.ReadOnly[Annotated[int, EphemeralValue]]})
    assert type(analyse(Frozen).channels["a"]) is EphemeralValue


BAD_REDUCERS: list[Callable[..., Any]] = [lambda a: a, lambda a, b, c: a, lambda a, b, c=1: a, lambda *a: a]


@pytest.mark.parametrize("reducer", BAD_REDUCERS)
def test_a_reducer_takes_two_arguments(engine: Any, reducer: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"Invalid reducer signature. Expected \(a, b\) -> c. Got \(\*?a"):
        engine.StateGraph(typing.TypedDict("State", {"key": Annotated[int, reducer]}))


def test_the_error_of_a_reducer_names_the_key() -> None:
    with pytest.raises(ValueError, match="for key 'total'"):
        analyse(typing.TypedDict("State", {"total": Annotated[int, lambda a: a]}))


def test_a_schema_conflict(engine: Any) -> None:
    first = typing.TypedDict("First", {"x": Annotated[list, operator.add]})
    second = typing.TypedDict("Second", {"x": Annotated[list, operator.concat]})
    with pytest.raises(ValueError, match="Channel 'x' already exists with a different type"):
        engine.StateGraph(first, input_schema=second)


def test_the_first_reducer_wins_over_a_plain_key(engine: Any) -> None:
    first = typing.TypedDict("First", {"x": Annotated[list, operator.add]})
    second = typing.TypedDict("Second", {"x": list, "y": int})
    graph = engine.StateGraph(first, input_schema=second)
    assert [type(channel).__name__ for channel in graph.channels.values()] == ["BinaryOperatorAggregate", "LastValue"]


def test_managed_values_are_not_taken_or_given(engine: Any) -> None:
    state = typing.TypedDict("State", {"x": int})
    counted = typing.TypedDict("Counted", {"x": int, "last": engine.IsLastStep})
    for name in ("input_schema", "output_schema"):
        with pytest.raises(ValueError, match="Invalid managed channels detected in Counted: last"):
            engine.StateGraph(state, **{name: counted})
    # The state itself may have them, and is then what the graph takes, too.
    assert engine.StateGraph(counted).managed.keys() == {"last"}


def test_managed_values_conflict(engine: Any) -> None:
    state = typing.TypedDict("State", {"x": engine.IsLastStep})
    other = typing.TypedDict("Other", {"x": engine.RemainingSteps})
    with pytest.raises(ValueError, match="Managed value 'x' already exists with a different type"):
        engine.StateGraph(state).add_node("n", lambda state: None, input_schema=other)


def test_a_managed_value_is_no_schema(engine: Any) -> None:
    with pytest.raises(ValueError, match="not allowed in this position"):
        engine.StateGraph(engine.IsLastStep)


@pytest.mark.parametrize("schema", [3, None])
def test_what_is_no_schema_is_warned_of(engine: Any, schema: Any) -> None:
    with pytest.warns(UserWarning, match=f"Invalid state_schema: {schema}"):
        engine.StateGraph(schema)


def test_an_unknown_name_in_an_annotation_says_whose_it_is() -> None:
    Broken = typing.TypedDict("Broken", {"x": "Nowhere"})  # type: ignore[name-defined]  # noqa: F821
    with pytest.raises(NameError) as raised:
        analyse(Broken)
    assert "schema Broken" in raised.value.__notes__[0]


# --- where we differ -------------------------------------------------------------------------------------------


def test_a_channel_in_an_annotation_is_not_shared() -> None:
    shared = Topic(int)
    State = typing.TypedDict("State", {"a": Annotated[list[int], shared], "b": Annotated[list[int], shared]})
    channels = analyse(State).channels
    assert [channels["a"].key, channels["b"].key, shared.key] == ["a", "b", ""]


def test_a_builtin_reducer_needs_no_signature() -> None:
    channel = analyse(typing.TypedDict("State", {"best": Annotated[int, max]})).channels["best"].from_checkpoint(3)
    channel.update([5, 2])
    assert channel.get() == 5


def test_class_variables_are_no_state() -> None:
    class Settings(BaseModel):
        limit: ClassVar[int] = 3
        used: int = 0

    assert list(analyse(Settings).channels) == ["used"]


def test_a_managed_value_inside_of_annotated() -> None:
    State = typing.TypedDict("State", {"left": Annotated[int, RemainingSteps], "last": IsLastStep})
    assert [value.__name__ for value in analyse(State).managed.values()] == [
        "RemainingStepsManager",
        "IsLastStepManager",
    ]


# --- what nodes see --------------------------------------------------------------------------------------------


def test_models_and_dataclasses_are_made_for_nodes() -> None:
    assert mapper_of(Data, ["a", "b"])({"a": 1}) == Data(1)  # type: ignore[misc]
    assert mapper_of(Model, ["a", "b"])({"a": "2"}) == Model(a=2)  # type: ignore[misc]
    for schema in (Parent, Plain, Tuple, dict, Annotated[list, operator.add]):
        assert mapper_of(schema, ["a"]) is None


def test_a_generic_builder_takes_one_to_four_parameters() -> None:
    for params in (Parent, (Parent, None), (Parent, None, Child), (Parent, None, Child, Child)):
        assert type(StateGraph[params](Parent)) is StateGraph  # type: ignore[valid-type]
    assert type(LastValue(int)) is LastValue
