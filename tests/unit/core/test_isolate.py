"""Copies that keep one holder's in-place changes from another; lists that grow are copied by what is known of them."""

from __future__ import annotations

import operator
from collections import deque
from copy import deepcopy
from typing import Annotated, Any, TypedDict

from hypothesis import given
from hypothesis import strategies as st

from surestep._core.isolate import ListCopies, isolate
from surestep.graph import END, START, StateGraph

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(deque, st.lists(inner, max_size=2))
        | st.sets(st.integers(), max_size=2)
    ),
    max_leaves=8,
)


def spoil(value: Any) -> None:
    """Change everything in it that can be changed."""
    if isinstance(value, dict):
        for item in value.values():
            spoil(item)
        value["spoiled"] = True
    elif isinstance(value, list | deque | tuple):
        for item in value:
            spoil(item)
        if not isinstance(value, tuple):
            value.append("spoiled")
    elif isinstance(value, set):
        value.add("spoiled")


@given(st.lists(values, max_size=5), st.lists(values, max_size=3), st.integers(0, 5))
def test_a_list_that_goes_on_is_copied_as_any_value(first: list[Any], more: list[Any], cut: int) -> None:
    copies = ListCopies()
    copies.take(first)
    for value in ([*first[:cut], *more], [*first, *more], first):
        before = deepcopy(value)
        for copy in (copies.copy_of(value), isolate(value)):
            assert copy == before and list(map(type, copy)) == list(map(type, before))
            spoil(copy)
            assert value == before
        copies.take(value)
        copy = copies.copy()
        assert copy == before
        spoil(copy)
        assert value == before and copies.copy() == before


def test_what_a_list_has_in_common_with_the_last_one_is_not_looked_at_again() -> None:
    copies = ListCopies()
    items = [{"n": 1}, {"parts": [{"n": 2}]}]
    copies.take(items)
    known = list(copies.makers)
    copies.take([*items, {"n": 3}])
    assert copies.makers[:2] == known and len(copies.makers) == 3
    copies.take([items[0], {"n": 4}])
    assert copies.makers[:1] == known[:1] and len(copies.makers) == 2
    assert copies.copy() == [{"n": 1}, {"n": 4}]


class State(TypedDict):
    messages: Annotated[list[Any], operator.add]


def test_messages_that_a_node_or_a_router_changes_stay_as_they_are() -> None:
    def node(state: State) -> dict[str, Any]:
        number = len(state["messages"])
        spoil(state["messages"])
        return {"messages": [{"n": number, "calls": [{"args": {}}]}]}

    def path(state: State) -> str:
        more = len(state["messages"]) < 5
        spoil(state["messages"])
        return "a" if more else END

    builder = StateGraph(State)
    builder.add_node("a", node)
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", path)
    out = builder.compile().invoke({"messages": [{"n": 0, "calls": []}]})
    assert out["messages"] == [
        {"n": 0, "calls": []},
        *({"n": n, "calls": [{"args": {}}]} for n in (1, 2, 3, 4)),
    ]
