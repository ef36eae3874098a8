"""What packages on top of an engine reach for: wrapped functions, a task's keys in the config, commands from tools."""

import importlib
from typing import Any

from compat.registry import Log, differs, look, program, say
from harness.engine import Engine
from langchain_core.messages import AIMessage, ToolMessage


def wrapped(E: Engine, *functions: Any, **options: Any) -> Any:
    return importlib.import_module(f"{E.root}._internal._runnable").RunnableCallable(*functions, **options)


@program()
def wrapped_functions_as_nodes(E: Engine) -> Any:
    def sync(state, config, runtime, store):
        store.put(("a",), "k", {"by": config["metadata"]["langgraph_node"]})
        return {"log": ["sync", runtime.context, runtime.execution_info.node_attempt]}

    async def native(state, runtime):
        return {"log": ["async", runtime.context]}

    def chooses(state: Any) -> Any:
        return wrapped(E, lambda state: {"log": ["inner"]})

    bodies = {"a": wrapped(E, sync, name="other"), "b": wrapped(E, chooses, trace=False), "c": say("c")}
    if E.driver != "sync":
        bodies["c"] = wrapped(E, None, native)
    store = E.InMemoryStore()
    app = E.graph(Log, bodies, "START > a > b > c").compile(checkpointer=E.saver(), store=store)
    return look(E, app, {"log": []}, context="ctx"), store.get(("a",), "k").value


@program()
def keys_of_a_task_in_its_config(E: Engine) -> Any:
    def sent(state, config):
        task = config["configurable"]
        read, read_state = task["__pregel_read"], task["__pregel_read_state"]
        before = read_state()
        task["__pregel_send"]([("log", ["sent"])])
        return {"log": [state, before, read("log"), read("log", True), read(["log"], True), read_state()]}

    def pulled(state, config):
        return {"log": [config["configurable"]["__pregel_read_state"]]}

    bodies = {"a": lambda state: E.Command(update={"log": ["a"]}, goto=E.Send("b", "packet")), "b": sent, "c": pulled}
    return look(E, E.graph(Log, bodies, "START > a", "b > c").compile(checkpointer=E.saver()), {"log": ["in"]})


@program(drivers=("sync",))
def commands_from_tools(E: Engine) -> Any:
    from langchain_core.tools import tool

    command = E.Command(update={"log": ["early"]})

    @tool
    def move(where: str) -> Any:
        """Go somewhere."""
        return E.Command(goto=where) if where != "early" else command

    @tool
    def several() -> Any:
        """Do two things."""
        return [command, E.Command(update={"log": ["more"]})]

    def call(state: Any) -> Any:
        asked = {"type": "tool_call", "id": "1"}
        moved = move.invoke({**asked, "name": "move", "args": {"where": "b"}})
        early = move.invoke({**asked, "name": "move", "args": {"where": "early"}})
        return [moved, early, *several.invoke({**asked, "name": "several", "args": {}})]

    app = E.graph(Log, {"a": call, "b": say("b")}, "START > a").compile(checkpointer=E.saver())
    return look(E, app, {"log": []})


@program()
def a_node_by_itself(E: Engine) -> Any:
    def tagged(state, config):
        return {"log": [*state["log"], *config["tags"], config["metadata"]["who"]]}

    app = E.graph(Log, {"a": tagged, "b": wrapped(E, say("b"))}, "START > a > b").compile()
    config = {"tags": ["t"], "metadata": {"who": "me"}}
    return [E.invoke(app.nodes[name], {"log": ["x"]}, config) for name in "ab"]


class Tools:
    """A tool node as far as an engine can tell one: it has `tools_by_name`."""

    def __init__(self, E: Engine) -> None:
        self.tools_by_name = {"ask": None}
        self.E = E

    def __call__(self, state: Any) -> Any:
        calls = [state["tool_call"]] if "tool_call" in state else state["messages"][-1].tool_calls
        return {"messages": [self.answer(call) for call in calls]}

    def answer(self, call: Any) -> Any:
        if call["name"] == "ask":
            self.E.interrupt("?")
        return ToolMessage("done", tool_call_id=call["id"])


def left_behind(E: Engine, *names: str, sent: bool) -> list[str]:
    """A tool asks; instead of an answer comes another message. What the model is then told."""
    calls = [{"name": name, "args": {}, "id": name, "type": "tool_call"} for name in names]

    def model(state: Any) -> Any:
        text = state["messages"][-1].content
        return {"messages": [AIMessage("", tool_calls=calls) if text == "go" else AIMessage("fine")]}

    def route(state: Any) -> Any:
        made = state["messages"][-1].tool_calls
        return ([E.Send("tools", {"tool_call": call}) for call in made] if sent else "tools") if made else E.END

    g = E.graph(E.MessagesState, {"model": model, "tools": Tools(E)}, "START > model", "tools > model")
    g.add_conditional_edges("model", route, ["tools", E.END])
    app = g.compile(checkpointer=E.saver())
    E.invoke(app, {"messages": [("user", "go")]}, E.config())
    end = E.invoke(app, {"messages": [("user", "something else")]}, E.config())
    return [f"{one.type} {getattr(one, 'tool_call_id', '')}: {one.content[:35]}" for one in end["messages"]]


FIRST, LAST = ["human : go", "ai : "], ["human : something else", "ai : fine"]
OFF = "tool ask: This call of ask was broken off: th"


@differs(
    "providers refuse a conversation with calls that have no answers, so it could not go on",
    ours=[
        [*FIRST, OFF, *LAST],
        [*FIRST, OFF, "tool other: This call of other was broken off: ", *LAST],
        [*FIRST, OFF, "tool other: done", *LAST],
    ],
    theirs=[[*FIRST, *LAST]] * 3,
)
def message_instead_of_an_answer_to_a_tool(E: Engine) -> Any:
    kinds = [(("ask",), False), (("ask", "other"), False), (("ask", "other"), True)]
    return [left_behind(E, *names, sent=sent) for names, sent in kinds]
