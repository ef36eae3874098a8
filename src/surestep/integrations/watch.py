"""Telling those who listen to a run: LangChain's callbacks (tracers among them), and GraphCallbackHandlers.

A run that nobody listens to never comes here. Whatever is to be told is a `Told`; the sequence of a run's events is
written once, as a generator (`Watch._script`), and played by a driver's sync or async loop.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from surestep._core.events import Part
from surestep._core.run import Outcome

if TYPE_CHECKING:
    from surestep.integrations.langchain.tracing import GraphRun
    from surestep.pregel._prepare import Prepared
    from surestep.pregel.main import Pregel

_STREAMED: Final = ("messages", "tools")  # modes that live on callbacks
_RELAY: Final[Any] = object()  # in a script: hand on parts until there is something to be told, or the end
_TRACERS: Final = ("langchain_core.tracers.context", "langsmith.run_helpers")  # nothing is traced without one of them
_SWITCHES: Final = (
    *("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"),
    "LANGCHAIN_HANDLER",
)


class Told:
    """A call that tells somebody something. A body of a node may yield it like any other call."""

    __slots__ = ("args", "kwargs", "method")

    def __init__(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.method = method
        self.args = args
        self.kwargs = kwargs

    def invoke(self, input: Any, task: Any) -> Any:
        """Make the call."""
        return self.method(*self.args, **self.kwargs)

    async def ainvoke(self, input: Any, task: Any) -> Any:
        """Make the call and wait for what it does."""
        return await self.method(*self.args, **self.kwargs)


def watch(graph: Pregel[Any, Any, Any, Any], prepared: Prepared, is_async: bool) -> Watch | None:
    """Who listens to this run; None if nobody does."""
    config = prepared.env.config
    tracing = None
    if not prepared.modes.isdisjoint(_STREAMED) or _may_trace(config.get("callbacks")):
        try:
            from surestep.integrations.langchain.tracing import graph_run
        except ImportError as error:
            raise ImportError(
                f"Streaming {' and '.join(sorted(prepared.modes.intersection(_STREAMED)))} needs LangChain, whose "
                "models and tools it shows: pip install langchain-core"
            ) from error
        tracing = prepared.env.tracer = graph_run(graph, prepared, is_async)
    if tracing is None and "lifecycle" not in prepared.modes:
        return None
    return Watch(graph, prepared, tracing, is_async)


def _may_trace(callbacks: Any) -> bool:
    """Whether LangChain is to be asked who listens. Asking is not cheap: the first time it imports LangSmith."""
    if callbacks and getattr(callbacks, "handlers", True):
        return "langchain_core.callbacks.base" in sys.modules  # else they are life-cycle handlers of ours
    if "langchain_core.callbacks.manager" not in sys.modules:
        return False
    if any(name in sys.modules for name in _TRACERS):
        return True
    if any(name in os.environ for name in _SWITCHES):
        return True
    debug = getattr(sys.modules.get("langchain_core.globals"), "get_debug", None)
    return debug is not None and bool(debug())


class Watch:
    """One run and those who listen to it."""

    __slots__ = ("graph", "handlers", "is_async", "prepared", "tracing")

    def __init__(
        self, graph: Pregel[Any, Any, Any, Any], prepared: Prepared, tracing: GraphRun | None, is_async: bool
    ) -> None:
        self.graph = graph
        self.prepared = prepared
        self.tracing = tracing
        self.is_async = is_async
        self.handlers: Any = None

    def _script(self) -> Generator[Any, Any, Outcome]:
        """The events of a run, in order: tellings, and between them the run itself."""
        tracing, env, request = self.tracing, self.prepared.env, self.prepared.request
        if tracing is not None:
            tracing.started((yield tracing.start(request.input)))
        try:
            outcome = yield _RELAY
            while type(outcome) is Part:
                yield self._resumed(outcome.payload)
                outcome = yield _RELAY
            if outcome.status == "interrupted" and env.parent is None and "lifecycle" in self.prepared.modes:
                yield self._paused(outcome)
            self.graph._conclude(self.prepared, outcome)
        except BaseException as error:
            if tracing is not None:
                yield tracing.fail(error)
            raise
        if tracing is not None:
            yield tracing.end(outcome.output)
        return cast("Outcome", outcome)

    def sync(self, parts: Iterator[Part]) -> Iterator[Part]:
        """The parts of the run, as they come; returns how it ended."""
        script = self._script()
        step: Any = next(script)
        while True:
            try:
                result = (yield from _relay(parts)) if step is _RELAY else step.invoke(None, None)
            except BaseException as error:
                parts.close()  # type: ignore[attr-defined]
                step = script.throw(error)
                continue
            try:
                step = script.send(result)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    async def async_(self, parts: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
        """The parts of the run, as they come, and how it ended as the last."""
        script = self._script()
        step = next(script)
        result: Any = None
        try:
            while True:
                try:
                    if step is _RELAY:
                        async for result in parts:
                            if type(result) is Outcome or result.mode == "lifecycle":
                                break
                            yield result
                    else:
                        result = await step.ainvoke(None, None)
                except BaseException as error:
                    await parts.aclose()  # type: ignore[attr-defined]
                    step = script.throw(error)
                else:
                    step = script.send(result)
        except StopIteration as end:
            yield end.value
        finally:
            await parts.aclose()  # type: ignore[attr-defined]

    # the life of the graph

    def _resumed(self, checkpoint_id: str) -> Told:
        from surestep.callbacks import GraphResumeEvent

        event = GraphResumeEvent(self._run_id(), "pending", checkpoint_id, self.prepared.env.path)
        return Told(self._lifecycle().on_resume, event)

    def _paused(self, outcome: Outcome) -> Told:
        from surestep.callbacks import GraphInterruptEvent

        run = self.prepared.env.run
        return Told(
            self._lifecycle().on_interrupt,
            GraphInterruptEvent(self._run_id(), cast("Any", run.paused_at), run.head.anchor.id, (), outcome.questions),
        )

    def _lifecycle(self) -> Any:
        if self.handlers is None:
            from surestep import callbacks

            config: Any = self.prepared.env.config
            if self.is_async:
                self.handlers = callbacks.get_async_graph_callback_manager_for_config(config)
            else:
                self.handlers = callbacks.get_sync_graph_callback_manager_for_config(config)
        return self.handlers

    def _run_id(self) -> Any:
        return self.tracing.run.run_id if self.tracing is not None else self.prepared.env.config.get("run_id")


def _relay(parts: Iterator[Part]) -> Generator[Part, None, Any]:
    """Hand on parts; returns one that is not for the stream, or how the run ended."""
    while True:
        try:
            part = next(parts)
        except StopIteration as end:
            return end.value
        if part.mode == "lifecycle":
            return part
        yield part
