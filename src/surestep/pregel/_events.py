"""The methods that run a graph as a stream of events: `stream_events` and `astream_events`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surestep.stream import GraphRunStream
    from surestep.stream._mux import StreamMux, TransformerFactory
    from surestep.types import RunnableConfig


class EventMethods:
    """The methods that give event streams."""

    stream_transformers: Any

    def stream_events(
        self: Any,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        version: str = "v2",
        transformers: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> GraphRunStream | Any:
        """A run as a stream of events, with version="v3": a `GraphRunStream`. Nothing runs until it is read.

        transformers: classes (or callables that take the scope) that make further projections, beside those that the
        graph was compiled with. kwargs: as `stream` takes them, but for `stream_mode` and `subgraphs`, which follow
        from the transformers (TypeError). Other versions are LangChain's.
        """
        if version != "v3":
            from surestep.integrations.runnable import borrowed

            return borrowed(self, "stream_events")(input, config, version=version, **kwargs)
        from surestep.stream.run_stream import GraphRunStream

        mux = multiplexer(self, config, transformers, kwargs, is_async=False)
        return GraphRunStream(self.stream(input, config, **options_of(mux, kwargs)), mux)

    def astream_events(
        self: Any,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        version: str = "v2",
        transformers: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """As `stream_events`, on the running event loop: with version="v3" an awaitable `AsyncGraphRunStream`, else an
        async iterator of LangChain's events.
        """
        if version != "v3":
            return super().astream_events(input, config, version=version, **kwargs)  # type: ignore[misc]
        return _started(self, input, config, transformers, kwargs)


async def _started(graph: Any, input: Any, config: Any, transformers: Any, kwargs: dict[str, Any]) -> Any:
    from surestep.stream.run_stream import AsyncGraphRunStream

    mux = multiplexer(graph, config, transformers, kwargs, is_async=True)
    return AsyncGraphRunStream(graph.astream(input, config, **options_of(mux, kwargs)), mux)


def multiplexer(graph: Any, config: Any, transformers: Any, kwargs: dict[str, Any], is_async: bool) -> StreamMux:
    """The transformers of a run, ready to see its events."""
    from surestep.stream import transformers as built_in
    from surestep.stream._mux import StreamMux

    if owned := sorted({"stream_mode", "subgraphs"} & kwargs.keys()):
        raise TypeError(
            f"stream_events(version='v3') does not take {' and '.join(owned)}: what is streamed follows from the "
            "transformers. Add one that requires the mode, e.g. transformers=[UpdatesTransformer]."
        )
    always = (
        built_in.ValuesTransformer,
        built_in.MessagesTransformer,
        built_in.LifecycleTransformer,
        built_in.SubgraphTransformer,
    )
    factories = [
        *always,
        *_normalize_stream_transformer_factories(graph.stream_transformers),
        *_normalize_stream_transformer_factories(transformers),
    ]
    return StreamMux(factories=factories, scope=_scope(graph, config), is_async=is_async)


def _scope(graph: Any, config: Any) -> tuple[str, ...]:
    """The namespace that the run will have; of a run of a whole graph, the one that the caller means."""
    from surestep._config import ensure_config
    from surestep._core.ids import ns_path
    from surestep._drive.context import TASK_KEY
    from surestep.pregel._prepare import child_namespace

    parent = ensure_config(graph.config, config)["configurable"].get(TASK_KEY)
    if parent is not None:
        ns = child_namespace(parent.task.ns, parent.graphs, graph.checkpointer)
    else:
        ns = ((config or {}).get("configurable") or {}).get("checkpoint_ns") or ""
    return ns_path(ns)


def options_of(mux: StreamMux, kwargs: dict[str, Any]) -> dict[str, Any]:
    """How `stream` is asked for what the transformers need."""
    modes = mux.modes()
    if find_spec("langchain_core") is None:
        modes.discard("messages")  # nobody could say any
    return {**kwargs, "stream_mode": sorted(modes), "subgraphs": True, "version": "v2", "protocol": True}


def _normalize_stream_transformer_factories(transformers: Sequence[Any] | None) -> list[TransformerFactory]:
    """Transformers as callables of the scope. TypeError for one that is made already: graphs inside get their own."""
    from surestep.stream import StreamTransformer

    factories: list[Callable[[tuple[str, ...]], Any]] = []
    for given in transformers or ():
        if isinstance(given, StreamTransformer):
            raise TypeError(
                f"transformers got a pre-built instance of {type(given).__name__}: give the class, or a callable that "
                "takes the scope and makes one, because every graph inside needs its own."
            )
        factories.append(given)
    return factories
