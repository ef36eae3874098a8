"""Checkpoints from before format 3: control channels get the names of today."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from surestep.graph import END, START, StateGraph


class State(TypedDict):
    x: int


def app() -> Any:
    def route(state: Any) -> Literal["c"]:
        return "c"

    graph = StateGraph(State)
    for name in "abcd":
        graph.add_node(name, lambda state: None)
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("a", "d").add_edge("b", END).add_edge(["b", "c"], "d")
    return graph.add_conditional_edges("a", route).compile()


def migrated(**parts: Any) -> dict[str, Any]:
    checkpoint: dict[str, Any] = {"channel_values": {}, "channel_versions": {}, "versions_seen": {}, **parts}
    app()._migrate_checkpoint(checkpoint)
    return checkpoint


def test_the_way_from_the_start() -> None:
    found = migrated(
        channel_values={"x": 1, "start:a": "__start__"},
        channel_versions={"__start__": "2", "x": "2", "start:a": "2"},
        versions_seen={"__start__": {"__start__": "1"}, "a": {"start:a": "2"}},
    )
    assert found["channel_values"] == {"x": 1, "branch:to:a": None}
    assert found["channel_versions"] == {"__start__": "2", "x": "2", "branch:to:a": "2"}
    assert found["versions_seen"] == {"__start__": {"__start__": "1"}, "a": {"branch:to:a": "2"}}


def test_a_channel_named_like_a_node_follows_its_edges() -> None:
    found = migrated(
        channel_values={"a": "a", "b": "b", "join:b+c:d": {"b"}},
        channel_versions={"a": "3", "b": "4", "join:b+c:d": "4"},
        versions_seen={"b": {"a": "3"}, "d": {"a": "3"}, "__interrupt__": {"a": "3", "b": "4"}},
    )
    assert found["channel_values"] == {"branch:to:b": None, "branch:to:d": None, "join:b+c:d": {"b"}}
    assert found["channel_versions"] == {"branch:to:b": "3", "branch:to:d": "3", "join:b+c:d": "4"}
    assert found["versions_seen"] == {
        "b": {"branch:to:b": "3"},
        "d": {"branch:to:d": "3"},
        "__interrupt__": {"branch:to:b": "3", "branch:to:d": "3"},
    }


def test_a_conditional_edge_and_the_newest_version() -> None:
    found = migrated(channel_versions={"branch:a:route:c": "3", "branch:b:other:c": "5", "start:c": "4"})
    assert found["channel_versions"] == {"branch:to:c": "5"}


def test_names_of_today_stay() -> None:
    today = {"x": "2", "branch:to:a": "3", "__pregel_tasks": "3", "other": "1"}
    assert migrated(channel_versions=dict(today))["channel_versions"] == today
