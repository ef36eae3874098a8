"""What a node's return value becomes: channel writes, held against those that LangGraph's engine stores."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest
from pydantic import BaseModel
from unit.builder.engines import ours, theirs

from surestep.errors import InvalidUpdateError, ParentCommand
from surestep.types import Command, Overwrite, Send


class State(TypedDict):
    x: Annotated[list, operator.add]
    y: int | None


Root = Annotated[list, operator.add]


class Model(BaseModel):
    y: int | None = None
    x: list = []
    other: int = 3


class Defaulted(BaseModel):
    y: int | None = 5


class Computed(BaseModel):
    y: int = 1

    @property
    def x(self) -> list[int]:
        return [4]


@dataclass
class Data:
    y: int | None = None
    x: list = field(default_factory=list)


class Attributes:
    x: list
    y: int

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


class Tuple(NamedTuple):
    x: list
    y: int


class SubDict(dict):
    pass


def build(E: Any, schema: Any, node: Any) -> Any:
    """A graph whose node `n` has an edge, a join and a branch behind it."""
    graph = E.StateGraph(schema)
    graph.add_node("n", node).add_node("b", lambda s: None).add_node("c", lambda s: None)
    graph.add_edge("__start__", "n").add_edge("__start__", "b").add_edge("n", "c").add_edge(["n", "b"], "c")
    return graph


def normal(writes: Any, E: Any) -> list[Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, E.Send):
            return ("Send", value.node, value.arg)
        return repr(value) if isinstance(value, E.Overwrite) else value

    return [(channel, plain(value)) for channel, value in writes]


def my_writes(schema: Any, value: Any) -> Any:
    writers = build(ours, schema, lambda s: None).compile().nodes["n"].writers
    return normal([write for writer in writers for write in writer(value)], ours)


def their_writes(schema: Any, value: Any) -> Any:
    """The rows that LangGraph stores for the node."""
    rows: list[Any] = []

    class Recorder(theirs.InMemorySaver):
        def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            if task_path.endswith(" n"):
                rows.extend(writes)

    app = build(theirs, schema, lambda s: value).compile(checkpointer=Recorder())
    app.invoke([] if schema is Root else {"x": []}, {"configurable": {"thread_id": "1"}}, interrupt_after=["n"])
    return normal(rows, theirs)


VALUES: dict[str, Any] = {
    "None": lambda E: None,
    "an empty dict": lambda E: {},
    "a dict": lambda E: {"y": 1, "x": [2]},
    "a dict with unknown keys": lambda E: {"x": [1], "z": 3, 1: 2},
    "a value of None": lambda E: {"y": None},
    "a dict's subclass": lambda E: SubDict(x=[9]),
    "an overwrite": lambda E: {"x": E.Overwrite([3])},
    "an empty command": lambda E: E.Command(),
    "a command's update": lambda E: E.Command(update={"x": [1], "z": 2}),
    "a command's pairs": lambda E: E.Command(update=[("x", [1]), ("y", 2), ("z", 3)]),
    "a command's model": lambda E: E.Command(update=Model(y=2)),
    "a command's dataclass": lambda E: E.Command(update=Data(y=2)),
    "goto": lambda E: E.Command(goto="b"),
    "goto several": lambda E: E.Command(goto=["b", "b", "__end__", E.Send("b", 1)]),
    "update and goto": lambda E: E.Command(update={"x": [1]}, goto=E.Send("b", 1)),
    "a command for a named graph": lambda E: E.Command(graph="other", update={"x": [1]}, goto="b"),
    "a list with commands": lambda E: [E.Command(update={"x": [1]}), {"x": [2], "z": 1}, None, E.Command(goto="b")],
    "a tuple with commands": lambda E: (E.Command(goto="b"), E.Command(update={"x": [1]})),
    "a Send": lambda E: E.Send("b", {"k": 1}),
    "a model": lambda E: Model(x=[1], y=2),
    "a model with unset fields": lambda E: Model(),
    "a model with None set": lambda E: Model(y=None),
    "a model with another default": lambda E: Defaulted(y=None),
    "a model without validation": lambda E: Defaulted.model_construct(y=None),
    "a model with properties": lambda E: Computed(),
    "a dataclass": lambda E: Data(x=[1]),
    "an object": lambda E: Attributes(x=[1]),
    "a named tuple": lambda E: Tuple([1], 2),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_writes_the_same(value: Any) -> None:
    assert my_writes(State, value(ours)) == their_writes(State, value(theirs))


ROOT_VALUES: dict[str, Any] = {
    "None": lambda E: None,
    "a list": lambda E: [1],
    "a command": lambda E: E.Command(update=[3], goto="b"),
    "a list with commands": lambda E: [E.Command(update=[3]), [4]],
}


@pytest.mark.parametrize("value", ROOT_VALUES.values(), ids=ROOT_VALUES)
def test_a_value_of_a_single_state_writes_the_same(value: Any) -> None:
    assert my_writes(Root, value(ours)) == their_writes(Root, value(theirs))


NO_UPDATES = [5, "text", [1], [{"x": [1]}], object(), set(), State, Model, type, lambda: None, (1, 2)]


@pytest.mark.parametrize("value", NO_UPDATES, ids=str)
def test_what_is_no_update_is_refused(value: Any) -> None:
    with pytest.raises(InvalidUpdateError) as raised:
        my_writes(State, value)
    text = str(raised.value)
    assert text.startswith("Expected dict, got ") and "node 'n'" in text and "(x, y)" in text
    assert text.endswith("INVALID_GRAPH_NODE_RETURN_VALUE")
    with pytest.raises(theirs.InvalidUpdateError, match="Expected dict, got"):
        their_writes(State, value)


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(InvalidUpdateError) as raised:
        my_writes(State, "a" * 10_000)
    assert len(str(raised.value)) < 600


def test_a_command_for_the_graph_around_comes_before_any_write() -> None:
    command = Command(graph=Command.PARENT, update={"x": [1]}, goto="elsewhere")
    for value in (command, [Command(update={"x": [2]}), command]):
        with pytest.raises(ParentCommand) as raised:
            my_writes(State, value)
        assert raised.value.args == (command,)


# --- where we differ -------------------------------------------------------------------------------------------


def test_a_send_is_control_only() -> None:
    """LangGraph also writes its attributes to state keys of those names."""

    class Parcel(TypedDict):
        node: str
        arg: Any

    assert my_writes(Parcel, Send("b", 1))[0] == ("__pregel_tasks", ("Send", "b", 1))
    assert ("node", "b") not in my_writes(Parcel, Send("b", 1))
    assert ("node", "b") in their_writes(Parcel, theirs.Send("b", 1))


def test_a_send_beside_commands_is_sent() -> None:
    assert ("__pregel_tasks", ("Send", "b", 1)) in my_writes(State, [Command(update={"x": [1]}), Send("b", 1)])


@pytest.mark.parametrize(
    ("goto", "says"),
    [
        ("bb", "Unknown destination 'bb': node 'n' .* Did you mean 'b'?"),
        ("nowhere", "Unknown destination 'nowhere': .* The nodes are: 'n', 'b', 'c'"),
        (Send("nowhere", 1), "Unknown destination Send.*nowhere"),
        (Send("__end__", 1), "Cannot send a packet to the END node"),
        ("__start__", "START is where a run begins"),
        (5, "goto=5: it takes a node's name"),
    ],
)
def test_an_unknown_destination_is_an_error(goto: Any, says: str) -> None:
    with pytest.raises(InvalidUpdateError, match=says):
        my_writes(State, Command(goto=goto))


def test_goto_none_goes_nowhere() -> None:
    assert my_writes(State, Command(goto=None)) == my_writes(State, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("update", [5, "text", [("x", 1, 2)], object()], ids=str)
def test_a_commands_update_is_never_lost(update: Any) -> None:
    with pytest.raises(InvalidUpdateError, match=r"Expected dict, got .* as the update of a Command"):
        my_writes(State, Command(update=update))


def test_a_single_state_takes_a_command_update_whole() -> None:
    """LangGraph writes the keys of a dict to channels that are not there."""
    assert my_writes(dict, Command(update={"a": 1}))[0] == ("__root__", {"a": 1})
    assert my_writes(dict, Command(update={"__root__": 3}))[0] == ("__root__", 3)
    assert my_writes(Root, Command(update=[("user", "hello")]))[0] == ("__root__", [("user", "hello")])
    assert my_writes(Root, Overwrite([1]))[0] == ("__root__", repr(Overwrite([1])))


def test_managed_values_are_not_written() -> None:
    class Counted(TypedDict):
        x: int
        last: ours.IsLastStep

    class Plain(TypedDict):
        x: int

    graph = ours.StateGraph(Counted, input_schema=Plain, output_schema=Plain).add_node("n", lambda s: s)
    writer = graph.add_edge("__start__", "n").compile().nodes["n"].writers[0]
    assert list(writer({"x": 1, "last": True})) == [("x", 1)]
