"""`langgraph-swarm`: agents that hand over to each other; who is in charge is part of the thread."""

from __future__ import annotations

import warnings
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command, interrupt
from langgraph_swarm import create_handoff_tool, create_swarm
from world import Driver, Scripted, call, on_every_driver, say, texts

warnings.filterwarnings("ignore", message="create_react_agent has been moved")


@tool
def book(what: str) -> str:
    """Book, if somebody agrees."""
    return f"{what} booked: {interrupt(what)}"


def clerk(messages: list[Any]) -> Any:
    return call("transfer_to_hotel", "t1") if "hotel" in messages[-1].text else say("clerk here")


def concierge(messages: list[Any]) -> Any:
    last = messages[-1]
    if last.type == "tool" and last.name == "book":
        return say(last.text)
    return call("book", f"b{len(messages)}", what="room")


async def swarm(driver: Driver) -> None:
    front = create_react_agent(Scripted(reply=clerk), [create_handoff_tool(agent_name="hotel")], name="front")
    back = create_handoff_tool(agent_name="front", description="Back to the front")
    hotel = create_react_agent(Scripted(reply=concierge), [book, back], name="hotel")
    graph = create_swarm([front, hotel], default_active_agent="front").compile(checkpointer=driver.saver)
    thread = {"configurable": {"thread_id": "swarm"}}

    hello = await driver.invoke(graph, {"messages": [HumanMessage("hello")]}, thread)
    assert texts(hello["messages"]) == ["human: hello", "ai front: clerk here"]
    asked = await driver.invoke(graph, {"messages": [HumanMessage("a hotel please")]}, thread)
    assert [one.value for one in asked["__interrupt__"]] == ["room"]
    booked = await driver.invoke(graph, Command(resume="fine"), thread)
    assert booked["active_agent"] == "hotel"
    assert texts(booked["messages"])[-2:] == ["tool book: room booked: fine", "ai hotel: room booked: fine"]
    # The next turn starts with the agent that is in charge
    parts = await driver.stream(graph, {"messages": [HumanMessage("another")]}, thread, subgraphs=True)
    assert {ns[0].partition(":")[0] for ns, _ in parts if ns} == {"hotel"}


on_every_driver(swarm)
