"""Event streams (version 3): raw events, projections, graphs inside, transformers, and runs that are left."""

from __future__ import annotations

from typing import Any

from compat.registry import Log, ask, nodes, program, say
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
