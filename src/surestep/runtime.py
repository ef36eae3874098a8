"""What a node can ask its run for: context, store, stream writer, who and where it is, and a way to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, cast, runtime_checkable

from surestep._constants import CONFIG_KEY_RUNTIME
from surestep._context import current_task
from surestep.config import get_config
from surestep.typing import ContextT

if TYPE_CHECKING:
    from surestep.store.base import BaseStore
    from surestep.types import StreamWriter

__all__ = ("BaseUser", "ExecutionInfo", "RunControl", "Runtime", "ServerInfo", "get_runtime")


@runtime_checkable
class BaseUser(Protocol):
    """Who calls, as a server knows it. Its extra fields are read like those of a mapping."""

    @property
    def is_authenticated(self) -> bool:
        """Whether the user proved who they are."""

    @property
    def display_name(self) -> str:
        """A name to show."""

    @property
    def identity(self) -> str:
        """The user's unique name."""

    @property
    def permissions(self) -> Sequence[str]:
        """What the user may do."""

    def __getitem__(self, key: str) -> Any: ...

    def __contains__(self, key: str) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """Where a node runs: checkpoint, namespace, task, thread, run, and which attempt this is.

    `node_attempt` counts from 1; `node_first_attempt_time` is in seconds since the epoch.
    """

    checkpoint_id: str
    checkpoint_ns: str
    task_id: str
    thread_id: str | None = None
    run_id: str | None = None
    node_attempt: int = 1
    node_first_attempt_time: float | None = None

    def patch(self, **overrides: Any) -> ExecutionInfo:
        """A copy with the given fields changed."""
        return replace(self, **overrides)


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Which assistant and graph of a server runs, and for whom."""

    assistant_id: str
    graph_id: str
    user: BaseUser | None = None


class RunControl:
    """A handle to stop a run from outside: pass it as `control=` and call `request_drain` from any thread.

    The run ends at the next step boundary with GraphDrained; its thread is saved and can be continued. A
    request is never taken back; the last reason given counts.
    """

    __slots__ = ("_cancel_reason", "_cancelled", "_drain_reason", "_runs")

    def __init__(self) -> None:
        # One attribute, written and read in one bytecode each: safe between threads without a lock.
        self._drain_reason: str | None = None
        self._cancelled = False
        self._cancel_reason: str | None = None
        self._runs: list[Callable[[], None]] = []  # runs that are under way: told of a cancel

    def cancel(self, reason: str | None = None) -> None:
        """End the run now, with RunCancelled: what it had saved stays, what runs is abandoned. From any thread."""
        self._cancel_reason, self._cancelled = reason, True
        for tell in list(self._runs):
            tell()

    @property
    def cancelled(self) -> bool:
        """Whether somebody cancelled the run."""
        return self._cancelled

    @property
    def cancel_reason(self) -> str | None:
        """Why, if a reason was given."""
        return self._cancel_reason

    def request_drain(self, reason: str = "shutdown") -> None:
        """Ask the run to stop at its next step boundary."""
        self._drain_reason = reason

    @property
    def drain_requested(self) -> bool:
        """Whether somebody asked the run to stop."""
        return self._drain_reason is not None

    @property
    def drain_reason(self) -> str | None:
        """Why the run is to stop; None when it is not."""
        return self._drain_reason


def _no_op_stream_writer(_: Any) -> None:
    """The stream writer of a run that nobody streams."""


def _no_op_heartbeat() -> None:
    """The heartbeat of a node without an idle timeout."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Runtime(Generic[ContextT]):
    """What a node gets as its `runtime` parameter.

    context: what the caller passed as `context=`; store: the graph's store; stream_writer: puts its argument
    on the custom stream; heartbeat: tells that the node makes progress; previous: what the entrypoint
    returned for the thread before; execution_info, server_info: where the node runs; control: the handle to
    drain the run.
    """

    context: ContextT = None  # type: ignore[assignment]
    store: BaseStore | None = None
    stream_writer: StreamWriter = _no_op_stream_writer
    heartbeat: Callable[[], None] = _no_op_heartbeat
    previous: Any = None
    execution_info: ExecutionInfo | None = None
    server_info: ServerInfo | None = None
    control: RunControl | None = None

    def merge(self, other: Runtime[ContextT]) -> Runtime[ContextT]:
        """This runtime with what `other` has put over it; empty fields of `other` leave this one's."""
        writer, heartbeat = other.stream_writer, other.heartbeat
        return Runtime(
            context=other.context or self.context,
            store=self.store if other.store is None else other.store,
            stream_writer=self.stream_writer if writer is _no_op_stream_writer else writer,
            heartbeat=self.heartbeat if heartbeat is _no_op_heartbeat else heartbeat,
            previous=self.previous if other.previous is None else other.previous,
            execution_info=other.execution_info or self.execution_info,
            server_info=other.server_info or self.server_info,
            control=other.control or self.control,
        )

    def override(self, **overrides: Any) -> Runtime[ContextT]:
        """A copy with the given fields replaced."""
        return replace(self, **overrides)

    def patch_execution_info(self, **overrides: Any) -> Runtime[ContextT]:
        """A copy with the given fields of `execution_info` changed. Raises RuntimeError when there is
        none."""
        if self.execution_info is None:
            raise RuntimeError("Cannot patch execution_info before it has been set: this runtime belongs to no task.")
        return self.override(execution_info=self.execution_info.patch(**overrides))

    @property
    def drain_requested(self) -> bool:
        """Whether somebody asked this run to stop; a long node can look and end early."""
        return self.control is not None and self.control.drain_requested

    @property
    def drain_reason(self) -> str | None:
        """Why this run is to stop; None when it is not."""
        return None if self.control is None else self.control.drain_reason


DEFAULT_RUNTIME: Runtime[Any] = Runtime()
"""The runtime of code that runs in no graph: nothing in it, and writers that do nothing."""


def get_runtime(context_schema: type[ContextT] | None = None) -> Runtime[ContextT]:
    """The runtime of the node that is running. `context_schema` only tells type checkers what `context` is.

    Raises RuntimeError outside of a node.
    """
    task = current_task.get()
    if task is not None:
        return cast("Runtime[ContextT]", task.runtime)
    runtime = get_config().get("configurable", {}).get(CONFIG_KEY_RUNTIME)
    if runtime is None:
        raise RuntimeError(
            "Called get_runtime outside of a graph: it returns the runtime of the node that is running, so "
            "call it inside a node or a task, or take a parameter `runtime: Runtime`."
        )
    return cast("Runtime[ContextT]", runtime)
