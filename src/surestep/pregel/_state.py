"""The methods that look at threads and edit them. What they do is in `_core/state.py`; here they get their arguments
and a driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from surestep._config import ensure_config, merge_configs
from surestep._constants import CONFIG_KEY_CHECKPOINTER
from surestep._core.emit import Show
from surestep._core.events import Part
from surestep._core.ids import recast
from surestep._core.run import Request, Run
from surestep._core.state import get_history, get_state, update_state
from surestep._core.task import Task
from surestep._drive.env import Env
from surestep._drive.saving import SaverPort
from surestep._drive.sync import SyncDriver, played
from surestep.checkpoint.base._ledger import has_ledger
from surestep.checkpoint.base.id import next_checkpoint_id
from surestep.pregel._prepare import child_namespace, now
from surestep.runtime import RunControl, Runtime
from surestep.types import RunnableConfig, StateSnapshot, StateUpdate

if TYPE_CHECKING:
    from surestep.pregel.main import Pregel


class Look:
    """One look at a thread, or one edit of it: the graph and the namespace it means, and the run to do it with."""

    def __init__(self, graph: Any, config: Any, updating: bool = False) -> None:
        self.config: dict[str, Any] = ensure_config(merge_configs(graph.config, config))  # type: ignore[assignment]
        configurable = self.config["configurable"]
        self.saver = _saver_of(graph, configurable)
        if "thread_id" not in configurable:
            raise KeyError("thread_id")
        configurable["thread_id"] = str(configurable["thread_id"])
        self.ns = configurable.get("checkpoint_ns") or ""
        self.graph = find_graph(graph, self.ns, updating)
        self.port = SaverPort(self.saver, self.config, self.graph._migrate)

    def run(self) -> Run:
        configurable = self.config["configurable"]
        request = Request(
            input=None,
            config=self.config,
            mint=next_checkpoint_id,
            now=now,
            next_version=self.saver.get_next_version,
            recursion_limit=self.config["recursion_limit"],
            control=None,
            ns=self.ns,
            saver=True,
            durability="sync",
            checkpoint_id=configurable.get("checkpoint_id"),
            ledger=has_ledger(self.saver),
        )
        blueprint = self.graph.blueprint
        run = Run(blueprint, request, Show((), blueprint.stream_channels, now))
        self.env.run = run
        return run

    @cached_property
    def env(self) -> Env:
        return Env(
            blueprint=self.graph.blueprint,
            config=self.config,
            ns=self.ns,
            runtime=Runtime(store=self.graph.store, control=RunControl()),
            saver=self.saver,
            saver_setting=self.saver,
            durability=None,
            run_id=None,
            parent=None,
            replayed=None,
            custom=False,
            address={},
        )

    def child(self, task: Task) -> Any:
        """The graph inside a task, and its namespace."""
        graph: Pregel[Any, Any, Any, Any] | None = next(iter(task.node.subgraphs), None)
        if graph is None or not hasattr(graph, "blueprint"):
            return None
        return graph.blueprint, child_namespace(task.ns, 0, graph.checkpointer)

    def sync(self, steps: Any) -> Any:
        """What the generator returns, played here."""
        return played(SyncDriver(self.env, self.port).drive(steps), _unheard)

    async def asynchronous(self, steps: Any) -> Any:
        """What the generator returns, played on the event loop."""
        from surestep._drive.async_ import AsyncDriver, aplayed

        return await aplayed(AsyncDriver(self.env, self.port).drive(steps), _unheard)


def _unheard(part: Part) -> None:
    """Looks and edits show nothing."""


def _saver_of(graph: Any, configurable: dict[str, Any]) -> Any:
    saver = configurable.get(CONFIG_KEY_CHECKPOINTER) or graph.checkpointer
    if saver is None or isinstance(saver, bool):
        raise ValueError(
            "No checkpointer set: the graph keeps no state that could be looked at. Compile it with one, e.g. "
            "compile(checkpointer=InMemorySaver())."
        )
    return saver


def find_graph(graph: Any, ns: str, updating: bool) -> Any:
    """The graph that a namespace belongs to."""
    if not ns:
        return graph
    path = recast(ns)
    for _, found in graph.get_subgraphs(namespace=path, recurse=True):
        return found
    if updating:
        raise ValueError(f"Subgraph {path} not found: the graph has no such graph in its nodes.")
    return graph


def _before(before: Any) -> str | None:
    return before["configurable"].get("checkpoint_id") if before else None


class StateMethods:
    """Threads as data: read, list, edit."""

    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """The state of a thread: its newest checkpoint with what has finished since, or the one that config names.

        subgraphs: tasks hold the states of graphs inside them, not only their configs. Raises ValueError without a
        checkpointer, KeyError without a thread_id. A thread without checkpoints has an empty snapshot.
        """
        look = Look(self, config)
        return look.sync(get_state(look.run(), look.child if subgraphs else None))  # type: ignore[no-any-return]

    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """As `get_state`."""
        look = Look(self, config)
        return await look.asynchronous(get_state(look.run(), look.child if subgraphs else None))  # type: ignore[no-any-return]

    def get_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """The states of a thread, newest first. filter: metadata that must be equal; before: only older than the
        checkpoint that this config names; limit: at most so many.
        """
        look = Look(self, config)
        yield from look.sync(get_history(look.run(), filter, _before(before), limit))

    async def aget_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[StateSnapshot]:
        """As `get_state_history`."""
        look = Look(self, config)
        for state in await look.asynchronous(get_history(look.run(), filter, _before(before), limit)):
            yield state

    def update_state(
        self, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """Edit a thread's state as if `as_node` had returned `values`; the config of the new checkpoint.

        as_node: default the node that ran last; in the middle of a step an edit without it changes the state and
        leaves what finished and what waits as it is. Reducers apply. Raises InvalidUpdateError for an unknown or
        ambiguous node, ThreadConflict when the thread moved meanwhile.
        """
        return self.bulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    async def aupdate_state(
        self, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """As `update_state`."""
        return await self.abulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    def bulk_update_state(self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """Edit a thread step by step: each inner list is one step and makes one checkpoint; the last one's config."""
        for updates in _steps(supersteps):
            look = Look(self, config, updating=True)
            config = look.sync(update_state(look.run(), updates))
        return config

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """As `bulk_update_state`."""
        for updates in _steps(supersteps):
            look = Look(self, config, updating=True)
            config = await look.asynchronous(update_state(look.run(), updates))
        return config


def _steps(supersteps: Sequence[Sequence[StateUpdate]]) -> Sequence[Sequence[StateUpdate]]:
    if not supersteps:
        raise ValueError("No supersteps provided: pass a list of lists of StateUpdate.")
    return supersteps
