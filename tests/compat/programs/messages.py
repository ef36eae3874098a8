"""What nodes push while they run: messages and elements of a user interface, shown and written."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from compat.registry import Log, program
from harness.engine import Engine


def shown(E: Engine, app: Any, given: Any, **options: Any) -> Any:
    """The chunks of a run: messages in short, with the node they come from."""
    chunks = []
    for chunk in E.stream(app, given, E.config(), **options):
        *where, payload = chunk if isinstance(chunk, tuple) and "messages" in chunk else (None, chunk)
        if where != [None]:
            message, metadata = payload
            payload = type(message).__name__, message.content, message.id, metadata["langgraph_node"]
        chunks.append((where, payload))
    return chunks


def plain(messages: Any) -> Any:
    return [(type(message).__name__, message.content, message.id) for message in messages]


@program()
def pushed_messages(E: Engine) -> Any:
    from langchain_core.messages import AIMessage

    def node(state: Any) -> Any:
        E.push_message(AIMessage("kept", id="1"))
        E.push_message({"role": "ai", "content": "shown only", "id": "2"}, state_key=None)
        E.push_message(AIMessage("kept again", id="1"))
        return {"messages": [AIMessage("returned", id="3"), AIMessage("kept once more", id="1")]}

    def without_id(state: Any) -> Any:
        return E.push_message(AIMessage("no id"))

    app = E.graph(E.MessagesState, {"node": node}, "START > node").compile(checkpointer=E.saver())
    refused = E.graph(E.MessagesState, {"node": without_id}, "START > node").compile()
    seen = shown(E, app, {"messages": []}, stream_mode=["messages", "custom"])
    return seen, plain(E.state(app, E.config()).values["messages"]), E.attempt(E.invoke, refused, {"messages": []})


@program()
def messages_pushed_inside(E: Engine) -> Any:
    from langchain_core.messages import AIMessage

    def node(state: Any) -> Any:
        E.push_message(AIMessage("inside", id="1"))

    inner = E.graph(E.MessagesState, {"node": node}, "START > node").compile()
    app = E.graph(E.MessagesState, {"sub": inner}, "START > sub").compile(checkpointer=E.saver())
    deep, flat = ({"stream_mode": ["messages"], "subgraphs": deep} for deep in (True, False))
    return [shown(E, app, {"messages": []}, **options) for options in (deep, flat)]


@program()
def elements_of_a_user_interface(E: Engine) -> Any:
    from langchain_core.messages import AIMessage

    state = TypedDict("State", {"ui": Annotated[list, E.ui_message_reducer], "log": list})
    told: list[Any] = []

    def show(state: Any) -> Any:
        told.append(E.push_ui_message("chart", {"a": 1}, id="c", metadata={"own": True}))
        told.append(E.push_ui_message("chart", {"b": 2}, id="c", merge=True, message=AIMessage("m", id="m1")))
        told.append(E.push_ui_message("note", {"text": "x"}, id="n"))
        told.append(E.push_ui_message("flash", {}, id="f", state_key=None))

    def hide(state: Any) -> Any:
        told.append(E.delete_ui_message("n"))

    app = E.graph(state, {"show": show, "hide": hide}, "START > show > hide").compile(checkpointer=E.saver())
    chunks = E.stream(app, {"ui": []}, E.config(), stream_mode=["custom", "updates"])
    return chunks, told, E.state(app, E.config()).values


@program()
def elements_that_are_not_there(E: Engine) -> Any:
    def hide(state: Any) -> Any:
        E.delete_ui_message("nobody")

    state = TypedDict("State", {"ui": Annotated[list, E.ui_message_reducer]})
    app = E.graph(state, {"hide": hide}, "START > hide").compile()
    return E.attempt(E.invoke, app, {"ui": []}), E.attempt(E.push_ui_message, "chart", {})


@program(drivers=("sync", "mixed"))
def chunks_of_called_tasks(E: Engine) -> Any:
    """Of a task that a node calls, and of one that this task calls."""

    @E.task
    def inner(n: int) -> int:
        E.get_stream_writer()(("inner", n))
        return n

    @E.task
    def outer(n: int) -> int:
        E.get_stream_writer()(("outer", n))
        return inner(n + 1).result()

    def node(state: Any) -> Any:
        E.get_stream_writer()("node")
        return {"log": [outer(1).result()]}

    app = E.graph(Log, {"node": node}, "START > node").compile(checkpointer=E.saver())
    return E.stream(app, {"log": []}, E.config(), stream_mode=["custom", "updates"])
