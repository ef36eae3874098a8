"""The config that LangChain finds around a call is made when it is looked at."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.config import ensure_config, var_child_runnable_config
from typing_extensions import TypedDict

from surestep._drive.env import Env
from surestep.graph import START, StateGraph
from surestep.integrations.ambient import AmbientConfig


class State(TypedDict):
    n: int


class Task:
    def __init__(self) -> None:
        self.looks = 0

    @property
    def config(self) -> dict[str, Any]:
        self.looks += 1
        return {"tags": ["x"], "metadata": {}, "configurable": {"n": 1}}


LOOKS: dict[str, Callable[[AmbientConfig], Any]] = {
    "bool": lambda config: bool(config),
    "dict": lambda config: dict(config) == Task().config,
    "copy": lambda config: copy.copy(config) == Task().config,
    "unpacked": lambda config: {**config} == Task().config,
    "as keywords": lambda config: dict(**config) == Task().config,
    "merged": lambda config: (config | {"tags": []}) == {**Task().config, "tags": []},
    "under": lambda config: ({"tags": []} | config) == Task().config,
    "updated into": lambda config: (found := {}, found.update(config), found == Task().config)[2],
    "items": lambda config: dict(config.items()) == Task().config,
    "keys": lambda config: list(config.keys()) == list(config) == list(Task().config),
    "get": lambda config: config.get("tags") == ["x"],
    "item": lambda config: config["tags"] == ["x"],
    "in": lambda config: "tags" in config,
    "length": lambda config: len(config) == 3,
    "equal": lambda config: config == Task().config,
    "not equal": lambda config: config != {},
    "repr": lambda config: repr(config) == repr(Task().config),
    "popped": lambda config: config.pop("tags") == ["x"],
    "ensured": lambda config: var_child_runnable_config.set(config) and ensure_config()["tags"] == ["x"],
}


@pytest.mark.parametrize("look", LOOKS)
async def test_whoever_looks_sees_the_config(look: str) -> None:
    task = Task()
    config = AmbientConfig(task)  # type: ignore[arg-type]
    assert task.looks == 0
    assert LOOKS[look](config) and task.looks == 1
    assert config.get("metadata") == {} and task.looks == 1


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    make = Env.task_config

    def noted(self: Env, context: Any) -> Any:
        names.append(context.task.name)
        return make(self, context)

    monkeypatch.setattr(Env, "task_config", noted)
    return names


def test_a_node_that_calls_nothing_costs_no_config(made: list[str]) -> None:
    def quiet(state: State) -> dict[str, Any]:
        return {"n": state["n"] + 1}

    def calls(state: State) -> dict[str, Any]:
        return RunnableLambda(quiet).invoke(state)

    builder = StateGraph(State).add_node("quiet", quiet).add_node("calls", calls)
    app = builder.add_edge(START, "quiet").add_edge("quiet", "calls").compile()
    assert app.invoke({"n": 0}) == {"n": 2} and made == ["calls"]


def test_what_a_node_calls_finds_the_tags_and_handlers_of_the_run() -> None:
    heard: list[Any] = []

    class Handler(BaseCallbackHandler):
        def on_chain_start(self, *args: Any, tags: Any = None, name: Any = None, **kwargs: Any) -> None:
            heard.append((name, tags))

    def node(state: State) -> dict[str, Any]:
        return RunnableLambda(lambda state: {"n": 1}, name="called").invoke(state)

    app = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
    app.invoke({"n": 0}, {"tags": ["mine"], "callbacks": [Handler()]})
    assert heard[-1] == ("called", ["seq:step:1", "mine"])
