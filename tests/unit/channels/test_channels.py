"""What channels promise beyond being like LangGraph's."""

from __future__ import annotations

import collections.abc
import copy
import operator
import pickle
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

import pytest

from surestep.channels import (
    AnyValue,
    BaseChannel,
    BinaryOperatorAggregate,
    DeltaChannel,
    EphemeralValue,
    LastValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
    UntrackedValue,
)
from surestep.channels.base import MISSING
from surestep.checkpoint.serde.types import _DeltaSnapshot
from surestep.errors import EmptyChannelError, InvalidUpdateError
from surestep.types import Overwrite


def extend(state: list[Any], writes: list[Any]) -> list[Any]:
    return [*state, *writes]


def every_channel() -> list[BaseChannel[Any, Any, Any]]:
    return [
        LastValue(int),
        LastValueAfterFinish(int),
        AnyValue(int),
        EphemeralValue(int),
        UntrackedValue(int),
        Topic(int),
        Topic(int, accumulate=True),
        NamedBarrierValue(int, {1}),
        NamedBarrierValueAfterFinish(int, {1}),
        BinaryOperatorAggregate(int, operator.add),
        DeltaChannel(extend, list),
    ]


def name(channel: BaseChannel[Any, Any, Any]) -> str:
    return f"{type(channel).__name__}{'+' if getattr(channel, 'accumulate', False) else ''}"


def test_missing_is_one_object_and_no_value() -> None:
    assert repr(MISSING) == "MISSING" and not MISSING
    assert copy.deepcopy(MISSING) is MISSING and copy.copy(MISSING) is MISSING
    assert pickle.loads(pickle.dumps(MISSING)) is MISSING


@pytest.mark.parametrize("channel", every_channel(), ids=name)
def test_a_channel_that_promises_not_to_react_does_not(channel: BaseChannel[Any, Any, Any]) -> None:
    def state() -> Any:
        return channel.is_available(), channel.checkpoint()

    for writes in ([], [1]):
        if writes:
            channel.update(writes)
        before = state()
        if not channel.reacts_to_silence:
            assert channel.update([]) is False and state() == before
        if not channel.reacts_to_finish:
            assert channel.finish() is False and state() == before


@pytest.mark.parametrize("channel", every_channel(), ids=name)
def test_a_channel_that_says_it_reacts_does(channel: BaseChannel[Any, Any, Any]) -> None:
    channel.update([1])
    if channel.reacts_to_finish:
        assert channel.finish() is True
    if channel.reacts_to_silence:
        assert channel.update([]) is True


def test_a_channel_of_somebody_else_promises_nothing() -> None:
    class Mine(LastValue[int]):
        pass

    assert BaseChannel.reacts_to_silence and BaseChannel.reacts_to_finish
    assert not Mine(int).reacts_to_silence


@pytest.mark.parametrize("channel", every_channel(), ids=name)
def test_no_channel_carries_a_dict(channel: BaseChannel[Any, Any, Any]) -> None:
    assert not hasattr(channel, "__dict__")


@pytest.mark.parametrize("channel", every_channel(), ids=name)
def test_a_new_channel_keeps_the_key(channel: BaseChannel[Any, Any, Any]) -> None:
    channel.key = "amount"
    channel.update([1])
    assert channel.copy().key == "amount"
    assert channel.from_checkpoint(MISSING).key == "amount"


@pytest.mark.parametrize("channel", every_channel(), ids=name)
def test_a_copy_changes_on_its_own(channel: BaseChannel[Any, Any, Any]) -> None:
    channel.update([1])
    before = copy.deepcopy(channel.checkpoint())
    other = channel.copy()
    assert other.checkpoint() == before and other.is_available() is channel.is_available()
    other.update([1])
    other.finish()
    other.consume()
    assert channel.checkpoint() == before


@pytest.mark.parametrize("channel", every_channel(), ids=name)
def test_a_checkpoint_stays_as_it_was_handed_out(channel: BaseChannel[Any, Any, Any]) -> None:
    channel.update([1])
    handed_out = channel.checkpoint()
    before = copy.deepcopy(handed_out)
    for step in ([1], [], [1]):
        channel.update(step)
        channel.finish()
        channel.consume()
    assert handed_out == before


