"""The classes that a strict serializer is told of, and that a compiled graph tells it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar

import pytest
from pydantic import BaseModel
from unit.builder.engines import theirs

from surestep.checkpoint.memory import InMemorySaver
from surestep.graph import START, MessagesState, StateGraph
from surestep.graph._reach import reachable_classes
from surestep.types import Command

T = TypeVar("T")


class Color(enum.Enum):
    RED = 1


@dataclass
class Leaf:
    color: Color


class Model(BaseModel):
    leaves: list[Leaf] = []


class Pair(NamedTuple):
    left: int
    model: Model


@dataclass
class Box(Generic[T]):
    value: T


@dataclass
class Chain:
    after: Optional[Chain]  # noqa: UP045
    leaf: Leaf


Alias = NewType("Alias", Leaf)


class Payload(TypedDict):
    pair: Pair


class Code(str):
    pass


class Failure(Exception):
    pass


Bound = TypeVar("Bound", bound=Leaf)


class Crate(BaseModel, Generic[T]):
    value: T


HINTS: list[tuple[Any, set[type]]] = [
    (dict[Code, Failure | None], {Code, Failure}),
    (Exception, {Exception}),
    (Crate[Leaf], {Crate[Leaf], Leaf, Color}),
    (list[Literal[Color.RED]], {Color}),
    (Bound, {Leaf, Color}),
    (int, set()),
    (Any, set()),
    (Literal["a"], set()),
    (dict[str, list[Color]], {Color}),
    (Leaf, {Leaf, Color}),
    (Model, {Model, Leaf, Color}),
    (Annotated[Leaf | None, "note"], {Leaf, Color}),
    (Payload, {Pair, Model, Leaf, Color}),
    (Box[Color], {Box, Color}),
    (Chain, {Chain, Leaf, Color}),
    (Alias, {Leaf, Color}),
    (list[Alias], {Leaf, Color}),
    (tuple[Pair, ...], {Pair, Model, Leaf, Color}),
    (MessagesState, set()),
    (Command, set()),
]


@pytest.mark.parametrize(("hint", "classes"), HINTS, ids=lambda value: str(value)[:40])
def test_classes_are_found_at_any_depth(hint: Any, classes: set[type]) -> None:
    assert reachable_classes([hint]) == classes


def test_an_unresolvable_field_hides_no_other() -> None:
    @dataclass
    class Broken:
        leaf: Leaf
        missing: Nowhere  # type: ignore[name-defined]  # noqa: F821

    assert Broken in reachable_classes([Broken])


def state_of(cls: type) -> Any:
    return TypedDict("State", {"value": cls})


@pytest.mark.parametrize("value", [Leaf(Color.RED), Model(leaves=[Leaf(Color.RED)]), Pair(1, Model())], ids=repr)
def test_a_graphs_own_classes_are_revived(value: Any) -> None:
    saver = InMemorySaver()
    graph = StateGraph(state_of(type(value))).add_node("n", lambda state: {"value": value}).add_edge(START, "n")
    app = graph.compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "1"}}
    app.invoke({}, config)
    assert app.get_state(config).values == {"value": value}
    assert saver.storage is app.checkpointer.storage  # a view of the caller's saver, not another one


def test_local_classes_are_revived() -> None:
    @dataclass
    class Local:
        x: int

    graph = StateGraph(state_of(Local)).add_node("n", lambda state: {"value": Local(3)}).add_edge(START, "n")
    app = graph.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    app.invoke({}, config)
    assert app.get_state(config).values == {"value": Local(3)}


def test_savers_of_others_are_told_too() -> None:
    told: list[Callable[..., Any]] = []

    class Saver(theirs.InMemorySaver):
        def with_allowlist(self, extra_allowlist: Any) -> Any:
            told.extend(extra_allowlist)
            return self

    StateGraph(state_of(Leaf)).add_node("n", lambda state: None).add_edge(START, "n").compile(checkpointer=Saver())
    assert set(told) == {Leaf, Color}


class Answered(BaseModel):
    leaf: Leaf


class Format(NamedTuple):
    schema: Any


@pytest.mark.parametrize("held", [Answered, Format(Answered), Format(Answered | Pair)])
def test_what_a_packaged_node_holds_is_known(held: Any) -> None:
    """An agent keeps its answer under a key that the schema declares as anything."""
    from surestep.utils.runnable import RunnableCallable

    def answer(state: Any) -> Any:
        assert held
        return {"answer": Answered(leaf=Leaf(Color.RED))}

    class State(TypedDict):
        answer: Any

    graph = StateGraph(State).add_node("a", RunnableCallable(answer, name="model")).add_edge(START, "a")
    app = graph.compile(InMemorySaver())
    app.invoke({}, config := {"configurable": {"thread_id": "1"}})
    assert app.get_state(config).values == {"answer": Answered(leaf=Leaf(Color.RED))}
