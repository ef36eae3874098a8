"""Effects inside of tools: a model that calls a gated and an effectful tool in the same turn leaks nothing."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.types import Command
from world import Driver, call, in_turn, on_every_driver, say, texts

from surestep.effects import Approve, Reject, effect, gate

PAID: list[int] = []


@tool
@effect
def pay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"paid {amount}"


@tool
@effect
async def apay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"paid {amount}"


@tool
def ask(what: str) -> str:
    """Ask a person."""
    return "yes" if gate(what) else "no"


def agent(driver: Driver, name: str, **options: Any) -> tuple[Any, dict[str, Any]]:
    tools = [apay if driver.is_async else pay, ask]
    both = call(tools[0].name, "1", amount=7)
    both.tool_calls.extend(call("ask", "2", what="really?").tool_calls)
    graph = create_agent(in_turn(both, say("done")), tools, checkpointer=driver.saver, **options)
    PAID.clear()
    return graph, {"configurable": {"thread_id": name}}


async def an_approval(driver: Driver) -> None:
    graph, thread = agent(driver, "approved")
    asked = await driver.invoke(graph, {"messages": [HumanMessage("go")]}, thread)
    assert [one.value for one in asked["__interrupt__"]] == ["really?"]
    assert PAID == []
    done = await driver.invoke(graph, Command(resume=Approve()), thread)
    assert PAID == [7]
    assert [text.partition(": ")[2] for text in texts(done["messages"])[2:]] == ["paid 7", "yes", "done"]


async def a_rejection(driver: Driver) -> None:
    graph, thread = agent(driver, "rejected")
    await driver.invoke(graph, {"messages": [HumanMessage("go")]}, thread)
    done = await driver.invoke(graph, Command(resume=Reject("no")), thread)
    assert PAID == []
    shown = texts(done["messages"])
    assert "cancelled" in shown[2] and shown[3:] == ["tool ask: no", "ai: done"], shown


async def a_middleware_that_asks(driver: Driver) -> None:
    name = "apay" if driver.is_async else "pay"
    for decision, paid in (({"type": "approve"}, [7]), ({"type": "reject", "message": "no"}, [])):
        middleware = [HumanInTheLoopMiddleware(interrupt_on={name: {"allowed_decisions": ["approve", "reject"]}})]
        graph, thread = agent(driver, f"middleware {decision['type']}", middleware=middleware)
        await driver.invoke(graph, {"messages": [HumanMessage("go")]}, thread)
        assert PAID == []
        asked = await driver.invoke(graph, Command(resume={"decisions": [decision]}), thread)
        assert PAID == [] and asked["__interrupt__"][0].value == "really?"
        await driver.invoke(graph, Command(resume=Approve()), thread)
        assert PAID == paid


on_every_driver(an_approval, a_rejection, a_middleware_that_asks)
