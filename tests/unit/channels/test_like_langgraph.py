"""The same calls on our channels and on LangGraph's give the same values, errors and checkpoints."""

from __future__ import annotations

import operator
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import langgraph.channels as theirs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.types import Overwrite as TheirOverwrite

import surestep.channels as ours
from surestep.channels.base import MISSING
from surestep.types import Overwrite

VALUES = st.integers(0, 3)
OVERWRITES = st.builds(lambda form, value: (form, value), st.sampled_from(["object", "short", "long"]), VALUES)


def written(value: Any, overwrite: type[Any]) -> Any:
    """The value as it is written: an Overwrite in one of its forms, made with the engine's own class."""
    match value:
        case ("object", inner):
            return overwrite(inner)
        case ("short", inner):
            return {"__overwrite__": inner}
        case ("long", inner):
            return {"type": "__overwrite__", "value": inner}
    return value


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return plain(call())
    except Exception as error:
        return type(error).__name__


def plain(value: Any) -> Any:
    """MISSING is another object in each engine, and so is the class of a delta's snapshot."""
    if value is MISSING or type(value) is object:
        return "MISSING"
    if type(value).__name__ == "_DeltaSnapshot":
        return ("snapshot", value.value)
    return value


def play(channel: Any, steps: list[Any], overwrite: type[Any], *, checkpoints: bool = True) -> list[Any]:
    """What can be seen of the channel after each step, up to the first error."""
    seen: list[Any] = []
    for name, values in steps:
        if name == "update":
            batch = [written(value, overwrite) for value in values]
            result = outcome(partial(channel.update, batch))
        elif name == "restore":
            channel, result = channel.from_checkpoint(channel.checkpoint()), None
        elif name == "copy":
            channel, result = channel.copy(), None
        else:
            result = outcome(getattr(channel, name))
        if isinstance(result, str):
            return [*seen, (name, result)]  # what an error leaves behind is no part of the contract
        seen.append((name, result, outcome(channel.get), channel.is_available()))
        if checkpoints:
            # A copy, because LangGraph's barriers go on changing the set they handed out.
            seen.append(deepcopy(plain(channel.checkpoint())))
    return seen


