"""Event streams (version 3): raw events, projections, graphs inside, transformers, and runs that are left."""

from __future__ import annotations

from typing import Any

from compat.registry import Log, ask, differs, failed, nodes, program, say
from harness.engine import Boom, Engine


def run(E: Engine, app: Any, given: Any, config: Any = None, **options: Any) -> Any:
    """An event stream, under any driver."""
    config = config or E.config()
    if E.is_async:
        return E.wait(app.astream_events(given, config, version="v3", **options))
    return app.stream_events(given, config, version="v3", **options)


def read(E: Engine, projection: Any) -> list[Any]:
    """All of a projection, or of the raw events."""
    if not E.is_async:
        return list(projection)

    async def collect() -> list[Any]:
        return [item async for item in projection]

    return E.wait(collect())


def end(E: Engine, stream: Any) -> Any:
    """How the run ends: its output, and its questions."""
    if E.is_async:
        return [E.wait(stream.output()), E.wait(stream.interrupted()), E.wait(stream.interrupts())]
    return [stream.output, stream.interrupted, stream.interrupts]


def plain(event: Any) -> Any:
    """An event without its time."""
    params = {key: value for key, value in event["params"].items() if key != "timestamp"}
    return {**event, "params": params}


def nested(E: Engine, **options: Any) -> Any:
    inner = E.graph(Log, nodes("xy"), "START > x > y").compile()
    middle = E.graph(Log, {"m": say("m"), "inner": inner}, "START > m > inner").compile()
    app = E.graph(Log, {"a": say("a"), "middle": middle, "b": say("b")}, "START > a > middle > b")
    return app.compile(checkpointer=E.saver(), **options)


@program()
def raw_events(E: Engine) -> Any:
    return [plain(event) for event in read(E, run(E, nested(E), {"log": []}))]


@program()
def values_and_output(E: Engine) -> Any:
    stream = run(E, nested(E), {"log": ["in"]})
    return read(E, stream.values), end(E, stream), sorted(stream.extensions)


@program()
def life_of_graphs_inside(E: Engine) -> Any:
    return read(E, run(E, nested(E), {"log": []}).lifecycle)


@program(drivers=("sync",))
def handles_of_graphs_inside(E: Engine) -> Any:
    seen = []
    for handle in run(E, nested(E), {"log": []}).subgraphs:
        for deeper in handle.subgraphs:
            seen.append((deeper.path, deeper.graph_name, list(deeper.values), deeper.status))
        seen.append((handle.path, handle.graph_name, handle.output, handle.status, handle.error))
    return seen


@program(drivers=("async",))
def handles_of_graphs_inside_an_async_run(E: Engine) -> Any:
    app = nested(E)

    async def follow() -> Any:
        stream = await app.astream_events({"log": []}, E.config(), version="v3")
        seen = []
        async for handle in stream.subgraphs:
            seen.append((handle.path, handle.graph_name, [v async for v in handle.values], handle.status))
        return seen, await stream.output()

    return E.wait(follow())


@program(drivers=("sync",))
def projections_side_by_side(E: Engine) -> Any:
    return list(run(E, nested(E), {"log": []}).interleave("values", "lifecycle"))


@program()
def modes_as_projections(E: Engine) -> Any:
    names = ("updates", "custom", "checkpoints", "tasks")
    classes = [getattr(E, f"{name.title()}Transformer") for name in names]

    def write(state: Any) -> Any:
        E.get_stream_writer()({"step": 1})
        return {"log": ["w"]}

    app = E.graph(Log, {"w": write}, "START > w").compile(checkpointer=E.saver())
    return [read(E, getattr(run(E, app, {"log": []}, E.config(name), transformers=classes), name)) for name in names]


