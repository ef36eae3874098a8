"""A graph that runs on a LangGraph server, used like one that runs here: by itself, or as a node of another graph."""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from surestep._config import merge_configs
from surestep.integrations.runnable import AsRunnable
from surestep.pregel._remote_run_stream import (
    _AsyncRemoteGraphRunStream,
    _RemoteGraphRunStream,
)
from surestep.pregel._remote_wire import (
    RemoteException,
    Stream,
    checkpoint_of,
    command_of,
    config_at,
    sanitized,
    snapshot_of,
    thread_and_config,
)
from surestep.pregel._running import options_given
from surestep.pregel.protocol import PregelProtocol
from surestep.types import GraphOutput, StateSnapshot

if TYPE_CHECKING:
    from typing import Self

    from surestep.types import RunnableConfig

__all__ = ("RemoteException", "RemoteGraph")

log = logging.getLogger("surestep.pregel.remote")
_V3_SUPPORTED_KWARGS = frozenset({"metadata", "headers"})


class RemoteGraph(AsRunnable, PregelProtocol[Any, Any, Any, Any]):
    """A graph on a server, by the id of its assistant (or its name).

    url: of the server; makes both clients, with `api_key` and `headers`. client, sync_client: the SDK's, for async and
    sync methods. config: merged with that of each call. name: how it is called here; default the assistant's id.
    distributed_tracing: the server's traces hang below ours. Needs the extra `remote` (langgraph-sdk). A method whose
    client is missing raises ValueError; a run that fails there raises `RemoteException`.
    """

    is_surestep_graph = True  # may be a node; what it is made of is elsewhere
    checkpointer = False
    nodes: Mapping[str, Any] = {}

    def __init__(
        self,
        assistant_id: str,
        /,
        *,
        url: str | None = None,
        api_key: str | None = None,
        headers: dict[str, str] | None = None,
        client: Any = None,
        sync_client: Any = None,
        config: RunnableConfig | None = None,
        name: str | None = None,
        distributed_tracing: bool = False,
    ) -> None:
        self.assistant_id = assistant_id
        self.name = name or assistant_id
        self.config = config
        self.distributed_tracing = distributed_tracing
        if url is not None and (client is None or sync_client is None):
            from langgraph_sdk.client import get_client, get_sync_client

            client = client or get_client(url=url, api_key=api_key, headers=headers)
            sync_client = sync_client or get_sync_client(url=url, api_key=api_key, headers=headers)
        self.client = client
        self.sync_client = sync_client

    def get_name(self, suffix: str | None = None, *, name: str | None = None) -> str:
        """How it is called."""
        return f"{name or self.name}{suffix or ''}"

    def copy(self, update: dict[str, Any]) -> Self:
        """The same graph with other attributes."""
        twin = copy.copy(self)
        twin.__dict__.update(update)
        return twin

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Self:
        """The same graph with a config that every call starts from."""
        return self.copy({"config": merge_configs(self.config, config, kwargs)})  # type: ignore[arg-type]

    def _remote(self, asynchronous: bool) -> Any:
        client = self.client if asynchronous else self.sync_client
        if client is None:
            kind = "client" if asynchronous else "sync_client"
            raise ValueError(f"{self.name!r} has no {kind}: pass url=..., or {kind}=... for these methods.")
        return client

    def _sanitize_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        return sanitized(config)

    def _headers(self, headers: dict[str, str] | None) -> dict[str, str] | None:
        return _merge_tracing_headers(headers) if self.distributed_tracing else headers

    # graphs and threads

    def get_graph(
        self, config: RunnableConfig | None = None, *, xray: int | bool = False, headers: Any = None, params: Any = None
    ) -> Any:
        """The graph as LangChain draws it, as the server describes it."""
        assistants = self._remote(asynchronous=False).assistants
        return _drawable(assistants.get_graph(assistant_id=self.assistant_id, xray=xray, **_more(headers, params)))

    async def aget_graph(
        self, config: RunnableConfig | None = None, *, xray: int | bool = False, headers: Any = None, params: Any = None
    ) -> Any:
        """`get_graph`, awaited."""
        assistants = self._remote(asynchronous=True).assistants
        found = assistants.get_graph(assistant_id=self.assistant_id, xray=xray, **_more(headers, params))
        return _drawable(await found)

    def get_state(
        self, config: RunnableConfig, *, subgraphs: bool = False, headers: Any = None, params: Any = None
    ) -> StateSnapshot:
        """The state of a thread, now or at the checkpoint that the config addresses."""
        asked = self._state_of(config, subgraphs, headers, params)
        return snapshot_of(self._remote(asynchronous=False).threads.get_state(**asked))

    async def aget_state(
        self, config: RunnableConfig, *, subgraphs: bool = False, headers: Any = None, params: Any = None
    ) -> StateSnapshot:
        """`get_state`, awaited."""
        asked = self._state_of(config, subgraphs, headers, params)
        return snapshot_of(await self._remote(asynchronous=True).threads.get_state(**asked))

    def _state_of(self, config: Any, subgraphs: bool, headers: Any, params: Any) -> dict[str, Any]:
        return {**self._where(config), "subgraphs": subgraphs, **_more(headers, params)}

    def _where(self, config: Any) -> dict[str, Any]:
        """The thread, and the checkpoint of it, that a call is about."""
        merged = merge_configs(self.config, config)
        return {"thread_id": merged["configurable"]["thread_id"], "checkpoint": checkpoint_of(merged)}

    def get_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
        headers: Any = None,
        params: Any = None,
    ) -> Iterator[StateSnapshot]:
        """States of a thread, newest first. limit: 10 unless given."""
        asked = self._history_of(config, filter, before, limit, headers, params)
        yield from map(snapshot_of, self._remote(asynchronous=False).threads.get_history(**asked))

    async def aget_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
        headers: Any = None,
        params: Any = None,
    ) -> AsyncIterator[StateSnapshot]:
        """`get_state_history`, awaited."""
        asked = self._history_of(config, filter, before, limit, headers, params)
        for state in await self._remote(asynchronous=True).threads.get_history(**asked):
            yield snapshot_of(state)

    def _history_of(
        self, config: Any, filter: Any, before: Any, limit: int | None, headers: Any, params: Any
    ) -> dict[str, Any]:
        return {
            **self._where(config),
            "limit": 10 if limit is None else limit,
            "before": checkpoint_of(before),
            "metadata": filter,
            **_more(headers, params),
        }

    def update_state(
        self,
        config: RunnableConfig,
        values: Any,
        as_node: str | None = None,
        *,
        headers: Any = None,
        params: Any = None,
    ) -> RunnableConfig:
        """Edit a thread; the config of the new checkpoint."""
        asked = self._edit_of(config, values, as_node, headers, params)
        changed = self._remote(asynchronous=False).threads.update_state(**asked)
        return config_at(changed["checkpoint"])  # type: ignore[return-value]

    async def aupdate_state(
        self,
        config: RunnableConfig,
        values: Any,
        as_node: str | None = None,
        *,
        headers: Any = None,
        params: Any = None,
    ) -> RunnableConfig:
        """`update_state`, awaited."""
        asked = self._edit_of(config, values, as_node, headers, params)
        changed = await self._remote(asynchronous=True).threads.update_state(**asked)
        return config_at(changed["checkpoint"])  # type: ignore[return-value]

    def _edit_of(self, config: Any, values: Any, as_node: Any, headers: Any, params: Any) -> dict[str, Any]:
        return {**self._where(config), "values": values, "as_node": as_node, **_more(headers, params)}

    def bulk_update_state(self, config: RunnableConfig, updates: Any) -> RunnableConfig:
        """Servers take one edit at a time: NotImplementedError."""
        raise NotImplementedError("A remote graph takes one edit at a time: use update_state().")

    async def abulk_update_state(self, config: RunnableConfig, updates: Any) -> RunnableConfig:
        """Servers take one edit at a time: NotImplementedError."""
        return self.bulk_update_state(config, updates)

    # runs

    def stream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        subgraphs: bool = False,
        headers: Any = None,
        params: Any = None,
        version: str = "v1",
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Run the graph there and yield what happens, as it happens. Default mode: updates.

        With several modes and without subgraphs parts are the SDK's `StreamPart`s (event, data, id).
        """
        shape, asked = self._run_of(input, config, **options_given(locals()))
        for part in self._remote(asynchronous=False).runs.stream(**asked):
            yield from shape.parts(part)

    async def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        subgraphs: bool = False,
        headers: Any = None,
        params: Any = None,
        version: str = "v1",
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """`stream`, awaited."""
        shape, asked = self._run_of(input, config, **options_given(locals()))
        async for part in self._remote(asynchronous=True).runs.stream(**asked):
            for seen in shape.parts(part):
                yield seen

    def _run_of(
        self, input: Any, config: Any, *, stream_mode: Any, subgraphs: bool, version: str, headers: Any, **more: Any
    ) -> tuple[Stream, dict[str, Any]]:
        merged = merge_configs(self.config, config)
        shape = Stream(merged, stream_mode, subgraphs, version)
        thread_id, plain = thread_and_config(merged)
        given, command = command_of(input)
        asked = {
            "thread_id": thread_id,
            "assistant_id": self.assistant_id,
            "input": given,
            "command": command,
            "config": plain,
            "headers": self._headers(headers),
            **shape.options(),
            **more,
        }
        return shape, asked

    def invoke(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        headers: Any = None,
        params: Any = None,
        version: str = "v1",
        **kwargs: Any,
    ) -> Any:
        """Run the graph there; its state at the end (version="v2": a `GraphOutput`)."""
        given = options_given(locals())
        del given["version"]
        parts = self.stream(input, config, stream_mode="values", version="v2", **given)
        return self._output(list(parts), version)

    async def ainvoke(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        headers: Any = None,
        params: Any = None,
        version: str = "v1",
        **kwargs: Any,
    ) -> Any:
        """`invoke`, awaited."""
        given = options_given(locals())
        del given["version"]
        parts = self.astream(input, config, stream_mode="values", version="v2", **given)
        return self._output([part async for part in parts], version)

    def _output(self, parts: list[Any], version: str) -> Any:
        if not parts:
            log.warning("No events were received from the remote graph %s", self.name)
            return None
        last = parts[-1]
        questions = last.get("interrupts", ())
        if version == "v2":
            return GraphOutput(last["data"], interrupts=questions)
        return {**last["data"], "__interrupt__": list(questions)} if questions else last["data"]

    # event streams

    def stream_events(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        version: str = "v2",
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        control: Any = None,
        transformers: Any = None,
        headers: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """A run there as a stream of events, with version="v3"; to be entered (`with`). kwargs: `metadata`."""
        if version != "v3":
            raise NotImplementedError("stream_events of a remote graph is not implemented for versions before 'v3'.")
        self._reject_v3_unsupported(control, transformers, interrupt_before, interrupt_after, kwargs)
        client = self._remote(asynchronous=False)
        thread, start = self._events_of(client, input, config, headers, kwargs)
        return _RemoteGraphRunStream(sync_client=client, sdk_thread=thread, **start)

    async def astream_events(  # type: ignore[override]
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        version: str = "v2",
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        control: Any = None,
        transformers: Any = None,
        headers: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """As `stream_events`, on the running event loop."""
        if version != "v3":
            raise NotImplementedError("astream_events of a remote graph is not implemented for versions before 'v3'.")
        self._reject_v3_unsupported(control, transformers, interrupt_before, interrupt_after, kwargs)
        client = self._remote(asynchronous=True)
        thread, start = self._events_of(client, input, config, headers, kwargs)
        return _AsyncRemoteGraphRunStream(client=client, sdk_thread=thread, **start)

    def _events_of(self, client: Any, input: Any, config: Any, headers: Any, kwargs: Any) -> tuple[Any, dict[str, Any]]:
        thread_id, plain = thread_and_config(merge_configs(self.config, config))
        thread = client.threads.stream(
            thread_id=thread_id, assistant_id=self.assistant_id, headers=self._headers(headers)
        )
        return thread, {"input": input, "config": plain, "metadata": kwargs.get("metadata")}

    def _reject_v3_unsupported(
        self,
        control: Any,
        transformers: Sequence[Any] | None,
        interrupt_before: Any,
        interrupt_after: Any,
        extra_kwargs: Mapping[str, Any],
    ) -> None:
        given = {
            "control": control,
            "transformers": transformers,
            "interrupt_before": interrupt_before,
            "interrupt_after": interrupt_after,
            **{name: True for name in extra_kwargs if name not in _V3_SUPPORTED_KWARGS},
        }
        if refused := [f"`{name}=`" for name, value in given.items() if value is not None]:
            raise NotImplementedError(
                f"Event streams of a remote graph don't take {', '.join(refused)}: set it where the graph runs, or use "
                "stream()."
            )


def _more(headers: Any, params: Any) -> dict[str, Any]:
    return {"headers": headers, "params": params}


def _merge_tracing_headers(headers: dict[str, str] | None) -> dict[str, str] | None:
    """Headers by which the server's trace hangs below ours; baggage of the caller's own is kept."""
    from langsmith.run_helpers import get_current_run_tree

    tree = get_current_run_tree()
    if tree is None:
        return headers
    ours = tree.to_headers()
    if headers and "baggage" in headers and "baggage" in ours:
        ours["baggage"] = f"{headers['baggage']},{ours['baggage']}"
    return {**(headers or {}), **ours}


def _drawable(described: Mapping[str, Any]) -> Any:
    from langchain_core.runnables.graph import Edge, Graph, Node

    nodes = {}
    for node in described["nodes"]:
        data = node.get("data") or {}
        name = (data.get("name") if isinstance(data, Mapping) else None) or node["id"]
        nodes[node["id"]] = Node(id=node["id"], name=name, data=cast("Any", data), metadata=node.get("metadata"))
    edges = [
        Edge(edge["source"], edge["target"], edge.get("data"), bool(edge.get("conditional")))
        for edge in described["edges"]
    ]
    return Graph(nodes, edges)