def steps(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    update = st.tuples(st.just("update"), st.lists(values, max_size=3))
    other = st.tuples(st.sampled_from(["consume", "finish", "restore", "copy"]), st.none())
    return st.lists(update | other, max_size=8)


NAMES = ("a", "b")
PLAIN: dict[str, tuple[Callable[[Any], Any], st.SearchStrategy[Any]]] = {
    "LastValue": (lambda lib: lib.LastValue(int, "k"), VALUES),
    "LastValueAfterFinish": (lambda lib: lib.LastValueAfterFinish(int, "k"), VALUES),
    "AnyValue": (lambda lib: lib.AnyValue(int), VALUES | st.none()),
    "EphemeralValue": (lambda lib: lib.EphemeralValue(int), VALUES | st.none()),
    "EphemeralValue without guard": (lambda lib: lib.EphemeralValue(int, guard=False), VALUES),
    "UntrackedValue": (lambda lib: lib.UntrackedValue(int), VALUES),
    "UntrackedValue without guard": (lambda lib: lib.UntrackedValue(int, guard=False), VALUES),
    "NamedBarrierValue": (lambda lib: lib.NamedBarrierValue(str, set(NAMES)), st.sampled_from(NAMES)),
    "NamedBarrierValueAfterFinish": (
        lambda lib: lib.NamedBarrierValueAfterFinish(str, set(NAMES)),
        st.sampled_from((*NAMES, *NAMES, "stranger")),
    ),
    "Topic": (lambda lib: lib.Topic(int), VALUES | st.lists(VALUES, max_size=2)),
    "Topic that accumulates": (
        lambda lib: lib.Topic(int, accumulate=True),
        VALUES | st.lists(VALUES, max_size=2),
    ),
    "BinaryOperatorAggregate": (
        lambda lib: lib.BinaryOperatorAggregate(int, operator.sub),
        VALUES | OVERWRITES,
    ),
    "BinaryOperatorAggregate of lists": (
        lambda lib: lib.BinaryOperatorAggregate(list, operator.add),
        st.lists(VALUES, max_size=2),
    ),
    "BinaryOperatorAggregate without a start": (
        lambda lib: lib.BinaryOperatorAggregate(int | None, operator.sub),
        VALUES,
    ),
}


@pytest.mark.parametrize("kind", PLAIN)
@settings(max_examples=50)
@given(data=st.data())
def test_a_channel_behaves_alike(kind: str, data: st.DataObject) -> None:
    make, values = PLAIN[kind]
    script = data.draw(steps(values))
    assert play(make(ours), script, Overwrite) == play(make(theirs), script, TheirOverwrite)


def collect(state: list[int], writes: list[int]) -> list[int]:
    return [*state, *writes]


@given(script=steps(VALUES | st.builds(lambda v: (v[0], [v[1]]), OVERWRITES)))
def test_a_delta_channel_behaves_alike(script: list[Any]) -> None:
    # Restoring is left out: LangGraph's keeps nothing in the checkpoint and rebuilds the value from stored writes.
    script = [step for step in script if step[0] not in ("restore", "copy")]
    ours_seen = play(ours.DeltaChannel(collect, list), script, Overwrite, checkpoints=False)
    assert ours_seen == play(theirs.DeltaChannel(collect, list), script, TheirOverwrite, checkpoints=False)


@given(writes=st.lists(VALUES | st.builds(lambda v: (v[0], [v[1]]), OVERWRITES), max_size=6))
def test_a_delta_channel_replays_alike(writes: list[Any]) -> None:
    results = []
    for lib, overwrite in ((ours, Overwrite), (theirs, TheirOverwrite)):
        channel = lib.DeltaChannel(collect, list).from_checkpoint([7])
        channel.replay_writes([("task", "k", written(value, overwrite)) for value in writes])
        results.append(channel.get())
    assert results[0] == results[1]


CONSTRUCTORS: list[Callable[[Any], Any]] = [
    lambda lib: lib.LastValue(int),
    lambda lib: lib.LastValue(str, "k"),
    lambda lib: lib.AnyValue(int),
    lambda lib: lib.LastValueAfterFinish(int),
    lambda lib: lib.EphemeralValue(int),
    lambda lib: lib.EphemeralValue(int, guard=False),
    lambda lib: lib.UntrackedValue(int),
    lambda lib: lib.UntrackedValue(int, guard=False),
    lambda lib: lib.Topic(int),
    lambda lib: lib.Topic(int, accumulate=True),
    lambda lib: lib.NamedBarrierValue(str, {"a"}),
    lambda lib: lib.NamedBarrierValue(str, {"b"}),
    lambda lib: lib.NamedBarrierValueAfterFinish(str, {"a"}),
    lambda lib: lib.BinaryOperatorAggregate(int, operator.add),
    lambda lib: lib.BinaryOperatorAggregate(str, operator.add),
    lambda lib: lib.BinaryOperatorAggregate(int, operator.sub),
    lambda lib: lib.BinaryOperatorAggregate(int, lambda a, b: a),
    lambda lib: lib.DeltaChannel(collect, list),
    lambda lib: lib.DeltaChannel(collect, dict),
    lambda lib: lib.DeltaChannel(collect, list, snapshot_frequency=5),
    lambda lib: lib.DeltaChannel(operator.add, list),
]


def test_the_same_channels_are_equal() -> None:
    for a in CONSTRUCTORS:
        for b in CONSTRUCTORS:
            assert (a(ours) == b(ours)) is (a(theirs) == b(theirs)), (a(theirs), b(theirs))


@pytest.mark.parametrize("make", CONSTRUCTORS)
def test_types_are_told_alike(make: Callable[[Any], Any]) -> None:
    mine, reference = make(ours), make(theirs)
    assert mine.ValueType == reference.ValueType
    assert mine.UpdateType == reference.UpdateType