@program()
def a_pause(E: Engine) -> Any:
    inner = E.graph(Log, {"q": ask(E, "?")}, "START > q").compile()
    app = E.graph(Log, {"a": say("a"), "sub": inner}, "START > a > sub").compile(checkpointer=E.saver())
    first = run(E, app, {"log": []})
    life = read(E, first.lifecycle)
    asked = end(E, first)
    again = run(E, app, E.Command(resume="y"))
    return life, asked, end(E, again)


@program()
def a_failure(E: Engine) -> Any:
    def fail(state: Any) -> Any:
        raise Boom("no")

    inner = E.graph(Log, {"bad": fail}, "START > bad").compile()
    app = E.graph(Log, {"a": say("a"), "sub": inner}, "START > a > sub").compile(checkpointer=E.saver())
    seen = []
    for n, name in enumerate(("values", "lifecycle", "subgraphs")):
        stream = run(E, app, {"log": []}, E.config(str(n)))
        seen.append(E.attempt(read, E, getattr(stream, name)))
        seen.append(E.attempt(end, E, stream))
    return seen


@program()
def a_transformer_of_ones_own(E: Engine) -> Any:
    class Counter(E.StreamTransformer):  # type: ignore[name-defined,misc]
        required_stream_modes = ("updates",)

        def __init__(self, scope: Any = ()) -> None:
            super().__init__(scope)
            self.count, self.channel = 0, E.StreamChannel("count")

        def init(self) -> Any:
            return {"count": self.channel}

        def process(self, event: Any) -> bool:
            if event["method"] == "updates" and tuple(event["params"]["namespace"]) == self.scope:
                self.count += 1
                self.channel.push(self.count)
                return False
            return True

    counted = read(E, run(E, nested(E), {"log": []}, transformers=[Counter]).extensions["count"])
    compiled = nested(E, transformers=[Counter])
    events = [plain(event) for event in read(E, run(E, compiled, {"log": []}, E.config("2")))]
    return counted, [(event["method"], event["params"]["data"]) for event in events if event["method"] != "values"]


@program()
def what_is_refused(E: Engine) -> Any:
    app = nested(E)
    made = E.UpdatesTransformer()
    return [
        E.attempt(run, E, app, {"log": []}, stream_mode="values"),
        E.attempt(run, E, app, {"log": []}, subgraphs=True),
        E.attempt(run, E, app, {"log": []}, transformers=[made]),
        E.attempt(lambda: run(E, app, {"log": []}).nothing_of_that_name),
        E.attempt(lambda: E.StreamChannel(maxlen=0)),
    ]


@program()
def answers_of_models(E: Engine) -> Any:
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    async def call(state: Any) -> Any:
        model = GenericFakeChatModel(messages=iter([AIMessage("hello world", id="m1")]))
        given = state["messages"]
        return {"messages": await model.ainvoke(given) if E.is_async else model.invoke(given)}

    def whole(state: Any) -> Any:
        return {"messages": AIMessage("whole", id="m2")}

    app = E.graph(E.MessagesState, {"call": call, "whole": whole}, "START > call > whole").compile()
    seen = []
    for stream in read(E, run(E, app, {"messages": []}).messages):
        text = E.wait(_text(stream)) if E.is_async else stream.output.text
        seen.append((stream.node, text, [event["event"] for event in stream._events]))
    return seen


async def _text(stream: Any) -> str:
    return (await stream.output).text


@program()
def a_run_that_is_left(E: Engine) -> Any:
    """The run stops, and the thread goes on from there."""
    app = E.graph(Log, nodes("abc"), "START > a > b > c").compile(checkpointer=E.saver())
    if E.is_async:

        async def leave() -> Any:
            async with await app.astream_events({"log": []}, E.config(), version="v3") as stream:
                async for values in stream.values:
                    if "a" in values["log"]:
                        return values

        first = E.wait(leave())
    else:
        with app.stream_events({"log": []}, E.config(), version="v3") as stream:
            first = next(values for values in stream.values if "a" in values["log"])
    return first, E.invoke(app, None, E.config(), durability="sync")


