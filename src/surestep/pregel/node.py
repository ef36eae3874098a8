"""What the engine runs: a node's function, and the writers that turn its result into channel writes.

A `PregelNode` is data. The engine reads its channels, hands `bound` the input, then gives the result to each
writer in turn and collects `(channel, value)` pairs. Nothing here touches a checkpoint or a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from surestep._config import ensure_config
from surestep._constants import TASKS
from surestep._drive.alone import Alone
from surestep._drive.call import Call, SequenceCall, coerce
from surestep.errors import InvalidUpdateError
from surestep.integrations.closing import Close, closing_of
from surestep.types import CachePolicy, RetryPolicy, TimeoutPolicy

if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Self

    from surestep._core.blueprint import Identity
    from surestep.types import RunnableConfig, TracePolicy

__all__ = [
    "PASSTHROUGH",
    "ChannelWriteEntry",
    "ChannelWriter",
    "NodeBuilder",
    "PregelNode",
    "Router",
    "Way",
    "Writer",
]

Write = tuple[str, Any]
Fresh = Callable[..., Any]


class _Passthrough:
    """The type of `PASSTHROUGH`: there is one instance."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "PASSTHROUGH"


PASSTHROUGH: Final = _Passthrough()
"""Stands for "whatever the node returned" in a `ChannelWriteEntry`."""


class Way(NamedTuple):
    """Where a writer may lead, known without running anything: the write that starts what comes next.

    `label`: what to write beside it in a drawing. `conditional`: taken only when the node or its branch decides so.
    """

    channel: str
    value: Any = None
    label: str | None = None
    conditional: bool = False


class Writer:
    """Turns what a node returned into channel writes; pure, called once per finished attempt.

    `__call__` may raise `InvalidUpdateError` (the value can't be written) or `ParentCommand` (it is meant for
    an enclosing graph). `path` is None except for a `Router`, which has user code to ask first.
    """

    __slots__ = ()

    path: Call | None = None

    def __call__(self, value: Any) -> Sequence[Write]:
        """The writes that `value` stands for, in order."""
        raise NotImplementedError

    def ways(self) -> Sequence[Way]:
        """Where it may lead; a branch without a list of its answers doesn't tell. END is the way "__end__"."""
        return ()


class Router(Writer):
    """A conditional edge: asks user code where to go, then writes to the channels of those nodes.

    The engine calls `input`, runs `path` on what it gets as it runs a node, and hands the answer to `route`.
    """

    __slots__ = ()

    path: Call

    def input(self, fresh: Fresh, value: Any) -> Any:
        """What `path` receives. `fresh(select)` reads channels with the task's own writes applied."""
        raise NotImplementedError

    def route(self, chosen: Any) -> Sequence[Write]:
        """The writes that start the chosen nodes. Raises for a destination that is not one."""
        raise NotImplementedError


class ChannelWriteEntry(NamedTuple):
    """One write of a low-level node: the node's result or `value`, through `mapper` if given."""

    channel: str
    value: Any = PASSTHROUGH
    skip_none: bool = False
    mapper: Callable[[Any], Any] | None = None


class ChannelWriter(Writer):
    """Writes the node's result, a constant or something computed from the result, to named channels."""

    __slots__ = ("entries",)

    def __init__(self, entries: Sequence[ChannelWriteEntry]) -> None:
        for entry in entries:
            if entry.channel == TASKS:
                raise InvalidUpdateError(
                    f"Cannot write to the reserved channel TASKS ({TASKS}): Send objects come from the path "
                    "functions and the commands of a StateGraph."
                )
        self.entries = tuple(entries)

    def __call__(self, value: Any) -> Sequence[Write]:
        """One write an entry, without those that came out as None where None is skipped."""
        writes: list[Write] = []
        for channel, given, skip_none, mapper in self.entries:
            out = value if given is PASSTHROUGH else given
            if mapper is not None:
                out = mapper(out)
            if not (skip_none and out is None):
                writes.append((channel, out))
        return writes

    def ways(self) -> Sequence[Way]:
        """Every channel that it writes."""
        return [Way(entry.channel) for entry in self.entries]


def lookups_of(call: Call) -> tuple[str, ...] | None:
    """The keys of its input that a function looks up, if its code shows that it does nothing else with it."""
    if type(call) is not Call or call.target not in (call.func, call.afunc):
        return None
    from surestep.pregel._lookups import keys_looked_up  # here: only states with many keys need it

    return keys_looked_up(call.target)