@pytest.mark.parametrize("channel", every_channel(), ids=name)
def test_a_checkpoint_that_was_restored_is_not_changed(channel: BaseChannel[Any, Any, Any]) -> None:
    channel.update([1])
    saved = channel.checkpoint()
    before = copy.deepcopy(saved)
    restored = channel.from_checkpoint(saved)
    restored.update([1])
    restored.finish()
    restored.consume()
    assert saved == before


# Errors name the key, and leave the value


def test_two_values_for_one_key() -> None:
    channel: LastValue[int] = LastValue(int, "amount")
    channel.update([1])
    with pytest.raises(InvalidUpdateError, match="At key 'amount': 2 values") as caught:
        channel.update([2, 3])
    assert caught.value.channel == "amount"
    assert str(caught.value).endswith("INVALID_CONCURRENT_GRAPH_UPDATE")
    assert channel.get() == 1


@pytest.mark.parametrize("kind", [EphemeralValue, UntrackedValue])
def test_a_guard_refuses_a_second_value(kind: type[Any]) -> None:
    channel = kind(int)
    channel.key = "jump"
    with pytest.raises(InvalidUpdateError, match=rf"At key 'jump'.*{kind.__name__}\(guard=True\)") as caught:
        channel.update([1, 2])
    assert caught.value.channel == "jump"
    assert not channel.is_available()


def test_a_name_the_barrier_does_not_wait_for() -> None:
    barrier = NamedBarrierValue(str, {"a", "b"})
    barrier.key = "join:a+b:c"
    with pytest.raises(InvalidUpdateError, match="'z' is not a name this barrier waits for") as caught:
        barrier.update(["a", "z"])
    assert caught.value.channel == "join:a+b:c"
    assert barrier.seen == set()


@pytest.mark.parametrize("channel", [BinaryOperatorAggregate(int, operator.add), DeltaChannel(extend, list)], ids=name)
def test_two_overwrites_in_a_step(channel: BaseChannel[Any, Any, Any]) -> None:
    channel.key = "total"
    channel.update([1])
    before = channel.get()
    with pytest.raises(InvalidUpdateError, match="At key 'total': Can receive only one Overwrite") as caught:
        channel.update([Overwrite([1]), 2, {"__overwrite__": [3]}])
    assert caught.value.channel == "total"
    assert channel.get() == before


class Shelf(list[int]):
    """A list whose sum is something else."""

    def __add__(self, other: Any) -> Any:
        return Shelf([*other, *self])


@pytest.mark.parametrize(
    ("start", "writes"),
    [
        ([1], [[2], [3, 4], []]),
        ([1], [[2], Shelf([3]), [4]]),
        (Shelf([1]), [[2], [3]]),
        ((1,), [(2,), (3,)]),
        (MISSING, [[1], [2], [3]]),
        ([1], [[2], Overwrite([9]), [3]]),
    ],
    ids=str,
)
def test_adding_many_is_adding_one_by_one(start: Any, writes: list[Any]) -> None:
    together = BinaryOperatorAggregate(list, operator.add).from_checkpoint(start)
    plainly = BinaryOperatorAggregate(list, lambda a, b: a + b).from_checkpoint(start)
    assert together.update(writes) and plainly.update(writes)
    assert together.get() == plainly.get()
    assert type(together.get()) is type(plainly.get())
    assert together.get() is not start


def test_adding_many_leaves_the_old_list_and_what_was_written() -> None:
    old, first, second = [1], [2], [3]
    channel = BinaryOperatorAggregate(list, operator.add).from_checkpoint(old)
    channel.update([first, second])
    assert (old, first, second, channel.get()) == ([1], [2], [3], [1, 2, 3])


def test_adding_what_is_no_list_fails_as_ever() -> None:
    channel = BinaryOperatorAggregate(list, operator.add).from_checkpoint([1])
    with pytest.raises(TypeError, match="can only concatenate list"):
        channel.update([[2], 3])  # type: ignore[list-item]
    assert channel.get() == [1]


