"""Plays a core generator without threads, loops or clocks: every schedule can be written down.

Nodes are functions `(task, attempt) -> writes` that may raise; `order` picks which of the running attempts ends next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from surestep._core.blueprint import Blueprint
from surestep._core.commands import Abandon, Answer, Commit, Emit, Load, Next, Save, Settle, Spawn
from surestep._core.emit import Show
from surestep._core.events import Abandoned, Ended, Loaded
from surestep._core.run import Request, Run, run
from surestep.channels.base import BaseChannel
from surestep.channels.ephemeral_value import EphemeralValue
from surestep.channels.topic import Topic
from surestep.runtime import RunControl
from surestep.types import Send

Node = Callable[[Any, int], Sequence[tuple[str, Any]]]


class Spec:
    """A node for the core: what it reads and what triggers it."""

    def __init__(self, triggers: Sequence[str], reads: Any = ("x",), **policies: Any) -> None:
        self.channels = list(reads) if not isinstance(reads, str) else reads
        self.triggers = triggers
        self.mapper = None
        self.tags: tuple[str, ...] = policies.get("tags", ())
        self.metadata = None
        self.retry_policy = policies.get("retry", ())
        self.timeout = policies.get("timeout")
        self.gate = policies.get("gate", False)
        self.is_error_handler = policies.get("is_handler", False)
        self.error_handler_node = policies.get("handler")
        self.subgraphs = ()
        self.lookups = None
        self.cache_policy = None
        self.writers = ()


def blueprint(nodes: Mapping[str, Spec], channels: Mapping[str, BaseChannel[Any, Any, Any]]) -> Blueprint:
    """A graph whose nodes are triggered by `branch:to:NAME`; input arrives at the channel `in`."""
    branches = {f"branch:to:{name}": EphemeralValue(Any, guard=False) for name in nodes}
    return Blueprint(
        name="test",
        nodes=nodes,
        channels={"in": EphemeralValue(Any), "__pregel_tasks": Topic(Send), **branches, **channels},
        managed={},
        input_channels="in",
        output_channels=list(channels),
        stream_channels=list(channels),
        retry=(),
        handlers={},
        untracked=(),
    )


class Player:
    """A driver that does nothing by itself."""

    def __init__(self, nodes: Mapping[str, Node], order: Callable[[Sequence[Any]], int] = lambda running: 0) -> None:
        self.nodes = nodes
        self.order = order
        self.running: list[tuple[Any, int]] = []
        self.log: list[Any] = []  # every command, in order
        self.stop_at: BaseException | None = None

    def play(self, steps: Any, loaded: Loaded | None = None) -> Any:
        reply: Any = None
        while True:
            try:
                command = steps.send(reply)
            except StopIteration as end:
                return end.value
            self.log.append(command)
            reply = self._answer(command, loaded)

    def _answer(self, command: Any, loaded: Loaded | None) -> Any:
        if isinstance(command, Spawn):
            self.running.append((command.task, command.attempt))
        elif isinstance(command, Next):
            self.running += [(task, 1) for task in command.starts]
            return self._end_one()
        elif isinstance(command, Abandon):
            self._abandoned = command
        elif isinstance(command, Load):
            return loaded or Loaded(None, None)
        else:
            assert isinstance(command, (Answer, Commit, Emit, Save, Settle)), command
        return None

    def _end_one(self) -> Ended:
        task, attempt = self.running.pop(self.order(self.running))
        try:
            return Ended(task, attempt, list(self.nodes[task.name](task, attempt)), None)
        except BaseException as error:
            return Ended(task, attempt, [], error)


def request(input: Any, **changes: Any) -> Request:
    """A run's request with ids and times that count up."""
    ids = count(1)
    given: dict[str, Any] = {
        "input": input,
        "config": {"configurable": {"thread_id": "t"}},
        "mint": lambda step, after: f"00000000-0000-0000-0000-{next(ids):012d}",
        "now": lambda: "2026-01-01T00:00:00+00:00",
        "next_version": lambda current, channel: (current or 0) + 1,
        "recursion_limit": 25,
        "control": RunControl(),
        **changes,
    }
    return Request(**given)


def start(graph: Blueprint, input: Any, modes: Sequence[str] = (), **changes: Any) -> Any:
    """The generator of a run."""
    asked = request(input, **changes)
    return run(Run(graph, asked, Show(modes, graph.output_channels, asked.now)))


__all__ = ["Abandoned", "Player", "Spec", "blueprint", "request", "start"]
