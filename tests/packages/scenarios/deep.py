"""`deepagents`: an agent with files, a plan and agents below it."""

from __future__ import annotations

from typing import Any

from deepagents import create_deep_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.types import Command
from world import Driver, Scripted, call, on_every_driver, say, texts


@tool
def deploy(version: str) -> str:
    """Deploy a version."""
    return f"{version} is live"


PLAN = [{"content": "research", "status": "in_progress"}]


def reply(messages: list[Any]) -> Any:
    """The main agent plans, writes a file, sends a researcher, reads what that one wrote, and deploys."""
    turns = (
        call("write_todos", "1", todos=PLAN),
        call("write_file", "2", file_path="/plan.md", content="one\ntwo"),
        call("task", "3", description="find out", subagent_type="researcher"),
        call("read_file", "4", file_path="/found.md"),
        call("deploy", "5", version="v1"),
        say("deployed"),
    )
    return turns[sum(message.type == "ai" for message in messages)].model_copy()


def research(messages: list[Any]) -> Any:
    turns = (
        call("read_file", "r1", file_path="/plan.md"),
        call("write_file", "r2", file_path="/found.md", content="it is blue"),
        say("I wrote it down"),
    )
    return turns[sum(message.type == "ai" for message in messages)].model_copy()


async def deep_agent(driver: Driver) -> None:
    researcher = {
        "name": "researcher",
        "description": "finds things out",
        "system_prompt": "Find out.",
        "model": Scripted(reply=research),
        "tools": [],
    }
    graph = create_deep_agent(
        model=Scripted(reply=reply),
        tools=[deploy],
        subagents=[researcher],
        middleware=[TodoListMiddleware()],
        interrupt_on={"deploy": True},
        checkpointer=driver.saver,
    )
    thread = {"configurable": {"thread_id": "deep"}}
    asked = await driver.invoke(graph, {"messages": [HumanMessage("build it")]}, thread)
    [question] = asked["__interrupt__"]
    assert question.value["action_requests"][0]["args"] == {"version": "v1"}
    assert asked["todos"] == PLAN and set(asked["files"]) == {"/plan.md", "/found.md"}
    done = await driver.invoke(graph, Command(resume={"decisions": [{"type": "approve"}]}), thread)
    shown = texts(done["messages"])
    assert "tool task: I wrote it down" in shown
    assert any(line.startswith("tool read_file") and "it is blue" in line for line in shown)
    assert shown[-2:] == ["tool deploy: v1 is live", "ai: deployed"]


on_every_driver(deep_agent)
