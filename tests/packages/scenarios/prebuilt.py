"""`langgraph-prebuilt`: the tool node in a graph of one's own, and its agent."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime, create_react_agent, tools_condition
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Interrupt, interrupt
from world import Driver, call, in_turn, on_every_driver, raises, say, texts

warnings.filterwarnings("ignore", message="create_react_agent has been moved")


class State(MessagesState):
    owner: str


@tool
def rename(name: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Give it to somebody else."""
    return Command(update={"owner": name, "messages": [ToolMessage(f"now {name}'s", tool_call_id=call_id)]})


@tool
def note(text: str, owner: Annotated[str, InjectedState("owner")], store: Annotated[Any, InjectedStore()]) -> str:
    """Write something down."""
    store.put((owner,), "note", {"text": text})
    return f"noted for {owner}"


@tool
def pay(amount: int, runtime: ToolRuntime) -> str:
    """Pay after somebody has agreed."""
    answer = interrupt({"pay": amount, "for": runtime.state["owner"], "call": runtime.tool_call_id})
    if answer == "fail":
        raise ValueError("no money")
    return f"paid {amount}: {answer}"


async def tool_node(driver: Driver) -> None:
    model = in_turn(
        call("rename", "1", name="ada"), call("note", "2", text="hi"), call("pay", "3", amount=7), say("ok")
    )
    store = InMemoryStore()
    builder = StateGraph(State)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node(ToolNode([rename, note, pay], handle_tool_errors=True))
    builder.add_edge(START, "model").add_conditional_edges("model", tools_condition).add_edge("tools", "model")
    graph = builder.compile(driver.saver, store=store)
    thread = {"configurable": {"thread_id": "tool_node"}}

    asked = await driver.invoke(graph, {"messages": [HumanMessage("go")], "owner": "bob"}, thread)
    question = {"pay": 7, "for": "ada", "call": "3"}
    assert [one.value for one in asked["__interrupt__"]] == [question]
    assert store.get(("ada",), "note").value == {"text": "hi"}
    state = await driver.state(graph, thread)
    assert state.next == ("tools",) and isinstance(state.interrupts[0], Interrupt)

    done = await driver.invoke(graph, Command(resume="yes"), thread)
    assert texts(done["messages"]) == [
        "human: go",
        "ai: rename(ada)",
        "tool rename: now ada's",
        "ai: note(hi)",
        "tool note: noted for ada",
        "ai: pay(7)",
        "tool pay: paid 7: yes",
        "ai: ok",
    ]
    # A tool that fails is a message, as `handle_tool_errors` says
    await driver.invoke(graph, {"messages": [HumanMessage("go")], "owner": "bob"}, other := _other(thread))
    failed = await driver.invoke(graph, Command(resume="fail"), other)
    assert failed["messages"][-2].status == "error" and "no money" in failed["messages"][-2].text


async def agent(driver: Driver) -> None:
    @tool
    def area(width: int, height: int) -> int:
        """Width times height."""
        return width * height

    model = in_turn(call("area", "1", width=2, height=3), say("it is six"))
    graph = create_react_agent(model, [area], checkpointer=driver.saver, prompt="Be short.", version="v2")
    thread = {"configurable": {"thread_id": "agent"}}
    parts = await driver.stream(
        graph, {"messages": [("user", "how big?")]}, thread, stream_mode=["updates", "messages"]
    )
    updates = [node for mode, part in parts if mode == "updates" for node in part]
    words = [part[0].content for mode, part in parts if mode == "messages" and part[1]["langgraph_node"] == "agent"]
    assert updates == ["agent", "tools", "agent"]
    assert [word for word in words if word] == ["it", "is", "six"]

    state = await driver.state(graph, thread)
    assert texts(state.values["messages"]) == ["human: how big?", "ai: area(2, 3)", "tool area: 6", "ai: itissix"]
    drawn = graph.get_graph()
    assert set(drawn.nodes) == {"__start__", "agent", "tools", "__end__"}
    assert drawn.nodes["tools"].data.tools_by_name.keys() == {"area"}


async def pauses(driver: Driver) -> None:
    """Two tools ask at the same time; each is answered by its id."""

    @tool
    def ask(what: str) -> str:
        """Ask."""
        return f"{what}: {interrupt(what)}"

    both = call("ask", "1", what="left")
    both.tool_calls.append({"name": "ask", "args": {"what": "right"}, "id": "2", "type": "tool_call"})
    graph = create_react_agent(in_turn(both, say("done")), [ask], checkpointer=driver.saver)
    thread = {"configurable": {"thread_id": "pauses"}}
    asked = await driver.invoke(graph, {"messages": [("user", "?")]}, thread)
    ids = {one.value: one.id for one in asked["__interrupt__"]}
    assert ids.keys() == {"left", "right"}
    half = await driver.invoke(graph, Command(resume={ids["left"]: "L"}), thread)
    assert [one.value for one in half["__interrupt__"]] == ["right"]
    done = await driver.invoke(graph, Command(resume={ids["right"]: "R"}), thread)
    assert texts(done["messages"])[2:] == ["tool ask: left: L", "tool ask: right: R", "ai: done"]


async def outside_of_a_graph(driver: Driver) -> None:
    node = ToolNode([rename])
    with raises(ValueError, "Missing required config key"):
        await driver.invoke(node, {"messages": [call("rename", "1", name="x")]})


def _other(thread: dict[str, Any]) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread["configurable"]["thread_id"] + "-other"}}


on_every_driver(tool_node, agent, pauses, outside_of_a_graph)
