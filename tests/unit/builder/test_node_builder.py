"""Nodes made by hand, held against LangGraph's NodeBuilder."""

from __future__ import annotations

from typing import Any

import pytest
from unit.builder.engines import ours, theirs

from surestep.errors import InvalidUpdateError
from surestep.pregel.node import PASSTHROUGH, ChannelWriteEntry, ChannelWriter, NodeBuilder, PregelNode
from surestep.types import RetryPolicy, TimeoutPolicy


def run(E: Any, node: Any, input: Any = 3) -> Any:
    channels = {"i": E.EphemeralValue(int), "o": E.LastValue(int), "p": E.LastValue(int)}
    app = E.Pregel(nodes={"n": node}, channels=channels, input_channels="i", output_channels=["o", "p"])
    return app.invoke(input)


NODES = {
    "one": lambda E: E.NodeBuilder().subscribe_only("i").do(lambda x: x + 1).write_to("o"),
    "written first": lambda E: E.NodeBuilder().subscribe_only("i").write_to("o").do(lambda x: x + 1),
    "chained": lambda E: E.NodeBuilder().subscribe_only("i").do(lambda x: x + 1).do(lambda x: x * 10).write_to("o"),
    "None": lambda E: E.NodeBuilder().subscribe_only("i").do(lambda x: None).write_to("o"),
    "a constant": lambda E: E.NodeBuilder().subscribe_only("i").do(lambda x: x).write_to("p", o=9),
    "computed": lambda E: E.NodeBuilder().subscribe_only("i").do(lambda x: x).write_to("p", o=lambda x: x * 2),
    "computed None": lambda E: E.NodeBuilder().subscribe_only("i").do(lambda x: x).write_to(o=lambda x: None),
    "nothing to do": lambda E: E.NodeBuilder().subscribe_only("i").write_to("p", o=lambda x: x * 2),
    "a dict": lambda E: E.NodeBuilder().subscribe_to("i").do(lambda x: x["i"]).write_to("p"),
    "read as well": lambda E: E.NodeBuilder().subscribe_to("i").read_from("o").do(len).write_to("p"),
}


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_a_node_does_the_same(node: Any) -> None:
    assert run(ours, node(ours)) == run(theirs, node(theirs))


def test_a_node_is_built_alike() -> None:
    found = []
    for E in (ours, theirs):
        node = E.NodeBuilder().subscribe_to("a", "b", read=False).subscribe_to("c").read_from("d")
        node = node.do(lambda x: x).meta("t", "u", k=1).meta(m=2).build()
        found.append((node.channels, node.triggers, node.tags, node.metadata, node.cache_policy, node.timeout))
    assert found[0] == found[1]


WRONG = [
    lambda E: E.NodeBuilder().subscribe_only("a").subscribe_only("b"),
    lambda E: E.NodeBuilder().subscribe_only("a").subscribe_to("b"),
    lambda E: E.NodeBuilder().subscribe_to("a").subscribe_only("b"),
    lambda E: E.NodeBuilder().read_from("a").subscribe_only("b"),
]


@pytest.mark.parametrize("build", WRONG)
def test_one_channel_or_several(engine: Any, build: Any) -> None:
    with pytest.raises(ValueError, match="Cannot subscribe to"):
        build(engine)


def test_a_single_channel_is_the_whole_input() -> None:
    with pytest.raises(ValueError, match="Cannot read additional channels when subscribed to single channels"):
        NodeBuilder().subscribe_only("a").read_from("b")


def test_the_channel_of_sends_is_not_written_by_hand() -> None:
    with pytest.raises(InvalidUpdateError, match="Cannot write to the reserved channel TASKS"):
        NodeBuilder().subscribe_only("a").write_to("__pregel_tasks")


def test_policies() -> None:
    first, second = RetryPolicy(max_attempts=2), RetryPolicy(max_attempts=3)
    builder = NodeBuilder().subscribe_only("a").add_retry_policies(first).add_retry_policies(second).set_timeout(2)
    assert builder.build().retry_policy == (first, second)
    assert builder.build().timeout == TimeoutPolicy(run_timeout=2.0)
    assert builder.set_timeout(None).build().timeout is None
    for given, kept in ((None, ()), (first, (first,)), ([first, second], (first, second))):
        assert PregelNode(channels="a", triggers=["a"], retry_policy=given).retry_policy == kept


def test_a_built_node_stays_as_it_was() -> None:
    builder = NodeBuilder().subscribe_to("a").meta("t")
    node = builder.build()
    builder.subscribe_to("b").meta("u", k=1).write_to("c")
    assert (node.channels, node.triggers, node.tags, node.metadata, node.writers) == (["a"], ["a"], ["t"], {}, [])


def test_entries() -> None:
    writer = ChannelWriter(
        [
            ChannelWriteEntry("a"),
            ChannelWriteEntry("b", 7, mapper=lambda value: value + 1),
            ChannelWriteEntry("c", skip_none=True),
            ChannelWriteEntry("d", skip_none=True, mapper=lambda value: None),
        ]
    )
    assert writer(3) == [("a", 3), ("b", 8), ("c", 3)]
    assert writer(None) == [("a", None), ("b", 8)]
    assert repr(PASSTHROUGH) == "PASSTHROUGH"


def test_a_copy_has_lists_of_its_own() -> None:
    node = NodeBuilder().subscribe_to("a").write_to("b").meta("t").build()
    twin = node.copy({"metadata": {"k": 1}})
    twin.triggers.append("c")
    assert (node.triggers, node.metadata, twin.triggers, twin.metadata) == (["a"], {}, ["a", "c"], {"k": 1})
    assert twin.bound is node.bound and node.copy().writers == node.writers
