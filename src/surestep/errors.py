"""Every exception of the engine. Each docstring says when it is raised and what the caller can do about
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from surestep.types import Command, Interrupt

__all__ = (
    "AlreadyAnswered",
    "AmbiguousResume",
    "EffectAborted",
    "EffectCancelled",
    "EffectError",
    "EffectFenced",
    "EffectHeld",
    "EffectUnknown",
    "EmptyChannelError",
    "EmptyInputError",
    "ErrorCode",
    "GateClosed",
    "GraphBubbleUp",
    "GraphDrained",
    "GraphInterrupt",
    "GraphRecursionError",
    "InvalidUpdateError",
    "MissingNodeError",
    "NodeCancelledError",
    "NodeError",
    "NodeInterrupt",
    "NodeTimeoutError",
    "ParentCommand",
    "RecordedError",
    "ReplayMismatch",
    "RunCancelled",
    "RunFenced",
    "TaskNotFound",
    "ThreadBusy",
    "ThreadConflict",
    "UnknownInterruptError",
    "create_error_message",
    "is_invalid_resume",
)

_INVALID_RESUME = "_surestep_invalid_resume"


class ErrorCode(Enum):
    """A stable code for errors that have a page in the docs; it is the last word of the message."""

    GRAPH_RECURSION_LIMIT = "GRAPH_RECURSION_LIMIT"
    INVALID_CONCURRENT_GRAPH_UPDATE = "INVALID_CONCURRENT_GRAPH_UPDATE"
    INVALID_GRAPH_NODE_RETURN_VALUE = "INVALID_GRAPH_NODE_RETURN_VALUE"
    MULTIPLE_SUBGRAPHS = "MULTIPLE_SUBGRAPHS"
    INVALID_CHAT_HISTORY = "INVALID_CHAT_HISTORY"


def create_error_message(*, message: str, error_code: ErrorCode) -> str:
    """The message followed by a line with the page that explains the code; the line ends with the code."""
    return f"{message}\nMore about this error: docs/errors.md#{error_code.value}"


class EmptyChannelError(Exception):
    """Raised by `channel.get()` when the channel holds no value. Check `channel.is_available()` first."""


class GraphRecursionError(RecursionError):
    """Raised when a run took as many steps as `recursion_limit` allows without reaching a stop.

    Look for a loop that never ends; when the graph is right and long, raise the limit of the call:
    `graph.invoke(input, {"recursion_limit": 1000})`.
    """


class InvalidUpdateError(Exception):
    """Raised when channels cannot take what was written: two values for a key that holds one, an unknown
    target, a node that returned something that is not an update.

    `channel` is the key that refused the write, None when the error is not about a single key. Give the key a
    reducer (`Annotated[list, operator.add]`) when several nodes may write it in the same step.
    """

    channel: str | None

    def __init__(self, *args: object, channel: str | None = None) -> None:
        super().__init__(*args)
        self.channel = channel


class EmptyInputError(Exception):
    """Raised when a run was given nothing to start from: pass an input, or None to continue a thread that has
    a checkpoint."""


class TaskNotFound(Exception):
    """Raised by executors that look a task up by its id and do not find it."""


class ThreadConflict(Exception):
    """Raised when another run moved the head of the thread while this one was working; nothing of the refused
    step was saved.

    Load the thread with `get_state` and run again from there. `expected` is the checkpoint id this run
    started from (None: the thread had to be empty), `found` the one that is there now.
    """

    thread_id: str
    checkpoint_ns: str
    expected: str | None
    found: str | None

    def __init__(self, thread_id: str, checkpoint_ns: str, expected: str | None, found: str | None) -> None:
        namespace = f" (namespace {checkpoint_ns!r})" if checkpoint_ns else ""
        super().__init__(
            f"Thread {thread_id!r}{namespace} was moved by another run: expected the latest checkpoint to be "
            f"{expected or 'none yet'}, found {found or 'none'}. Nothing of this step was saved. "
            "Load the thread with get_state() and run again."
        )
        self.thread_id = thread_id
        self.checkpoint_ns = checkpoint_ns
        self.expected = expected
        self.found = found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.thread_id, self.checkpoint_ns, self.expected, self.found)


class RunFenced(ThreadConflict):
    """Raised when another run has taken the thread from this one; what it had not saved by then is lost with it.

    Nothing of this run is saved any more. Load the thread with `get_state` to see what the other one made of it.
    """

    def __init__(self, thread_id: str) -> None:
        Exception.__init__(
            self,
            f"Another run has taken thread {thread_id!r} over. Nothing of this one is saved any more; what it had "
            "saved stays. To wait for a run that is under way instead: multitask_strategy='enqueue'.",
        )
        self._of(thread_id)

    def _of(self, thread_id: str) -> None:
        self.thread_id, self.checkpoint_ns, self.expected, self.found = thread_id, "", None, None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.thread_id,)


class RunCancelled(RunFenced):
    """Raised to the caller of a run that somebody cancelled; what it had saved stays, and the thread can be used.

    `reason` and `actor` are those of the cancel.
    """

    def __init__(self, thread_id: str | None, reason: str | None = None, actor: str | None = None) -> None:
        by, why = f" by {actor}" if actor else "", f": {reason}" if reason else ""
        Exception.__init__(self, f"The run of thread {thread_id!r} was cancelled{by}{why}. What it had saved stays.")
        self._of(str(thread_id))
        self.reason = reason
        self.actor = actor

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.thread_id, self.reason, self.actor)


class ThreadBusy(Exception):
    """Raised by a run with multitask_strategy="reject" when another run holds the thread. Nothing was saved."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"Thread {thread_id!r} is held by another run. Try again when that has ended, or say what to do instead: "
            "multitask_strategy='enqueue', 'interrupt' or 'rollback'."
        )
        self.thread_id = thread_id

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.thread_id,)


