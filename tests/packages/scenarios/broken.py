"""Agents whose tools broke off, or asked and got another message instead of an answer: the conversation goes on.

On LangGraph it does not: the model is shown calls without answers, which providers refuse.
"""

from __future__ import annotations

import warnings
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent
from langgraph.types import interrupt
from world import Driver, Scripted, call, on_every_driver, raises, say

warnings.filterwarnings("ignore", message="create_react_agent has been moved")


@tool
def breaks() -> str:
    """Break."""
    raise ConnectionError("gone")


@tool
def asks() -> str:
    """Ask."""
    return str(interrupt("?"))


@tool
def works() -> str:
    """Work."""
    return "worked"


def reply(messages: list[Any]) -> Any:
    last = messages[-1]
    if last.type == "human" and last.text in ("breaks", "asks"):
        both = call(last.text, f"{last.text}-1")
        both.tool_calls += call("works", f"{last.text}-2").tool_calls
        return both
    calls = {one["id"] for message in messages if message.type == "ai" for one in message.tool_calls}
    answered = {message.tool_call_id for message in messages if message.type == "tool"}
    return say("fine" if calls == answered else f"refused: {calls - answered}")


async def goes_on(driver: Driver, kind: str, graph: Any) -> None:
    thread = {"configurable": {"thread_id": kind}}
    with raises(ConnectionError):
        await driver.invoke(graph, {"messages": [HumanMessage("breaks")]}, thread)
    told = await driver.invoke(graph, {"messages": [HumanMessage("never mind")]}, thread)
    assert told["messages"][-1].text == "fine", told["messages"]
    asked = await driver.invoke(graph, {"messages": [HumanMessage("asks")]}, thread)
    assert asked["__interrupt__"][0].value == "?"
    told = await driver.invoke(graph, {"messages": [HumanMessage("never mind that either")]}, thread)
    assert told["messages"][-1].text == "fine", told["messages"]
    # The tool that had ended keeps its answer
    answers = {message.tool_call_id: message for message in told["messages"] if message.type == "tool"}
    assert answers["asks-2"].text == "worked" and answers["asks-1"].status == "error"


async def agent(driver: Driver) -> None:
    await goes_on(
        driver, "agent", create_agent(Scripted(reply=reply), [breaks, asks, works], checkpointer=driver.saver)
    )


async def react_agent(driver: Driver) -> None:
    graph = create_react_agent(Scripted(reply=reply), [breaks, asks, works], checkpointer=driver.saver)
    await goes_on(driver, "react", graph)


on_every_driver(agent, react_agent)
