"""From the arguments of a run to what the core and a driver need. The same for threads and asyncio."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from time import time_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from surestep._config import ensure_config
from surestep._constants import CONFIG_KEY_DURABILITY, CONFIG_KEY_STRICT_RESUME
from surestep._core.emit import Show
from surestep._core.ids import NS_END, NS_SEP, recast
from surestep._core.run import Request
from surestep._drive.context import TASK_KEY, TaskContext
from surestep._drive.env import Env
from surestep._drive.saving import SaverPort
from surestep._drive.tenure import LEASE_SECONDS, new_holder
from surestep.callbacks import graph_handlers
from surestep.checkpoint.base import EXCLUDED_METADATA_KEYS
from surestep.checkpoint.base._leases import Hold, has_leases
from surestep.checkpoint.base._ledger import has_ledger
from surestep.checkpoint.base.id import next_checkpoint_id
from surestep.runtime import RunControl, Runtime, ServerInfo

if TYPE_CHECKING:
    from surestep.pregel.main import Pregel

MODES = frozenset({"values", "updates", "checkpoints", "tasks", "debug", "messages", "custom", "tools"})


class Call(NamedTuple):
    """The arguments of one run, as the public methods take them."""

    input: Any
    config: Any
    context: Any = None
    modes: frozenset[str] = frozenset()  # what the caller wants to see
    output_keys: Any = None
    interrupt_before: Any = None
    interrupt_after: Any = None
    durability: str | None = None
    control: RunControl | None = None
    subgraphs: bool = False
    whole_output: bool = False  # invoke: the output channels; stream: all of the state
    multitask_strategy: str | None = None  # what to do when another run holds the thread
    protocol: bool = False  # models speak in content-block events instead of tokens


class Prepared(NamedTuple):
    """A run ready to be driven."""

    env: Env
    request: Request
    show: Show
    port: SaverPort | None
    modes: frozenset[str]
    subgraphs: bool
    limit: int | None
    durability: str
    nested: bool
    protocol: bool
    strategy: str | None


_second: tuple[int, str] = (0, "")  # the last second that was written out, and its text


def now() -> str:
    """The time as checkpoints hold it: ISO 8601, UTC, microseconds."""
    global _second
    seconds, nanos = divmod(time_ns(), 1_000_000_000)
    at, text = _second
    if at != seconds:
        text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        _second = (seconds, text)
    return f"{text}.{nanos // 1000:06}+00:00"


def count_version(current: int | None, channel: None) -> int:
    """Channel versions of a run that keeps nothing."""
    return 1 if current is None else current + 1


def prepare(graph: Any, call: Call) -> Prepared:
    """Resolve what comes from the caller, from the graph and from an enclosing run."""
    config: dict[str, Any] = ensure_config(graph.config, call.config)  # type: ignore[assignment]
    configurable = config["configurable"]
    parent: TaskContext | None = configurable.get(TASK_KEY)
    keys = output_keys(graph, call)
    saver, setting = resolve_saver(graph, parent)
    check_config(config, saver, parent)
    durability, named = resolve_durability(call, parent, configurable, saver)
    place = Place(graph, parent, configurable, saver)
    own, modes = shown_modes(call, config, parent)
    cache = resolve_cache(graph, parent)
    env = Env(
        blueprint=graph.blueprint,
        config=config,
        ns=place.ns,
        runtime=make_runtime(graph, call, parent, configurable),
        saver=saver,
        saver_setting=setting,
        durability=named,
        run_id=configurable.get("run_id") or config["metadata"].get("run_id"),
        parent=parent,
        replayed=parent.env.replayed if parent is not None else None,
        custom="custom" in modes,
        address=place.address,
        cache=cache,
        hold=resolve_hold(saver, parent, configurable),
    )
    labels = labels_of(config) if "tasks" in modes or "debug" in modes else {}
    return Prepared(
        env=env,
        request=make_request(graph, call, env, place, durability),
        show=Show(modes, keys, now, graph.stream_channels_asis, labels),
        port=SaverPort(saver, config, graph._migrate, env.hold) if saver is not None else None,
        modes=own,
        subgraphs=call.subgraphs,
        limit=config.get("max_concurrency"),
        durability=durability,
        nested=parent is not None,
        protocol=call.protocol,
        strategy=call.multitask_strategy,
    )


def make_request(graph: Any, call: Call, env: Env, place: Place, durability: str) -> Request:
    """What the core is asked to do."""
    config, parent, saver = env.config, env.parent, env.saver
    request = Request(
        input=call.input,
        config=config,
        mint=next_checkpoint_id,
        now=now,
        next_version=saver.get_next_version if saver is not None else count_version,
        recursion_limit=config["recursion_limit"],
        control=env.runtime.control,
        ns=place.ns,
        nested=parent is not None,
        saver=saver is not None,
        durability=durability,
        checkpoint_id=place.checkpoint_id,
        mapped=place.mapped,
        base_ns=place.base_ns,
        deep=tuple(place.address),
        bound=place.bound,
        resuming=place.resuming,
        run_id=config["metadata"].get("run_id"),
        strict=bool(config["configurable"].get(CONFIG_KEY_STRICT_RESUME)) and parent is None,
        before=call.interrupt_before or graph.interrupt_before_nodes,
        after=call.interrupt_after or graph.interrupt_after_nodes,
        timed=graph.step_timeout is not None,
        caching=env.cache is not None,
        ledger=has_ledger(env.ledger),
        holding=env.hold is not None and parent is None and durability != "exit",
    )
    if parent is not None:
        request.answers = parent.env.run.request.answers
        request.parents = parent.env.parents_of_children()
    return request


def check_config(config: dict[str, Any], saver: Any, parent: TaskContext | None) -> None:
    """Raise ValueError for what a run can't be started with; the thread's id becomes text."""
    configurable, limit = config["configurable"], config["recursion_limit"]
    if limit < 1:
        raise ValueError(f"recursion_limit must be at least 1, got {limit}: it is the number of steps a run may take.")
    if saver is not None and not configurable:
        raise ValueError(
            "Checkpointer requires one or more of the following 'configurable' keys: thread_id, checkpoint_ns, "
            'checkpoint_id. Pass config={"configurable": {"thread_id": "..."}}.'
        )
    if saver is not None and parent is None and configurable.get("thread_id") is None:
        raise ValueError(
            'The graph has a checkpointer, so a run needs a thread: config={"configurable": {"thread_id": "..."}}.'
        )
    if configurable.get("thread_id") is not None and not isinstance(configurable["thread_id"], str):
        configurable["thread_id"] = str(configurable["thread_id"])


def shown_modes(
    call: Call, config: Mapping[str, Any], parent: TaskContext | None
) -> tuple[frozenset[str], frozenset[str]]:
    """The stream modes that the caller wants, and all that somebody wants: the run around it may want more."""
    own = call.modes
    if config["callbacks"] and graph_handlers(config["callbacks"]):
        own |= {"lifecycle"}
    above = parent.env.down.modes if parent is not None and parent.env.down is not None else frozenset()
    return own, own | above


def labels_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's own metadata and tags, without what the engine put there."""
    hidden = EXCLUDED_METADATA_KEYS
    labels = {
        k: v for k, v in config["metadata"].items() if k not in hidden and not k.startswith(("langgraph_", "ls_"))
    }
    return {**labels, "tags": list(config["tags"])} if config["tags"] else labels


