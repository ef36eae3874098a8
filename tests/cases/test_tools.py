"""A conversation whose tools were broken off can go on: a call has an answer before anybody speaks again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from surestep.checkpoint.memory import InMemorySaver
from surestep.graph import END, START, MessagesState, StateGraph
from surestep.types import Send

CALLS = [{"name": "wait", "args": {}, "id": str(n), "type": "tool_call"} for n in (1, 2)]
CONFIG: Any = {"configurable": {"thread_id": "1"}}


class Tools:
    """A tool node: answers call 2 and does with call 1 what `body` says."""

    def __init__(self, body: Any) -> None:
        self.tools_by_name = {"wait": body}

    async def __call__(self, given: Any) -> Any:
        calls = [given["tool_call"]] if "tool_call" in given else given["messages"][-1].tool_calls
        for call in calls:
            if call["id"] == "1":
                await self.tools_by_name["wait"]()
        return {"messages": [ToolMessage("done", tool_call_id=call["id"]) for call in calls]}


def model(state: Any) -> Any:
    messages = state["messages"]
    if messages[-1].content == "go":
        return {"messages": [AIMessage("", tool_calls=CALLS)]}
    answered = {one.tool_call_id for one in messages if one.type == "tool"}
    return {"messages": [AIMessage("refused" if {"1", "2"} - answered else "fine")]}


def graph(tools: Tools, *, sent: bool, **options: Any) -> Any:
    def route(state: Any) -> Any:
        calls = state["messages"][-1].tool_calls
        return ([Send("tools", {"tool_call": call}) for call in calls] if sent else "tools") if calls else END

    builder = StateGraph(MessagesState).add_node("model", model).add_node("tools", tools)
    builder.add_edge(START, "model").add_conditional_edges("model", route, ["tools", END]).add_edge("tools", "model")
    return builder.compile(InMemorySaver(), **options)


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("end", ["cancelled", "failed", "breakpoint"])
async def test_a_conversation_goes_on_after_a_broken_tool(end: str, sent: bool) -> None:
    """langgraph#6726, open-swe#1604, aegra#191"""
    begun = asyncio.Event()

    async def body() -> None:
        begun.set()
        if end == "failed":
            raise RuntimeError("no")
        await asyncio.Event().wait()

    app = graph(Tools(body), sent=sent, interrupt_before=["tools"] if end == "breakpoint" else None)
    run = asyncio.ensure_future(app.ainvoke({"messages": [("user", "go")]}, CONFIG))
    if end == "cancelled":
        await begun.wait()
        run.cancel()
    await asyncio.wait([run])
    assert run.cancelled() or run.exception() or end == "breakpoint"

    result = await app.ainvoke({"messages": [("user", "I changed my mind")]}, CONFIG)
    kinds = [message.type for message in result["messages"]]
    assert kinds == ["human", "ai", "tool", "tool", "human", "ai"] and result["messages"][-1].content == "fine"
    broken = next(message for message in result["messages"] if getattr(message, "tool_call_id", "") == "1")
    assert broken.status == "error" and "may or may not have taken effect" in broken.content


async def test_a_run_that_goes_on_answers_its_calls_itself() -> None:
    """Without a new message nothing is broken off."""

    async def body() -> None:
        return None

    app = graph(Tools(body), sent=False, interrupt_before=["tools"])
    await app.ainvoke({"messages": [("user", "go")]}, CONFIG)
    result = await app.ainvoke(None, CONFIG)
    assert [message.content for message in result["messages"][2:4]] == ["done", "done"]


async def test_what_cannot_be_closed_does_not_refuse_the_input(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        return None

    class Other(Tools):
        _messages_key = "history"  # a key that the state does not have

    app = graph(Other(body), sent=False, interrupt_before=["tools"])
    await app.ainvoke({"messages": [("user", "go")]}, CONFIG)
    result = await app.ainvoke({"messages": [("user", "again")]}, CONFIG)
    assert result["messages"][-1].content == "refused"
    assert "What node 'tools' leaves unfinished could not be closed" in caplog.text
