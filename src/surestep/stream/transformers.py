"""The projections that every run has (values, messages, lifecycle, subgraphs), and those that one may ask for.

Rules:
1. A projection shows its own graph. Only `lifecycle` looks at graphs inside, at any depth.
2. A graph inside has started when the first of its tasks has, and ends with the task that it runs in.
3. `tasks` events are what lifecycle and subgraphs are made from; they are not in the log of raw events beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NotRequired, TypedDict, cast

from surestep.errors import GraphBubbleUp, GraphDrained
from surestep.stream._mux import Script, StreamMux, aplay, play
from surestep.stream._types import ProtocolEvent, StreamTransformer
from surestep.stream.run_stream import AsyncSubgraphRunStream, SubgraphRunStream
from surestep.stream.stream_channel import StreamChannel

__all__ = (
    "CheckpointsTransformer",
    "CustomTransformer",
    "DebugTransformer",
    "LifecyclePayload",
    "LifecycleTransformer",
    "MessagesTransformer",
    "SubgraphStatus",
    "SubgraphTransformer",
    "TasksTransformer",
    "UpdatesTransformer",
    "ValuesTransformer",
)

SubgraphStatus = Literal["started", "completed", "failed", "interrupted", "drained"]
Path = tuple[str, ...]


class LifecyclePayload(TypedDict, total=False):
    """That a graph inside started or ended. With "started": `graph_name`, the agent's, else its node's;
    `trigger_call_id`, the id of the task it runs in; `cause`, the tool call that it answers. With "failed": `error`."""

    event: SubgraphStatus
    namespace: list[str]
    graph_name: NotRequired[str]
    trigger_call_id: NotRequired[str]
    cause: NotRequired[dict[str, Any]]
    error: NotRequired[str]


# modes as they are


class _ModeTransformer(StreamTransformer):
    """What one stream mode shows of the graph, as it is."""

    _native = True
    mode: ClassVar[str]

    def __init__(self, scope: Path = ()) -> None:
        super().__init__(scope)
        self._log: StreamChannel[Any] = StreamChannel()

    def init(self) -> dict[str, Any]:
        """The channel, by the name of the mode."""
        return {self.mode: self._log}

    def process(self, event: ProtocolEvent) -> bool:
        """Take the event's data, if it is of this mode and graph."""
        if event["method"] == self.mode and tuple(event["params"]["namespace"]) == self.scope:
            self._log.push(event["params"]["data"])
        return True


class ValuesTransformer(_ModeTransformer):
    """`values`: the state after each step."""

    mode = "values"
    required_stream_modes = ("values",)

    def __init__(self, scope: Path = ()) -> None:
        super().__init__(scope)
        self._interrupts: list[Any] = []

    @property
    def _interrupted(self) -> bool:
        return bool(self._interrupts)

    def process(self, event: ProtocolEvent) -> bool:
        """Note the questions too."""
        if event["method"] == self.mode and tuple(event["params"]["namespace"]) == self.scope:
            self._interrupts += event["params"].get("interrupts", ())
        return super().process(event)


class UpdatesTransformer(_ModeTransformer):
    """`updates`: what each node wrote."""

    mode = "updates"
    required_stream_modes = ("updates",)


class CustomTransformer(_ModeTransformer):
    """`custom`: what nodes write to the stream."""

    mode = "custom"
    required_stream_modes = ("custom",)


class CheckpointsTransformer(_ModeTransformer):
    """`checkpoints`: each checkpoint as it is made."""

    mode = "checkpoints"
    required_stream_modes = ("checkpoints",)


class DebugTransformer(_ModeTransformer):
    """`debug`: checkpoints and tasks with their step and time."""

    mode = "debug"
    required_stream_modes = ("debug",)


class TasksTransformer(_ModeTransformer):
    """`tasks`: the start and the end of each task."""

    mode = "tasks"
    required_stream_modes = ("tasks",)


# messages


