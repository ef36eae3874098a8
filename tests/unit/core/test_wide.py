"""States of many channels: each is made when somebody asks for it, and what is written at once is put down at once."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from surestep._core.head import Channels, Head, View
from surestep.channels.binop import BinaryOperatorAggregate
from surestep.channels.last_value import LastValue
from surestep.checkpoint.memory import InMemorySaver
from surestep.errors import InvalidUpdateError
from surestep.graph import START, StateGraph
from surestep.types import Command

WIDTH = 60
Wide: Any = TypedDict(  # type: ignore[misc]
    "Wide",
    {**{f"c{i}": int for i in range(WIDTH)}, "sum": Annotated[int, operator.add], "log": Annotated[list, operator.add]},
)
FULL = {f"c{i}": i for i in range(WIDTH)}


def compiled(node: Any, **settings: Any) -> Any:
    builder: Any = StateGraph(Wide)
    builder.add_node("a", node)
    builder.add_edge(START, "a")
    return builder.compile(**settings)


def specs() -> dict[str, Any]:
    return {**{f"c{i}": LastValue(int) for i in range(WIDTH)}, "sum": BinaryOperatorAggregate(int, operator.add)}


def test_a_channel_is_made_when_somebody_asks_for_it() -> None:
    channels = Channels(specs(), FULL, frozenset(FULL))
    assert len(channels) == 0
    assert channels.value("c1") == 1 and len(channels) == 0
    assert channels["c1"].get() == 1 and list(channels) == ["c1"]
    channels["c1"].update([9])
    assert channels.value("c1") == 9 and channels.value("sum") == 0
    with pytest.raises(KeyError):
        channels["unknown"]


def test_a_view_has_the_keys_in_their_order_whatever_was_made_when() -> None:
    for saved in (FULL, dict(reversed(FULL.items())), {"c3": 3, "c1": 1}):
        channels = Channels(specs(), saved, frozenset(FULL))
        channels["c7"].update([70])
        channels["sum"].update([5])
        for order in (tuple(FULL), ("sum", *FULL)):
            expected = {
                key: {**saved, "c7": 70, "sum": 5}[key] for key in order if key in {**saved, "c7": 70, "sum": 5}
            }
            assert list(View(order, channels).values.items()) == list(expected.items())


def test_what_is_kept_of_channels_does_not_depend_on_whether_they_were_made() -> None:
    channels = Channels(specs(), {**FULL, "gone": 1}, frozenset(FULL))
    head = Head("", channels, lambda current, channel: 1, lambda step, after: "")
    before = head.values_to_keep([*FULL, "sum", "gone", "unknown"])
    for key in FULL:
        assert channels[key].get() == FULL[key]
    assert before == head.values_to_keep([*FULL, "sum", "gone", "unknown"]) == {**FULL, "sum": 0}


def test_many_writes_at_once_are_folded_as_a_few_are() -> None:
    graph = compiled(lambda state: {**FULL, "c1": -1, "sum": 2, "log": ["a"]}, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    out = graph.invoke({**FULL, "sum": 1, "log": ["in"]}, config)
    assert out == {**FULL, "c1": -1, "sum": 3, "log": ["in", "a"]}
    assert graph.get_state(config).values == out
    assert graph.invoke({"c2": 7}, config) == {**out, "c1": -1, "c2": 2, "sum": 5, "log": ["in", "a", "a"]}


def test_two_values_for_one_key_among_many_are_refused() -> None:
    graph = compiled(lambda state: Command(update=[*FULL.items(), ("c1", 2)]))
    with pytest.raises(InvalidUpdateError, match="'c1'"):
        graph.invoke({"c1": 1})