class GraphBubbleUp(Exception):
    """Base of what travels through nodes to steer the graph. Never retried and never given to an error
    handler: a node that catches Exception must let it pass."""


class GraphInterrupt(GraphBubbleUp):
    """Raised inside a node by `interrupt()` to pause the run. The outermost graph turns it into a result, so
    callers see it only when they call `interrupt()` helpers of a nested graph themselves.

    `args[0]` is the sequence of Interrupt that wait for an answer.
    """

    def __init__(self, interrupts: Sequence[Interrupt[Any]] = ()) -> None:
        super().__init__(interrupts)


class NodeInterrupt(GraphInterrupt):
    """Deprecated way to pause a run by raising; use `surestep.types.interrupt`."""

    def __init__(self, value: Any, id: str | None = None) -> None:
        from warnings import warn

        from surestep import types
        from surestep.warnings import LangGraphDeprecatedSinceV10

        warn(
            f"NodeInterrupt is deprecated. Please use `{types.__name__}.interrupt` instead.",
            LangGraphDeprecatedSinceV10,
            stacklevel=2,
        )
        super().__init__([types.Interrupt(value, id) if id is not None else types.Interrupt(value)])


class GraphDrained(GraphBubbleUp):
    """Raised to the caller of a run that stopped at a step boundary because `RunControl.request_drain` was
    called.

    The thread is saved: run it again with input None to continue. `reason` is what the request gave.
    """

    reason: str

    def __init__(self, reason: str = "shutdown") -> None:
        super().__init__(f"Graph drained: {reason}")
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason,)


class ParentCommand(GraphBubbleUp):
    """Carries a Command(graph=Command.PARENT) to the enclosing graph. A caller that sees it ran, as the
    outermost graph, a node that is meant to be nested. `args[0]` is the command."""

    args: tuple[Command[Any]]

    def __init__(self, command: Command[Any]) -> None:
        super().__init__(command)


@dataclass(frozen=True, slots=True)
class NodeError:
    """What an error handler is told: the name of the node that failed for good, and its exception.

    Not an exception itself. Ask for it with a parameter annotated `NodeError`. After a restart of the process
    the exception is rebuilt from what was stored and may be a plain Exception with the original's repr.
    """

    node: str
    error: BaseException


