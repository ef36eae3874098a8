"""Putting configs together, compared with LangGraph's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal import _config as theirs

from surestep import _config as ours
from surestep._config import DEFAULT_RECURSION_LIMIT, ensure_config, merge_callbacks, merge_configs

SCALARS = st.sampled_from([None, 0, 1, "x"])
CONFIGURABLE = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("thread_id", "checkpoint_ns", "run_id", "user", "__pregel_x"), SCALARS)
)
PARTS = st.fixed_dictionaries({}, optional={"p": SCALARS, "q": SCALARS})
METADATA = st.fixed_dictionaries({"a": SCALARS}, optional={"thread_id": SCALARS, "b": PARTS, "lc_versions": PARTS})
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.lists(st.sampled_from("tuv"), min_size=1),
        "metadata": METADATA,
        "callbacks": st.none() | st.lists(st.sampled_from("fg"), min_size=1),
        "run_name": st.none() | st.just("name"),
        "max_concurrency": st.none() | st.just(3),
        "recursion_limit": st.integers(1, 5) | st.just(10007),
        "configurable": CONFIGURABLE,
        "strange": st.just(4),
    },
)


def plain(config: Any) -> dict[str, Any]:
    """The parts as dicts; the reference has other mappings for some."""
    return {key: dict(value) if key in ("metadata", "configurable") else value for key, value in config.items()}


@given(st.lists(st.none() | CONFIGS, max_size=3))
def test_merging_is_alike(configs: list[Any]) -> None:
    assert plain(merge_configs(*configs)) == plain(theirs.merge_configs(*configs))


@given(st.lists(st.none() | CONFIGS, max_size=3))
def test_completing_is_alike(configs: list[Any]) -> None:
    assert plain(ensure_config(*configs)) == plain(theirs.ensure_config(*configs))


def without_strange_keys(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != "strange"}


@given(CONFIGS.map(without_strange_keys), st.lists(st.none() | CONFIGS, max_size=2))
def test_completing_around_a_node_is_alike(ambient: Any, configs: list[Any]) -> None:
    token = var_child_runnable_config.set(ambient)
    try:
        mine, reference = plain(ensure_config(*configs)), plain(theirs.ensure_config(*configs))
    finally:
        var_child_runnable_config.reset(token)
    assert mine == plain(ensure_config(*configs, ambient=ambient))
    # The ids of a thread that was left behind are no description of this run: LangGraph keeps them.
    for key in ("thread_id", "checkpoint_ns"):
        if mine["configurable"].get(key) != (ambient.get("configurable") or {}).get(key):
            mine["metadata"].pop(key, None)
            reference["metadata"].pop(key, None)
    assert mine == reference


def test_a_run_on_its_own_thread_says_its_own_thread() -> None:
    ambient: Any = {"configurable": {"thread_id": "old", "user": 1}, "metadata": {"thread_id": "old", "a": 1}}
    config = ensure_config({"configurable": {"thread_id": "new"}}, ambient=ambient)
    assert config["configurable"] == {"thread_id": "new"}
    assert config["metadata"] == {"thread_id": "new", "a": 1}
    assert ambient["metadata"]["thread_id"] == "old"


def test_what_is_given_is_not_changed() -> None:
    given: Any = {"tags": ["a"], "metadata": {"m": 1}, "configurable": {"c": 1}, "callbacks": ["f"]}
    config = ensure_config(given, ambient=given)
    config["tags"].append("b")
    config["metadata"]["n"] = 2
    config["configurable"]["d"] = 2
    config["callbacks"].append("g")
    assert given == {"tags": ["a"], "metadata": {"m": 1}, "configurable": {"c": 1}, "callbacks": ["f"]}


def test_only_a_limit_that_was_asked_for_counts() -> None:
    assert ensure_config(ambient=None)["recursion_limit"] is DEFAULT_RECURSION_LIMIT
    assert merge_configs({"recursion_limit": 7}, ensure_config(ambient=None))["recursion_limit"] == 7
    assert "recursion_limit" not in merge_configs(ensure_config(ambient=None))


def test_patching_copies() -> None:
    config: Any = {"configurable": {"a": 1}, "tags": ["t"]}
    assert ours.patch_configurable(config, {"b": 2}) == {"configurable": {"a": 1, "b": 2}, "tags": ["t"]}
    assert config == {"configurable": {"a": 1}, "tags": ["t"]}
    assert ours.patch_configurable(None, {"b": 2}) == {"configurable": {"b": 2}}


# Callbacks


class Handler(BaseCallbackHandler):
    pass


@pytest.fixture
def handlers() -> Iterator[tuple[Handler, Handler]]:
    yield Handler(), Handler()


def test_handlers_add_up(handlers: tuple[Handler, Handler]) -> None:
    one, two = handlers
    assert merge_callbacks([one], [two]) == [one, two]
    assert merge_callbacks(one, [two]) == [one, two]
    assert merge_callbacks(None, [one]) == [one]
    assert merge_callbacks(one, None) is one
    assert merge_callbacks(None, None) is None


def test_handlers_join_a_copy_of_a_manager(handlers: tuple[Handler, Handler]) -> None:
    one, two = handlers
    manager = CallbackManager([one])
    for merged in (merge_callbacks(manager, [two]), merge_callbacks(two, manager)):
        assert merged.handlers == [one, two] and merged.inheritable_handlers == [two]
    assert manager.handlers == [one]
    assert set(merge_callbacks(manager, CallbackManager([two])).handlers) == {one, two}
