"""Programs whose messages, tool events and event streams both engines must give alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from compat.tracing.record import labels, plain
from harness.engine import Engine, load
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableGenerator, RunnableLambda
from langchain_core.tools import tool
from pydantic import BaseModel

PROGRAMS: dict[str, Any] = {}


def program(run: Any) -> Any:
    PROGRAMS[run.__name__] = run
    return run


def endless(message: AIMessage) -> Any:
    while True:
        yield message


def model(content: str = "hi you", id: str = "m1") -> Any:
    return GenericFakeChatModel(messages=endless(AIMessage(content, id=id)))


def schema(E: Engine) -> Any:
    return TypedDict("State", {"messages": Annotated[list[Any], E.add_messages], "other": Any})  # type: ignore[misc]


def graph(E: Engine, nodes: dict[str, Any], **options: Any) -> Any:
    builder = E.StateGraph(schema(E))
    before = E.START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    return builder.compile(**options)


def shown(chunk: Any) -> Any:
    """A chunk of messages mode, alone or tagged, without what differs from run to run."""
    if isinstance(chunk, tuple) and len(chunk) == 2 and isinstance(chunk[1], dict) and hasattr(chunk[0], "content"):
        return type(chunk[0]).__name__, chunk[0].content, plain(chunk[0].id), labels(chunk[1])
    if isinstance(chunk, tuple):
        return [shown(item) for item in chunk]
    return plain(chunk)


def streamed(E: Engine, app: Any, input: Any = None, config: Any = None, **options: Any) -> Any:
    options = {"stream_mode": "messages", **options}
    given = {"messages": []} if input is None else input
    try:
        return [shown(chunk) for chunk in E.stream(app, given, config, **options)]
    except ValueError as error:
        return type(error).__name__


def says(E: Engine, chat: Any) -> Any:
    async def say(state: Any) -> Any:
        return {"messages": [await chat.ainvoke("x") if E.is_async else chat.invoke("x")]}

    return E.node(say)


@program
def messages_of_models_and_nodes(E: Engine) -> Any:
    app = graph(E, {"llm": says(E, model()), "plain": lambda state: {"messages": [AIMessage("static", id="m9")]}})
    labelled = {"tags": ["mine"], "metadata": {"for": "me"}}
    return [
        streamed(E, app),
        streamed(E, app, config=labelled),
        streamed(E, app, stream_mode=["messages", "updates"]),
        streamed(E, app, stream_mode=["messages", "values"], subgraphs=True),
        streamed(E, app, version="v2"),
    ]


@program
def messages_in_all_shapes(E: Engine) -> Any:
    class Model(BaseModel):
        messages: list[Any]
        other: Any = None

    @dataclass
    class Data:
        messages: list[Any]
        other: Any = None

    shapes: dict[str, Any] = {
        "single": {"messages": AIMessage("single", id="a1")},
        "without ids": {"messages": [AIMessage("none"), HumanMessage("either")]},
        "tuple": {"messages": [("ai", "tuple")]},
        "dict": {"messages": [{"role": "ai", "content": "dict"}]},
        "other key": {"other": AIMessage("other", id="a2")},
        "mixed": {"other": [1, AIMessage("mixed", id="a3")]},
        "deep": {"other": {"key": AIMessage("deep", id="a4")}},
        "model": Model(messages=[AIMessage("model", id="a5")]),
        "data": Data(messages=[AIMessage("data", id="a6")]),
        "command": E.Command(update={"messages": [AIMessage("command", id="a7")]}),
        "several": [E.Command(update={"messages": [AIMessage("1", id="a8")]}), {"messages": [AIMessage("2", id="a9")]}],
        "kinds": {"messages": [ToolMessage("tool", tool_call_id="1", id="t1"), RemoveMessage(id="t1")]},
    }
    nodes = {name: (lambda state, shape=shape: shape) for name, shape in shapes.items()}
    observed = streamed(E, graph(E, nodes), {"messages": [HumanMessage("input", id="i1")]})
    return [[name if plain(name) != "ID" else "ID" for name in chunk] for chunk in observed]


@program
def messages_known_already(E: Engine) -> Any:
    def echo(state: Any) -> Any:
        return {"messages": [*state["messages"], AIMessage("new", id=f"n{len(state['messages'])}")]}

    app = graph(E, {"echo": E.node(echo)}, checkpointer=E.saver())
    config = {"configurable": {"thread_id": "1"}}
    turns = [{"messages": [HumanMessage(text, id=text)]} for text in ("a", "b")]
    return [streamed(E, app, turn, config) for turn in turns]


@program
def messages_of_some_models(E: Engine) -> Any:
    whole = FakeMessagesListChatModel(responses=[AIMessage("whole", id="w1")])
    silent = model().with_config(tags=["nostream"])
    tagged = model(id="m2").with_config(tags=["mine"], metadata={"of": "it"}, run_name="named")
    chain = RunnableLambda(lambda state: "x") | model(id="m3") | RunnableLambda(lambda said: {"messages": [said]})
    nodes = {"whole": says(E, whole), "silent": says(E, silent), "tagged": says(E, tagged), "chain": chain}
    return streamed(E, graph(E, nodes))


@program
def messages_of_nested_graphs(E: Engine) -> Any:
    inner = graph(E, {"llm": says(E, model()), "plain": lambda state: {"messages": [AIMessage("in", id="q2")]}})

    async def calls(state: Any) -> Any:
        return {"messages": (await E.inner(inner, {"messages": []}))["messages"]}

    async def own_thread(state: Any) -> Any:
        config = {"configurable": {"thread_id": "own"}}
        return {"messages": (await E.inner(inner, {"messages": []}, config))["messages"]}

    def after(state: Any) -> Any:
        return {"messages": [AIMessage("after", id="af")]}

    return [
        streamed(E, graph(E, {"sub": node, "after": after}), subgraphs=subgraphs)
        for node in (inner, E.node(calls), E.node(own_thread))
        for subgraphs in (False, True)
    ]


@program
def a_node_streams_a_graph_itself(E: Engine) -> Any:
    inner = graph(E, {"llm": says(E, model()), "plain": lambda state: {"messages": [AIMessage("in", id="q2")]}})

    async def relay(state: Any) -> Any:
        if E.is_async:
            chunks = [chunk async for chunk in inner.astream({"messages": []}, stream_mode="messages")]
        else:
            chunks = list(inner.stream({"messages": []}, stream_mode="messages"))
        return {"other": [chunk[0].content for chunk in chunks]}

    app = graph(E, {"relay": E.node(relay)})
    modes: list[Any] = ["updates", ["messages", "updates"]]
    return [streamed(E, app, stream_mode=mode, subgraphs=subgraphs) for mode in modes for subgraphs in (False, True)]


@program
def pushed_messages(E: Engine) -> Any:
    push = load(E.root, "graph.message").push_message

    def node(state: Any) -> Any:
        push(AIMessage("p1", id="p1"))
        push({"role": "ai", "content": "p2", "id": "p2"}, state_key="other")
        push(HumanMessage("p3", id="p3"), state_key=None)
        return {"messages": [AIMessage("p1 again", id="p1"), AIMessage("p4", id="p4")]}

    app = graph(E, {"push": E.node(node)})
    outer = graph(E, {"sub": app})
    return [
        streamed(E, app, config={"tags": ["mine"], "metadata": {"for": "me"}}),
        streamed(E, app, stream_mode=["messages", "updates", "values"]),
        streamed(E, outer),
        streamed(E, outer, subgraphs=True),
        plain(E.invoke(app, {"messages": []})),
    ]


@program
def messages_of_tasks(E: Engine) -> Any:
    chat = model()
    inner = graph(E, {"llm": says(E, chat)})
    if E.is_async:

        @E.task
        async def says_so(x: int) -> Any:
            return [AIMessage("said", id="t1"), await chat.ainvoke("x")]

        @E.task
        async def runs(x: int) -> Any:
            return await inner.ainvoke({"messages": []})

        @E.entrypoint()
        async def flow(x: int) -> Any:
            return [*await says_so(x), (await runs(x))["messages"][0], AIMessage("end", id="f1")]

    else:

        @E.task
        def says_so(x: int) -> Any:
            return [AIMessage("said", id="t1"), chat.invoke("x")]

        @E.task
        def runs(x: int) -> Any:
            return inner.invoke({"messages": []})

        @E.entrypoint()
        def flow(x: int) -> Any:
            return [*says_so(x).result(), runs(x).result()["messages"][0], AIMessage("end", id="f1")]

    return [streamed(E, flow, 1), streamed(E, flow, 1, subgraphs=True), streamed(E, flow, 1, stream_mode="updates")]


@program
def messages_of_broken_and_paused_nodes(E: Engine) -> Any:
    chat = model()

    async def boom(state: Any) -> Any:
        await says(E, chat)(state) if E.is_async else says(E, chat)(state)
        raise ValueError("boom")

    def ask(state: Any) -> Any:
        return {"messages": [AIMessage(E.interrupt("well?"), id="an")]}

    app = graph(E, {"ask": E.node(ask)}, checkpointer=E.saver())
    config = {"configurable": {"thread_id": "1"}}
    return [
        streamed(E, graph(E, {"boom": E.node(boom)})),
        streamed(E, app, None, config),
        streamed(E, app, E.Command(resume="yes"), config),
    ]


@program
def tools(E: Engine) -> Any:
    @tool
    def echo(text: str) -> str:
        """Says it again."""
        return f"echoed {text}"

    @tool
    def piecewise(text: str) -> str:
        """Says it in pieces."""
        for piece in (text, text):
            load(E.root, "pregel._tools")._tool_call_writer.get()(piece)  # where prebuilt tools find it
        return text

    @tool
    def broken(text: str) -> str:
        """Fails."""
        raise ValueError(text)

    @tool
    def asks(text: str) -> str:
        """Asks somebody."""
        return E.interrupt(text)

    def call(which: Any, **config: Any) -> Any:
        async def node(state: Any) -> Any:
            request = {"name": which.name, "args": {"text": "a"}, "id": "c1", "type": "tool_call"}
            await which.ainvoke(request, config) if E.is_async else which.invoke(request, config)
            return {}

        return E.node(node)

    inner = graph(E, {"echo": call(echo)})
    observed = [
        streamed(E, graph(E, {"tool": node}), stream_mode=["tools"], subgraphs=subgraphs)
        for node in (call(echo), call(piecewise), call(broken), call(echo, tags=["nostream"]), inner)
        for subgraphs in (False, True)
    ]
    paused = graph(E, {"tool": call(asks)}, checkpointer=E.saver())
    config = {"configurable": {"thread_id": "1"}}
    return [*observed, streamed(E, paused, None, config, stream_mode=["tools", "updates"])]


def events(E: Engine, app: Any, input: Any = None, **options: Any) -> Any:
    ids: dict[str, str] = {}

    async def collect() -> Any:
        observed = []
        async for event in app.astream_events({"messages": []} if input is None else input, **options):
            run = ids.setdefault(event["run_id"], f"#{len(ids)}")
            parents = [ids.get(parent) for parent in event.get("parent_ids", ())]
            what = plain(event["data"]), labels(event["metadata"])
            observed.append((event["event"], event["name"], run, parents, event["tags"], *what))
        return observed

    return E.wait(collect()) if E.is_async else None


@program
def event_streams(E: Engine) -> Any:
    chat = model()

    async def chunks(state: Any) -> Any:
        yield {"other": 1}
        yield {"other": 2}

    def pieces(items: Any) -> Any:
        yield from ({"messages": [item]} for item in items)

    async def apieces(items: Any) -> Any:
        async for item in items:
            yield {"messages": [item.content]}

    row = RunnableLambda(lambda state: "x", name="first") | chat | RunnableGenerator(pieces, apieces)
    inner = graph(E, {"deep": says(E, chat)}, name="inner")

    async def calls(state: Any) -> Any:
        return {"other": len((await E.inner(inner, {"messages": []}))["messages"])}

    nodes = {"llm": says(E, chat), "row": row, "chunks": chunks, "sub": inner, "calls": E.node(calls)}
    app = graph(E, nodes, name="app")
    return [
        [events(E, app, version=version, **options) for version in ("v1", "v2")]
        for options in ({}, {"stream_mode": "values"}, {"include_types": ["chat_model"]}, {"include_names": ["sub"]})
    ] + [events(E, app | RunnableLambda(lambda state: state, name="last"), version="v2")]


@program
def event_streams_of_branches_and_failures(E: Engine) -> Any:
    def path(state: Any) -> str:
        return str(E.END)

    def boom(state: Any) -> Any:
        raise KeyError("boom")

    async def failing() -> Any:
        app = graph(E, {"boom": E.node(boom)})
        seen = []
        try:
            async for event in app.astream_events({"messages": []}, version="v2"):
                seen.append((event["event"], event["name"]))
        except KeyError:
            seen.append(("raised", ""))
        return seen

    builder = E.StateGraph(schema(E)).add_node("a", E.node(lambda state: {"other": 1})).add_edge(E.START, "a")
    app = builder.add_conditional_edges("a", E.node(path)).compile()
    return [events(E, app, version=version) for version in ("v1", "v2")], E.wait(failing()) if E.is_async else None


@program
def logs(E: Engine) -> Any:
    app = graph(E, {"llm": says(E, model()), "plain": lambda state: {"other": 1}})

    async def collect() -> Any:
        return [sorted((op["op"], op["path"]) for op in patch.ops) async for patch in app.astream_log({"messages": []})]

    return E.wait(collect()) if E.is_async else None