async def called(E: Engine, inner: Any) -> Any:
    return await E.inner(inner, {"log": []})


@program()
def graphs_that_a_node_calls(E: Engine) -> Any:
    """The first is a graph inside; those after it are part of what the node does."""
    inner = E.graph(Log, nodes("x"), "START > x").compile()

    async def twice(state: Any) -> Any:
        await called(E, inner)
        return await called(E, inner)

    app = E.graph(Log, {"twice": twice}, "START > twice").compile()
    return [plain(event) for event in read(E, run(E, app, {"log": []}))]


def streaming_node(E: Engine, inner: Any, seen: list[Any], times: int) -> Any:
    """A node that reads event streams of its own, and what it has seen of them."""

    def node(state: Any) -> Any:
        for _ in range(times):
            stream = inner.stream_events({"log": []}, version="v3")
            seen.append([[plain(event) for event in stream], stream.output])
        return {"log": ["read"]}

    async def anode(state: Any) -> Any:
        for _ in range(times):
            stream = await inner.astream_events({"log": []}, version="v3")
            seen.append([[plain(event) async for event in stream], await stream.output()])
        return {"log": ["read"]}

    return anode if E.is_async else node


@program()
def an_event_stream_in_a_node(E: Engine) -> Any:
    seen: list[Any] = []
    inner = E.graph(Log, {"x": say("x"), "sub": E.graph(Log, nodes("y"), "START > y").compile()}, "START > x > sub")
    app = E.graph(Log, {"n": streaming_node(E, inner.compile(), seen, 1)}, "START > n").compile()
    return E.invoke(app, {"log": []}), seen


@differs(
    "A node's second event stream has an output too",
    ours=lambda got: [one[1] for one in got] == [{"log": ["x"]}, {"log": ["x"]}],
    theirs=lambda got: [one[1] for one in got] == [{"log": ["x"]}, None],
)
def two_event_streams_in_a_node(E: Engine) -> Any:
    seen: list[Any] = []
    inner = E.graph(Log, nodes("x"), "START > x").compile()
    E.invoke(E.graph(Log, {"n": streaming_node(E, inner, seen, 2)}, "START > n").compile(), {"log": []})
    return seen


@program()
def a_drained_run(E: Engine) -> Any:
    control = E.RunControl()

    def stop(state: Any) -> Any:
        control.request_drain("enough")
        return {"log": ["stop"]}

    inner = E.graph(Log, {"stop": stop, "more": say("more")}, "START > stop > more").compile()
    app = E.graph(Log, {"sub": inner}, "START > sub").compile(checkpointer=E.saver())
    stream = run(E, app, {"log": []}, control=control)
    life: list[Any] = []
    ended = E.attempt(lambda: life.extend(read(E, stream.lifecycle)))
    return ended, E.attempt(end, E, stream)


@program()
def a_pause_inside_seen_by_its_handle(E: Engine) -> Any:
    inner = E.graph(Log, {"q": ask(E, "?")}, "START > q").compile()
    app = E.graph(Log, {"sub": inner}, "START > sub").compile(checkpointer=E.saver())
    handles = read(E, run(E, app, {"log": []}).subgraphs)
    return [(handle.path, handle.status, handle.error, E.attempt(end, E, handle)) for handle in handles]


@differs(
    "A reader that has left lets go of what it read: another may go on",
    ours=lambda got: [one["log"] for one in got] == [[], ["a"]],
    theirs=lambda got: got[0] == {"log": []} and failed(got[1]),
)
def a_reader_that_left_and_another(E: Engine) -> Any:
    stream = run(E, E.graph(Log, nodes("ab"), "START > a > b").compile(), {"log": []})

    async def first() -> Any:
        async for values in stream.values:
            return values

    def look() -> Any:
        return E.wait(first()) if E.is_async else next(iter(stream.values))

    return [E.attempt(look), E.attempt(look)]


