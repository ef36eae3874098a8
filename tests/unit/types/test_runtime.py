"""The runtime, and what a node looks up through the task it runs in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import langgraph.runtime as theirs
import pytest
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.managed import is_last_step as their_managed

from surestep._context import current_task
from surestep.config import get_config, get_store, get_stream_writer
from surestep.managed import IsLastStep, RemainingSteps
from surestep.managed.base import is_managed_value
from surestep.managed.is_last_step import IsLastStepManager, RemainingStepsManager
from surestep.runtime import (
    DEFAULT_RUNTIME,
    BaseUser,
    ExecutionInfo,
    RunControl,
    Runtime,
    ServerInfo,
    get_runtime,
)


@pytest.mark.parametrize("name", ["Runtime", "ExecutionInfo", "ServerInfo"])
def test_the_same_fields_and_defaults(name: str) -> None:
    import surestep.runtime as ours

    mine, reference = getattr(ours, name), getattr(theirs, name)
    fields = [
        [(f.name, f.kw_only, f.default is dataclasses.MISSING) for f in dataclasses.fields(cls)]
        for cls in (mine, reference)
    ]
    assert fields[0] == fields[1]
    assert mine.__dataclass_params__.frozen and hasattr(mine, "__slots__")


def writer(_: Any) -> None: ...


def beat() -> None: ...


INFO = ExecutionInfo("c", "ns", "t")
PARTS: list[dict[str, Any]] = [
    {},
    {"context": {"user": 1}},
    {"context": {}},
    {"stream_writer": writer, "heartbeat": beat},
    {"previous": 0},
    {"store": object(), "control": RunControl()},
    {"execution_info": INFO, "server_info": ServerInfo("a", "g")},
]


@pytest.mark.parametrize("inner", PARTS, ids=lambda part: "+".join(part) or "nothing")
@pytest.mark.parametrize("outer", PARTS, ids=lambda part: "+".join(part) or "nothing")
def test_merging_puts_what_is_given_over_what_was(outer: dict[str, Any], inner: dict[str, Any]) -> None:
    mine = Runtime(**outer).merge(Runtime(**inner))
    reference = theirs.Runtime(**outer).merge(theirs.Runtime(**inner))
    for field in dataclasses.fields(Runtime):
        theirs_value, value = getattr(reference, field.name), getattr(mine, field.name)
        if callable(theirs_value) and theirs_value not in (writer, beat):
            assert value is getattr(DEFAULT_RUNTIME, field.name)
        else:
            assert value == theirs_value, field.name


def test_an_empty_store_is_a_store() -> None:
    class Empty:
        def __len__(self) -> int:
            return 0

    mine: Any = Empty()
    assert Runtime(store=object()).merge(Runtime(store=mine)).store is mine  # type: ignore[arg-type]


def test_patching() -> None:
    runtime: Runtime[None] = Runtime(execution_info=INFO)
    patched = runtime.patch_execution_info(node_attempt=2)
    assert patched.execution_info == INFO.patch(node_attempt=2) != INFO
    assert runtime.override(previous=1).previous == 1
    with pytest.raises(RuntimeError, match="before it has been set"):
        Runtime().patch_execution_info(node_attempt=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        runtime.previous = 1  # type: ignore[misc]


def test_a_drain_is_asked_for_and_never_taken_back() -> None:
    control = RunControl()
    runtime: Runtime[None] = Runtime(control=control)
    assert not runtime.drain_requested and runtime.drain_reason is None
    assert not Runtime().drain_requested and Runtime().drain_reason is None
    control.request_drain()
    assert runtime.drain_requested and runtime.drain_reason == "shutdown"
    control.request_drain("deploy")
    assert control.drain_reason == "deploy"


def test_a_user_is_known_by_its_shape() -> None:
    class User(dict[str, Any]):
        is_authenticated, display_name, identity, permissions = True, "Ada", "ada", ()

    assert isinstance(User(), BaseUser) and not isinstance({}, BaseUser)


# Looking things up


@pytest.fixture
def task() -> Iterator[SimpleNamespace]:
    """A task as the engine's looks to these functions."""
    task = SimpleNamespace(
        config={"configurable": {"__pregel_task_id": "1"}}, runtime=Runtime(), store=object(), stream_writer=writer
    )
    token = current_task.set(task)
    yield task
    current_task.reset(token)


def test_inside_a_node(task: SimpleNamespace) -> None:
    assert get_config() is task.config
    assert get_runtime() is task.runtime
    assert get_store() is task.store
    assert get_stream_writer() is writer


@pytest.mark.parametrize("lookup", [get_config, get_runtime, get_store, get_stream_writer])
def test_outside_of_a_node(lookup: Any) -> None:
    with pytest.raises(RuntimeError, match=r"outside of a runnable context.* copy"):
        lookup()


@pytest.fixture
def ambient() -> Iterator[Any]:
    """Sets the config that LangChain hands to what it runs."""
    tokens = []
    yield lambda config: tokens.append(var_child_runnable_config.set(config))
    for token in reversed(tokens):
        var_child_runnable_config.reset(token)


def test_in_a_runnable_that_is_in_no_graph(ambient: Any) -> None:
    ambient({"tags": ["a"]})
    assert get_config() == {"tags": ["a"]}
    for lookup in (get_runtime, get_store, get_stream_writer):
        with pytest.raises(RuntimeError, match="outside of a"):
            lookup()


def test_in_a_runnable_that_another_engine_runs(ambient: Any) -> None:
    runtime: Runtime[None] = Runtime(stream_writer=writer)
    ambient({"configurable": {"__pregel_runtime": runtime}})
    assert get_runtime() is runtime
    assert get_stream_writer() is writer
    assert get_store() is None  # type: ignore[comparison-overlap]


def test_in_a_runnable_that_a_node_called(task: SimpleNamespace, ambient: Any) -> None:
    of_the_runnable = {"tags": ["seq:step:1"], "configurable": {"__pregel_task_id": "1"}}
    ambient(of_the_runnable)
    assert get_config() is of_the_runnable


def test_a_config_from_around_the_graph_is_not_the_nodes(task: SimpleNamespace, ambient: Any) -> None:
    ambient({"configurable": {"__pregel_task_id": "another"}})
    assert get_config() is task.config


# Managed values


@pytest.mark.parametrize("step", range(7))
def test_managed_values_count_as_langgraphs(step: int) -> None:
    pad: Any = SimpleNamespace(step=step, stop=5)
    assert IsLastStepManager.get(pad) == their_managed.IsLastStepManager.get(pad)
    assert RemainingStepsManager.get(pad) == their_managed.RemainingStepsManager.get(pad)


def test_a_managed_value_is_known() -> None:
    assert is_managed_value(IsLastStep.__metadata__[0])
    assert is_managed_value(RemainingSteps.__metadata__[0])
    for other in (int, IsLastStep, IsLastStepManager(), None):
        assert not is_managed_value(other)
