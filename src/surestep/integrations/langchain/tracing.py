"""Runs of graphs and nodes, told to LangChain's callbacks.

A graph's run is a chain run; under it one for each attempt at a task, under that whatever the node calls, and one for
each path function of its conditional edges. Where in a node something ran is told by tags: `seq:step:k` counts the
node's function, its writers and its path functions, in the order in which LangGraph has them.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks.manager import AsyncCallbackManager, CallbackManager
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnableSequence
from langchain_core.runnables.config import _set_config_context

from surestep._drive.body import Body, play, redirected
from surestep._drive.call import Call, ParallelCall, SequenceCall, _afold, _fold
from surestep.errors import ParentCommand
from surestep.integrations.langchain.messages import StreamMessages, push
from surestep.integrations.langchain.nodes import RunnableCall
from surestep.integrations.langchain.quiet import INTEGRATION, SignsOfLife
from surestep.integrations.langchain.streaming import StreamedCall, is_streamed, tap
from surestep.integrations.langchain.tools import StreamTools
from surestep.integrations.langchain.trace_policy import Recorder
from surestep.integrations.watch import Told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surestep._core.task import Task
    from surestep._drive.context import TaskContext
    from surestep.pregel._prepare import Prepared
    from surestep.pregel.main import Pregel

_FOR_LANGSMITH = "langsmith_inheritable_metadata" in inspect.signature(CallbackManager.configure).parameters
_SECRET = ("key", "token", "secret", "password", "auth")


def graph_run(graph: Pregel[Any, Any, Any, Any], prepared: Prepared, is_async: bool) -> GraphRun | None:
    """The run of a graph as its listeners are to hear of it; None if there are none."""
    env, config = prepared.env, prepared.env.config
    if not config.get("callbacks") and prepared.modes.isdisjoint(("messages", "tools")):
        if not CallbackManager.configure().handlers:  # nobody in the process listens to everything
            return None
    callbacks = config.get("callbacks")
    if not isinstance(callbacks, list | None) and not hasattr(callbacks, "handlers"):
        callbacks = [callbacks]  # a handler by itself
    manager = configured(config, is_async, callbacks, extra=INTEGRATION)
    if env.parent is None:
        _leave_out_foreign(manager)
    streams: list[Any] = []
    if "messages" in prepared.modes:
        streams.append(_messages(prepared, manager)(env.put_part, prepared.subgraphs, env.path))
    if "tools" in prepared.modes:
        streams.append(StreamTools(env.put_part, prepared.subgraphs, env.path))
    if not manager.handlers and not streams:
        return None
    return GraphRun(manager, config.get("run_name") or graph.get_name(), config, streams, is_async)


def _messages(prepared: Prepared, manager: Any) -> type[StreamMessages]:
    """The handler that shows messages. Models listen to the one nearest to them: in events for an event stream, else
    token by token, also where there is an event stream further out.
    """
    from surestep.integrations.langchain.events import StreamMessageEvents

    if prepared.protocol:
        return StreamMessageEvents
    for name in ("handlers", "inheritable_handlers"):
        found = getattr(manager, name)
        setattr(manager, name, [handler for handler in found if not isinstance(handler, StreamMessageEvents)])
    return StreamMessages


def configured(
    config: Mapping[str, Any], is_async: bool, callbacks: Any, extra: Mapping[str, Any] | None = None
) -> Any:
    """A callback manager as LangChain makes it for a config; `extra`: metadata for where the config has none."""
    kind = AsyncCallbackManager if is_async else CallbackManager
    metadata = {**(config.get("metadata") or {})}
    for key, value in (extra or {}).items():
        if key not in metadata and key not in getattr(callbacks, "metadata", ()):
            metadata[key] = value
    options: dict[str, Any] = {}
    if _FOR_LANGSMITH:
        options["langsmith_inheritable_metadata"] = _tracer_metadata(config, metadata)
    return kind.configure(
        inheritable_callbacks=callbacks,
        inheritable_tags=list(config.get("tags") or ()),
        inheritable_metadata=metadata,
        **options,
    )


def _tracer_metadata(config: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    """The plain values of `configurable`, for tracers only; nothing that looks like a secret."""
    found = {
        key: value
        for key, value in (config.get("configurable") or {}).items()
        if isinstance(value, str | int | float | bool)
        and not key.startswith(("__", "checkpoint_"))
        and key not in metadata
        and not any(word in key.lower() for word in _SECRET)
    }
    return found or None


def _leave_out_foreign(manager: Any) -> None:
    """A graph on a thread of its own shows nothing to a stream around it that does not want nested graphs."""

    def stays(handler: Any) -> bool:
        return not isinstance(handler, StreamMessages | StreamTools) or handler.subgraphs

    manager.handlers = [handler for handler in manager.handlers if stays(handler)]
    manager.inheritable_handlers = [handler for handler in manager.inheritable_handlers if stays(handler)]


class GraphRun:
    """One run of a graph, as its listeners hear of it."""

    __slots__ = ("_heard", "config", "is_async", "manager", "name", "run", "streams")

    def __init__(self, manager: Any, name: str, config: Mapping[str, Any], streams: list[Any], is_async: bool) -> None:
        self.manager = manager
        self.name = name
        self.config = config
        self.streams = streams
        self.is_async = is_async
        self.run: Any = None
        self._heard: dict[Task, Any] = {}  # what running nodes hand on, for the tasks that they call

    def start(self, input: Any) -> Told:
        """Tell that the run starts."""
        run_id = self.config.get("run_id")
        return Told(self.manager.on_chain_start, None, input, name=self.name, run_id=run_id)

    def started(self, run: Any) -> None:
        """It has been told."""
        self.run = run
        run.inheritable_handlers = [*run.inheritable_handlers, *self.streams]

    def end(self, output: Any) -> Told:
        """Tell that the run ended well."""
        return Told(self.run.on_chain_end, output)

    def fail(self, error: BaseException) -> Told:
        """Tell that the run ended with an error."""
        return Told(self.run.on_chain_error, error)

    def body(self, context: TaskContext) -> Body:
        """A node's body, told as a run of its own."""
        try:
            yield from self._told(context)
        except ParentCommand as parent:
            yield from redirected(parent, context)
        finally:
            self._heard.pop(context.task, None)

    def _told(self, context: TaskContext) -> Body:
        spec: Any = context.task.node.spec
        node = NodeRun(self, context)
        if spec.bound is None and all(writer.path is None for writer in spec.writers):
            self.hand_on(context, node.config, node.manager)
            yield from play(context)
            return
        yield from node.start()
        try:
            output = yield from node.play()
        except GeneratorExit:
            raise
        except BaseException as error:
            yield node.tell(node.run.on_chain_error, error)
            raise
        if self.is_async:
            yield from tap(node.run, output)
        yield from node.record.end(node.run, output)

    def manager_for(self, task: Task) -> Any:
        """The callbacks of a task: below the graph's run, or below the task that called it."""
        if task.call is not None and task.call.parent in self._heard:
            return self._heard[task.call.parent]
        return self.run.get_child(f"graph:step:{task.step}")

    def hand_on(self, context: TaskContext, config: Mapping[str, Any], callbacks: Any) -> None:
        """What the node calls from now on is told below `callbacks`."""
        if context.progressed is not None:
            callbacks.add_handler(SignsOfLife(context))
        self._heard[context.task] = callbacks
        context.hand_on({**config, "callbacks": callbacks})
        _set_config_context(context.config)  # type: ignore[arg-type]

    def push_message(self, context: TaskContext, message: Any) -> None:
        """A node pushes a message."""
        push(context, message)