def output_keys(graph: Pregel[Any, Any, Any, Any], call: Call) -> Any:
    """The keys whose values the run shows."""
    keys = call.output_keys
    if keys is None:
        return graph.output_channels if call.whole_output else graph.stream_channels_asis
    for key in [keys] if isinstance(keys, str) else keys:
        if key not in graph.blueprint.channels:
            raise ValueError(f"Key {key} not in channels: output_keys may name {sorted(graph.blueprint.channels)}.")
    return keys


def resolve_saver(graph: Pregel[Any, Any, Any, Any], parent: TaskContext | None) -> tuple[Any, Any]:
    """The saver of this run, and what graphs inside it inherit."""
    if graph.checkpointer is False:
        return None, None
    if parent is not None:
        inherited = parent.env.saver_setting
        return graph._with_classes(inherited) if inherited is not None else None, inherited
    if graph.checkpointer is True:
        raise RuntimeError(
            "checkpointer=True cannot be used for root graphs: it means to use the enclosing graph's. Compile this "
            "graph with a saver, e.g. compile(checkpointer=InMemorySaver())."
        )
    return graph.checkpointer, graph.checkpointer


def resolve_cache(graph: Pregel[Any, Any, Any, Any], parent: TaskContext | None) -> Any:
    """The cache of this run: its own, or that of the enclosing one."""
    if graph.cache is not None or parent is None or parent.env.cache is None:
        return graph.cache
    return graph._with_classes(parent.env.cache)


def resolve_hold(saver: Any, parent: TaskContext | None, configurable: Mapping[str, Any]) -> Hold | None:
    """The claim to the thread: one for a run and all inside it, where the saver keeps leases."""
    if parent is not None:
        return parent.env.hold
    return Hold(configurable["thread_id"], new_holder(), LEASE_SECONDS) if has_leases(saver) else None


def resolve_durability(
    call: Call, parent: TaskContext | None, configurable: Mapping[str, Any], saver: Any
) -> tuple[str, str | None]:
    """How durable, and whether the caller said so (then nested graphs follow)."""
    if call.durability is not None and saver is None:
        warnings.warn("`durability` has no effect when no checkpointer is present.", stacklevel=5)
    named = call.durability or configurable.get(CONFIG_KEY_DURABILITY)
    if named is None and parent is not None:
        named = parent.env.durability
    return named or "async", named


