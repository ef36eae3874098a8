"""What annotations of a function say about its node, with LangGraph's answer beside ours."""

import functools
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import pytest
from pydantic import BaseModel
from unit.builder.engines import ours, theirs

from surestep.graph._infer import destinations, input_hint, path_names
from surestep.types import Command


class State(TypedDict):
    x: int


class Part(TypedDict):
    y: int


class Model(BaseModel):
    z: int = 1


class Bare:
    pass


def functions(E: Any) -> dict[str, Any]:
    """Nodes by what is special about them, annotated with the engine's own Command."""
    Command = E.Command

    def plain(state: Part): ...
    def nothing(state): ...
    def builtin(state: dict): ...
    def optional(state: Optional[Part]): ...  # noqa: UP045
    def bare(state: Bare): ...
    def annotated(state: Annotated[Part, "note"]): ...
    def model(state: Model) -> Optional[Command[Literal["b"]]]: ...  # noqa: UP045
    def union(state: Part) -> Union[dict, Command[Literal["b", "c"]]]: ...  # noqa: UP007
    def modern(state) -> Command[Literal["b"]] | None: ...
    def ends(state) -> Command[Literal["b", "__end__"]]: ...
    def untyped(state) -> Command: ...
    def text(state) -> Command[str]: ...
    def several(state) -> list[Command[Literal["b"]]]: ...
    def keyword(*, state: Part): ...
    def second(config, state: Part): ...
    async def coroutine(state: Part) -> Command[Literal["b"]]: ...
    def generator(state: Part):
        yield

    class Callable_:
        def __call__(self, state: Part) -> Command[Literal["b"]]: ...

    class Methods:
        def method(self, state: Part) -> Command[Literal["b"]]: ...

        @staticmethod
        def static(state: Part): ...

        @classmethod
        def class_(cls, state: Part): ...

    @functools.wraps(plain)
    def wrapped(*args, **kwargs): ...

    found = {name: thing for name, thing in locals().items() if callable(thing) and name not in ("E", "Command")}
    del found["Callable_"], found["Methods"]
    return {
        **found,
        "object": Callable_(),
        "method": Methods().method,
        "static": Methods.static,
        "class": Methods.class_,
        "partial": functools.partial(plain),
    }


@pytest.mark.parametrize("name", functions(ours))
def test_a_node_is_read_alike(name: str) -> None:
    found = []
    for E in (ours, theirs):
        spec = E.StateGraph(State).add_node("n", functions(E)[name]).nodes["n"]
        found.append((spec.input_schema.__name__, spec.ends))
    assert found[0] == found[1]


def test_what_is_given_wins() -> None:
    spec = (
        ours.StateGraph(State)
        .add_node("n", functions(ours)["model"], input_schema=Part, destinations=("q",))
        .nodes["n"]
    )
    assert (spec.input_schema, spec.ends) == (Part, ("q",))


def paths() -> dict[str, Any]:
    def literal(state: Part) -> Literal["b", "c"]: ...
    def text(state) -> str: ...
    def several(state) -> list[Literal["b"]]: ...
    async def coroutine(state) -> Literal["b"]: ...

    return {name: thing for name, thing in locals().items() if callable(thing)}


@pytest.mark.parametrize("name", paths())
def test_a_path_is_read_alike(name: str) -> None:
    found = []
    for E in (ours, theirs):
        branches = (
            E.StateGraph(State).add_node("n", lambda s: None).add_conditional_edges("n", paths()[name]).branches["n"]
        )
        found.append({key: (branch.ends, branch.input_schema) for key, branch in branches.items()})
    assert found[0] == found[1]


# --- where we read more ----------------------------------------------------------------------------------------


def test_one_unresolvable_annotation_hides_no_other() -> None:
    def node(state: Part, other: "Nowhere") -> Command[Literal["b"]]: ...  # type: ignore[name-defined]  # noqa: F821

    assert input_hint(node) is Part
    assert destinations(node) == ("b",)


def test_every_command_of_a_union_counts() -> None:
    def node(state) -> Command[Literal["b"]] | Command[Literal["c"] | Literal["d"]]: ...

    assert destinations(node) == ("b", "c", "d")


def test_a_part_of_the_answers_is_no_path_map() -> None:
    def some(state) -> str | Literal["b"]: ...
    def all_of_them(state) -> Literal["b"] | Literal["c"]: ...

    assert path_names(some) == ()
    assert path_names(all_of_them) == ("b", "c")


def test_metaclasses_are_no_schemas() -> None:
    def node(state: type): ...

    assert input_hint(node) is None
