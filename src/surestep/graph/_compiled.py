"""A StateGraph as the engine runs it: nodes and channels, made from what was declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surestep.channels.ephemeral_value import EphemeralValue
from surestep.channels.last_value import LastValueAfterFinish
from surestep.channels.named_barrier_value import NamedBarrierValue, NamedBarrierValueAfterFinish
from surestep.constants import END, START, TAG_HIDDEN
from surestep.graph._branch import BranchRouter, BranchSpec
from surestep.graph._reach import held_types, reachable_classes
from surestep.graph._schema import ROOT, mapper_of
from surestep.graph._spec import StateNodeSpec
from surestep.graph._writer import NodeWriter, RootWriter, barrier_name, trigger_name
from surestep.pregel._schemas import SchemaMethods, is_pydantic, keyed_json_schema, root_model
from surestep.pregel.main import Pregel
from surestep.pregel.node import PregelNode
from surestep.typing import ContextT, InputT, OutputT, StateT

if TYPE_CHECKING:
    from pydantic import BaseModel

    from surestep.graph.state import StateGraph
    from surestep.types import RunnableConfig

Mapper = Callable[[Any], Any]


class CompiledStateGraph(Pregel[StateT, ContextT, InputT, OutputT], SchemaMethods):
    """What `StateGraph.compile()` returns: a graph that can be run.

    `builder` is the StateGraph it was made from. `schema_to_mapper` has, for each schema that a node reads, the
    function that makes an instance of it of the values read, or None where nodes get a dict.
    """

    builder: StateGraph[StateT, ContextT, InputT, OutputT]
    schema_to_mapper: dict[Any, Mapper | None]

    def __init__(
        self,
        *,
        builder: StateGraph[StateT, ContextT, InputT, OutputT],
        schema_to_mapper: dict[Any, Mapper | None],
        **kwargs: Any,
    ) -> None:
        self.builder = builder
        self.schema_to_mapper = schema_to_mapper
        self._targets: dict[str, str] = {}
        self._classes: set[type] | None = None
        super().__init__(**kwargs)

    # --- lowering ------------------------------------------------------------------------------------------

    def attach_node(self, key: str, node: StateNodeSpec | None) -> None:
        """Add the node `key`, and the channel that starts it. None for START, which takes the graph's input."""
        if node is None:
            keys = self.builder.schemas[self.builder.input_schema].channels
            writer = self._writer(key, list(keys))
            start = PregelNode(channels=START, triggers=[START], tags=[TAG_HIDDEN], writers=[writer])
            # An input that was saved and not taken in (its run lost the thread) is not lost with the next one.
            start.close = lambda given, outputs, read: [(name, value) for name, value in writer(given) if name in keys]
            self.nodes[key] = start
            return
        trigger = self._targets.setdefault(key, trigger_name(key))
        self.channels[trigger] = LastValueAfterFinish(Any) if node.defer else EphemeralValue(Any, guard=False)
        reads, mapper = self._reading(node.input_schema)
        writer = self._writer(key, list(self.builder.channels))
        writer.jumps = node.ends if isinstance(node.ends, dict) else dict.fromkeys(node.ends)
        self.nodes[key] = PregelNode(
            channels=reads,
            triggers=[trigger],
            mapper=mapper,
            writers=[writer],
            metadata=node.metadata,
            bound=node.runnable,
            retry_policy=node.retry_policy,
            cache_policy=node.cache_policy,
            timeout=node.timeout,
            is_error_handler=node.is_error_handler,
            error_handler_node=node.error_handler_node,
            trace_policy=node.trace_policy,
            gate=node.gate,
        )
        if node.error_handler_node is not None:
            self.node_error_handler_map[key] = node.error_handler_node

    def attach_edge(self, starts: str | Sequence[str], end: str) -> None:
        """Let `end` run after `starts`: a node, or several of which each must have run."""
        if end == END:
            return
        if isinstance(starts, str):
            self._edges_of(starts).edges += ((trigger_name(end), None),)
            return
        channel = barrier_name(starts, end)
        kind = NamedBarrierValueAfterFinish if self.builder.nodes[end].defer else NamedBarrierValue
        self.channels[channel] = kind(str, set(starts))
        self.nodes[end].triggers.append(channel)
        for start in dict.fromkeys(starts):
            self._edges_of(start).edges += ((channel, start),)

    def attach_branch(self, start: str, name: str, branch: BranchSpec, *, with_reader: bool = True) -> None:
        """Let a path function choose what runs after `start`.

        `with_reader`: it sees the state with the node's writes applied, else just what the node returned.
        """
        schema = branch.input_schema
        if schema is None:
            schema = self.builder.state_schema if start == START else self.builder.nodes[start].input_schema
        reads, mapper = self._reading(schema)
        router = BranchRouter(
            branch,
            name=name,
            source=start,
            reads=reads if with_reader else None,
            mapper=mapper if with_reader else None,
            targets=self._targets,
        )
        self.nodes[start].writers.append(router)

    def _writer(self, name: str, keys: list[str]) -> NodeWriter:
        return (RootWriter if keys == [ROOT] else NodeWriter)(name, keys, self._targets)

    def _edges_of(self, node: str) -> NodeWriter:
        writer = self.nodes[node].writers[0]
        assert isinstance(writer, NodeWriter)
        return writer

    def _reading(self, schema: Any) -> tuple[str | list[str], Mapper | None]:
        """The channels that hold a schema's keys, and what makes an instance of their values."""
        keys = list(self.builder.schemas[schema])
        if schema not in self.schema_to_mapper:
            self.schema_to_mapper[schema] = mapper_of(schema, keys)
        return (ROOT if keys == [ROOT] else keys), self.schema_to_mapper[schema]

    # --- what the engine asks of it ------------------------------------------------------------------------

    def _with_classes(self, saver: Any) -> Any:
        """The saver, told which classes this graph's state may hold, if it asks (`with_allowlist`).

        A strict serializer revives no others. A graph inside another calls it for the saver that it inherits.
        """
        allow = getattr(saver, "with_allowlist", None)
        if allow is None:
            return saver
        if self._classes is None:
            held = held_types(node.bound for node in self.nodes.values())
            self._classes = reachable_classes([*self.builder.schemas, *held], self.builder.channels.values())
        return allow(self._classes) if self._classes else saver

    def _migrate_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Bring a checkpoint from before format 3 up to date, in place."""
        from surestep.graph._migrate import rename_control_channels

        rename_control_channels(checkpoint, self.builder.edges, self.builder.channels)

    def _coerce_output(self, mode: str, data: Any) -> Any:
        """What a v2 stream shows as state, as an instance of its schema. Private keys are left out of it."""
        if mode == "values":
            return self._as_schema(self.builder.output_schema, data)
        if mode == "checkpoints" and data.get("values") and START not in data["next"]:  # the input is no state yet
            return {**data, "values": self._as_schema(self.builder.state_schema, data["values"])}
        if mode == "debug" and data["type"] == "checkpoint":
            return {**data, "payload": self._coerce_output("checkpoints", data["payload"])}
        return data

    def _as_schema(self, schema: Any, values: Any) -> Any:
        keys = self.builder.schemas[schema].channels
        mapper = mapper_of(schema, list(keys))
        if mapper is None or not isinstance(values, Mapping):
            return values
        return mapper({key: value for key, value in values.items() if key in keys})

    # --- schemas -------------------------------------------------------------------------------------------

    @property
    def InputType(self) -> Any:
        """The schema of what the graph takes."""
        return self.builder.input_schema

    @property
    def OutputType(self) -> Any:
        """The schema of what the graph gives."""
        return self.builder.output_schema

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """A pydantic model of what the graph takes: the input schema itself, or one of a value of that type."""
        schema: Any = self.builder.input_schema
        return schema if is_pydantic(schema) else root_model(self.get_name("Input"), schema)

    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """A pydantic model of what the graph gives; every key is optional, since a run may leave any out."""
        if self.output_channels == ROOT:
            return root_model(self.get_name("Output"), self.builder.output_schema)
        return super().get_output_schema(config)

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """The JSON schema of what the graph takes. Needs pydantic."""
        return self._json_schema(self.builder.input_schema, "Input")

    def get_output_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """The JSON schema of what the graph gives. Needs pydantic."""
        return self._json_schema(self.builder.output_schema, "Output")

    def _json_schema(self, schema: Any, suffix: str) -> dict[str, Any]:
        channels = self.builder.schemas[schema].channels
        if set(channels) != {ROOT}:
            return keyed_json_schema(schema, channels, self.get_name(suffix))
        made = root_model(self.get_name(suffix), schema).model_json_schema()
        return dict(sorted({**made, "default": None}.items()))


CompiledStateGraph.__module__ = "surestep.graph.state"