class NodeTimeoutError(Exception):
    """Raised when an attempt of a node ran longer than its TimeoutPolicy allows.

    Not a TimeoutError on purpose, so that the default retry policy tries again. `kind` says which limit
    fired, "run" (total time) or "idle" (time without progress), `timeout` its value, `elapsed` the time that
    passed; all in seconds. Raise the limit, report progress with `runtime.heartbeat()`, or add an error
    handler.
    """

    node: str
    elapsed: float
    kind: Literal["idle", "run"]
    timeout: float
    idle_timeout: float | None
    run_timeout: float | None

    def __init__(
        self,
        node: str,
        elapsed: float,
        *,
        kind: Literal["idle", "run"],
        idle_timeout: float | None = None,
        run_timeout: float | None = None,
    ) -> None:
        if kind not in ("idle", "run"):
            raise ValueError(f"kind must be 'idle' or 'run', got {kind!r}")
        timeout = run_timeout if kind == "run" else idle_timeout
        if timeout is None:
            raise ValueError(f"{kind}_timeout is required when kind={kind!r}")
        progress = " without making progress" if kind == "idle" else ""
        super().__init__(
            f"Node {node!r} exceeded its {kind} timeout of {timeout:.3f}s{progress} (elapsed: {elapsed:.3f}s)."
        )
        self.node = node
        self.elapsed = elapsed
        self.kind = kind
        self.timeout = timeout
        self.idle_timeout = idle_timeout
        self.run_timeout = run_timeout

    def __reduce__(self) -> tuple[Any, ...]:
        limits = (self.kind, self.idle_timeout, self.run_timeout)
        return _rebuild_timeout, (type(self), self.node, self.elapsed, *limits)


def _rebuild_timeout(
    cls: type[NodeTimeoutError],
    node: str,
    elapsed: float,
    kind: Literal["idle", "run"],
    idle: float | None,
    run: float | None,
) -> NodeTimeoutError:
    return cls(node, elapsed, kind=kind, idle_timeout=idle, run_timeout=run)


class NodeCancelledError(Exception):
    """Raised when the body of a node raised asyncio.CancelledError itself, without the run being cancelled.
    Look for an inner task that the node cancelled and awaited."""

    node: str

    def __init__(self, node: str, message: str | None = None) -> None:
        super().__init__(message if message is not None else f"Node {node!r} raised asyncio.CancelledError")
        self.node = node

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.node, *self.args)


