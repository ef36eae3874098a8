"""`langchain.agents.create_agent` with middleware, the human in the loop among it."""

from __future__ import annotations

from typing import Any

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolRetryMiddleware,
    hook_config,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.types import Command
from pydantic import BaseModel
from world import Driver, Scripted, call, in_turn, on_every_driver, say, texts


@tool
def send(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent {text!r} to {to}"


@tool
def look(word: str) -> str:
    """Look a word up."""
    return f"{word} is a word"


def several(*calls: Any) -> Any:
    calls[0].tool_calls.extend(one.tool_calls[0] for one in calls[1:])
    return calls[0]


async def human_in_the_loop(driver: Driver) -> None:
    first = several(
        call("send", "1", to="ada", text="hi"), call("look", "2", word="x"), call("send", "3", to="b", text="c")
    )
    model = in_turn(first, call("send", "4", to="d", text="e"), say("all done"))
    ask = HumanInTheLoopMiddleware(interrupt_on={"send": {"allowed_decisions": ["approve", "edit", "reject"]}})
    graph = create_agent(model, [send, look], middleware=[ask], checkpointer=driver.saver)
    thread = {"configurable": {"thread_id": "human"}}

    asked = await driver.invoke(graph, {"messages": [HumanMessage("go")]}, thread)
    [question] = asked["__interrupt__"]
    assert [one["args"] for one in question.value["action_requests"]] == [
        {"to": "ada", "text": "hi"},
        {"to": "b", "text": "c"},
    ]
    edited = {"name": "send", "args": {"to": "eve", "text": "hi"}}
    decisions = [{"type": "edit", "edited_action": edited}, {"type": "reject", "message": "not b"}]
    again = await driver.invoke(graph, Command(resume={"decisions": decisions}), thread)
    assert [one["args"] for one in again["__interrupt__"][0].value["action_requests"]] == [{"to": "d", "text": "e"}]
    done = await driver.invoke(graph, Command(resume={"decisions": [{"type": "approve"}]}), thread)
    shown = texts(done["messages"])
    answers = shown[2:5]
    assert answers[0].startswith("tool send: ") and "not b" in answers[0], answers
    assert answers[1].startswith("tool send: ") and "sent 'hi' to eve" in answers[1], answers
    assert answers[2] == "tool look: x is a word"
    assert shown[-3:] == ["ai: send(d, e)", "tool send: sent 'e' to d", "ai: all done"]


class Words(AgentState[Any]):
    words: int


class Guard(AgentMiddleware[Words]):
    """Stops at a word, counts words, and changes what the model is told and what a tool returns."""

    state_schema = Words

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Words, runtime: Any) -> dict[str, Any] | None:
        if "stop" in state["messages"][-1].text:
            return {"messages": [say("I stop")], "jump_to": "end"}
        return {"words": len(state["messages"][0].text.split())}

    async def abefore_model(self, state: Words, runtime: Any) -> dict[str, Any] | None:
        return self.before_model(state, runtime)

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self.louder(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self.louder(request))

    def louder(self, request: Any) -> Any:
        first, *others = request.messages
        return request.override(messages=[HumanMessage(first.text.upper()), *others])

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        result = handler(request)
        return result.model_copy(update={"content": f"<{result.text}>"})

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        result = await handler(request)
        return result.model_copy(update={"content": f"<{result.text}>"})


async def own_middleware(driver: Driver) -> None:
    def reply(messages: list[Any]) -> Any:
        return call("look", "1", word=messages[0].text) if len(messages) == 1 else say(messages[-1].text)

    graph = create_agent(
        Scripted(reply=reply), [look], middleware=[Guard()], checkpointer=driver.saver, system_prompt=None
    )
    thread = {"configurable": {"thread_id": "guard"}}
    done = await driver.invoke(graph, {"messages": [HumanMessage("a b c")]}, thread)
    assert texts(done["messages"]) == [
        "human: a b c",
        "ai: look(A B C)",
        "tool look: <A B C is a word>",
        "ai: <A B C is a word>",
    ]
    assert done["words"] == 3 and "jump_to" not in done
    stopped = await driver.invoke(graph, {"messages": [HumanMessage("stop it")]}, thread)
    assert texts(stopped["messages"])[-2:] == ["human: stop it", "ai: I stop"]


async def shipped_middleware(driver: Driver) -> None:
    tries: list[str] = []

    @tool
    def flaky(word: str) -> str:
        """Fails once."""
        tries.append(word)
        if len(tries) == 1:
            raise ConnectionError("gone")
        return word

    todo = {"content": "look", "status": "pending"}
    model = in_turn(call("write_todos", "1", todos=[todo]), call("flaky", "2", word="w"), call("flaky", "3", word="v"))
    middleware = [
        TodoListMiddleware(),
        ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False),
        ModelCallLimitMiddleware(run_limit=3, exit_behavior="end"),
        SummarizationMiddleware(model=in_turn(say("a summary")), trigger=("messages", 100)),
    ]
    graph = create_agent(model, [flaky], middleware=middleware, checkpointer=driver.saver)
    done = await driver.invoke(graph, {"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "shipped"}})
    assert done["todos"] == [todo] and tries == ["w", "w", "v"]
    assert "limit" in done["messages"][-1].text and "run_model_call_count" not in done


class Answer(BaseModel):
    """An answer."""

    number: int


async def structured(driver: Driver) -> None:
    model = in_turn(call("look", "1", word="x"), call("Answer", "2", number=4))
    graph = create_agent(model, [look], response_format=ToolStrategy(Answer), checkpointer=driver.saver, name="solver")
    thread = {"configurable": {"thread_id": "structured"}}
    parts = await driver.stream(graph, {"messages": [HumanMessage("?")]}, thread, stream_mode=["updates", "messages"])
    assert [node for mode, part in parts if mode == "updates" for node in part] == ["model", "tools", "model"]
    assert {part[1]["lc_agent_name"] for mode, part in parts if mode == "messages"} == {"solver"}
    assert (await driver.state(graph, thread)).values["structured_response"] == Answer(number=4)


on_every_driver(human_in_the_loop, own_middleware, shipped_middleware, structured)