class NodeRun:
    """One attempt at a task, as its listeners hear of it."""

    __slots__ = ("config", "context", "graph", "manager", "record", "run")

    def __init__(self, graph: GraphRun, context: TaskContext) -> None:
        self.graph = graph
        self.context = context
        self.config = context.env.task_config(context)
        self.manager = configured(self.config, graph.is_async, graph.manager_for(context.task))
        spec: Any = context.task.node.spec
        self.record = Recorder(spec.trace_policy)
        self.run: Any = None

    @staticmethod
    def tell(method: Any, *args: Any, **kwargs: Any) -> Any:
        """A step of a body that tells something."""
        return Told(method, *args, **kwargs), None

    def start(self) -> Generator[Any, Any, None]:
        task = self.context.task
        self.run = yield from self.record.start(self.manager, _recorded_input(task), task.name)

    def play(self) -> Body:
        """The node, each piece of user code under callbacks of its own."""
        spec: Any = self.context.task.node.spec
        body = play(self.context)
        positions = _positions(spec)
        try:
            call, value = next(body)
            while True:
                try:
                    if call is spec.bound:
                        result = yield from self._function(call, value, positions)
                    else:
                        result = yield from self._piece(call, value, next(positions), traced=True)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    call, value = body.throw(error)
                else:
                    call, value = body.send(result)
        except StopIteration as end:
            return end.value

    def _function(self, call: Call, value: Any, positions: Iterator[int]) -> Body:
        pieces = pieces_of(call)
        if self.graph.is_async and len(pieces) > 1 and all(type(piece) is RunnableCall for piece in pieces):
            if is_streamed(self.run):
                configs = [self._config_at(next(positions)) for _ in pieces]
                return (yield StreamedCall([piece.target for piece in pieces], configs), value)
        for piece in pieces:
            value = yield from self._piece(piece, value, next(positions), traced=piece.traced)
        return value

    def _config_at(self, position: int) -> dict[str, Any]:
        self.graph.hand_on(self.context, self.config, self.run.get_child(f"seq:step:{position}"))
        return self.context.config

    def _piece(self, call: Call, value: Any, position: int, traced: bool) -> Body:
        child = self.run.get_child(f"seq:step:{position}")
        self.graph.hand_on(self.context, self.config, child)
        if type(call) is RunnableCall or isinstance(call, ParallelCall) or _is_generator(call):
            runnable = as_runnable(call, self.context)
            if self.graph.is_async and is_streamed(self.run):
                return (yield StreamedCall([runnable], [self.context.config]), value)
            return (yield RunnableCall(runnable, call.name), value)
        if traced and (call.func is not None or call.afunc is not None):
            return (yield from self._own_run(call, value, child))
        return (yield call, value)

    def _own_run(self, call: Call, value: Any, callbacks: Any) -> Body:
        """A function that has a run of its own below the node's."""
        manager = configured(self.config, self.graph.is_async, callbacks)
        run = yield self.tell(manager.on_chain_start, None, value, name=_shown_name(call))
        self.graph.hand_on(self.context, self.config, run.get_child())
        try:
            result = yield call, value
        except GeneratorExit:
            raise
        except BaseException as error:
            yield self.tell(run.on_chain_error, error)
            raise
        yield self.tell(run.on_chain_end, result)
        return result


