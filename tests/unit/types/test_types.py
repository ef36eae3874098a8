"""Command, Send, Interrupt and what a run returns, compared with LangGraph's where both have it."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from typing import Any, NamedTuple, TypedDict, get_args

import langgraph.types as theirs
import pytest
from pydantic import BaseModel

import surestep.types as ours
from surestep.checkpoint.base import BaseCheckpointSaver
from surestep.checkpoint.memory import InMemorySaver
from surestep.types import Command, GraphOutput, Interrupt, Overwrite, Send, TimeoutPolicy
from surestep.warnings import LangGraphDeprecatedSinceV10, LangGraphDeprecatedSinceV11


def test_every_public_name_is_there() -> None:
    for name in theirs.__all__:
        assert hasattr(ours, name), name
    assert set(theirs.__all__) <= set(ours.__all__)
    with pytest.raises(AttributeError, match="Nothing"):
        ours.Nothing  # noqa: B018


@pytest.mark.parametrize("name", ["TaskPayload", "CheckpointPayload", "ValuesStreamPart", "CheckpointTask"])
def test_payloads_have_the_same_keys(name: str) -> None:
    mine, reference = getattr(ours, name), getattr(theirs, name)
    assert mine.__required_keys__ == reference.__required_keys__
    assert mine.__optional_keys__ == reference.__optional_keys__


def test_a_stream_part_is_one_of_seven() -> None:
    assert len(get_args(ours.StreamPart)) == 7


@pytest.mark.parametrize("name", ["PregelTask", "StateSnapshot", "StateUpdate", "RetryPolicy", "CacheKey"])
def test_records_have_the_same_fields(name: str) -> None:
    mine, reference = getattr(ours, name), getattr(theirs, name)
    assert mine._fields == reference._fields
    assert mine._field_defaults.keys() == reference._field_defaults.keys()
    assert mine.__module__ == "surestep.types"


@pytest.mark.parametrize(
    "name",
    ["Command", "CachePolicy", "TracePolicy", "TimeoutPolicy", "Overwrite", "GraphOutput", "PregelExecutableTask"],
)
def test_dataclasses_have_the_same_fields(name: str) -> None:
    mine, reference = getattr(ours, name), getattr(theirs, name)
    assert mine.__module__ == "surestep.types"
    assert mine.__dataclass_params__.frozen is reference.__dataclass_params__.frozen
    fields = [[(f.name, f.kw_only) for f in dataclasses.fields(cls)] for cls in (mine, reference)]
    assert fields[0] == fields[1]
    assert hasattr(mine, "__slots__") is hasattr(reference, "__slots__")


# Command


class Attributes:
    a: int
    b: int

    def __init__(self) -> None:
        self.a = 1


class Derived(Attributes):
    c: str = "c"


class Model(BaseModel):
    a: int | None = 1
    b: int | None = None


class Pair(NamedTuple):
    a: int


@dataclasses.dataclass
class Record:
    a: int
    b: int | None = None


@pytest.mark.parametrize(
    "update",
    [
        None,
        {},
        {"a": 1},
        [("a", 1), ("b", 2)],
        (("a", 1),),
        [("a", 1, 2)],
        [1],
        [],
        (),
        5,
        "text",
        [("a", 1), ["b", 2]],
        Attributes(),
        Derived(),
        Model(),
        Model(a=None),
        Model(a=2, b=None),
        Record(1),
        Pair(1),
        Derived,
    ],
    ids=repr,
)
def test_a_command_says_its_update_in_pairs(update: Any) -> None:
    mine, reference = Command(update=update), theirs.Command(update=update)
    assert sorted(mine._update_as_tuples(), key=repr) == sorted(reference._update_as_tuples(), key=repr)


def test_a_send_is_no_update() -> None:
    # LangGraph takes the attributes of a Send for state keys called node, arg and timeout.
    send = Send("node", 1)
    assert Command(update=send)._update_as_tuples() == [("__root__", send)]


def test_a_command_shows_what_it_has() -> None:
    assert repr(Command()) == "Command()"
    assert repr(Command(update={"a": 1}, goto="b")) == "Command(update={'a': 1}, goto='b')"
    assert Command.PARENT == "__parent__"
    assert Command(goto="b") == Command(goto="b") != Command(goto="c")
    assert dataclasses.replace(Command(goto="b"), resume=1) == Command(goto="b", resume=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Command().goto = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Command("graph")  # type: ignore[misc]


# Send


def test_a_send_is_a_value() -> None:
    send = Send("a", 1, timeout=2)
    assert send == Send("a", 1, timeout=TimeoutPolicy(run_timeout=2)) != Send("a", 1)
    assert hash(send) == hash(Send("a", 1, timeout=2))
    assert repr(Send("a", [1])) == "Send(node='a', arg=[1])"
    assert "timeout=TimeoutPolicy(run_timeout=2.0" in repr(send)
    assert pickle.loads(pickle.dumps(send)) == send
    with pytest.raises(TypeError, match="unhashable"):
        hash(Send("a", [1]))
    with pytest.raises(AttributeError):
        send.other = 1  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="greater than 0"):
        Send("a", 1, timeout=0)


# Interrupt


def test_an_interrupt_is_named_by_its_namespace() -> None:
    assert Interrupt.from_ns(1, "a|b").id == theirs.Interrupt.from_ns(1, "a|b").id
    assert Interrupt(1, ns=["a", "b"]) == Interrupt.from_ns(1, "a|b")
    assert repr(Interrupt(1)) == repr(theirs.Interrupt(1))
    assert Interrupt(1, "x", response_schema={"type": "string"}).response_schema == {"type": "string"}
    with pytest.raises(TypeError):
        hash(Interrupt(1))


def test_stored_interrupts_of_old_can_be_made() -> None:
    old = Interrupt(value="v", resumable=True, ns=["node:1"], when="during")
    assert old == Interrupt.from_ns("v", "node:1")
    with pytest.raises(TypeError, match="'resumeable'"):
        Interrupt("v", resumeable=True)


def test_the_old_name_of_the_id_warns() -> None:
    with pytest.warns(LangGraphDeprecatedSinceV10, match="`interrupt_id` is deprecated") as caught:
        assert Interrupt(1, "x").interrupt_id == "x"
    assert caught[0].filename == __file__


# GraphOutput


@pytest.mark.parametrize("value", [{"a": 1}, Record(1)], ids=repr)
def test_an_output_can_still_be_indexed(value: Any) -> None:
    output = GraphOutput(value, (Interrupt(2),))
    for key, expected in (("a", 1), ("__interrupt__", (Interrupt(2),))):
        with pytest.warns(LangGraphDeprecatedSinceV11, match=r"result\[key\]") as caught:
            assert output[key] == expected
        assert caught[0].filename == __file__
        with pytest.warns(LangGraphDeprecatedSinceV11, match="key in result"):
            assert key in output
    with pytest.warns(LangGraphDeprecatedSinceV11), pytest.raises(KeyError):
        output["z"]
    with pytest.warns(LangGraphDeprecatedSinceV11):
        assert "z" not in output
    assert dataclasses.is_dataclass(output) and GraphOutput({}).interrupts == ()


# The rest


def test_an_overwrite_is_a_value() -> None:
    assert Overwrite(1) == Overwrite(1) and Overwrite(1).type == "__overwrite__"
    assert repr(Overwrite(1)) == repr(theirs.Overwrite(1))


@pytest.mark.parametrize("saver", [None, True, False, InMemorySaver()], ids=repr)
def test_what_may_be_a_checkpointer(saver: Any) -> None:
    assert ours.ensure_valid_checkpointer(saver) is saver


def test_a_saver_of_langgraph_may_be_a_checkpointer() -> None:
    from langgraph.checkpoint.memory import InMemorySaver as Theirs

    saver = Theirs()
    assert ours.ensure_valid_checkpointer(saver) is saver


@pytest.mark.parametrize("saver", ["memory", 1, object(), InMemorySaver], ids=repr)
def test_what_may_not(saver: Any) -> None:
    with pytest.raises(TypeError, match=r"Invalid checkpointer provided\. Expected a saver"):
        ours.ensure_valid_checkpointer(saver)


def test_checkpointer_is_a_type() -> None:
    assert get_args(ours.Checkpointer) == (type(None), bool, BaseCheckpointSaver)


def test_interrupt_needs_a_node() -> None:
    with pytest.raises(RuntimeError, match="outside of a runnable context"):
        ours.interrupt("question")


def test_interrupt_takes_the_same_arguments() -> None:
    assert list(inspect.signature(ours.interrupt).parameters) == ["value", "response_schema"]


def test_a_config_is_a_dict_with_known_keys() -> None:
    from langchain_core.runnables import RunnableConfig

    assert set(ours.RunnableConfig.__annotations__) == set(RunnableConfig.__annotations__)
    assert ours.RunnableConfig.__required_keys__ == frozenset()


class Empty(TypedDict):
    pass


def test_an_update_without_keys_has_no_pairs() -> None:
    assert Command(update=Empty())._update_as_tuples() == []