def talk(E: Engine, **nodes: Any) -> Any:
    """A graph of messages, its nodes in a row."""
    return E.graph(E.MessagesState, nodes, f"START > {' > '.join(nodes)}").compile()


def speaker(E: Engine, *words: Any, way: str = "invoke", fails: bool = False, **options: Any) -> Any:
    """A node that lets a model speak."""
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Model(GenericFakeChatModel):
        def _stream(self, *args: Any, **kwargs: Any) -> Any:
            for n, chunk in enumerate(super()._stream(*args, **kwargs)):
                if fails and n == 1:
                    raise Boom("no more words")
                yield chunk

    async def node(state: Any) -> Any:
        model = Model(messages=iter([AIMessage(" ".join(words), id="m1")])).with_config(**options)
        if way == "invoke":
            said = await model.ainvoke("x") if E.is_async else model.invoke("x")
        elif E.is_async:
            said = sum_of([chunk async for chunk in model.astream("x")])
        else:
            said = sum_of(list(model.stream("x")))
        return {"messages": [said]}

    return node


def sum_of(chunks: list[Any]) -> Any:
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    return total


def messages_of(E: Engine, app: Any, **options: Any) -> Any:
    """The streams of messages of a run, and what the log has of them."""
    streams = []
    for stream in read(E, run(E, app, {"messages": []}, **options).messages):
        output = E.attempt(lambda one=stream: E.wait(_output(one)) if E.is_async else one.output)
        streams.append(
            (stream.node, stream.done, getattr(output, "text", output), [e["event"] for e in stream._events])
        )
    log = []
    for event in read(E, run(E, app, {"messages": []}, **options)):
        if event["method"] == "messages":
            said, metadata = event["params"]["data"]
            metadata = {key: value for key, value in metadata.items() if key not in ("ls_integration", "lc_versions")}
            said = said if isinstance(said, dict) else (type(said).__name__, said.content)
            log.append((event["params"]["namespace"], said, metadata))
    return streams, log


async def _output(stream: Any) -> Any:
    return await stream.output


@program()
def a_model_that_is_streamed_by_its_node(E: Engine) -> Any:
    return messages_of(E, talk(E, call=speaker(E, "hello", "world", way="stream")))


@program()
def a_model_that_is_not_to_be_heard(E: Engine) -> Any:
    app = talk(E, call=speaker(E, "hello", "world", tags=["nostream"]), tagged=speaker(E, "aloud", tags=["mine"]))
    return messages_of(E, app)


@program()
def a_model_that_fails_while_it_speaks(E: Engine) -> Any:
    stream = run(E, talk(E, call=speaker(E, "hello", "world", fails=True)), {"messages": []})
    return E.attempt(read, E, stream.messages), E.attempt(end, E, stream)


@program()
def messages_of_every_kind(E: Engine) -> Any:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    def pushes(state: Any) -> Any:
        E.push_message(AIMessage("pushed", id="p1"))
        return {"messages": []}

    kinds = [HumanMessage("h", id="h1"), SystemMessage("s", id="s1"), ToolMessage("t", id="t1", tool_call_id="c1")]
    app = talk(E, kinds=lambda state: {"messages": kinds}, pushes=pushes)
    return messages_of(E, app)


@program()
def a_plain_stream_of_messages_in_a_node(E: Engine) -> Any:
    """It stays one of chunks, whatever the run around it shows."""
    inner, seen = talk(E, call=speaker(E, "hello", "world")), []
    options: Any = {"stream_mode": "messages"}

    def node(state: Any) -> Any:
        seen.extend(inner.stream({"messages": []}, **options))
        return {"messages": []}

    async def anode(state: Any) -> Any:
        seen.extend([chunk async for chunk in inner.astream({"messages": []}, **options)])
        return {"messages": []}

    output = end(E, run(E, talk(E, outer=anode if E.is_async else node), {"messages": []}))
    return output, [(type(message).__name__, message.content, message.id is None) for message, _ in seen]