class UnknownInterruptError(Exception):
    """Raised when `Command(resume=...)` does not match what the thread waits for; nothing was saved or run.

    `reason` is "not_pending" (no such interrupt waits), "empty_map" (a map without ids) or "ambiguous" (one
    value, several interrupts). `interrupt_ids` are the ids the caller gave, `pending_ids` those that wait.
    """

    reason: Literal["not_pending", "empty_map", "ambiguous"]
    interrupt_ids: tuple[str, ...]
    pending_ids: tuple[str, ...]

    def __init__(
        self,
        message: str,
        *,
        reason: Literal["not_pending", "empty_map", "ambiguous"],
        interrupt_ids: Sequence[str] = (),
        pending_ids: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.interrupt_ids = tuple(interrupt_ids)
        self.pending_ids = tuple(pending_ids)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_unknown, (type(self), self.args, self.__dict__)


def _rebuild_unknown(
    cls: type[UnknownInterruptError], args: tuple[str], attributes: dict[str, Any]
) -> UnknownInterruptError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(attributes)
    return error


class AlreadyAnswered(UnknownInterruptError):
    """Raised when an interrupt that is given an answer has one already, or the run that answered it is under
    way.

    The first answer stands. Read the thread with `get_state` to see what waits now.
    """

    def __init__(self, message: str, *, interrupt_ids: Sequence[str] = (), pending_ids: Sequence[str] = ()) -> None:
        super().__init__(message, reason="not_pending", interrupt_ids=interrupt_ids, pending_ids=pending_ids)


class AmbiguousResume(UnknownInterruptError, RuntimeError):
    """Raised when one resume value was given while several interrupts wait.

    Answer by id: `Command(resume={interrupt.id: value, ...})`; `pending_ids` lists the ids.
    """

    def __init__(self, message: str, *, interrupt_ids: Sequence[str] = (), pending_ids: Sequence[str] = ()) -> None:
        super().__init__(message, reason="ambiguous", interrupt_ids=interrupt_ids, pending_ids=pending_ids)


class MissingNodeError(Exception):
    """Raised when a thread is to go on at a node that the graph does not have: renamed or taken away since.

    Nothing was run, and an answer was not used. `nodes` are the missing ones, `thread_id` is the thread's.
    """

    def __init__(self, message: str, *, nodes: tuple[str, ...] = (), thread_id: str | None = None) -> None:
        super().__init__(message)
        self.nodes = nodes
        self.thread_id = thread_id


class ReplayMismatch(Exception):
    """Raised to a task's caller when its place in the order of calls holds the result of another call.

    The code of a paused or crashed run has changed since, or it calls its tasks in another order or with arguments
    that differ each time. Nothing was run. `task` is the task called, `position` the how manyth call of its caller it
    is (from 0).
    """

    def __init__(self, message: str, *, task: str = "", position: int = -1) -> None:
        super().__init__(message)
        self.task = task
        self.position = position


def mark_invalid_resume(error: BaseException) -> None:
    """Make `is_invalid_resume` true for `error`."""
    setattr(error, _INVALID_RESUME, True)


def is_invalid_resume(error: BaseException) -> bool:
    """True when `error` says that a resume value does not fit the `response_schema` of its interrupt.

    The interrupt still waits: resume again with a value that fits.
    """
    return bool(getattr(error, _INVALID_RESUME, False))


# effects


class EffectError(RuntimeError):
    """Raised when an effect is called where it can't be guarded: outside a run, in a run without a ledger, inside
    another effect, or in a way that would block the event loop. Nothing was executed; the message names the way out."""


class EffectHeld(GraphInterrupt):
    """Raised at a call of an effect beside a pending decision or a failed sibling: the task pauses too, and the call is
    made again after the decision. No retry policy and no error handler sees it; a node that catches it is paused all
    the same."""

    def __init__(self, interrupts: Sequence[Interrupt[Any]] = ()) -> None:
        super().__init__(interrupts)


class GateClosed(GraphInterrupt):
    """Raised inside a node by `gate()` to pause the run, as `interrupt()` does. `digest` is that of what the gate
    binds, `deadline` the time (ISO 8601, UTC) after which it counts as rejected."""

    def __init__(
        self, interrupts: Sequence[Interrupt[Any]] = (), digest: str | None = None, deadline: str | None = None
    ) -> None:
        super().__init__(interrupts)
        self.digest = digest
        self.deadline = deadline


class EffectCancelled(Exception):
    """Raised at a call of an effect that was held beside a decision, and cancelled with it. It never executes.

    A node may catch it and say so in the state; if none does, the task ends without writes and the run goes on.
    `effect_id` names the effect, `reason` and `actor` are those of the decision.
    """

    def __init__(
        self, message: str, *, effect_id: str = "", reason: str | None = None, actor: str | None = None
    ) -> None:
        super().__init__(message)
        self.effect_id = effect_id
        self.reason = reason
        self.actor = actor


class EffectFenced(Exception):
    """Raised at a call of an effect by an attempt that has no right to it any more: it timed out, its run was
    cancelled or is over, or another run took the thread. Nothing was executed."""


class EffectUnknown(Exception):
    """Raised when an effect may have happened and nobody can say: a crash, or a result that can't be stored.

    `effect_id` is its idempotency key: ask the callee with it. Which effects are in doubt: `graph.get_effects(config)`.
    A body may raise it itself when it can't tell (an answer was lost).
    """

    def __init__(self, message: str = "It is not known whether the effect happened.", *, effect_id: str = "") -> None:
        super().__init__(message)
        self.effect_id = effect_id


class RecordedError(Exception):
    """Stands for the error that an effect failed with in another process, whose class is not loaded in this one. The
    text names it."""


class EffectAborted(Exception):
    """Raised at a call of an effect that was in doubt and was given up by `Abort(reason)`."""
