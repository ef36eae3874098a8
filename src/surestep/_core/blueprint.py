"""A compiled graph as the core sees it: everything that is the same for all steps, worked out once.

The core knows nodes by what they read, what triggers them and what policies they carry. What a node *does*
(`PregelNode.bound` and its writers) is the driver's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, Protocol

from surestep._core.ids import PULL, path_text
from surestep.channels.base import BaseChannel
from surestep.channels.ephemeral_value import EphemeralValue
from surestep.channels.last_value import LastValue

INPUT = "__input__"
INTERRUPT = "__interrupt__"
RESUME = "__resume__"
ERROR = "__error__"
ERROR_SOURCE_NODE = "__error_source_node__"
NO_WRITES = "__no_writes__"
TASKS = "__pregel_tasks"
RETURN = "__return__"
CALLED = "__called__"  # beside a called task's result: which call it was the result of
PREVIOUS = "__previous__"
START = "__start__"
END = "__end__"
HIDDEN = "langsmith:hidden"
MANY = 32  # so many channels are better looked at all at once than one by one
BRANCH = "branch:to:"  # + a node's name: the channel that starts it
JOIN = "join:"  # + the nodes to wait for and the one that waits: the channel that starts it

CONTROL = frozenset({ERROR, ERROR_SOURCE_NODE, INTERRUPT, RESUME})  # rows that say how a task stands
UNFOLDED = frozenset({NO_WRITES, "__pregel_push", RETURN, CALLED, *CONTROL})  # writes that no channel receives


class Identity(NamedTuple):
    """What tells a node's code from other code, where results are cached."""

    name: str | None  # "module.qualname" of its function, if it has one
    mark: bytes  # differs wherever results may differ


class NodeLike(Protocol):
    """What the core reads of a `pregel.node.PregelNode`."""

    channels: Any
    triggers: Any
    mapper: Callable[[Any], Any] | None
    tags: Any
    metadata: Any
    retry_policy: Any
    timeout: Any
    cache_policy: Any
    is_error_handler: bool
    error_handler_node: str | None
    gate: bool

    close: Callable[..., Sequence[tuple[str, Any]]] | None  # (input, what it had written, reads a channel[, why])

    @property
    def subgraphs(self) -> Any: ...

    @property
    def identity(self) -> Identity: ...

    @property
    def lookups(self) -> tuple[str, ...] | None: ...


class NodePlan:
    """One node: how it is triggered, what it reads, and how its failures are treated."""

    __slots__ = (
        "cache_policy",
        "consumes",
        "gate",
        "handler",
        "hidden",
        "id_text",
        "is_handler",
        "lookups",
        "managed",
        "mapper",
        "metadata",
        "name",
        "path",
        "path_text",
        "reads",
        "retry",
        "spec",
        "tags",
        "timeout",
        "triggers",
    )

    def __init__(self, name: str, spec: NodeLike, managed: Mapping[str, Any], retry: Sequence[Any]) -> None:
        self.name = name
        self.spec = spec
        self.triggers: tuple[str, ...] = tuple(sorted(spec.triggers))
        channels = spec.channels
        if isinstance(channels, str):
            self.reads: str | tuple[str, ...] = channels
            self.managed: tuple[tuple[str, Any], ...] = ()
        else:
            self.reads = tuple(key for key in channels if key not in managed)
            self.managed = tuple((key, managed[key]) for key in channels if key in managed)
        self.consumes: tuple[str, ...] = ()  # triggers that react to their value being taken
        self.mapper = spec.mapper
        wide = type(self.reads) is tuple and len(self.reads) > MANY and not self.managed and self.mapper is None
        self.lookups = spec.lookups if wide else None  # all that it looks at of the many keys that it reads
        self.tags: tuple[str, ...] = tuple(spec.tags or ())
        self.metadata: Mapping[str, Any] = spec.metadata or {}
        self.hidden = HIDDEN in self.tags
        self.retry: tuple[Any, ...] = tuple(spec.retry_policy or ()) or tuple(retry)
        self.timeout = spec.timeout
        self.gate = spec.gate
        self.is_handler = spec.is_error_handler
        self.handler = spec.error_handler_node
        self.cache_policy = spec.cache_policy
        self.path = (PULL, name)
        self.path_text = path_text(self.path)
        self.id_text = "".join([PULL, *self.triggers])  # of the ids of tasks that channels trigger

    @property
    def subgraphs(self) -> Sequence[Any]:
        """The graphs in it, as far as its code shows; looked for when somebody asks."""
        return self.spec.subgraphs or ()

    def with_spec(self, spec: Any) -> NodePlan:
        """The same node with something else to run."""
        twin = copy(self)
        twin.spec = spec
        return twin


class Blueprint:
    """A graph ready to run. Immutable once made; shared by all runs of the graph."""

    __slots__ = (
        "cache_policy",
        "caches",
        "channels",
        "delta",
        "finishing",
        "fleeting",
        "gated",
        "input_channels",
        "managed",
        "name",
        "nodes",
        "output_channels",
        "plain",
        "silent",
        "stream_channels",
        "triggered_by",
        "untracked",
    )

    def __init__(
        self,
        *,
        name: str,
        nodes: Mapping[str, NodeLike],
        channels: Mapping[str, BaseChannel[Any, Any, Any]],
        managed: Mapping[str, Any],
        input_channels: str | Sequence[str],
        output_channels: str | Sequence[str],
        stream_channels: str | Sequence[str],
        retry: Sequence[Any],
        handlers: Mapping[str, str],
        untracked: Iterable[str],
        cache_policy: Any = None,
    ) -> None:
        self.name = name
        self.channels = dict(channels)
        self.managed = dict(managed)
        self.nodes = {key: NodePlan(key, node, managed, retry) for key, node in nodes.items()}
        known: dict[Any, Any] = {}
        taking = {key for key, ch in channels.items() if type(ch).consume is not BaseChannel.consume}
        for node in self.nodes.values():  # nodes that read the same share one tuple of keys
            node.reads = known.setdefault(node.reads, node.reads)
            node.consumes = tuple([key for key in node.triggers if key in taking])
        for key, handler in handlers.items():
            self.nodes[key].handler = handler
        self.cache_policy = cache_policy  # of nodes and tasks without one
        for node in self.nodes.values():
            node.cache_policy = None if node.is_handler else node.cache_policy or cache_policy
        self.caches = any(node.cache_policy is not None for node in self.nodes.values())
        self.gated = any(node.gate for node in self.nodes.values())
        self.input_channels = input_channels
        self.output_channels = output_channels
        self.stream_channels = stream_channels
        self.untracked = frozenset(untracked)
        self.delta = tuple([key for key, ch in channels.items() if hasattr(ch, "replay_writes")])
        self.silent = frozenset(key for key, ch in channels.items() if ch.reacts_to_silence)
        self.fleeting = frozenset(key for key, ch in channels.items() if type(ch) is EphemeralValue)  # empty at first
        self.plain = frozenset(key for key, ch in channels.items() if type(ch) is LastValue)
        self.finishing = tuple(key for key, ch in channels.items() if ch.reacts_to_finish)
        triggered: dict[str, list[str]] = {}
        for node in self.nodes.values():
            for trigger in node.triggers:
                triggered.setdefault(trigger, []).append(node.name)
        self.triggered_by: dict[str, tuple[str, ...]] = {key: tuple(names) for key, names in triggered.items()}