def make_runtime(
    graph: Pregel[Any, Any, Any, Any], call: Call, parent: TaskContext | None, configurable: Mapping[str, Any]
) -> Runtime[Any]:
    """What nodes of this run get as their runtime, before each adds its own."""
    outer = parent.env.runtime if parent is not None else None
    control = call.control or (outer.control if outer is not None else None) or RunControl()
    own: Runtime[Any] = Runtime(
        context=coerce_context(graph.context_schema, call.context),
        store=graph.store if outer is None else outer.store,
        control=control,
        server_info=server_info(configurable),
    )
    return own if outer is None else outer.merge(own)


def coerce_context(schema: Any, context: Any) -> Any:
    """The context as its schema wants it: a dict becomes an instance of a dataclass or model."""
    if context is None or schema is None or not isinstance(context, dict):
        return context
    if hasattr(schema, "__dataclass_fields__") or hasattr(schema, "model_fields"):
        return schema(**context)
    return context


def server_info(configurable: Mapping[str, Any]) -> ServerInfo | None:
    user = configurable.get("langgraph_auth_user")
    if not any(configurable.get(key) for key in ("assistant_id", "graph_id", "langgraph_auth_user")):
        return None
    return ServerInfo(
        assistant_id=configurable.get("assistant_id", ""),
        graph_id=configurable.get("graph_id", ""),
        user=user if hasattr(user, "identity") else None,
    )


class Place:
    """Where a run stands in its thread: namespace, the checkpoint it starts from, and what it is told of resuming."""

    __slots__ = ("address", "base_ns", "bound", "checkpoint_id", "mapped", "ns", "resuming")

    def __init__(
        self,
        graph: Pregel[Any, Any, Any, Any],
        parent: TaskContext | None,
        configurable: Mapping[str, Any],
        saver: Any,
    ) -> None:
        self.checkpoint_id: str | None = None
        self.base_ns: str | None = None
        self.bound: str | None = None
        self.mapped = False
        self.resuming: bool | None = None
        self.address: dict[str, str] = {}  # checkpoints further down that the caller means
        if parent is None:
            self._at_root(configurable, saver)
        else:
            self._inside(graph, parent, saver)

    def _at_root(self, configurable: Mapping[str, Any], saver: Any) -> None:
        self.ns = ""
        if saver is None:
            return
        address = dict(configurable.get("checkpoint_map") or {})
        self.checkpoint_id = address.pop("", None)
        if not configurable.get("checkpoint_ns"):
            self.checkpoint_id = configurable.get("checkpoint_id") or self.checkpoint_id
        elif configurable.get("checkpoint_id") and self.checkpoint_id is not None:
            address.setdefault(configurable["checkpoint_ns"], configurable["checkpoint_id"])
        self.address = address

    def _inside(self, graph: Pregel[Any, Any, Any, Any], parent: TaskContext, saver: Any) -> None:
        number = parent.next_number("graphs")
        self.ns = child_namespace(parent.task.ns, number, graph.checkpointer)
        self.resuming = parent.env.resuming_of_children(parent)
        address = parent.env.address
        found = self.ns if self.ns in address else _same_graph(self.ns, address)
        if saver is not None and found is not None:
            self.checkpoint_id = address.pop(found)
            self.mapped = True
            self.base_ns = found if found != self.ns else None
            if self.base_ns:
                self.resuming = True
        self.address = {ns: id for ns, id in address.items() if ns.startswith(self.ns)}
        replayed = parent.env.replayed
        if replayed is not None and not self.mapped and self.ns not in replayed.visited:
            replayed.visited.add(self.ns)
            self.bound = replayed.bound
            self.resuming = False


def _same_graph(ns: str, address: Mapping[str, str]) -> str | None:
    """The address of the same graph inside an older task: a fork gave the task a new id."""
    return next((key for key in address if recast(key) == recast(ns)), None)


def child_namespace(task_ns: str, number: int, checkpointer: Any) -> str:
    """The namespace of the graph that runs in a task; the second and later ones in it are numbered."""
    ns = f"{task_ns}{NS_SEP}{number}" if number else task_ns
    if checkpointer is True:
        return NS_SEP.join(part.split(NS_END)[0] for part in ns.split(NS_SEP))
    return ns


def as_modes(stream_mode: Any) -> tuple[frozenset[str], bool]:
    """The stream modes asked for, and whether several were (then parts are tagged)."""
    single = isinstance(stream_mode, str)
    modes: Iterable[str] = (stream_mode,) if single else stream_mode
    found = frozenset(modes)
    if unknown := found - MODES:
        raise ValueError(f"Unknown stream mode {sorted(unknown)}: use some of {sorted(MODES)}.")
    return found, not single
