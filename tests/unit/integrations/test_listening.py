"""Who listens to a run, and what listening may not change."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.callbacks.manager import AsyncCallbackManager, CallbackManager, dispatch_custom_event
from langchain_core.globals import set_debug
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tracers.base import AsyncBaseTracer
from typing_extensions import TypedDict

from surestep.callbacks import GraphCallbackHandler, GraphInterruptEvent, GraphResumeEvent
from surestep.checkpoint.memory import InMemorySaver
from surestep.errors import NodeTimeoutError
from surestep.graph import END, START, StateGraph
from surestep.types import Command, TimeoutPolicy, TracePolicy, interrupt

THREAD = {"configurable": {"thread_id": "1"}}


class State(TypedDict):
    n: int


def graph(*bodies: Any, **options: Any) -> Any:
    builder = StateGraph(State)
    before = START
    for body in bodies:
        builder.add_node(body.__name__, body)
        builder.add_edge(before, body.__name__)
        before = body.__name__
    return builder.compile(**options)


def plus(state: State) -> dict[str, Any]:
    return {"n": state["n"] + 1}


def ask(state: State) -> dict[str, Any]:
    return {"n": interrupt("how many?")}


class Raises(BaseCallbackHandler):
    run_inline = True

    def __init__(self, raise_error: bool) -> None:
        self.raise_error = raise_error

    def on_chain_start(self, *args: Any, name: Any = None, **kwargs: Any) -> None:
        if name == "plus":
            raise KeyError("handler")


async def test_a_broken_handler_breaks_nothing_unless_it_wants_to() -> None:
    app = graph(plus)
    assert app.invoke({"n": 1}, {"callbacks": [Raises(False)]}) == {"n": 2}
    with pytest.raises(KeyError, match="handler"):
        app.invoke({"n": 1}, {"callbacks": [Raises(True)]})
    with pytest.raises(KeyError, match="handler"):
        await app.ainvoke({"n": 1}, {"callbacks": [Raises(True)]})


async def test_nobody_listens_but_the_node_is_handed_a_manager() -> None:
    seen: list[Any] = []

    def node(state: State, config: RunnableConfig) -> None:
        seen.append(config["callbacks"])
        dispatch_custom_event("nobody hears", 1)

    app = graph(node)
    app.invoke({"n": 1})
    await app.ainvoke({"n": 1})
    assert [type(manager) for manager in seen] == [CallbackManager, AsyncCallbackManager]
    assert all(manager.parent_run_id is not None and not manager.handlers for manager in seen)


def test_debug_mode_of_langchain_prints_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    set_debug(True)
    try:
        graph(plus).invoke({"n": 1})
    finally:
        set_debug(False)
    assert "chain:plus" in capsys.readouterr().out


async def test_trace_policies_hold_for_async_tracers_too() -> None:
    recorded: list[Any] = []

    class Tracer(AsyncBaseTracer):
        async def _persist_run(self, run: Any) -> None:
            recorded.extend((child.inputs, child.outputs) for child in run.child_runs)

    policy = TracePolicy(process_inputs=lambda payload: {}, process_outputs=lambda payload: {"hidden": True})
    app = StateGraph(State).add_node("plus", plus, trace_policy=policy).add_edge(START, "plus").compile()
    assert await app.ainvoke({"n": 1}, {"callbacks": [Tracer()]}) == {"n": 2}
    assert recorded == [({}, {"hidden": True})]


async def test_what_a_node_calls_keeps_its_idle_timeout_away() -> None:
    """Events below a node are signs of life, whether or not somebody else listens."""

    async def calls(state: State) -> dict[str, Any]:
        for _ in range(8):
            await asyncio.sleep(0.03)
            await RunnableLambda(plus).ainvoke(state)
        return {"n": 1}

    async def sleeps(state: State) -> None:
        await asyncio.sleep(5)

    for callbacks in ([], [AsyncCallbackHandler()]):
        builder = StateGraph(State).add_node("calls", calls, timeout=TimeoutPolicy(idle_timeout=0.15))
        assert await builder.add_edge(START, "calls").compile().ainvoke({"n": 0}, {"callbacks": callbacks}) == {"n": 1}
        builder = StateGraph(State).add_node("sleeps", sleeps, timeout=TimeoutPolicy(idle_timeout=0.05))
        with pytest.raises(NodeTimeoutError):
            await builder.add_edge(START, "sleeps").compile().ainvoke({"n": 0}, {"callbacks": callbacks})


def test_a_handler_by_itself() -> None:
    heard: list[Any] = []

    class Handler(BaseCallbackHandler):
        def on_chain_start(self, *args: Any, name: Any = None, **kwargs: Any) -> None:
            heard.append(name)

    assert graph(plus).invoke({"n": 1}, {"callbacks": Handler()}) == {"n": 2}
    assert heard == ["LangGraph", "plus"]


class Life(GraphCallbackHandler):  # type: ignore[misc]
    def __init__(self) -> None:
        self.events: list[Any] = []

    def on_interrupt(self, event: GraphInterruptEvent) -> None:
        self.events.append(("interrupt", event.status, event.checkpoint_ns, [i.value for i in event.interrupts]))

    def on_resume(self, event: GraphResumeEvent) -> None:
        self.events.append(("resume", event.status, [part.partition(":")[0] for part in event.checkpoint_ns]))


@pytest.mark.parametrize("driver", ["sync", "async"])
async def test_the_life_of_a_graph(driver: str) -> None:
    async def run(app: Any, input: Any) -> list[Any]:
        life = Life()
        config = {**THREAD, "callbacks": [life]}
        await app.ainvoke(input, config) if driver == "async" else app.invoke(input, config)
        return life.events

    nested = StateGraph(State).add_node("sub", graph(ask)).add_edge(START, "sub").compile(checkpointer=InMemorySaver())
    assert await run(nested, {"n": 1}) == [("interrupt", "pending", (), ["how many?"])]
    assert await run(nested, Command(resume=2)) == [("resume", "pending", []), ("resume", "pending", ["sub"])]
    assert await run(nested, {"n": 1}) == [("interrupt", "pending", (), ["how many?"])]

    def end(state: State) -> None: ...

    before = graph(plus, end, checkpointer=InMemorySaver(), interrupt_before=["end"])
    assert await run(before, {"n": 1}) == [("interrupt", "interrupt_before", (), [])]
    assert await run(before, None) == [("resume", "pending", [])]
    after = graph(plus, end, checkpointer=InMemorySaver(), interrupt_after=["plus"])
    assert await run(after, {"n": 1}) == [("interrupt", "interrupt_after", (), [])]


def test_life_and_trace_tell_one_story() -> None:
    """The events name the run that the callbacks know, and come between its start and its end."""
    heard: list[Any] = []

    class Both(Life):
        run_inline = True

        def on_chain_start(self, *args: Any, run_id: Any, parent_run_id: Any = None, **kwargs: Any) -> None:
            if parent_run_id is None:
                heard.append(("start", run_id))

        def on_chain_end(self, *args: Any, run_id: Any, parent_run_id: Any = None, **kwargs: Any) -> None:
            if parent_run_id is None:
                heard.append(("end", run_id))

        def on_interrupt(self, event: GraphInterruptEvent) -> None:
            heard.append(("interrupt", event.run_id))

    graph(ask, checkpointer=InMemorySaver()).invoke({"n": 1}, {**THREAD, "callbacks": [Both()]})
    assert [what for what, _ in heard] == ["start", "interrupt", "end"] and len({run for _, run in heard}) == 1


def test_a_life_cycle_handler_may_stop_the_run() -> None:
    class Strict(Life):
        raise_error = True

        def on_interrupt(self, event: GraphInterruptEvent) -> None:
            raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        graph(ask, checkpointer=InMemorySaver()).invoke({"n": 1}, {**THREAD, "callbacks": [Strict()]})


def test_a_stream_is_read_while_nodes_run() -> None:
    """Messages arrive before their node has ended."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    model = GenericFakeChatModel(messages=iter([AIMessage("one two")]))
    order: list[str] = []

    def talks(state: State) -> dict[str, Any]:
        for chunk in model.stream("x"):
            order.append(f"made {chunk.content}")
        order.append("end of node")
        return {"n": 1}

    app = StateGraph(State).add_node("talks", talks).add_edge(START, "talks").add_edge("talks", END).compile()
    texts = [message.content for message, _ in app.stream({"n": 0}, stream_mode="messages")]
    assert texts == ["one", " ", "two"] and order[-1] == "end of node"
