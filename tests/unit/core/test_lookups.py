"""Functions that only look keys up are given those keys, where a state has very many; nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from surestep.graph import END, START, StateGraph
from surestep.pregel._lookups import keys_looked_up

WIDTH = 60
Wide: Any = TypedDict("Wide", {f"c{i}": Any for i in range(WIDTH)})  # type: ignore[misc]
FULL = {f"c{i}": i for i in range(WIDTH)}


async def awaits(state: Any) -> Any:
    return {"a": state["a"], "b": state["b"]}


def several(state: Any, config: Any) -> Any:
    if state["a"] > 1:
        return state["b"][0]
    for _ in range(3):
        config(state["a"])
    return state["a"]


def reassigns(state: Any) -> Any:
    state = {"a": 1}
    return state["a"]


def reflects(state: Any) -> Any:
    return state["a"], locals()


def writes(state: Any) -> Any:
    state["a"] = 1


def adds(state: Any) -> Any:
    state["a"] += 1


def deletes(state: Any) -> Any:
    del state["a"]


def hands_on(state: Any) -> Any:
    return len(state), state["a"]


def inner(state: Any) -> Any:
    return (lambda: state["a"])()


def chooses(state: Any) -> Any:
    return (state if state["a"] else {})["b"]


def several_parameters(*state: Any) -> Any:
    return state[0]["a"]


@pytest.mark.parametrize(
    ("function", "keys"),
    [
        (lambda s: s["a"], ("a",)),
        (lambda s: 1, ()),
        (awaits, ("a", "b")),
        (several, ("a", "b")),
    ],
)
def test_lookups_are_found(function: Any, keys: tuple[str, ...]) -> None:
    assert keys_looked_up(function) == keys


@pytest.mark.parametrize(
    "function",
    [
        *(lambda s: s, lambda s: s.get("a"), lambda s: {**s}, lambda s: [*s], lambda s: s[0], lambda s: "a" in s),
        *(lambda s: s[s["a"]], lambda s: (s, 1)[0], lambda s, t=1: s == t, lambda: 1, len, object()),
        *(reassigns, reflects, writes, adds, deletes, hands_on, inner, several_parameters),
    ],
)
def test_whatever_else_is_done_gets_everything(function: Any) -> None:
    assert keys_looked_up(function) is None


def test_a_choice_between_inputs_is_read_as_the_interpreter_compiles_it() -> None:
    assert keys_looked_up(chooses) in (None, ("a", "b"))


def compiled(node: Callable[[Any], Any], path: Callable[[Any], Any] = lambda s: END, **settings: Any) -> Any:
    builder: Any = StateGraph(Wide)
    builder.add_node("a", node, **settings)
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", path, ["a", END])
    return builder.compile()


def test_what_is_looked_up_is_there() -> None:
    graph = compiled(lambda s: {"c1": s["c1"] + s["c2"]}, lambda s: "a" if s["c1"] < 20 else END)
    assert graph.nodes["a"].lookups == ("c1", "c2")
    assert graph.invoke(FULL) == {**FULL, "c1": 21}


def test_a_key_without_a_value_is_missed_as_ever() -> None:
    graph = compiled(lambda s: {"c2": s["c1"]})
    with pytest.raises(KeyError, match="c1"):
        graph.invoke({"c3": 1})


def test_changes_inside_a_value_stay_with_the_node() -> None:
    graph = compiled(lambda s: s["c1"].append(1))
    given: list[int] = []
    assert graph.invoke({**FULL, "c1": given})["c1"] == given == []


def test_whoever_sees_the_input_sees_all_of_it() -> None:
    graph = compiled(lambda s: {"c1": s["c1"] + 1})
    (start, _) = [part for part in graph.stream(FULL, stream_mode="tasks") if part["name"] == "a"]
    assert start["input"] == FULL


def test_an_error_handler_gets_all_of_the_failed_nodes_input() -> None:
    seen = []

    def handle(state: Any) -> Any:
        seen.append(dict(state))

    graph = compiled(lambda s: {"c1": s["c1"] / 0}, error_handler=handle)
    graph.invoke(FULL)
    assert seen == [FULL]