class MessagesTransformer(StreamTransformer):
    """`messages`: a stream for each answer of a chat model, and for each message that a node returns as a whole.

    Each is LangChain's `ChatModelStream` (`AsyncChatModelStream` in an async run). What tools say is left out.
    """

    _native = True
    required_stream_modes = ("messages",)

    def __init__(self, scope: Path = ()) -> None:
        super().__init__(scope)
        self._log: StreamChannel[Any] = StreamChannel()
        self._by_run: dict[str, Any] = {}  # the model's run -> its stream
        self._ignored_runs: set[str] = set()
        self._pump_fn: Any = None
        self._apump_fn: Any = None

    def init(self) -> dict[str, Any]:
        """The channel of streams."""
        return {"messages": self._log}

    def _bind_pump(self, pump: Any) -> None:
        self._pump_fn = pump

    def _bind_apump(self, pump: Any) -> None:
        self._apump_fn = pump

    def process(self, event: ProtocolEvent) -> bool:
        """Route what a model said to its stream."""
        params = event["params"]
        if event["method"] == "messages" and tuple(params["namespace"]) == self.scope:
            said, metadata = params["data"]
            if isinstance(said, Mapping):
                self._said(said, metadata)
            else:
                self._whole(said, metadata)
        return True

    def _said(self, event: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        run = str(metadata.get("run_id"))
        ends = event.get("event") == "message-finish"
        if event.get("event") == "message-start":
            if event.get("role") == "tool":
                self._ignored_runs.add(run)
            else:
                self._by_run[run] = self._open(event.get("message_id") or event.get("id"), metadata)
        if run in self._ignored_runs:
            if ends:
                self._ignored_runs.discard(run)
        elif (stream := self._by_run.get(run)) is not None:
            stream.dispatch(event)
            if ends:
                del self._by_run[run]

    def _open(self, message_id: Any, metadata: Mapping[str, Any]) -> Any:
        from langchain_core.language_models.chat_model_stream import AsyncChatModelStream, ChatModelStream

        options: Any = {"namespace": list(self.scope), "node": metadata.get("langgraph_node"), "message_id": message_id}
        stream: Any
        if self._log._is_async:
            stream = AsyncChatModelStream(**options)
            stream.set_arequest_more(self._apump_fn)
        else:
            stream = ChatModelStream(**options)
            stream.set_request_more(self._pump_fn)
        self._log.push(stream)
        return stream

    def _whole(self, message: Any, metadata: Mapping[str, Any]) -> None:
        from langchain_core.language_models._compat_bridge import message_to_events
        from langchain_core.messages import BaseMessageChunk, ToolMessage

        if isinstance(message, (BaseMessageChunk, ToolMessage)):
            return
        stream = self._open(message.id, metadata)
        for event in message_to_events(message):
            stream.dispatch(event)

    def finalize(self) -> None:
        """Forget the models under way."""
        self._by_run.clear()

    def fail(self, err: BaseException) -> None:
        """Models under way will say no more."""
        for stream in self._by_run.values():
            stream.fail(err)
        self._by_run.clear()


# graphs inside


class _TasksLifecycleBase(StreamTransformer):
    """Tells from the tasks of a run which graphs inside it start and end."""

    required_stream_modes = ("tasks",)

    def __init__(self, scope: Path = ()) -> None:
        super().__init__(scope)
        self._seen: set[Path] = set()
        self._open: dict[Path, None] = {}
        self._lc_by_ns: dict[Path, str | None] = {}  # the agent that a graph is, as its tasks say
        self._tool_calls: dict[str, str] = {}  # task -> the tool call that it carries out
        self._pending_cause: dict[str, Any] | None = None  # for `_on_started`: the tool call behind it

    def process(self, event: ProtocolEvent) -> bool:
        """Follow tasks, and keep them out of the log."""
        if event["method"] != "tasks":
            return True
        ns, data = tuple(event["params"]["namespace"]), event["params"]["data"]
        if ns[: len(self.scope)] == self.scope:
            if "result" in data or "error" in data:
                for terminal in self._pop_terminal_transitions(ns, data):
                    self._on_terminal(*terminal)
            else:
                self._handle_task_start(ns, data)
        return False

    def _handle_task_start(self, ns: Path, data: Mapping[str, Any]) -> None:
        self._record_identity(ns, data)
        self._record_pending_tool_calls(data)
        if ns in self._seen or not self._should_track(ns):
            return
        node, colon, task = ns[-1].partition(":")
        if not colon:  # a further graph that a node calls: part of what the node does
            return
        self._seen.add(ns)
        self._open[ns] = None
        agent = self._lc_by_ns.get(ns)
        if agent and task in self._tool_calls:
            self._pending_cause = {"type": "toolCall", "tool_call_id": self._tool_calls[task]}
        try:
            self._on_started(ns, agent or node, task or None)
        finally:
            self._pending_cause = None

    def _record_identity(self, ns: Path, data: Mapping[str, Any]) -> None:
        metadata = data.get("metadata") or {}
        if "lc_agent_name" in metadata:
            self._lc_by_ns.setdefault(ns, metadata["lc_agent_name"])

    def _record_pending_tool_calls(self, data: Mapping[str, Any]) -> None:
        given, call = data.get("input"), None
        if isinstance(given, Mapping) and given.get("__type") == "tool_call_with_context":
            call = given.get("tool_call")
        elif isinstance(given, list) and given:
            call = given[0]
        if isinstance(call, Mapping) and call.get("id") and "name" in call:
            self._tool_calls[data["id"]] = call["id"]

    def _pop_terminal_transitions(
        self, ns: Path, data: Mapping[str, Any]
    ) -> list[tuple[Path, SubgraphStatus, str | None]]:
        """The graphs that ran in a task which has ended, and how they ended."""
        status: SubgraphStatus = "completed"
        error = None
        if data.get("interrupts"):
            status = "interrupted"
        elif data.get("error") is not None:
            status, error = "failed", str(data["error"])
        ended = [path for path in self._open if path[:-1] == ns and path[-1].partition(":")[2] == data["id"]]
        for path in ended:
            del self._open[path]
        return [(path, status, error) for path in ended]

    def _end_all(self, status: SubgraphStatus, error: str | None = None) -> None:
        left, self._open = list(self._open), {}
        for ns in reversed(left):  # inner ones first
            self._on_terminal(ns, status, error)

    def finalize(self) -> None:
        """What is open has ended with the run."""
        self._end_all("completed")

    def fail(self, err: BaseException) -> None:
        """What is open has ended as the run did."""
        self._end_all(*_ending(err))

    def _should_track(self, ns: Path) -> bool:
        raise NotImplementedError

    def _on_started(self, ns: Path, graph_name: str | None, trigger_call_id: str | None) -> None:
        raise NotImplementedError

    def _on_terminal(self, ns: Path, status: SubgraphStatus, error: str | None) -> None:
        raise NotImplementedError


def _ending(err: BaseException) -> tuple[SubgraphStatus, str | None]:
    if isinstance(err, GraphDrained):
        return "drained", None
    if isinstance(err, GraphBubbleUp):
        return "interrupted", None
    return "failed", str(err)


class LifecycleTransformer(_TasksLifecycleBase):
    """`lifecycle`: the start and the end of each graph inside, at any depth."""

    _native = True

    def __init__(self, scope: Path = ()) -> None:
        super().__init__(scope)
        self._channel: StreamChannel[LifecyclePayload] = StreamChannel("lifecycle")

    def init(self) -> dict[str, Any]:
        """The channel; its items are in the log of raw events too."""
        return {"lifecycle": self._channel}

    def _should_track(self, ns: Path) -> bool:
        return len(ns) > len(self.scope)

    def _on_started(self, ns: Path, graph_name: str | None, trigger_call_id: str | None) -> None:
        about: dict[str, Any] = {"graph_name": graph_name, "trigger_call_id": trigger_call_id}
        about["cause"] = self._pending_cause
        known = {key: value for key, value in about.items() if value is not None}
        self._channel.push(cast("LifecyclePayload", {"event": "started", "namespace": list(ns), **known}))

    def _on_terminal(self, ns: Path, status: SubgraphStatus, error: str | None) -> None:
        payload: LifecyclePayload = {"event": status, "namespace": list(ns)}
        if error is not None:
            payload["error"] = error
        self._channel.push(payload)


class SubgraphTransformer(_TasksLifecycleBase):
    """`subgraphs`: a handle for each graph directly inside, with the same projections for what happens in it.

    A graph that nobody follows costs the forwarding of its events.
    """

    _native = True
    supports_sync = True

    def __init__(self, scope: Path = ()) -> None:
        super().__init__(scope)
        self._log: StreamChannel[Any] = StreamChannel()
        self._handles: dict[Path, SubgraphRunStream | AsyncSubgraphRunStream] = {}
        self._mux: StreamMux | None = None
        self._ended: list[tuple[Path, SubgraphStatus, str | None]] = []  # whose muxes are still to be closed

    def init(self) -> dict[str, Any]:
        """The channel of handles."""
        return {"subgraphs": self._log}

    def _on_register(self, mux: StreamMux) -> None:
        self._mux = mux

    def process(self, event: ProtocolEvent) -> bool:
        """Follow tasks; hand the events of graphs inside to their handles."""
        return bool(play(self._processing(event)))

    async def aprocess(self, event: ProtocolEvent) -> bool:
        """The same in an async run."""
        return bool(await aplay(self._processing(event)))

    def finalize(self) -> None:
        """All handles have ended."""
        super().finalize()
        play(self._closing(None))

    async def afinalize(self) -> None:
        """The same in an async run."""
        super().finalize()
        await aplay(self._closing(None))

    def fail(self, err: BaseException) -> None:
        """All handles have failed with the run."""
        super().fail(err)
        play(self._closing(err))

    async def afail(self, err: BaseException) -> None:
        """The same in an async run."""
        super().fail(err)
        await aplay(self._closing(err))

    def _processing(self, event: ProtocolEvent) -> Script:
        kept = super().process(event)
        path = tuple(event["params"]["namespace"])[: len(self.scope) + 1]
        handle = self._handles.get(path)
        if handle is not None and not handle._mux.closed:
            yield handle._mux, "push", (event,)
        yield from self._closing(None)
        return kept

    def _closing(self, err: BaseException | None) -> Script:
        """Close the muxes of handles that have ended; a failure there is the run's."""
        ended, self._ended = self._ended, []
        for ns, status, error in ended:
            handle = self._handles.pop(ns)  # from here on it is its reader's
            handle._finish(status, error)
            if status == "failed":
                yield handle._mux, "fail", (err or RuntimeError(error),)
            else:
                yield handle._mux, "close", ()

    def _should_track(self, ns: Path) -> bool:
        return len(ns) == len(self.scope) + 1

    def _on_started(self, ns: Path, graph_name: str | None, trigger_call_id: str | None) -> None:
        assert self._mux is not None
        kind = AsyncSubgraphRunStream if self._mux.is_async else SubgraphRunStream
        child = self._mux._make_child(ns)
        self._handles[ns] = handle = kind(child, path=ns, graph_name=graph_name, trigger_call_id=trigger_call_id)
        self._log.push(handle)

    def _on_terminal(self, ns: Path, status: SubgraphStatus, error: str | None) -> None:
        self._ended.append((ns, status, error))
