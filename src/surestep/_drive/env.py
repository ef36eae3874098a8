"""What all tasks of one run share, as their nodes see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from surestep._config import DEFAULT_RECURSION_LIMIT
from surestep._constants import (
    CONFIG_KEY_CHECKPOINTER,
    CONFIG_KEY_DURABILITY,
    CONFIG_KEY_NODE_ERROR,
    CONFIG_KEY_READ,
    CONFIG_KEY_READ_STATE,
    CONFIG_KEY_RESUMING,
    CONFIG_KEY_RUNTIME,
    CONFIG_KEY_SCRATCHPAD,
    CONFIG_KEY_SEND,
    CONFIG_KEY_TASK_ID,
)
from surestep._core.blueprint import Blueprint
from surestep._core.commands import Emit
from surestep._core.events import Part
from surestep._core.ids import PUSH, ns_path
from surestep._core.plan import Position, state_for
from surestep._core.run import Run
from surestep._core.task import Task
from surestep._drive.context import TASK_KEY, TaskContext

if TYPE_CHECKING:
    from surestep.checkpoint.base._leases import Hold
    from surestep.runtime import Runtime


# Modes whose parts find their way through LangChain's callbacks, from any depth: they are not passed up.
OWN_WAYS = frozenset({"messages", "tools", "lifecycle"})


class Sink:
    """Where parts of the stream of nested graphs go: to the run around them, in the modes that it shows."""

    __slots__ = ("modes", "put")

    def __init__(self, modes: frozenset[str], put: Callable[[Any], None]) -> None:
        self.modes = modes - OWN_WAYS
        self.put = put


class Replayed:
    """Nested graphs of a replay start from the newest checkpoint before `bound` when they first run."""

    __slots__ = ("bound", "visited")

    def __init__(self, bound: str) -> None:
        self.bound = bound
        self.visited: set[str] = set()


class Env:
    """The run around a node: state to read, config to hand on, and the driver that hears of what it does."""

    __slots__ = (
        "_replayed",
        "address",
        "blueprint",
        "cache",
        "calls",
        "config",
        "custom",
        "down",
        "driver",
        "durability",
        "hold",
        "is_async",
        "ns",
        "parent",
        "put_part",
        "run",
        "run_id",
        "runtime",
        "saver",
        "saver_setting",
        "tracer",
    )

    def __init__(
        self,
        *,
        blueprint: Blueprint,
        config: Mapping[str, Any],
        ns: str,
        runtime: Runtime[Any],
        saver: Any,
        saver_setting: Any,
        durability: str | None,
        run_id: Any,
        parent: TaskContext | None,
        replayed: Replayed | None,
        custom: bool,
        address: dict[str, str],
        cache: Any = None,
        hold: Hold | None = None,
    ) -> None:
        self.blueprint = blueprint
        self.config = config
        self.ns = ns
        self.runtime = runtime
        self.cache = cache
        self.hold = hold  # the claim to the thread, of this run and all inside it
        self.saver = saver
        self.saver_setting = saver_setting  # what nested graphs inherit
        self.durability = durability  # only if the caller named one
        self.run_id = run_id
        self.parent = parent
        self._replayed = replayed
        self.address = address  # namespaces inside this run -> the checkpoint that the caller means there
        self.is_async = False  # whether it runs on an event loop
        self.tracer: Any = None  # plays the bodies of nodes for somebody who listens to them
        self.custom = custom  # whether anybody listens to what nodes write to the stream
        self.run: Run
        self.driver: Any  # of this run
        self.put_part: Callable[[Any], None]  # takes what nodes put on the stream
        self.calls: Callable[[TaskContext, str, Any, Any], Any]  # starts a called task
        self.down: Sink | None = None  # for the parts of nested graphs

    @property
    def replayed(self) -> Replayed | None:
        """Where nested graphs of a replay start from."""
        if self._replayed is None and self.parent is None and self.run.replay_bound is not None:
            self._replayed = Replayed(self.run.replay_bound)
        return self._replayed

    # state

    def read(self, select: str | Sequence[str], writes: Sequence[tuple[str, Any]]) -> Any:
        """Values of channels and managed values, with `writes` folded in."""
        run = self.run
        if isinstance(select, str):
            if select in self.blueprint.managed:
                return self.blueprint.managed[select].get(Position(run.step, run.stop))
            return run.head.fresh(select, writes)
        managed = self.blueprint.managed
        if not managed:
            return run.head.fresh(select, writes)
        values = run.head.fresh([key for key in select if key not in managed], writes)
        for key in select:
            if key in managed:
                values[key] = managed[key].get(Position(run.step, run.stop))
        return values

    @property
    def ledger(self) -> Any:
        """The saver that keeps the effects of this run: its own, or that of an enclosing one."""
        env: Env = self
        while env.saver is None and env.parent is not None:
            env = env.parent.env
        return env.saver

    # what nodes do

    def may_cache(self, classes: set[type]) -> None:
        """Let the cache revive these classes too."""
        allow = getattr(self.cache, "with_allowlist", None)
        if classes and allow is not None:
            self.cache = allow(classes)

    def show(self, task: Task, mode: str, payload: Any) -> None:
        """Put something of a task on the stream. What hangs below another task is shown at that one's place."""
        part = self.part((mode, payload))
        above = task.above
        self.put_part(part if above is None else part._replace(ns=ns_path(above.ns)))

    def part(self, emitted: Emit | tuple[str, Any]) -> Part:
        """A mode and what is to be shown in it, as a part of the stream."""
        return Part(self.path, *emitted)

    @property
    def path(self) -> tuple[str, ...]:
        """The namespace as parts of the stream have it."""
        return ns_path(self.ns)

    def call(self, context: TaskContext, name: str, spec: Any, raw: Any) -> Any:
        return self.calls(context, name, spec, raw)

    # config

    def parents_of_children(self) -> dict[str, str]:
        """The checkpoints that enclose a nested graph's."""
        parents = dict(self.run.request.parents)
        if self.saver is not None:
            parents[self.ns] = self.run.head.anchor.id
        return parents

    def task_config(self, context: TaskContext) -> dict[str, Any]:
        """The config of one attempt: the run's own, and what packages read of the task in it."""
        task = context.task
        config = dict(self.config)
        metadata = config.get("metadata") or {}
        config["metadata"] = {**metadata, **_where(task), **task.node.metadata}
        config["tags"] = [*(config.get("tags") or ()), *task.node.tags]
        configurable = {
            **config.get("configurable", {}),
            TASK_KEY: context,
            CONFIG_KEY_TASK_ID: task.id,
            CONFIG_KEY_SEND: context.send,
            CONFIG_KEY_READ: partial(_read, context),
            CONFIG_KEY_READ_STATE: partial(_read_state, context) if _is_sent(task) else None,
            CONFIG_KEY_CHECKPOINTER: self.saver_setting,
            CONFIG_KEY_RUNTIME: context.runtime,
            CONFIG_KEY_SCRATCHPAD: context,
            "checkpoint_map": self.parents_of_children(),
            "checkpoint_id": None,
            "checkpoint_ns": task.ns,
        }
        if self.durability is not None:
            configurable[CONFIG_KEY_DURABILITY] = self.durability
        if (resuming := self.resuming_of_children(context)) is not None:
            configurable[CONFIG_KEY_RESUMING] = resuming
        if task.failed is not None:
            configurable[CONFIG_KEY_NODE_ERROR] = context.node_error
        config["configurable"] = configurable
        config.pop("run_id", None)  # this and the name are the graph's own
        config.pop("run_name", None)
        if config.get("recursion_limit") is DEFAULT_RECURSION_LIMIT:  # nobody asked for one: nested runs have their own
            del config["recursion_limit"]
        return config

    def resuming_of_children(self, context: TaskContext) -> bool | None:
        return True if context.attempt > 1 else self.run.resuming


def _where(task: Task) -> dict[str, Any]:
    return {
        "langgraph_step": task.step,
        "langgraph_node": task.name,
        "langgraph_triggers": task.triggers,
        "langgraph_path": task.path,
        "langgraph_checkpoint_ns": task.ns,
    }


def _read(context: TaskContext, select: str | Sequence[str], fresh: bool = False) -> Any:
    return context.read(select, fresh)


def _read_state(context: TaskContext) -> Any:
    """What the node of a sent task would have been given without the packet."""
    run = context.env.run
    return state_for(run.head, context.task.node, run.step, run.stop)


def _is_sent(task: Task) -> bool:
    return task.path[0] == PUSH and task.call is None
