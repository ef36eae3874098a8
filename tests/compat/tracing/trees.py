"""Programs whose callback runs both engines must report alike."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict
from unittest.mock import MagicMock
from uuid import UUID

import langsmith
from compat.tracing.record import Recorder, Tracer, plain
from harness.engine import Engine, load
from langchain_core.callbacks import AsyncCallbackHandler, CallbackManager
from langchain_core.callbacks.manager import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnableParallel, RunnablePassthrough

PROGRAMS: dict[str, Callable[[Engine], Any]] = {}


def program(run: Callable[[Engine], Any]) -> Callable[[Engine], Any]:
    PROGRAMS[run.__name__] = run
    return run


class State(TypedDict):
    xs: Annotated[list[str], operator.add]


def adds(name: str) -> Any:
    def body(state: State) -> dict[str, Any]:
        return {"xs": [name]}

    body.__name__ = name
    return body


def to(*targets: str) -> Any:
    def path(state: State) -> list[str]:
        return list(targets)

    return path


def chain(E: Engine, *bodies: Any, **options: Any) -> Any:
    builder = E.StateGraph(State)
    before = E.START
    for body in bodies:
        name = body if isinstance(body, str) else body.__name__
        builder.add_node(name, E.node(adds(body) if isinstance(body, str) else body))
        builder.add_edge(before, name)
        before = name
    return builder.compile(**options)


def traced(E: Engine, app: Any, input: Any, config: Any = None, **kwargs: Any) -> Any:
    recorder, tracer = Recorder(), Tracer()
    config = {**(config or {}), "callbacks": [recorder, tracer]}
    result = E.attempt(E.invoke, app, input, config, **kwargs)
    return recorder.trees(), tracer.recorded, "failed" if isinstance(result, Exception) else plain(result)


@program
def labels_are_inherited(E: Engine) -> Any:
    builder = E.StateGraph(State)
    builder.add_node("a", E.node(adds("a")), metadata={"own": 1})
    builder.add_node("b", E.node(adds("b")))
    app = builder.add_edge(E.START, "a").add_edge("a", "b").compile(name="app")
    config = {"tags": ["mine"], "metadata": {"for": "me"}, "run_name": "this run", "configurable": {"x": 1}}
    bound = app.with_config(tags=["bound"], metadata={"bound": True})
    return traced(E, app, {"xs": ["i"]}, config), traced(E, bound, {"xs": ["i"]}, config)


@program
def the_caller_names_the_run(E: Engine) -> Any:
    recorder = Recorder()
    E.invoke(chain(E, "a"), {"xs": []}, {"callbacks": [recorder], "run_id": UUID(int=7)})
    return next(iter(recorder.runs)), recorder.trees()


@program
def branches_count_the_writers_before_them(E: Engine) -> Any:
    builder = E.StateGraph(State)
    for name in "abcde":
        builder.add_node(name, E.node(adds(name)))
    builder.add_edge(E.START, "a").add_edge(E.START, "b").add_edge(["a", "b"], "c").add_edge("a", "d")
    builder.add_conditional_edges("a", E.node(to("e")))
    builder.add_conditional_edges("a", RunnableLambda(to("d"), name="second"), ["d"])
    return traced(E, builder.compile(), {"xs": []})


@program
def a_branch_at_the_start_makes_the_start_a_run(E: Engine) -> Any:
    builder = E.StateGraph(State).add_node("a", E.node(adds("a"))).add_node("b", E.node(adds("b")))
    builder.add_edge(E.START, "a").add_conditional_edges(E.START, E.node(to("b")))
    return traced(E, builder.compile(), {"xs": []})


@program
def runnables_as_nodes(E: Engine) -> Any:
    first, second = RunnableLambda(adds("first")), RunnableLambda(adds("second"))
    builder = E.StateGraph(State)
    builder.add_node("one", first)
    builder.add_node("row", first | second)
    builder.add_node("dict", RunnableParallel(xs=lambda state: ["p"]))
    builder.add_node("assign", RunnablePassthrough.assign(xs=RunnableLambda(lambda state: ["q"])))
    builder.add_edge(E.START, "one").add_edge("one", "row").add_edge("row", "dict").add_edge("dict", "assign")
    return traced(E, builder.compile(), {"xs": []})


@program
def a_node_gives_back_a_runnable(E: Engine) -> Any:
    def choose(state: State) -> Any:
        return RunnableLambda(adds("chosen"))

    return traced(E, chain(E, choose), {"xs": []})


@program
def generators(E: Engine) -> Any:
    def gen(state: State) -> Any:
        yield {"xs": ["1"]}
        yield {"xs": ["2"]}

    async def agen(state: State) -> Any:
        yield {"xs": ["3"]}

    builder = E.StateGraph(State).add_node("gen", gen).add_edge(E.START, "gen")
    if E.is_async:
        builder.add_node("agen", agen).add_edge("gen", "agen")
    return traced(E, builder.compile(), {"xs": []})


@program
def nested_graphs(E: Engine) -> Any:
    inner = chain(E, "deep", name="inner")

    async def calls(state: State) -> Any:
        return await E.inner(inner, {"xs": []})

    builder = E.StateGraph(State).add_node("sub", inner).add_node("calls", E.node(calls))
    builder.add_edge(E.START, "sub").add_edge("sub", "calls")
    return traced(E, builder.compile(), {"xs": ["i"]}, {"tags": ["mine"]})


@program
def a_graph_among_runnables(E: Engine) -> Any:
    app = RunnablePassthrough() | chain(E, "a", name="app") | RunnableLambda(lambda state: state["xs"], name="last")
    return traced(E, app, {"xs": ["i"]})


@program
def sends(E: Engine) -> Any:
    def fan(state: State) -> Any:
        return [E.Send("b", {"xs": [str(n)]}) for n in range(3)]

    builder = E.StateGraph(State).add_node("a", E.node(adds("a"))).add_node("b", E.node(adds("b")))
    builder.add_edge(E.START, "a").add_conditional_edges("a", E.node(fan), ["b"])
    trees, _, result = traced(E, builder.compile(), {"xs": []})
    return trees, result


@program
def failures(E: Engine) -> Any:
    def boom(state: State) -> Any:
        raise ValueError("boom")

    inner = chain(E, boom, name="inner")
    nested = E.StateGraph(State).add_node("sub", inner).add_edge(E.START, "sub").compile()
    branch = E.StateGraph(State).add_node("a", E.node(adds("a"))).add_edge(E.START, "a")
    branch.add_conditional_edges("a", E.node(boom), {"x": "a"})
    loop = E.StateGraph(State).add_node("a", E.node(adds("a"))).add_edge(E.START, "a").add_edge("a", "a").compile()
    return [
        traced(E, chain(E, boom), {"xs": []}),
        traced(E, nested, {"xs": []}),
        traced(E, branch.compile(), {"xs": []}),
        traced(E, loop, {"xs": []}, {"recursion_limit": 2}),
        traced(E, chain(E, "a"), None),
    ]


@program
def retries_and_handlers(E: Engine) -> Any:
    runs = []

    def flaky(state: State) -> Any:
        runs.append(1)
        if len(runs) < 3:
            raise ValueError("not yet")
        return {"xs": ["at last"]}

    def boom(state: State) -> Any:
        raise ValueError("boom")

    def handle(state: State, error: E.NodeError) -> Any:  # type: ignore[name-defined]
        return {"xs": ["handled"]}

    handle.__annotations__["error"] = E.NodeError
    policy = E.RetryPolicy(retry_on=ValueError, initial_interval=0.001, jitter=False)
    builder = E.StateGraph(State).add_node("flaky", E.node(flaky), retry_policy=policy)
    builder.add_node("boom", E.node(boom), error_handler=handle)
    trees, _, result = traced(E, builder.add_edge(E.START, "flaky").add_edge("flaky", "boom").compile(), {"xs": []})
    for run in trees[0]["children"]:
        run["depth"] = 1  # an error handler has another namespace than in the reference
    return trees, result


@program
def pauses(E: Engine) -> Any:
    async def ask(state: State) -> Any:
        return {"xs": [E.interrupt("well?")]}

    inner = chain(E, ask, name="inner")
    app = E.StateGraph(State).add_node("sub", inner).add_edge(E.START, "sub").compile(checkpointer=E.saver())
    config = {"configurable": {"thread_id": "1"}}
    static = chain(E, "a", "b", checkpointer=E.saver(), interrupt_before=["b"])
    return [
        traced(E, app, {"xs": []}, config),
        traced(E, app, E.Command(resume="yes"), config),
        traced(E, static, {"xs": []}, config),
        traced(E, static, None, config),
    ]


@program
def commands_to_the_parent(E: Engine) -> Any:
    def leave(state: State) -> Any:
        return E.Command(graph=E.Command.PARENT, update={"xs": ["up"]}, goto="z")

    builder = E.StateGraph(State).add_node("sub", chain(E, leave, name="inner")).add_node("z", E.node(adds("z")))
    return traced(E, builder.add_edge(E.START, "sub").compile(), {"xs": []})


@program
def functions_and_tasks(E: Engine) -> Any:
    if E.is_async:

        @E.task
        async def double(x: int) -> int:
            return x * 2

        @E.task
        async def add(x: int, *more: int, y: int = 3, **named: int) -> int:
            return await double(x) + y

        @E.entrypoint()
        async def flow(x: int) -> int:
            return await add(x, z=1) + await add(x, 4, 5, y=1)

    else:

        @E.task
        def double(x: int) -> int:
            return x * 2

        @E.task
        def add(x: int, *more: int, y: int = 3, **named: int) -> int:
            return double(x).result() + y

        @E.entrypoint()
        def flow(x: int) -> int:
            return add(x, z=1).result() + add(x, 4, 5, y=1).result()

    return traced(E, flow, 1, {"tags": ["mine"]})


@program
def graphs_by_hand(E: Engine) -> Any:
    def plus(x: int) -> int:
        return x + 1

    def times(x: int) -> int:
        return x * 2

    row = RunnableLambda(plus) | RunnableLambda(times)
    nodes = {
        "functions": E.NodeBuilder().subscribe_only("in").do(plus).do(times).meta("tag", note=1).write_to("out"),
        "row": E.NodeBuilder().subscribe_only("in").do(row).do(plus).write_to("out"),
        "silent": E.NodeBuilder().subscribe_only("in").do(plus),
        "dict": E.NodeBuilder().subscribe_only("in").do({"a": plus, "b": RunnableLambda(times)}).write_to("out"),
        "nothing": E.NodeBuilder().subscribe_only("in").write_to("out"),
    }
    channels = {"in": E.EphemeralValue(int), "out": E.LastValue(object)}
    return [
        traced(E, E.Pregel(nodes={"n": n}, channels=dict(channels), input_channels="in", output_channels="out"), 1)
        for n in nodes.values()
    ]


@program
def trace_policies(E: Engine) -> Any:
    types = load(E.root, "types")

    def broken(payload: Any) -> Any:
        raise ValueError("broken")

    observed = []
    for policy in (
        types.TracePolicy(process_inputs=lambda payload: {"in": 1}, process_outputs=lambda payload: {"out": 1}),
        types.TracePolicy(process_inputs=types.omit_payload),
        types.TracePolicy(process_outputs=broken),
    ):
        builder = E.StateGraph(State).add_node("a", E.node(adds("a")), trace_policy=policy)
        builder.add_edge(E.START, "a").add_conditional_edges("a", E.node(to(E.END)))
        observed.append(traced(E, builder.compile(), {"xs": []}))
    return observed


@program
def what_a_node_is_handed(E: Engine) -> Any:
    """Custom events reach the handlers, and go through where there are none."""
    heard: list[Any] = []

    class Custom(AsyncCallbackHandler):
        async def on_custom_event(self, name: str, data: Any, *, tags: Any = None, **kwargs: Any) -> None:
            heard.append((name, data, tags))

    if E.is_async:

        async def node(state: State, config: RunnableConfig) -> Any:
            await adispatch_custom_event("event", 1)
            return {"xs": [type(config["callbacks"]).__name__]}

    else:

        def node(state: State, config: RunnableConfig) -> Any:  # type: ignore[misc]
            dispatch_custom_event("event", 1)
            return {"xs": [type(config["callbacks"]).__name__]}

    app = chain(E, node)
    return E.invoke(app, {"xs": []}), E.invoke(app, {"xs": []}, {"callbacks": [Custom()], "tags": ["mine"]}), heard


@program
def managers_and_late_handlers(E: Engine) -> Any:
    recorder, below = Recorder(), Recorder()

    def node(state: State, config: RunnableConfig) -> Any:
        config["callbacks"].add_handler(below)
        return RunnableLambda(adds("x"), name="called").invoke(state, config)

    E.invoke(chain(E, node), {"xs": []}, {"callbacks": CallbackManager([recorder])})
    return recorder.trees(), [run["name"] for run in below.runs.values()]


@program
def runs_in_langsmith(E: Engine) -> Any:
    """Traced functions and graphs hang below each other as they call each other."""
    posted: list[dict[str, Any]] = []
    client = MagicMock(spec=langsmith.Client)
    client.create_run.side_effect = lambda **run: posted.append(run)
    inner = chain(E, "deep").with_config(run_name="inner")

    @langsmith.traceable
    async def acall(state: State) -> Any:
        return await inner.ainvoke(state)

    @langsmith.traceable
    def call(state: State) -> Any:
        return inner.invoke(state)

    async def node(state: State) -> Any:
        return await acall(state) if E.is_async else call(state)

    async def abody() -> Any:
        return await app.ainvoke({"xs": []}, config)

    @langsmith.traceable
    def outer() -> Any:
        return E.wait(abody()) if E.is_async else app.invoke({"xs": []}, config)

    app = chain(E, node)
    config = {"configurable": {"thread_id": "1", "model": "m", "api_key": "secret", "many": [1]}}
    with langsmith.tracing_context(enabled=True, client=client):
        outer()
    names = {run["id"]: run["name"] for run in posted}
    wanted = (*config["configurable"], "langgraph_node", "langgraph_step", "ls_integration")
    observed = []
    for run in posted:
        labels = {key: value for key, value in run["extra"]["metadata"].items() if key in wanted}
        parent = names.get(run.get("parent_run_id"))
        observed.append((run["name"], parent, run["dotted_order"].count("."), labels))
    return observed


@program
def a_stream_left_early(E: Engine) -> Any:
    recorder = Recorder()
    app, config = chain(E, "a", "b", "c"), {"callbacks": [recorder]}
    if E.is_async:

        async def first() -> None:
            stream = app.astream({"xs": []}, config)
            await anext(stream)
            await stream.aclose()

        E.wait(first())
    else:
        stream = app.stream({"xs": []}, config)
        next(stream)
        stream.close()
    return recorder.trees()


@program
def a_cancelled_run(E: Engine) -> Any:
    recorder = Recorder()
    if not E.is_async:
        return None
    started = asyncio.Event()

    async def waits(state: State) -> Any:
        started.set()
        await asyncio.Event().wait()

    async def cancelled() -> str:
        run = asyncio.ensure_future(chain(E, waits).ainvoke({"xs": []}, {"callbacks": [recorder]}))
        await started.wait()
        run.cancel()
        try:
            await run
        except asyncio.CancelledError:
            return "cancelled"
        return "ended"

    return E.wait(cancelled()), recorder.trees()