class PregelNode:
    """A node as the engine sees it: what it reads, what starts it, what it runs, and how it may fail.

    `channels`: a name (the input is that channel's value) or a list (a dict of those that have a value).
    `triggers`: channels whose update starts the node. `mapper`: applied to the input that was read.
    `bound`: the function (anything `coerce` accepts), or None to pass the input through.
    """

    __slots__ = (
        "_identity",
        "_subgraphs",
        "bound",
        "cache_policy",
        "channels",
        "close",
        "error_handler_node",
        "gate",
        "is_error_handler",
        "mapper",
        "metadata",
        "retry_policy",
        "tags",
        "timeout",
        "trace_policy",
        "triggers",
        "writers",
    )

    channels: str | list[str]
    triggers: list[str]
    mapper: Callable[[Any], Any] | None
    writers: list[Writer]
    bound: Call | None
    tags: Sequence[str] | None
    metadata: dict[str, Any] | None
    retry_policy: tuple[RetryPolicy, ...]
    cache_policy: CachePolicy[Any] | None
    timeout: TimeoutPolicy | None
    trace_policy: TracePolicy | None
    gate: bool  # its siblings start when it has been decided
    is_error_handler: bool
    error_handler_node: str | None
    close: Close | None  # what its task writes when new input leaves it behind

    def __init__(
        self,
        *,
        channels: str | Sequence[str],
        triggers: Sequence[str],
        mapper: Callable[[Any], Any] | None = None,
        writers: Sequence[Writer] | None = None,
        tags: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        trace_policy: TracePolicy | None = None,
        bound: Any = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        cache_policy: CachePolicy[Any] | None = None,
        is_error_handler: bool = False,
        error_handler_node: str | None = None,
        subgraphs: Sequence[Any] | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
        gate: bool = False,
    ) -> None:
        self.channels = channels if isinstance(channels, str) else list(channels)
        self.triggers = list(triggers)
        self.mapper = mapper
        self.writers = list(writers or ())
        self.bound = None if bound is None else coerce(bound)
        self.tags = tags
        self.metadata = metadata
        self.trace_policy = trace_policy
        self.retry_policy = policies(retry_policy)
        self.cache_policy = cache_policy
        self.timeout = TimeoutPolicy.coerce(timeout)
        self.gate = gate
        self.is_error_handler = is_error_handler
        self.error_handler_node = error_handler_node
        self.close = None if self.bound is None else closing_of(self.bound.target)
        self._subgraphs: list[Any] | None = None if subgraphs is None else list(subgraphs)
        self._identity: Identity | None = None

    @property
    def subgraphs(self) -> list[Any]:
        """The graphs that this node runs, as far as its code shows. Found on first use: it reads bytecode."""
        if self._subgraphs is None:
            from surestep.pregel._detect import find_subgraph

            found = None if self.bound is None else find_subgraph(self.bound)
            self._subgraphs = [] if found is None else [found]
        return self._subgraphs

    @property
    def lookups(self) -> tuple[str, ...] | None:
        """The keys of its input that its function looks up, if its code shows that it does nothing else with it."""
        return None if self.bound is None else lookups_of(self.bound)

    @property
    def identity(self) -> Identity:
        """What tells its code from other code, for cached results. Worked out on first use: it may pickle values."""
        if self._identity is None:
            from surestep.pregel._identity import identity_of

            self._identity = identity_of(self.bound, self.writers)
        return self._identity

    def invoke(self, input: Any, config: RunnableConfig | None = None) -> Any:
        """What the node's function returns for `input`, outside of a run: to try a node by itself."""
        return input if self.bound is None else self.bound.invoke(input, self._alone(config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None) -> Any:
        """As `invoke`."""
        return input if self.bound is None else await self.bound.ainvoke(input, self._alone(config))

    def _alone(self, config: RunnableConfig | None) -> Any:
        return Alone(ensure_config({"tags": list(self.tags or ()), "metadata": self.metadata or {}}, config))

    def copy(self, update: Mapping[str, Any] | None = None) -> PregelNode:
        """A node with the attributes in `update` changed; it has lists of its own and shares everything else."""
        twin = object.__new__(type(self))
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(twin, name, list(value) if isinstance(value, list) else value)
        twin._identity = None  # what it runs and writes may be what changes
        for name, value in (update or {}).items():
            setattr(twin, "_subgraphs" if name == "subgraphs" else name, value)
        return twin

    def __repr__(self) -> str:
        name = "passthrough" if self.bound is None else self.bound.name
        return f"PregelNode({name}, channels={self.channels!r}, triggers={self.triggers!r})"


def refuse_sync_timeout(name: str, node: PregelNode) -> None:
    """Raise ValueError if the node has a timeout but runs sync code, which nothing can cancel."""
    if node.timeout is not None and node.bound is not None and not node.bound.is_async:
        raise ValueError(
            "Node timeouts are only supported for async nodes because sync Python execution cannot be safely "
            f"cancelled in-process. Node '{name}' is sync: make it `async def`, or drop the timeout."
        )


class NodeBuilder:
    """Builds a `PregelNode` step by step: what it subscribes to, what it does, what it writes.

    Every method but `build` gives the builder back, so that calls can be chained.
    """

    __slots__ = (
        "_bound",
        "_cache_policy",
        "_channels",
        "_metadata",
        "_retry_policies",
        "_single",
        "_tags",
        "_timeout",
        "_triggers",
        "_writes",
    )

    def __init__(self) -> None:
        self._single: str | None = None
        self._channels: list[str] = []
        self._triggers: list[str] = []
        self._bound: list[Call] = []
        self._writes: list[ChannelWriteEntry] = []
        self._tags: list[str] = []
        self._metadata: dict[str, Any] = {}
        self._retry_policies: list[RetryPolicy] = []
        self._cache_policy: CachePolicy[Any] | None = None
        self._timeout: TimeoutPolicy | None = None

    def subscribe_only(self, channel: str) -> Self:
        """Run when `channel` is updated, with its value as the input. ValueError if already subscribed."""
        if self._single is not None or self._channels or self._triggers:
            raise ValueError(
                f"Cannot subscribe to single channels when other channels are already subscribed to; "
                f"use subscribe_to({channel!r}) to get a dict of all of them."
            )
        self._single = channel
        self._triggers.append(channel)
        return self

    def subscribe_to(self, *channels: str, read: bool = True) -> Self:
        """Run when any of `channels` is updated; the input is a dict of the channels that are read."""
        if self._single is not None:
            raise ValueError(
                f"Cannot subscribe to channels when subscribed to a single channel ({self._single!r}); "
                "use subscribe_to for that one too."
            )
        if read:
            self._add_reads(channels)
        self._triggers += [c for c in channels if c not in self._triggers]
        return self

    def read_from(self, *channels: str) -> Self:
        """Add `channels` to the input without being started by them."""
        if self._single is not None:
            raise ValueError(
                f"Cannot read additional channels when subscribed to single channels ({self._single!r}); "
                "use subscribe_to for that one."
            )
        self._add_reads(channels)
        return self

    def _add_reads(self, channels: Sequence[str]) -> None:
        self._channels += [c for c in channels if c not in self._channels]

    def do(self, node: Any) -> Self:
        """Run `node` (whatever a graph node may be) on the input; a second `do` gets the first's result."""
        call = coerce(node)
        call.traced = True
        self._bound.append(call)
        return self

    def write_to(self, *channels: str | ChannelWriteEntry, **kwargs: Any) -> Self:
        """Write the result to `channels`; a keyword writes its value, or what it makes of the result.

        Raises InvalidUpdateError for the channel that holds Sends: only StateGraph nodes write there.
        """
        entries = [ChannelWriteEntry(c) if isinstance(c, str) else c for c in channels]
        for channel, given in kwargs.items():
            computed = callable(given)
            entries.append(ChannelWriteEntry(channel, mapper=given) if computed else ChannelWriteEntry(channel, given))
        ChannelWriter(entries)  # refuses reserved channels here, where the caller's line is in the traceback
        self._writes += entries
        return self

    def meta(self, *tags: str, **metadata: Any) -> Self:
        """Add tags and metadata to the config that the node sees."""
        self._tags += tags
        self._metadata |= metadata
        return self

    def add_retry_policies(self, *policies: RetryPolicy) -> Self:
        """Add policies; the first whose `retry_on` matches an error decides."""
        self._retry_policies += policies
        return self

    def add_cache_policy(self, policy: CachePolicy[Any]) -> Self:
        """Reuse the node's writes for equal inputs, as `policy` says."""
        self._cache_policy = policy
        return self

    def set_timeout(self, timeout: float | timedelta | TimeoutPolicy | None) -> Self:
        """Limit one attempt: seconds, a timedelta, or a policy (with an idle limit, say); None for none."""
        self._timeout = TimeoutPolicy.coerce(timeout)
        return self

    def build(self) -> PregelNode:
        """The node. The builder may be used further; the node does not change with it."""
        bound: Call | None = None
        if self._bound:
            bound = self._bound[0] if len(self._bound) == 1 else SequenceCall(self._bound)
        return PregelNode(
            channels=self._channels if self._single is None else self._single,
            triggers=self._triggers,
            tags=list(self._tags),
            metadata=dict(self._metadata),
            writers=[ChannelWriter(self._writes)] if self._writes else [],
            bound=bound,
            retry_policy=self._retry_policies,
            cache_policy=self._cache_policy,
            timeout=self._timeout,
        )


def policies(given: RetryPolicy | Sequence[RetryPolicy] | None) -> tuple[RetryPolicy, ...]:
    """The retry policies as a tuple: one, several or none were given. (A RetryPolicy is itself a tuple.)"""
    if given is None:
        return ()
    return (given,) if isinstance(given, RetryPolicy) else tuple(given)
