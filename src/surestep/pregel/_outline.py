"""A graph's nodes and the ways between them, found by playing it: every node runs, writes nothing but what leads on,
and takes all of its ways at once. Joins, deferred nodes and hand-made channels are thereby what the engine makes of
them, not what a drawing believes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from surestep._core.apply import apply_writes
from surestep._core.begin import input_task
from surestep._core.blueprint import END, START, Blueprint
from surestep._core.head import Channels, Head
from surestep._core.plan import plan
from surestep._core.task import Task
from surestep.channels.ephemeral_value import EphemeralValue
from surestep.channels.last_value import LastValueAfterFinish
from surestep.channels.named_barrier_value import NamedBarrierValue, NamedBarrierValueAfterFinish
from surestep.pregel._prepare import count_version
from surestep.pregel.node import Way

if TYPE_CHECKING:
    from surestep._drive.call import Call

_WAITING: Final = (LastValueAfterFinish, NamedBarrierValue, NamedBarrierValueAfterFinish)
ROUNDS: Final = 250  # a graph that runs in circles is left after so many steps


class Edge(NamedTuple):
    """A way from one node to another; taken always, or (`conditional`) when somebody decides so."""

    source: str
    target: str
    label: str | None
    conditional: bool


class OutlinedNode(NamedTuple):
    """A node: what it runs (None: nothing, it only marks a place), and what is to be said of it."""

    name: str
    runs: Call | None
    placeholder: bool
    metadata: dict[str, Any] | None


class Outline(NamedTuple):
    """A graph as drawings show it; edges in the order of their names, ways to the end that nobody named last."""

    nodes: list[OutlinedNode]
    edges: list[Edge]


def outline(graph: Any) -> Outline:
    """The outline of a `Pregel` graph."""
    play = _Play(graph)
    last = play.through()
    edges = [Edge(*pair, *known) for pair, known in sorted(play.edges.items(), key=lambda item: item[0])]
    if START not in graph.nodes:
        edges.sort(key=lambda edge: edge.source != START)
    between = [edge for edge in edges if edge.source in graph.nodes]  # not from where a run of a plain graph begins
    sinks = sorted({edge.target for edge in between} - {edge.source for edge in between} - {END})
    if sinks:
        edges += [Edge(name, END, None, False) for name in sinks]
    elif len(last) == 1 and not any(edge.target == END for edge in edges):
        edges += [Edge(name, END, None, True) for name in last]
    nodes = list(_nodes(graph))
    if any(edge.target == END for edge in edges):
        nodes.append(OutlinedNode(END, None, True, None))
    return Outline(nodes, edges)


def _nodes(graph: Any) -> Iterator[OutlinedNode]:
    finishing = set(graph.blueprint.finishing)
    before, after = graph.interrupt_before_nodes, graph.interrupt_after_nodes
    for name, node in graph.nodes.items():
        metadata = dict(node.metadata or {})
        if not finishing.isdisjoint(node.triggers):
            metadata["defer"] = True
        pauses = [word for word, names in (("before", before), ("after", after)) if names != "*" and name in names]
        if pauses:
            metadata["__interrupt"] = ",".join(pauses)
        tools = getattr(node.bound.target, "tools_by_name", None) if node.bound is not None else None
        if isinstance(tools, Mapping):
            metadata["__tools"] = list(tools)
        yield OutlinedNode(name, node.bound, False, metadata or None)
    if START not in graph.nodes:
        yield OutlinedNode(START, None, True, None)


def _played(channel: Any) -> Any:
    """What stands for a channel: joins and what is deferred wait, everything else is passed on at once."""
    return channel.copy() if isinstance(channel, _WAITING) else EphemeralValue(Any, guard=False)


class _Play:
    """A run of the ways alone."""

    def __init__(self, graph: Any) -> None:
        self.blueprint: Blueprint = graph.blueprint
        self.edges: dict[tuple[str, str], tuple[str | None, bool]] = {}
        self.led: dict[str, dict[str, Way]] = {}  # channel -> who wrote it since it was last consumed, and how
        self.chosen: set[tuple[str, str]] = set()  # conditional ways that were taken: source and channel
        self.waited: set[str] = set()  # deferred nodes that have run
        channels = {key: _played(channel) for key, channel in self.blueprint.channels.items()}
        self.head = Head("", Channels(channels), count_version, lambda step, after: "")

    def through(self) -> set[str]:
        """Run to the end, or for so many rounds; the names of the nodes that ran last."""
        head, blueprint, last = self.head, self.blueprint, set[str]()
        inputs = blueprint.input_channels
        ways = [Way(key) for key in ([inputs] if isinstance(inputs, str) else inputs)]
        begins = input_task(head, blueprint, self._leave(START, ways), -1)
        head.updated = apply_writes(head, blueprint, [begins])
        for step in range(max(ROUNDS, len(blueprint.nodes)) + 1):  # a chain may be longer than a circle is gone through
            tasks = plan(head, blueprint, step, ROUNDS, inputs=False)
            if not tasks:
                break
            self._arrive(tasks, last)
            for task in tasks:
                node: Any = task.node.spec
                task.writes = self._leave(task.name, [way for writer in node.writers for way in writer.ways()])
            head.updated = apply_writes(head, blueprint, tasks)
            last = {task.name for task in tasks}
        return last

    def _arrive(self, tasks: Sequence[Task], last: set[str]) -> None:
        """Note the ways that led to these nodes: all that were written to the channels that may start them."""
        for task in tasks:
            led = {source: way for trigger in task.triggers for source, way in self.led.get(trigger, {}).items()}
            deferred = task.name not in self.waited and not set(task.triggers).isdisjoint(self.blueprint.finishing)
            if deferred and last.isdisjoint(led):  # it waited for what ran last, though nothing leads from there
                led |= {source: Way("", conditional=True) for source in last}
            self.waited.add(task.name)
            self._note(task.name, led)
        for task in tasks:
            for trigger in task.triggers:
                self.led.pop(trigger, None)

    def _leave(self, source: str, ways: Sequence[Way]) -> list[tuple[str, Any]]:
        """The writes with which a node leads on. Where several ways lead to the same place, the drawing has one that
        depends on something, and says on what. A choice is made once: a circle that it closes has been seen then.
        """
        taken: dict[str, Way] = {}
        for way in sorted(ways, key=lambda way: (not way.conditional, way.label or way.channel.rpartition(":")[2])):
            known = way.conditional and (source, way.channel) in self.chosen
            if not known and (way.channel in self.blueprint.triggered_by or (way.conditional and way.channel == END)):
                taken.setdefault(way.channel, way)
        self.chosen |= {(source, way.channel) for way in ways if way.conditional}
        if END in taken:
            self._note(END, {source: taken.pop(END)})
        for channel, way in taken.items():
            self.led.setdefault(channel, {})[source] = way
        return [(channel, way.value) for channel, way in taken.items()]

    def _note(self, target: str, led: Mapping[str, Way]) -> None:
        for source, way in led.items():
            if not source == target == START:  # the input of a StateGraph starts the node of that name
                self.edges[source, target] = way.label, way.conditional
