"""A graph: what it is made of. What it can do is mixed in, a module each: run (`_running`), give event streams
(`_events`), look at and edit threads (`_state`), tell its schemas (`_schemas`), draw itself (`_drawing`), forget
cached results (`_cache`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from surestep._constants import ERROR, INPUT, INTERRUPT, NO_WRITES, PULL, PUSH, RESUME, TASKS
from surestep._core.blueprint import Blueprint
from surestep.channels.base import BaseChannel
from surestep.channels.topic import Topic
from surestep.channels.untracked_value import UntrackedValue
from surestep.integrations.runnable import AsRunnable
from surestep.managed.base import is_managed_value
from surestep.pregel._cache import CacheMethods
from surestep.pregel._cancelling import CancelMethods
from surestep.pregel._deprecated import by_either_name
from surestep.pregel._drawing import DrawMethods
from surestep.pregel._effects import EffectMethods
from surestep.pregel._events import EventMethods
from surestep.pregel._events import _normalize_stream_transformer_factories as _normalize_stream_transformer_factories
from surestep.pregel._keeping import KeepingMethods
from surestep.pregel._running import RunMethods
from surestep.pregel._schemas import SchemaMethods
from surestep.pregel._state import StateMethods
from surestep.pregel.node import NodeBuilder, PregelNode, policies
from surestep.types import Send
from surestep.typing import ContextT, InputT, OfState, OutputT, StateT

if TYPE_CHECKING:
    from typing import Self

    from surestep.types import RunnableConfig

__all__ = ("NodeBuilder", "Pregel")

RESERVED = frozenset(
    {
        "langsmith:hidden",
        INPUT,
        INTERRUPT,
        RESUME,
        ERROR,
        NO_WRITES,
        PUSH,
        PULL,
        "|",
        ":",
        "configurable",
        "checkpoint_map",
        "checkpoint_id",
        "checkpoint_ns",
        "__error_source_node__",
        "__snapshot_bumps__",
    }
)


class Pregel(
    RunMethods,
    StateMethods,
    KeepingMethods,
    EffectMethods,
    CancelMethods,
    SchemaMethods,
    DrawMethods,
    CacheMethods,
    EventMethods,
    AsRunnable,
    OfState,
    Generic[StateT, ContextT, InputT, OutputT],
):
    """A graph of nodes that read and write channels, run step by step.

    nodes: name -> `PregelNode` or `NodeBuilder`; channels: name -> channel or managed value; input_channels,
    output_channels: where a run's input goes and its output comes from; stream_channels: what streams show (default:
    all). checkpointer: a saver, None (that of the enclosing graph, if any), True (also keep state from call to call),
    or False (keep nothing). interrupt_before_nodes, interrupt_after_nodes: names or "*". step_timeout: seconds that
    a step may take. retry_policy: for nodes without one. Raises ValueError when nodes and channels do not fit.
    """

    is_surestep_graph = True

    def __init__(
        self,
        *,
        nodes: Mapping[str, PregelNode | NodeBuilder],
        channels: Mapping[str, Any] | None,
        auto_validate: bool = True,
        stream_mode: Any = "values",
        stream_eager: bool = False,
        output_channels: str | Sequence[str],
        stream_channels: str | Sequence[str] | None = None,
        interrupt_after_nodes: Any = (),
        interrupt_before_nodes: Any = (),
        input_channels: str | Sequence[str],
        step_timeout: float | None = None,
        debug: bool | None = None,
        checkpointer: Any = None,
        store: Any = None,
        cache: Any = None,
        retry_policy: Any = (),
        cache_policy: Any = None,
        context_schema: Any = None,
        config: RunnableConfig | None = None,
        trigger_to_nodes: Mapping[str, Sequence[str]] | None = None,
        node_error_handler_map: Mapping[str, str] | None = None,
        name: str = "LangGraph",
        stream_transformers: Any = None,
        **deprecated_kwargs: Any,
    ) -> None:
        context_schema = by_either_name(deprecated_kwargs, "config_type", "context_schema", context_schema)
        self.nodes = {key: node.build() if isinstance(node, NodeBuilder) else node for key, node in nodes.items()}
        self.channels: dict[str, Any] = dict(channels or {})
        if TASKS in self.channels and not isinstance(self.channels[TASKS], Topic):
            raise ValueError(f"Channel '{TASKS}' is reserved for Send and must be a Topic.")
        self.channels[TASKS] = Topic(Send, accumulate=False)
        self.stream_mode = stream_mode
        self.stream_eager = stream_eager
        self.output_channels = output_channels
        self.stream_channels = stream_channels
        self.interrupt_after_nodes = interrupt_after_nodes
        self.interrupt_before_nodes = interrupt_before_nodes
        self.input_channels = input_channels
        self.step_timeout = step_timeout
        self.debug = bool(debug)
        self.checkpointer = checkpointer
        self.store = store
        self.cache = cache
        self.retry_policy = policies(retry_policy)
        self.cache_policy = cache_policy
        self.context_schema = context_schema
        self.config = config
        self.trigger_to_nodes: Mapping[str, Sequence[str]] = trigger_to_nodes or {}
        self.node_error_handler_map = dict(node_error_handler_map or {})
        self.name = name
        self.stream_transformers = stream_transformers
        self._blueprint: Blueprint | None = None
        if auto_validate:
            self.validate()

    # what it is made of

    @property
    def blueprint(self) -> Blueprint:
        """The graph as the core sees it."""
        if self._blueprint is None:
            managed = {key: spec for key, spec in self.channels.items() if is_managed_value(spec)}
            channels: dict[str, BaseChannel[Any, Any, Any]] = {
                key: spec for key, spec in self.channels.items() if key not in managed
            }
            self._blueprint = Blueprint(
                name=self.name,
                nodes=self.nodes,
                channels=channels,
                managed=managed,
                input_channels=self.input_channels,
                output_channels=self.output_channels,
                stream_channels=self.stream_channels_asis,
                retry=self.retry_policy,
                handlers=self.node_error_handler_map,
                untracked=[key for key, channel in channels.items() if isinstance(channel, UntrackedValue)],
                cache_policy=self.cache_policy,
            )
        return self._blueprint

    @property
    def stream_channels_list(self) -> Sequence[str]:
        """The channels that streams show, as a list."""
        keys = self.stream_channels_asis
        return [keys] if isinstance(keys, str) else keys

    @property
    def stream_channels_asis(self) -> str | Sequence[str]:
        """The channels that streams show: one name for a bare value, or a list for a dict."""
        return self.stream_channels or [key for key, spec in self.channels.items() if not is_managed_value(spec)]

    def validate(self) -> Self:
        """The graph itself, checked and ready to run. Raises ValueError naming what does not fit."""
        from surestep.pregel._validate import validate_graph

        validate_graph(self, RESERVED)
        self._blueprint = None
        return self

    def get_name(self, suffix: str | None = None, *, name: str | None = None) -> str:
        """The graph's name. A suffix is written as the name is: `LangGraphInput`, `my_graph_input`."""
        name = name or self.name
        if not suffix:
            return name
        return name + suffix.title() if name[:1].isupper() else f"{name}_{suffix.lower()}"

    def copy(self, update: Mapping[str, Any] | None = None) -> Self:
        """A graph with some attributes changed; everything else is shared."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.__dict__.update(update or {})
        twin._blueprint = None
        return twin

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Self:
        """The same graph with `config` under every config that it is run with."""
        from surestep._config import merge_configs

        return self.copy({"config": merge_configs(self.config, config, kwargs)})  # type: ignore[arg-type]

    def get_subgraphs(self, *, namespace: str | None = None, recurse: bool = False) -> Iterator[tuple[str, Any]]:
        """(path, graph) of the graphs in its nodes; a path is made of node names, joined by `|`."""
        for name, node in self.nodes.items():
            if namespace is not None and namespace != name and not namespace.startswith(f"{name}|"):
                continue
            graph = next(iter(node.subgraphs), None)
            if graph is None:
                continue
            if namespace is None or namespace == name:
                yield name, graph
            if recurse and isinstance(graph, Pregel):
                rest = None if namespace is None or namespace == name else namespace[len(name) + 1 :]
                for path, inner in graph.get_subgraphs(namespace=rest, recurse=recurse):
                    yield f"{name}|{path}", inner

    async def aget_subgraphs(
        self, *, namespace: str | None = None, recurse: bool = False
    ) -> AsyncIterator[tuple[str, Any]]:
        """As `get_subgraphs`."""
        for found in self.get_subgraphs(namespace=namespace, recurse=recurse):
            yield found

    def _migrate(self, saved: Any) -> None:
        """Bring a stored checkpoint of an older format up to date, in place."""
        from surestep.pregel._migrate import migrate

        migrate(self, saved)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, nodes={list(self.nodes)})"