def pieces_of(call: Call) -> list[Call]:
    """The pieces of a node's function that run one after the other."""
    if isinstance(call, SequenceCall):
        return [piece for step in call.steps for piece in pieces_of(step)]
    if type(call) is RunnableCall and isinstance(call.target, RunnableSequence):
        return [RunnableCall(step, None) for step in call.target.steps]
    return [call]


def _positions(spec: Any) -> Iterator[int]:
    """Positions of a node's pieces: its function's, then (after writers, which nobody hears of) its path functions'."""
    count = len(pieces_of(spec.bound)) if spec.bound is not None else 0
    yield from range(1, count + 1)
    for writer in spec.writers:
        count += 1 + len(getattr(writer, "edges", ()))
        if writer.path is not None:
            yield count


def as_runnable(call: Call, context: TaskContext) -> Any:
    """A piece of user code as a Runnable, which tells of itself."""
    if isinstance(call, ParallelCall):
        return RunnableParallel({name: as_runnable(step, context) for name, step in call.steps.items()})
    if type(call) is RunnableCall:
        return call.target

    def run(input: Any) -> Any:
        return call.invoke(input, context)

    async def arun(input: Any) -> Any:
        return await call.ainvoke(input, context)

    async def chunks(input: Any) -> AsyncIterator[Any]:
        async for chunk in call.target(input, **{name: get(context) for name, get in call.injects}):
            yield chunk

    name = "RunnableLambda" if call.name == "<lambda>" else call.name
    if isinstance(call.afunc, partial) and call.afunc.func is _afold:
        return RunnableLambda(chunks, name=name)
    return RunnableLambda(run, arun, name=name)


def _is_generator(call: Call) -> bool:
    return any(isinstance(func, partial) and func.func in (_fold, _afold) for func in (call.func, call.afunc))


def _shown_name(call: Call) -> str:
    return "RunnableCallable" if call.name == "<lambda>" else call.name


def _recorded_input(task: Task) -> Any:
    """What a task got; of a called one its arguments by name."""
    if task.call is None:
        return task.input
    args, kwargs = task.input
    spec: Any = task.node.spec
    try:
        signature = inspect.signature(spec.bound.target)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return dict(kwargs)
    filled = {name for name, _ in spec.bound.injects} - bound.arguments.keys()
    bound.apply_defaults()
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        elif name not in filled:
            named[name] = value
    return named