def test_a_failing_reducer_leaves_the_value() -> None:
    channel: BinaryOperatorAggregate[Any] = BinaryOperatorAggregate(int, operator.add)
    with pytest.raises(TypeError):
        channel.update([1, "one"])
    assert channel.get() == 0


# Overwrite


@pytest.mark.parametrize("first", [Overwrite(5), {"__overwrite__": 5}, {"type": "__overwrite__", "value": 5}], ids=repr)
def test_an_overwrite_of_nothing_is_a_value(first: Any) -> None:
    # LangGraph stores the Overwrite itself where the type has no initial value.
    channel: BinaryOperatorAggregate[Any] = BinaryOperatorAggregate(Literal, operator.add)  # type: ignore[arg-type]
    assert not channel.is_available()
    channel.update([first, 7])
    assert channel.get() == 5


def test_a_dict_that_looks_like_an_overwrite_is_none() -> None:
    merge = BinaryOperatorAggregate(dict, operator.or_)
    merge.update([{"type": "invoice", "value": 3}, {"__overwrite__": 1, "more": 2}])
    assert merge.get() == {"type": "invoice", "value": 3, "__overwrite__": 1, "more": 2}


def test_a_delta_channel_copies_what_overwrites_it() -> None:
    def in_place(state: list[int], writes: list[int]) -> list[int]:
        state.extend(writes)
        return state

    written = [1]
    channel: DeltaChannel[list[int]] = DeltaChannel(in_place, list)
    channel.update([Overwrite(written)])
    channel.update([2])
    assert channel.get() == [1, 2] and written == [1]
    channel.update([Overwrite(None)])
    assert channel.get() == []


# What a reducer starts with


class Numbers(TypedDict):
    n: int


@dataclass
class Needs:
    n: int


@pytest.mark.parametrize(
    ("typ", "start"),
    [
        (int, 0),
        (list[int], []),
        (Annotated[list[int], "note"], []),
        (NotRequired[dict[str, int]], {}),
        (Annotated[Required[set[int]], "note"], set()),
        (collections.abc.Sequence[int], []),
        (collections.abc.MutableSequence, []),
        (collections.abc.Set, set()),
        (collections.abc.Mapping[str, int], {}),
        (collections.abc.MutableMapping, {}),
        (Numbers, {}),
        (Needs, MISSING),
        (int | None, MISSING),
        (Any, MISSING),
        (Literal["a"], MISSING),
        ("forward", MISSING),
    ],
    ids=repr,
)
def test_what_a_reducer_starts_with(typ: Any, start: Any) -> None:
    channel: BinaryOperatorAggregate[Any] = BinaryOperatorAggregate(typ, operator.add)
    assert channel.checkpoint() == start
    assert channel.typ == typ
    fresh = channel.from_checkpoint(MISSING)
    assert fresh.checkpoint() == start
    if isinstance(start, (list, dict, set)):
        assert fresh.get() is not channel.get()


def test_reducers_read_each_others_checkpoints() -> None:
    delta: DeltaChannel[list[int]] = DeltaChannel(extend, list)
    delta.update([1, 2])
    assert delta.checkpoint() == _DeltaSnapshot([1, 2])
    plain = BinaryOperatorAggregate(list, operator.add).from_checkpoint(delta.checkpoint())
    assert plain.get() == [1, 2]
    assert delta.from_checkpoint(plain.checkpoint()).get() == [1, 2]
    assert delta.from_checkpoint(None).get() == []


def test_a_delta_channel_refuses_a_frequency_of_nothing() -> None:
    with pytest.raises(ValueError, match="positive"):
        DeltaChannel(extend, list, snapshot_frequency=0)


def test_old_checkpoints_of_a_topic() -> None:
    assert Topic(int).from_checkpoint(([1], [2])).get() == [2]


def test_an_empty_channel_says_so() -> None:
    for channel in (LastValue(int), Topic(int), NamedBarrierValue(int, {1}), DeltaChannel(extend)):
        with pytest.raises(EmptyChannelError):
            channel.get()
