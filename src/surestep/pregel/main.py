"""A graph that can be run: every public method in its sync and async form.

The methods resolve their arguments (`_prepare`), let a driver play the core's generator, and shape what comes out
(`_shape`). Nothing is decided here.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from surestep._constants import ERROR, INPUT, INTERRUPT, NO_WRITES, PULL, PUSH, RESUME, TASKS
from surestep._core.blueprint import Blueprint
from surestep._core.events import Part
from surestep._core.run import Outcome, run
from surestep._drive.sync import SyncDriver
from surestep.channels.base import BaseChannel
from surestep.channels.topic import Topic
from surestep.channels.untracked_value import UntrackedValue
from surestep.integrations.runnable import AsRunnable
from surestep.integrations.watch import watch
from surestep.managed.base import is_managed_value
from surestep.pregel._cache import CacheMethods
from surestep.pregel._drawing import DrawMethods
from surestep.pregel._prepare import Call, Prepared, as_modes, prepare
from surestep.pregel._schemas import SchemaMethods
from surestep.pregel._shape import conclude, result, shaper
from surestep.pregel._state import StateMethods
from surestep.pregel.node import NodeBuilder, PregelNode, policies
from surestep.types import Send, ensure_valid_checkpointer
from surestep.typing import ContextT, InputT, OutputT, StateT

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
    AsRunnable, StateMethods, SchemaMethods, DrawMethods, CacheMethods, Generic[StateT, ContextT, InputT, OutputT]
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
        self.checkpointer = (
            ensure_valid_checkpointer(checkpointer) if isinstance(checkpointer, (bool, type(None))) else checkpointer
        )
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

    def _coerce_output(self, mode: str, data: Any) -> Any:
        """Output of a v2 stream as the class of its schema."""
        return data

    # running

    def _core(self, prepared: Prepared) -> Any:
        state: list[Any] = _Into(prepared.env)
        return run(self.blueprint, prepared.request, prepared.show, state)

    def _sync_parts(self, prepared: Prepared, live: bool) -> Iterator[Part]:
        driver = SyncDriver(
            prepared.env,
            prepared.port,
            prepared.modes,
            subgraphs=prepared.subgraphs,
            live=live,
            limit=prepared.limit,
            durability=prepared.durability,
            threads_only=self.stream_eager,
            step_timeout=self.step_timeout,
        )
        parts = driver.drive(self._core(prepared))
        watched = watch(self, prepared, is_async=False)
        return parts if watched is None else watched.sync(parts)

    def _async_parts(self, prepared: Prepared, live: bool) -> AsyncIterator[Any]:
        from surestep._drive.async_ import AsyncDriver

        driver = AsyncDriver(
            prepared.env,
            prepared.port,
            prepared.modes,
            subgraphs=prepared.subgraphs,
            live=live or self.stream_eager,
            limit=prepared.limit,
            durability=prepared.durability,
            step_timeout=self.step_timeout,
        )
        parts = driver.drive(self._core(prepared))
        watched = watch(self, prepared, is_async=True)
        return parts if watched is None else watched.async_(parts)

    def _conclude(self, prepared: Prepared, outcome: Outcome) -> None:
        request = prepared.request
        conclude(self, outcome, request.recursion_limit, request.control, prepared.nested)

    def _stream_plan(
        self, input: Any, config: Any, options: dict[str, Any]
    ) -> tuple[Prepared, Callable[[Part], Any], bool]:
        """Arguments of `stream` -> a prepared run, how its parts are shown, and whether nodes stream while they run."""
        version = options.pop("version")
        if version not in ("v1", "v2"):
            raise ValueError(f"version must be 'v1' or 'v2', got {version!r}.")
        printed = self._printed_modes(options.pop("print_mode", ()), options.pop("debug", None))
        modes, tagged = as_modes(options.pop("stream_mode") or self._default_mode(config))
        options = _durability_of(options)
        prepared = prepare(self, Call(input, config, modes=modes | printed, **options))
        live = prepared.subgraphs or not modes.isdisjoint(("custom", "messages", "tools"))
        shape = shaper(tagged, prepared.subgraphs, version, self._coerce_output)
        return prepared, _printing(shape, printed, modes), live

    def _default_mode(self, config: Any) -> Any:
        from surestep._context import current_task

        return "values" if current_task.get() is not None else self.stream_mode

    def stream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: Any = None,
        print_mode: Any = (),
        output_keys: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        durability: Any = None,
        control: Any = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Run the graph and yield what happens, as it happens.

        input: a dict of state keys, a `Command`, or None to continue the thread. stream_mode: one mode or several
        (then parts are tagged with theirs); default: the graph's own. print_mode: modes to print as well. subgraphs:
        also parts of graphs inside nodes, with their namespace. durability: "sync", "async" (default) or "exit".
        control: a `RunControl` to stop the run with. version: "v1" (payloads and tuples) or "v2" (dicts).
        Raises what a node raises, GraphRecursionError, GraphDrained, ThreadConflict, EmptyInputError.
        """
        options = dict(
            context=context,
            stream_mode=stream_mode,
            print_mode=print_mode,
            output_keys=output_keys,
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            control=control,
            subgraphs=subgraphs,
            debug=debug,
            version=version,
            **kwargs,
        )
        prepared, shape, live = self._stream_plan(input, config, options)
        parts = self._sync_parts(prepared, live)
        try:
            while True:
                try:
                    part = next(parts)
                except StopIteration as end:
                    self._conclude(prepared, end.value)
                    return
                if (shown := shape(part)) is not _HIDDEN:
                    yield shown
        finally:
            parts.close()  # type: ignore[attr-defined]

    async def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: Any = None,
        print_mode: Any = (),
        output_keys: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        durability: Any = None,
        control: Any = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """As `stream`, on the running event loop."""
        options = dict(
            context=context,
            stream_mode=stream_mode,
            print_mode=print_mode,
            output_keys=output_keys,
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            control=control,
            subgraphs=subgraphs,
            debug=debug,
            version=version,
            **kwargs,
        )
        prepared, shape, live = self._stream_plan(input, config, options)
        parts = self._async_parts(prepared, live)
        try:
            async for part in parts:
                if type(part) is Outcome:
                    self._conclude(prepared, part)
                elif (shown := shape(part)) is not _HIDDEN:
                    yield shown
        finally:
            await parts.aclose()  # type: ignore[attr-defined]

    def invoke(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: Any = "values",
        print_mode: Any = (),
        output_keys: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        durability: Any = None,
        control: Any = None,
        version: str = "v1",
        **kwargs: Any,
    ) -> Any:
        """Run the graph and return its output: the state, or with another stream_mode a list of all parts.

        Arguments as in `stream`. A pause adds `"__interrupt__"`, a list of `Interrupt`s, to the state; with
        version="v2" the result is a `GraphOutput(value, interrupts)`.
        """
        options = dict(
            context=context,
            output_keys=output_keys,
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            control=control,
        )
        if stream_mode != "values":
            more = dict(stream_mode=stream_mode, print_mode=print_mode, version=version, **kwargs)
            return list(self.stream(input, config, **self._with_output_keys({**options, **more})))
        prepared, hear = self._invoke_plan(input, config, print_mode, {**options, **kwargs})
        parts = self._sync_parts(prepared, live=False)
        try:
            while True:
                hear(next(parts))
        except StopIteration as end:
            self._conclude(prepared, end.value)
            return result(end.value, version, self._coerce_output)

    async def ainvoke(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: Any = "values",
        print_mode: Any = (),
        output_keys: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        durability: Any = None,
        control: Any = None,
        version: str = "v1",
        **kwargs: Any,
    ) -> Any:
        """As `invoke`, on the running event loop. When it is cancelled, it ends only after nothing of the run can
        write any more.
        """
        options = dict(
            context=context,
            output_keys=output_keys,
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            control=control,
        )
        if stream_mode != "values":
            more = dict(stream_mode=stream_mode, print_mode=print_mode, version=version, **kwargs)
            parts = self.astream(input, config, **self._with_output_keys({**options, **more}))
            return [part async for part in parts]
        prepared, hear = self._invoke_plan(input, config, print_mode, {**options, **kwargs})
        outcome: Any = None
        async for outcome in self._async_parts(prepared, live=False):
            if type(outcome) is Part:
                hear(outcome)
        self._conclude(prepared, outcome)
        return result(outcome, version, self._coerce_output)

    def _with_output_keys(self, options: dict[str, Any]) -> dict[str, Any]:
        """A list of an invoke's parts shows the output channels, where a stream shows all of the state."""
        keys = options["output_keys"]
        return {**options, "output_keys": self.output_channels if keys is None else keys}

    def _invoke_plan(
        self, input: Any, config: Any, print_mode: Any, options: dict[str, Any]
    ) -> tuple[Prepared, Callable[[Part], Any]]:
        """Arguments of `invoke` -> a prepared run, and what to do with its parts: print them, if anything."""
        printed = self._printed_modes(print_mode, options.pop("debug", None))
        call = Call(input, config, modes=printed, whole_output=True, **_durability_of(options))
        return prepare(self, call), _printing(lambda part: None, printed, frozenset())

    def _printed_modes(self, print_mode: Any, debug: bool | None) -> frozenset[str]:
        if self.debug if debug is None else debug:
            return frozenset(("updates", "values"))
        return as_modes(print_mode or ())[0]

    def batch(
        self, inputs: Sequence[Any], config: Any = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> list[Any]:
        """`invoke` on each input, side by side; results in the order of the inputs."""
        from surestep.pregel._batch import batch

        return batch(self, inputs, config, return_exceptions, kwargs)

    async def abatch(
        self, inputs: Sequence[Any], config: Any = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> list[Any]:
        """`ainvoke` on each input, side by side; results in the order of the inputs."""
        from surestep.pregel._batch import abatch

        return await abatch(self, inputs, config, return_exceptions, kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, nodes={list(self.nodes)})"


_HIDDEN = object()


class _Into(list[Any]):
    """Hands a run's state to the environment of its nodes as soon as there is one."""

    def __init__(self, env: Any) -> None:
        super().__init__()
        self.env = env

    def append(self, state: Any) -> None:
        self.env.run = state


def _printing(shape: Callable[[Part], Any], printed: frozenset[str], shown: frozenset[str]) -> Callable[[Part], Any]:
    if not printed:
        return shape

    def print_and_shape(part: Part) -> Any:
        if part.mode in printed:
            where = f"[{'|'.join(part.ns)}] " if part.ns else ""
            sys.stdout.write(f"{where}[{part.mode}] {part.payload!r}\n")
        return shape(part) if part.mode in shown else _HIDDEN

    return print_and_shape


def _durability_of(options: dict[str, Any]) -> dict[str, Any]:
    """Options with the old name of durability understood."""
    options.pop("stream_mode", None)
    options.pop("debug", None)
    before = options.pop("checkpoint_during", None)
    if before is not None:
        import warnings

        from surestep.warnings import LangGraphDeprecatedSinceV10

        if options.get("durability") is not None:
            raise ValueError("Pass durability or checkpoint_during (its old name), not both.")
        warnings.warn(
            "`checkpoint_during` is deprecated; use durability='async' (True) or 'exit' (False).",
            category=LangGraphDeprecatedSinceV10,
            stacklevel=4,
        )
        options["durability"] = "async" if before else "exit"
    return options
