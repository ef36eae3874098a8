"""`langgraph-supervisor`: agents under one that hands the work out."""

from __future__ import annotations

import warnings
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command, interrupt
from langgraph_supervisor import create_handoff_tool, create_supervisor
from world import Driver, Scripted, call, on_every_driver, say, texts

warnings.filterwarnings("ignore", message="create_react_agent has been moved")


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def publish(text: str) -> str:
    """Publish, if somebody agrees."""
    return f"{text}: {interrupt({'publish': text})}"


def worker(*replies: Any) -> Scripted:
    """What an agent says, by how often it has spoken since it was called: it sees others' messages too."""

    def reply(messages: list[Any]) -> Any:
        since = 0
        for message in reversed(messages):
            if message.type == "human" or (
                message.type == "tool" and (message.name or "").startswith(("transfer", "ask"))
            ):
                break
            since += message.type == "ai"
        return replies[since].model_copy()

    return Scripted(reply=reply)


def lead(messages: list[Any]) -> Any:
    """Hands the sum to the mathematician, what comes of it to the writer, and sums up."""
    done = [message.name for message in messages if message.type == "ai" and message.name in ("maths", "writer")]
    if "maths" not in done:
        return call("transfer_to_maths", "h1")
    if "writer" not in done:
        return call("ask_the_writer", "h2")
    return say("both are done")


async def team(driver: Driver) -> None:
    maths = create_react_agent(worker(call("add", "m1", a=2, b=3), say("five")), [add], name="maths")
    writer = create_react_agent(worker(call("publish", "w1", text="5"), say("written")), [publish], name="writer")
    handoff = create_handoff_tool(agent_name="writer", name="ask_the_writer")
    first = create_handoff_tool(agent_name="maths")
    builder = create_supervisor(
        [maths, writer], model=Scripted(reply=lead), tools=[first, handoff], output_mode="full_history"
    )
    graph = builder.compile(checkpointer=driver.saver)
    thread = {"configurable": {"thread_id": "team"}}

    asked = await driver.invoke(graph, {"messages": [HumanMessage("2+3, and publish it")]}, thread)
    assert [one.value for one in asked["__interrupt__"]] == [{"publish": "5"}]
    assert (await driver.state(graph, thread)).next == ("writer",)
    done = await driver.invoke(graph, Command(resume="yes"), thread)
    shown = texts(done["messages"])
    assert "tool add: 5" in shown and "ai maths: five" in shown
    assert "tool publish: 5: yes" in shown and "ai writer: written" in shown
    assert shown[-1] == "ai supervisor: both are done"
    assert {"supervisor", "maths", "writer"} <= set(graph.get_graph().nodes)


on_every_driver(team)
