"""Transformers see every event in order, are told of the end whatever others make of it, and know where they run."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from surestep.errors import GraphDrained, GraphInterrupt
from surestep.stream import LifecycleTransformer, StreamChannel, StreamTransformer, SubgraphTransformer
from surestep.stream._mux import StreamMux
from surestep.stream.run_stream import AsyncGraphRunStream, GraphRunStream
from surestep.stream.transformers import MessagesTransformer, ValuesTransformer


def event(method: str, data: Any = None, *ns: str) -> Any:
    return {"type": "event", "method": method, "params": {"namespace": list(ns), "timestamp": 0, "data": data}}


def start(ns: str, **more: Any) -> Any:
    return event("tasks", {"id": "t", "name": "n", "input": None, "triggers": [], **more}, *filter(None, [ns]))


def result(task: str, **more: Any) -> Any:
    return event("tasks", {"id": task, "name": "n", "error": None, "interrupts": [], "result": {}, **more})


class Tap(StreamTransformer):
    """Notes what it hears of."""

    def __init__(self, scope: tuple[str, ...] = (), *, key: str = "tap", keeps: bool = True) -> None:
        super().__init__(scope)
        self.heard: list[Any] = []
        self.key, self.keeps, self.channel = key, keeps, StreamChannel[Any]()

    def init(self) -> dict[str, Any]:
        return {self.key: self.channel}

    def process(self, event: Any) -> bool:
        self.heard.append(event["method"])
        return self.keeps

    def finalize(self) -> None:
        self.heard.append("end")

    def fail(self, err: BaseException) -> None:
        self.heard.append(err)


class Early(Tap):
    before_builtins = True


class Broken(Tap):
    def finalize(self) -> None:
        raise RuntimeError("cannot end")

    def fail(self, err: BaseException) -> None:
        raise RuntimeError("cannot fail")


def test_what_one_keeps_out_of_the_log_all_see() -> None:
    taps = [Tap(key="a"), Tap(key="b", keeps=False), Tap(key="c")]
    mux = StreamMux(taps)
    log = iter(mux._events)
    mux.push(event("values"))
    mux.close()
    assert list(log) == []
    assert [tap.heard for tap in taps] == [["values", "end"]] * 3


def test_some_see_events_before_the_others() -> None:
    mux = StreamMux([Tap(key="a"), Early(key="b"), Tap(key="c"), Early(key="d")])
    assert [tap.key for tap in mux._transformers] == ["b", "d", "a", "c"]  # type: ignore[attr-defined]


def test_all_are_told_of_the_end_and_the_first_failure_is_raised() -> None:
    tap = Tap(key="b")
    mux = StreamMux([Broken(key="a"), tap])
    with pytest.raises(RuntimeError, match="cannot end"):
        mux.close()
    assert tap.heard == ["end"] and mux.closed and tap.channel._closed
    mux.close()
    assert tap.heard == ["end"], "once"


def test_a_failure_of_the_run_outweighs_those_of_transformers() -> None:
    tap, error = Tap(key="b"), ValueError("the run's")
    mux = StreamMux([Broken(key="a"), tap])
    log = iter(mux._events)
    mux.fail(error)
    with pytest.raises(ValueError, match="the run's"):
        next(log)
    assert tap.heard == [error]


def test_names_of_projections_are_taken_once() -> None:
    with pytest.raises(ValueError, match="conflict: 'tap' is one of Tap already"):
        StreamMux([Tap(), Early()])


def test_projections_are_a_dict() -> None:
    class Wrong(Tap):
        def init(self) -> Any:
            return [1]

    with pytest.raises(TypeError, match=r"Wrong.init\(\) must return a dict of projections, not list"):
        StreamMux([Wrong()])


def test_events_are_numbered_in_the_order_of_the_log() -> None:
    class Says(Tap):
        def init(self) -> dict[str, Any]:
            self.channel = StreamChannel("said")
            return {"said": self.channel}

        def process(self, event: Any) -> bool:
            self.channel.push(event["method"])
            return True

    mux = StreamMux([Says()])
    log = iter(mux._events)
    mux.push(event("values"))
    mux.push(event("updates"))
    mux.close()
    numbered = [(event["seq"], event["method"]) for event in log]
    assert numbered == [(1, "custom:said"), (2, "values"), (3, "custom:said"), (4, "updates")]


@pytest.mark.parametrize("override", ["aprocess", "afinalize", "afail", "requires_async"])
def test_an_async_transformer_needs_an_async_run(override: str) -> None:
    async def method(self: Any, *args: Any) -> Any:
        return True

    kind = type("Waits", (Tap,), {override: True if override == "requires_async" else method})
    with pytest.raises(RuntimeError, match="Waits requires an async run"):
        StreamMux([kind()])
    StreamMux([kind()], is_async=True)
    StreamMux([type("Both", (kind,), {"supports_sync": True, "requires_async": False})()])


def test_scheduled_work_ends_before_the_transformer_is_told(caplog: pytest.LogCaptureFixture) -> None:
    class Schedules(Tap):
        requires_async = True

        def process(self, event: Any) -> bool:
            self.schedule(self.work(event["params"]["data"]))
            return True

        async def work(self, data: Any) -> None:
            await asyncio.sleep(0)
            if data == "bad":
                raise ValueError("logged")
            self.heard.append(data)

    async def play() -> list[Any]:
        tap = Schedules()
        mux = StreamMux([tap], is_async=True)
        for data in ("one", "bad", "two"):
            await mux.apush(event("values", data))
        await mux.aclose()
        return tap.heard

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(play()) == ["one", "two", "end"]
    assert "Scheduled work of Schedules failed" in caplog.text


@pytest.mark.parametrize("counts", [True, False])
def test_a_failure_of_scheduled_work_may_be_the_runs(counts: bool) -> None:
    class Schedules(Tap):
        requires_async = True

        def process(self, event: Any) -> bool:
            self.schedule(self.work(), on_error="raise" if counts else "log")
            return True

        async def work(self) -> None:
            raise ValueError("strict")

    async def parts() -> Any:
        yield {"type": "values", "ns": (), "data": {"x": 1}}

    async def play() -> Any:
        mux = StreamMux(factories=[Schedules], is_async=True)
        return await AsyncGraphRunStream(parts(), mux).output()

    if counts:
        with pytest.raises(ValueError, match="strict"):
            asyncio.run(play())
    else:
        assert asyncio.run(play()) == {"x": 1}


def test_scheduled_work_is_cancelled_with_the_run() -> None:
    class Schedules(Tap):
        requires_async = True

        def process(self, event: Any) -> bool:
            self.schedule(self.work())
            return True

        async def work(self) -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.heard.append("cancelled")
                raise

    async def play() -> list[Any]:
        tap, error = Schedules(), ValueError()
        mux = StreamMux([tap], is_async=True)
        await mux.apush(event("values"))
        await asyncio.sleep(0)
        await mux.afail(error)
        return [type(item) if item is error else item for item in tap.heard]

    assert asyncio.run(play()) == ["cancelled", ValueError]


def test_work_is_scheduled_on_a_loop() -> None:
    async def nothing() -> None: ...

    work = nothing()
    with pytest.raises(RuntimeError, match="requires a running event loop"):
        Tap().schedule(work)
    work.close()


# graphs inside

ENDS: list[Any] = [
    ({}, ("completed", None)),
    ({"error": "boom"}, ("failed", "boom")),
    ({"error": ValueError("boom")}, ("failed", "boom")),
    ({"interrupts": [1], "error": "boom"}, ("interrupted", None)),
]


def followed() -> tuple[StreamMux, Any, Any]:
    mux = StreamMux(factories=[ValuesTransformer, MessagesTransformer, LifecycleTransformer, SubgraphTransformer])
    life, handles = iter(mux.extensions["lifecycle"]), iter(mux.extensions["subgraphs"])
    mux.push(start("agent:1"))
    return mux, life, next(handles)


@pytest.mark.parametrize(("said", "expected"), ENDS)
def test_a_graph_ends_with_the_task_it_runs_in(said: Any, expected: Any) -> None:
    mux, life, handle = followed()
    mux.push(result("another"))
    assert handle.status == "started"
    mux.push(result("1", **said))
    assert (handle.status, handle.error) == expected and handle._mux.closed
    started, ended = next(life), next(life)
    assert (started["event"], started["graph_name"], started["trigger_call_id"]) == ("started", "agent", "1")
    assert (ended["event"], ended.get("error")) == expected and ended["namespace"] == ["agent:1"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, "completed"),
        (GraphInterrupt(), "interrupted"),
        (GraphDrained("x"), "drained"),
        (ValueError("x"), "failed"),
    ],
)
def test_a_graph_that_is_open_ends_with_the_run(error: Any, status: str) -> None:
    mux, life, handle = followed()
    mux.close() if error is None else mux.fail(error)
    assert handle.status == status
    assert [next(life)["event"], next(life)["event"]] == ["started", status]


def test_a_graph_sees_its_own_events_only() -> None:
    mux, _, handle = followed()
    values = iter(handle.values)
    for ns in ((), ("agent:1",), ("agent:2",), ("agent:1", "deeper:3")):
        mux.push(event("values", ns, *ns))
    mux.close()
    assert list(values) == [("agent:1",)]
    assert mux.values == () and handle.output == ("agent:1",)


def test_an_agent_is_known_by_its_name_and_the_call_it_answers() -> None:
    mux = StreamMux([LifecycleTransformer()])
    life = iter(mux.extensions["lifecycle"])
    call = {"__type": "tool_call_with_context", "tool_call": {"name": "ask", "args": {}, "id": "call"}}
    mux.push(start("", id="7", input=call, metadata={"lc_agent_name": "boss"}))
    mux.push(start("tools:7", metadata={"lc_agent_name": "clerk"}))
    assert next(life)["graph_name"] == "clerk"
    mux.push(start("tools:8", metadata={"lc_agent_name": None}))
    assert next(life)["graph_name"] == "tools"


def test_only_factories_make_transformers_for_graphs_inside() -> None:
    with pytest.raises(RuntimeError, match="factories"):
        StreamMux([SubgraphTransformer()])._make_child(("x",))


def test_a_failure_of_a_transformer_inside_is_the_runs() -> None:
    class Bad(Tap):
        def process(self, event: Any) -> bool:
            if self.scope and event["method"] == "values":
                raise ValueError("inside")
            return True

    parts = [
        {"type": "tasks", "ns": ("agent:1",), "data": start("x")["params"]["data"]},
        {"type": "values", "ns": ("agent:1",), "data": 1},
    ]
    run = GraphRunStream(iter(parts), StreamMux(factories=[SubgraphTransformer, Bad]))
    with pytest.raises(ValueError, match="inside"):
        _ = run.output


def test_models_are_told_apart_by_their_run() -> None:
    mux = StreamMux([MessagesTransformer()])
    streams = iter(mux.extensions["messages"])

    def say(run: str, kind: str, **more: Any) -> None:
        mux.push(event("messages", ({"event": kind, **more}, {"run_id": run, "langgraph_node": "n"})))

    text = {"index": 0, "content_block": {"type": "text", "text": ""}}
    for run, role in (("a", "ai"), ("b", "ai"), ("tool", "tool")):
        say(run, "message-start", role=role, message_id=run)
    for run, words in (("a", "one"), ("b", "two"), ("tool", "no")):
        say(run, "content-block-start", **text)
        say(run, "content-block-delta", index=0, delta={"type": "text-delta", "text": words})
        say(run, "content-block-finish", index=0, content_block={"type": "text", "text": words})
        say(run, "message-finish", reason="stop")
    mux.close()
    assert [(stream.message_id, stream.node, stream.output.text) for stream in streams] == [
        ("a", "n", "one"),
        ("b", "n", "two"),
    ]
