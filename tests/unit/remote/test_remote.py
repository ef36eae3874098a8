"""A remote graph against a client that runs the graph in this process, and says so as a server would."""

from __future__ import annotations

import asyncio
import dataclasses
import operator
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, TypedDict
from uuid import UUID

import pytest
from langgraph_sdk.schema import StreamPart

from surestep.checkpoint.memory import InMemorySaver
from surestep.errors import ParentCommand
from surestep.graph import START, StateGraph
from surestep.pregel.remote import RemoteException, RemoteGraph
from surestep.types import Command, GraphOutput, Interrupt, interrupt

SYNC = [True, False]


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def plain(value: Any) -> Any:
    """As JSON would bring it."""
    if isinstance(value, Interrupt):
        return {"value": value.value, "id": value.id}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


class Server:
    """The parts of the SDK's clients that a remote graph uses, over a graph of this process."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.runs = self.threads = self
        self.asked: dict[str, Any] = {}

    def _parts(self) -> Iterator[StreamPart]:
        asked = self.asked
        config = {"configurable": {**asked["config"].get("configurable", {}), "thread_id": asked["thread_id"]}}
        given = asked["input"] if asked["command"] is None else Command(resume=asked["command"]["resume"])
        modes = [mode.removesuffix("-tuple") for mode in asked["stream_mode"]]
        try:
            for ns, mode, data in self.graph.stream(given, config, stream_mode=modes, subgraphs=True):
                yield StreamPart("|".join((mode, *ns)), plain(data))
        except ParentCommand as command:
            said = dataclasses.asdict(command.args[0])
            yield StreamPart("command", plain(said))
        except ValueError as error:
            yield StreamPart("error", {"message": str(error)})


class SyncServer(Server):
    def stream(self, **asked: Any) -> Iterator[StreamPart]:
        self.asked = asked
        return self._parts()

    def get_state(self, **asked: Any) -> Any:
        self.asked = asked
        return snapshot(self.graph.get_state({"configurable": {"thread_id": asked["thread_id"]}}))

    def get_history(self, **asked: Any) -> Any:
        self.asked = asked
        found = self.graph.get_state_history({"configurable": {"thread_id": asked["thread_id"]}}, limit=asked["limit"])
        return [snapshot(state) for state in found]

    def update_state(self, **asked: Any) -> Any:
        self.asked = asked
        config = {"configurable": {"thread_id": asked["thread_id"]}}
        done = self.graph.update_state(config, asked["values"], as_node=asked["as_node"])
        return {"checkpoint": {"checkpoint_map": {}, **done["configurable"]}}


class AsyncServer(SyncServer):
    async def stream(self, **asked: Any) -> AsyncIterator[StreamPart]:  # type: ignore[override]
        for part in super().stream(**asked):
            yield part

    async def get_state(self, **asked: Any) -> Any:
        return super().get_state(**asked)

    async def get_history(self, **asked: Any) -> Any:
        return super().get_history(**asked)

    async def update_state(self, **asked: Any) -> Any:
        return super().update_state(**asked)


def snapshot(state: Any) -> dict[str, Any]:
    def at(config: Any) -> Any:
        return config and {"checkpoint_map": {}, **config["configurable"]}

    tasks = [
        {"id": task.id, "name": task.name, "error": None, "interrupts": plain(task.interrupts), "result": task.result}
        for task in state.tasks
    ]
    return {
        "values": state.values,
        "next": list(state.next),
        "checkpoint": at(state.config),
        "parent_checkpoint": at(state.parent_config),
        "metadata": state.metadata,
        "created_at": state.created_at,
        "tasks": tasks,
    }


def graph_of(**nodes: Any) -> Any:
    builder: Any = StateGraph(State)
    before = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    return builder.compile(checkpointer=InMemorySaver())


def remote(**nodes: Any) -> Any:
    graph = graph_of(**nodes)
    return RemoteGraph("agent", client=AsyncServer(graph), sync_client=SyncServer(graph))


def say(word: str) -> Any:
    return lambda state: {"log": [word]}


def ask(state: Any) -> Any:
    return {"log": [interrupt("really?")]}


CONFIG: Any = {"configurable": {"thread_id": "t"}}


def call(sync: bool, graph: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """A method in either form; streams as lists."""
    if sync:
        found = getattr(graph, method)(*args, **kwargs)
        return list(found) if isinstance(found, Iterator) else found

    async def wait() -> Any:
        found = getattr(graph, f"a{method}")(*args, **kwargs)
        return [part async for part in found] if hasattr(found, "__aiter__") else await found

    return asyncio.run(wait())


@pytest.mark.parametrize("sync", SYNC)
def test_a_run(sync: bool) -> None:
    graph = remote(a=say("a"), b=say("b"))
    assert call(sync, graph, "invoke", {"log": []}, CONFIG) == {"log": ["a", "b"]}
    result = call(sync, graph, "invoke", {"log": []}, CONFIG, version="v2")
    assert isinstance(result, GraphOutput) and result.value == {"log": ["a", "b", "a", "b"]}


@pytest.mark.parametrize("sync", SYNC)
def test_what_streams_yield(sync: bool) -> None:
    graph = remote(a=say("a"))
    updates = {"a": {"log": ["a"]}}

    def stream(**options: Any) -> Any:
        return call(sync, graph, "stream", {"log": []}, CONFIG, **options)

    assert stream() == [updates]
    assert stream(stream_mode=["updates"]) == [StreamPart("updates", updates)]
    assert stream(subgraphs=True) == [((), updates)]
    assert stream(stream_mode=["updates"], subgraphs=True) == [((), "updates", updates)]
    assert stream(version="v2") == [{"type": "updates", "ns": (), "data": updates}]
    values = stream(stream_mode="values", version="v2")
    assert [part["interrupts"] for part in values] == [()] * len(values) and values[-1]["type"] == "values"


@pytest.mark.parametrize("sync", SYNC)
def test_a_question_and_its_answer(sync: bool) -> None:
    graph = remote(a=say("a"), q=ask)
    paused = call(sync, graph, "invoke", {"log": []}, CONFIG)
    assert paused["log"] == ["a"] and [question.value for question in paused["__interrupt__"]] == ["really?"]
    state = call(sync, graph, "get_state", CONFIG)
    assert state.next == ("q",) and [question.value for question in state.interrupts] == ["really?"]
    assert call(sync, graph, "invoke", Command(resume="yes"), CONFIG) == {"log": ["a", "yes"]}


@pytest.mark.parametrize("sync", SYNC)
def test_a_thread(sync: bool) -> None:
    graph = remote(a=say("a"))
    call(sync, graph, "invoke", {"log": []}, CONFIG)
    changed = call(sync, graph, "update_state", CONFIG, {"log": ["edit"]}, "a")
    state = call(sync, graph, "get_state", CONFIG)
    assert state.values == {"log": ["a", "edit"]} and state.config == changed
    history = call(sync, graph, "get_state_history", CONFIG, limit=2)
    assert [past.values["log"] for past in history] == [["a", "edit"], ["a"]]
    assert history[0].parent_config == history[1].config


@pytest.mark.parametrize("sync", SYNC)
def test_a_run_that_fails_there(sync: bool) -> None:
    def fail(state: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(RemoteException) as failed:
        call(sync, remote(bad=fail), "invoke", {"log": []}, CONFIG)
    assert failed.value.args == ({"message": "no"},)


@pytest.mark.parametrize("sync", SYNC)
def test_a_node_of_another_graph(sync: bool) -> None:
    """Its parts are shown there too, and its question pauses the graph around it."""
    inner = remote(a=say("a"), q=ask)
    outer = graph_of(first=say("first"), inner=inner)
    shown = call(sync, outer, "stream", {"log": []}, CONFIG, stream_mode="updates", subgraphs=True)
    assert [(bool(ns), data) for ns, data in shown if "a" in data] == [(True, {"a": {"log": ["a"]}})]
    state = call(sync, outer, "get_state", CONFIG)
    assert state.next == ("inner",) and [question.value for question in state.interrupts] == ["really?"]


def test_a_command_for_the_graph_around() -> None:
    part = StreamPart("command", {"graph": "__parent__", "goto": ["there"], "update": {"log": ["up"]}})

    class Says(SyncServer):
        def stream(self, **asked: Any) -> Iterator[StreamPart]:
            return iter([part])

    graph: Any = RemoteGraph("agent", sync_client=Says(None))
    with pytest.raises(ParentCommand) as raised:
        graph.invoke({"log": []}, CONFIG)
    assert raised.value.args[0] == Command(graph=Command.PARENT, goto=("there",), update={"log": ["up"]})


def test_what_a_server_is_told() -> None:
    graph = remote(a=say("a"))
    given: Any = {
        "tags": ["kept", 1],
        "recursion_limit": 7,
        "metadata": {"id": UUID(int=1), "call": print, "list": (1, [2, print])},
        "configurable": {"thread_id": "t", "user": "u", "checkpoint_ns": "", "__secret": 1, 3: "no text"},
        "callbacks": [object()],
    }
    graph.with_config({"configurable": {"region": "eu"}}).invoke({"log": []}, given, context={"c": 1})
    asked = graph.sync_client.asked
    assert asked["thread_id"] == "t" and asked["assistant_id"] == "agent" and asked["context"] == {"c": 1}
    assert asked["config"] == {
        "tags": ["kept"],
        "recursion_limit": 7,
        "metadata": {"id": str(UUID(int=1)), "list": [1, [2]]},
        "configurable": {"user": "u", "region": "eu"},
    }
    assert asked["if_not_exists"] == "create" and set(asked["stream_mode"]) == {"values", "updates"}


@pytest.mark.parametrize("sync", SYNC)
def test_a_client_that_is_missing(sync: bool) -> None:
    with pytest.raises(ValueError, match="has no sync_client" if sync else "has no client"):
        call(sync, RemoteGraph("agent"), "invoke", {}, CONFIG)


@pytest.mark.parametrize("sync", SYNC)
def test_what_a_remote_graph_does_not_do(sync: bool) -> None:
    graph = remote(a=say("a"))
    with pytest.raises(NotImplementedError, match="one edit at a time"):
        call(sync, graph, "bulk_update_state", CONFIG, [])
    for options in ({"version": "v2"}, {"version": "v3", "control": 1}, {"version": "v3", "context": 1}):
        with pytest.raises(NotImplementedError):
            call(sync, graph, "stream_events", {}, CONFIG, **options)
