"""StateGraph: declare the state, the nodes and the edges, then compile them into a graph that can be run."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, cast

from surestep._drive.call import coerce, is_runnable, name_of
from surestep._drive.effect_node import as_effect
from surestep.channels.base import BaseChannel
from surestep.channels.ephemeral_value import EphemeralValue
from surestep.channels.last_value import LastValue
from surestep.constants import END, START
from surestep.graph._branch import BranchSpec
from surestep.graph._check import check_names, warn_of_dead_joins
from surestep.graph._compiled import CompiledStateGraph
from surestep.graph._infer import destinations as inferred_destinations
from surestep.graph._infer import input_hint
from surestep.graph._ordered import OrderedSet
from surestep.graph._schema import ROOT, Analysis, analyse
from surestep.graph._spec import DEFAULT_HANDLER, NodeDefaults, Retries, StateNodeSpec, handler_name
from surestep.managed.base import ManagedValueSpec
from surestep.pregel._deprecated import by_either_name
from surestep.pregel.node import refuse_sync_timeout
from surestep.types import CachePolicy, TimeoutPolicy, TracePolicy, ensure_valid_checkpointer
from surestep.typing import ContextT, InputT, OfState, OutputT, StateT

if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Self

    from surestep.cache.base import BaseCache
    from surestep.store.base import BaseStore
    from surestep.types import All, Checkpointer

__all__ = ("CompiledStateGraph", "StateGraph")

_RESERVED: Final = ("|", ":")  # they separate the parts of a checkpoint namespace


class StateGraph(OfState, Generic[StateT, ContextT, InputT, OutputT]):
    """A graph whose nodes read and update a shared state.

    state_schema: a TypedDict, dataclass or pydantic model whose keys may carry a reducer,
    `Annotated[list, operator.add]`; or one value, such as `Annotated[list, operator.add]` itself.
    context_schema: what `runtime.context` is. input_schema, output_schema: what the graph takes and gives, if
    that is less than the state. Every method that declares something returns the builder.

    Raises ValueError for keys that two schemas declare differently and for reducers that don't take (a, b).
    """

    nodes: dict[str, StateNodeSpec]
    edges: OrderedSet[tuple[str, str]]
    branches: defaultdict[str, dict[str, BranchSpec]]
    schemas: dict[Any, Analysis]
    channels: dict[str, BaseChannel[Any, Any, Any]]
    managed: dict[str, ManagedValueSpec]
    waiting_edges: OrderedSet[tuple[tuple[str, ...], str]]
    compiled: bool
    state_schema: type[StateT]
    context_schema: type[ContextT] | None
    input_schema: type[InputT]
    output_schema: type[OutputT]

    def __init__(
        self,
        state_schema: type[StateT],
        context_schema: type[ContextT] | None = None,
        *,
        input_schema: type[InputT] | None = None,
        output_schema: type[OutputT] | None = None,
        **deprecated: Any,
    ) -> None:
        context_schema = by_either_name(deprecated, "config_schema", "context_schema", context_schema)
        input_schema = by_either_name(deprecated, "input", "input_schema", input_schema)
        output_schema = by_either_name(deprecated, "output", "output_schema", output_schema)
        _refuse(deprecated, "StateGraph")
        self.nodes = {}
        self.edges = OrderedSet()
        self.branches = defaultdict(dict)
        self.schemas = {}
        self.channels = {}
        self.managed = {}
        self.waiting_edges = OrderedSet()
        self.compiled = False
        self.state_schema = state_schema
        self.context_schema = context_schema
        self.input_schema = cast("type[InputT]", input_schema or state_schema)
        self.output_schema = cast("type[OutputT]", output_schema or state_schema)
        self._defaults = NodeDefaults()
        if not isinstance(state_schema, type) and not hasattr(state_schema, "__origin__"):
            warnings.warn(
                f"Invalid state_schema: {state_schema!r}. Expected a type or Annotated[type, reducer]: "
                "a TypedDict, a dataclass, a pydantic model, or the type of a single value.",
                stacklevel=2,
            )
        self._add_schema(self.state_schema)
        self._add_schema(self.input_schema, managed_allowed=False)
        self._add_schema(self.output_schema, managed_allowed=False)

    def _add_schema(self, schema: Any, managed_allowed: bool = True) -> None:
        """Take over the channels of a schema; a key that was declared before must fit."""
        if schema in self.schemas:
            return
        name = getattr(schema, "__name__", str(schema))
        found = analyse(schema)
        if found.managed and not managed_allowed:
            raise ValueError(
                f"Invalid managed channels detected in {name}: {', '.join(found.managed)}. "
                "Managed channels are not permitted in Input/Output schema: a run computes them."
            )
        for key, channel in found.channels.items():
            before = self.channels.get(key)
            if before is None:
                self.channels[key] = channel
            elif before != channel and not isinstance(channel, LastValue):
                raise ValueError(
                    f"Channel '{key}' already exists with a different type: {name} declares it as {_kind(channel)}, "
                    f"an earlier schema as {_kind(before)}. Declare the key once with its reducer, "
                    "and elsewhere without one."
                )
        for key, managed in found.managed.items():
            if self.managed.setdefault(key, managed) is not managed:
                raise ValueError(
                    f"Managed value '{key}' already exists with a different type: {name} declares it as "
                    f"{managed.__name__}, an earlier schema as {self.managed[key].__name__}."
                )
        self.schemas[schema] = found

    # --- nodes ---------------------------------------------------------------------------------------------

    def set_node_defaults(
        self,
        *,
        retry_policy: Retries | None = None,
        cache_policy: CachePolicy[Any] | None = None,
        error_handler: Any = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
    ) -> Self:
        """Settings for every node of this graph that has none of its own; subgraphs don't inherit them.

        Retries and timeouts count for error handlers too. `error_handler` gets the state schema, and becomes one
        node for all. A later call changes what it names and keeps the rest.
        """
        defaults, limit = self._defaults, TimeoutPolicy.coerce(timeout)
        defaults.retry_policy = defaults.retry_policy if retry_policy is None else retry_policy
        defaults.cache_policy = defaults.cache_policy if cache_policy is None else cache_policy
        defaults.error_handler = defaults.error_handler if error_handler is None else error_handler
        defaults.timeout = defaults.timeout if limit is None else limit
        return self

    def add_node(
        self,
        node: str | Any,
        action: Any = None,
        *,
        defer: bool = False,
        metadata: dict[str, Any] | None = None,
        input_schema: Any = None,
        retry_policy: Retries | None = None,
        cache_policy: CachePolicy[Any] | None = None,
        error_handler: Any = None,
        destinations: dict[str, str] | tuple[str, ...] | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
        trace_policy: TracePolicy | None = None,
        effect: bool | Literal["eager"] = False,
        gate: bool = False,
        **deprecated: Any,
    ) -> Self:
        """Add a node: `add_node("name", action)`, or `add_node(action)` to name it after the function.

        action: a function of the state (sync, async or a generator), a callable object, a compiled graph, a
        Runnable, or a dict of these. Parameters called config, runtime, store, writer or previous are filled.
        defer: run when nothing else is left to run. metadata: shown to tracers and drawings. input_schema: the
        keys to read; default: what the first parameter is annotated with, else the state. retry_policy,
        cache_policy: see those classes. error_handler: a node that runs in the step in which this one failed for
        good. destinations: where its commands may go, if the return annotation `Command[Literal[...]]` doesn't
        say. timeout: seconds, a timedelta or a TimeoutPolicy, for async nodes. trace_policy: what tracers see.
        effect: the node as a whole is an effect (docs/effects.md): it starts only when its siblings are settled and
        none waits for a decision, and happens once; "eager": it doesn't wait for siblings. gate: the node waits for a
        decision, and its siblings don't start before it is made.

        Raises ValueError for a name that is taken, reserved, or contains "|" or ":"; TypeError for an action
        that can't be run.
        """
        retry_policy = by_either_name(deprecated, "retry", "retry_policy", retry_policy)
        input_schema = by_either_name(deprecated, "input", "input_schema", input_schema)
        _refuse(deprecated, "add_node")
        name, action = self._named(node, action)
        schema = input_schema if input_schema is not None else input_hint(action) or self.state_schema
        self._add_schema(schema)
        spec = StateNodeSpec(
            runnable=as_effect(coerce(action, name), name, effect),
            metadata=metadata,
            input_schema=schema,
            retry_policy=retry_policy,
            cache_policy=cache_policy,
            ends=inferred_destinations(action) if destinations is None else destinations,
            defer=defer,
            timeout=TimeoutPolicy.coerce(timeout),
            trace_policy=trace_policy,
            gate=gate,
        )
        if error_handler is not None:
            spec.error_handler_node = self._add_handler(name, error_handler, schema)
        self.nodes[name] = spec
        return self

    def _named(self, node: Any, action: Any) -> tuple[str, Any]:
        """The name and the action of a new node."""
        if isinstance(node, str):
            if action is None:
                raise RuntimeError(f"Node {node!r} needs something to run: add_node({node!r}, function).")
            name = node
        elif action is not None:
            raise TypeError(f"A node's name is a string, not {node!r}: add_node('name', action) or add_node(action).")
        else:
            name, action = name_of(node), node
        self._warn_if_compiled("a node")
        if name in self.nodes:
            raise ValueError(f"Node `{name}` already present. Give this one another name: add_node('name', ...).")
        if name in (START, END):
            raise ValueError(f"Node `{name}` is reserved. It is where every run begins or ends.")
        for character in _RESERVED:
            if character in name:
                raise ValueError(
                    f"'{character}' is a reserved character and is not allowed in the node names. Node: {name!r}."
                )
        return name, action

    def _add_handler(self, name: str, handler: Any, schema: Any) -> str:
        key = handler_name(name)
        if key in self.nodes:
            raise ValueError(f"Auto-generated error handler node `{key}` already exists.")
        self.nodes[key] = _handler_spec(handler, key, schema)
        return key

    def add_sequence(self, nodes: Sequence[Any | tuple[str, Any]]) -> Self:
        """Add nodes, each with an edge to the next. An item is a node's action or a pair (name, action).

        Raises ValueError for an empty sequence and for a name that occurs twice.
        """
        if len(nodes) < 1:
            raise ValueError("Sequence requires at least one node.")
        before: str | None = None
        for node in nodes:
            name, action = node if isinstance(node, tuple) and len(node) == 2 else (name_of(node), node)
            if name in self.nodes:
                raise ValueError(
                    f"Node names must be unique: node with the name '{name}' already exists. If you need to use "
                    "two different runnables/callables with the same name (for example, using `lambda`), please "
                    "provide them as tuples (name, runnable/callable)."
                )
            self.add_node(name, action)
            if before is not None:
                self.add_edge(before, name)
            before = name
        return self

    # --- edges ---------------------------------------------------------------------------------------------

    def add_edge(self, start_key: str | list[str], end_key: str) -> Self:
        """Let `end_key` run after `start_key`; after a list of nodes: once each of them has run.

        Whether the nodes of a plain edge exist is checked by `compile`; those of a list must be there already.
        Raises ValueError for edges from END or to START.
        """
        self._warn_if_compiled("an edge")
        if isinstance(start_key, str):
            if start_key == END:
                raise ValueError("END cannot be a start node")
            if end_key == START:
                raise ValueError("START cannot be an end node")
            self.edges.add((start_key, end_key))
            return self
        if not start_key:
            raise ValueError(f"The join to {end_key!r} needs at least one source: add_edge(['a', 'b'], {end_key!r}).")
        for start in start_key:
            if start == END:
                raise ValueError("END cannot be a start node")
            if start not in self.nodes:
                raise ValueError(f"Need to add_node `{start}` first: the join to {end_key!r} waits for it.")
        if end_key == START:
            raise ValueError("START cannot be an end node")
        if end_key != END and end_key not in self.nodes:
            raise ValueError(f"Need to add_node `{end_key}` first: the join of {list(start_key)} starts it.")
        self.waiting_edges.add((tuple(start_key), end_key))
        return self

    def add_conditional_edges(
        self,
        source: str,
        path: Any,
        path_map: Mapping[Hashable, str] | Sequence[str] | None = None,
    ) -> Self:
        """Let `path` choose what runs after `source`.

        path: a function (or Runnable) of the state with the node's own update applied; it returns a node's name,
        a Send, END, or a list of these. path_map: node names by what the function may return, or a list of the
        names it may return; default: its `Literal` return annotation. Without any of these every node counts as
        possible, which drawings can't show. Raises ValueError for a second branch of that name at `source`.
        """
        self._warn_if_compiled("an edge")
        branch = BranchSpec.of(path, path_map)
        name = branch_name(path)
        if name in self.branches[source]:
            raise ValueError(
                f"Branch with name `{name}` already exists for node `{source}`: give the path functions of one "
                "node different names."
            )
        self.branches[source][name] = branch
        if branch.input_schema is not None:
            self._add_schema(branch.input_schema)
        return self

    def set_entry_point(self, key: str) -> Self:
        """Let the run begin with `key`: the same as `add_edge(START, key)`."""
        return self.add_edge(START, key)

    def set_conditional_entry_point(
        self, path: Any, path_map: Mapping[Hashable, str] | Sequence[str] | None = None
    ) -> Self:
        """Let `path` choose what the run begins with: conditional edges from START."""
        return self.add_conditional_edges(START, path, path_map)

    def set_finish_point(self, key: str) -> Self:
        """Let the run end after `key`, if nothing else is to run: the same as `add_edge(key, END)`."""
        return self.add_edge(key, END)

    def _warn_if_compiled(self, what: str) -> None:
        if self.compiled:
            from logging import getLogger

            getLogger(__name__).warning(
                "Adding %s to a graph that has already been compiled. This will not be reflected in the "
                "compiled graph.",
                what,
            )

    # --- compiling -----------------------------------------------------------------------------------------

    def validate(self, interrupt: Sequence[str] | None = None) -> Self:
        """The builder, checked: ValueError for edges, branches, destinations or interrupts without their node.

        Warns (UnreachableJoinWarning) of a join that may wait for a node which never runs.
        """
        check_names(self, interrupt or ())
        warn_of_dead_joins(self, stacklevel=2)
        self.compiled = True
        return self

    def compile(
        self,
        checkpointer: Checkpointer = None,
        *,
        cache: BaseCache[Any] | None = None,
        store: BaseStore | None = None,
        interrupt_before: All | list[str] | None = None,
        interrupt_after: All | list[str] | None = None,
        debug: bool = False,
        name: str | None = None,
        transformers: Sequence[Any] | None = None,
    ) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
        """A graph that can be run; the builder may be changed and compiled again.

        checkpointer: a saver that makes threads durable; None: that of an enclosing graph, if there is one;
        True (nested graphs): the enclosing graph's, with state that lasts from call to call; False: none.
        store, cache: passed to nodes and used for results. interrupt_before, interrupt_after: nodes to pause at,
        or "*". debug: print every step. name: shown to tracers and drawings.

        Raises what `validate` raises; ValueError for a timeout on a node that is not async; TypeError for a
        checkpointer that is none.
        """
        checkpointer = ensure_valid_checkpointer(checkpointer)
        before, after = interrupt_before or [], interrupt_after or []
        named = [node for given in (before, after) if given != "*" for node in given]
        check_names(self, named)
        warn_of_dead_joins(self, stacklevel=2)
        self.compiled = True
        outputs = self.schemas[self.output_schema].channels
        compiled: CompiledStateGraph[StateT, ContextT, InputT, OutputT] = CompiledStateGraph(
            builder=self,
            schema_to_mapper={},
            context_schema=self.context_schema,
            nodes={},
            channels={**self.channels, **self.managed, START: EphemeralValue(self.input_schema)},
            input_channels=START,
            stream_mode="updates",
            output_channels=ROOT if set(outputs) == {ROOT} else list(outputs),
            stream_channels=ROOT if set(self.channels) == {ROOT} else list(self.channels),
            checkpointer=checkpointer,
            interrupt_before_nodes=before,
            interrupt_after_nodes=after,
            auto_validate=False,
            debug=debug,
            store=store,
            cache=cache,
            name=name or "LangGraph",
            stream_transformers=transformers,
        )
        self._attach_all(compiled)
        compiled.checkpointer = compiled._with_classes(checkpointer)
        compiled.cache = compiled._with_classes(cache)
        compiled.validate()
        return compiled

    def _attach_all(self, compiled: CompiledStateGraph[StateT, ContextT, InputT, OutputT]) -> None:
        """Nodes first, since edges and branches refer to them; all in the order of declaration."""
        compiled.attach_node(START, None)
        for key, spec in self._effective().items():
            compiled.attach_node(key, spec)
        for start, end in self.edges:
            compiled.attach_edge(start, end)
        for starts, end in self.waiting_edges:
            compiled.attach_edge(starts, end)
        for start, branches in self.branches.items():
            for name, branch in branches.items():
                compiled.attach_branch(start, name, branch)
        for key, node in compiled.nodes.items():
            refuse_sync_timeout(key, node)

    def _effective(self) -> dict[str, StateNodeSpec]:
        """The nodes with the graph's defaults, which don't change the builder: it can be compiled again."""
        defaults = self._defaults
        nodes = {key: defaults.applied(spec) for key, spec in self.nodes.items()}
        if defaults.error_handler is not None:
            if DEFAULT_HANDLER in nodes:
                raise ValueError(f"Auto-generated default error handler node `{DEFAULT_HANDLER}` already exists.")
            handler = _handler_spec(defaults.error_handler, DEFAULT_HANDLER, self.state_schema)
            nodes[DEFAULT_HANDLER] = defaults.applied(handler)
        return nodes


def branch_name(path: Any) -> str:
    """What a branch is called: the path function's name, or "condition" where it has none of its own."""
    name = name_of(path) if is_runnable(path) else getattr(path, "__name__", "<lambda>")
    return "condition" if name == "<lambda>" else str(name)


def _handler_spec(handler: Any, key: str, schema: Any) -> StateNodeSpec:
    return StateNodeSpec(
        runnable=coerce(handler, key),
        metadata=None,
        input_schema=schema,
        retry_policy=None,
        cache_policy=None,
        is_error_handler=True,
        ends=inferred_destinations(handler),
    )


def _kind(channel: BaseChannel[Any, Any, Any]) -> str:
    operator = getattr(channel, "operator", None) or getattr(channel, "reducer", None)
    return type(channel).__name__ + (f" of {getattr(operator, '__name__', operator)}" if operator else "")


def _refuse(unknown: Mapping[str, Any], where: str) -> None:
    if unknown:
        raise TypeError(f"{where} got unexpected arguments: {', '.join(map(repr, unknown))}.")
