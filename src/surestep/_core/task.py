"""A task: one execution of one node in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surestep._core.digest import digest
from surestep._core.ids import NS_END, PUSH, child_ns, path_text, task_id
from surestep._core.rows import Origin, Position

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from surestep._core.blueprint import NodePlan
    from surestep._core.head import Head, View


class Task:
    """What is to run, with which input, and what it has written so far.

    The id is a hash that most runs never look at, so it is worked out when somebody asks.
    """

    __slots__ = (
        "_id",
        "_input",
        "_ns",
        "_path_text",
        "anchor",
        "answers",
        "asked",
        "call",
        "failed",
        "first_started",
        "graphs",
        "id_text",
        "name",
        "node",
        "path",
        "restored",
        "step",
        "timeout",
        "triggers",
        "view",
        "writes",
    )

    def __init__(
        self,
        head: Head,
        name: str,
        node: NodePlan,
        path: tuple[Any, ...],
        triggers: tuple[str, ...],
        id_text: str,
        input: Any,
        step: int,
    ) -> None:
        self.anchor = head.anchor
        self.name = name
        self.node = node
        self.path = path
        self.triggers = triggers
        self.id_text = id_text
        self._input = input
        self.view: tuple[Callable[[Any], View], tuple[str, ...]] | None = None  # what its input is to be read from
        self.step = step
        self.timeout = node.timeout
        self.writes: Sequence[tuple[str, Any]] = ()
        self.answers: Sequence[Any] = ()
        self.call: Call | None = None
        self.failed: tuple[Task, BaseException] | None = None  # handlers: the task that failed, and how
        self.first_started: float | None = None  # set by the driver: seconds since the epoch
        self.graphs = 0  # kept by the drivers: how many graphs are running in it
        self.asked = False  # kept by the drivers: a graph in it has paused, which it has not told of yet
        self.restored = False  # its writes come from the saver (or the cache): it does not run
        self._id: str | None = None
        self._ns: str | None = None
        self._path_text: str | None = node.path_text if path is node.path else None

    @property
    def input(self) -> Any:
        """What it is given."""
        view = self.view
        if view is not None:
            self._input, self.view = view[0](view[1]).copy(), None
        return self._input

    def given(self) -> Any:
        """What its function is given: no more than what it looks up, unless somebody has looked at the whole input."""
        view = self.view
        if view is not None and self.node.lookups is not None:
            return view[0](self.node.lookups).copy()
        return self.input

    @property
    def id(self) -> str:
        if self._id is None:
            anchor, name = self.anchor, self.name
            cns = self.cns if anchor.ns or self.above is not None else name
            self._id = task_id(anchor.id_bytes, anchor.format, f"{cns}{self.step}{name}{self.id_text}")
        return self._id

    @property
    def above(self) -> Task | None:
        """The task of the same graph that it hangs below: the one that called it, or whose failure it handles."""
        if self.call is not None:
            return self.call.parent
        return self.failed[0] if self.failed is not None else None

    @property
    def cns(self) -> str:
        """Its namespace without its id."""
        return child_ns(self.above.ns if self.above is not None else self.anchor.ns, self.name)

    @property
    def ns(self) -> str:
        """The checkpoint namespace of a graph that runs inside it."""
        if self._ns is None:
            self._ns = f"{self.cns}{NS_END}{self.id}"
        return self._ns

    @property
    def depth(self) -> int:
        """How many tasks are waiting above it: 0 for a node, more for called tasks."""
        return 0 if self.call is None else self.call.parent.depth + 1

    @property
    def path_text(self) -> str:
        if self._path_text is None:
            self._path_text = path_text(self.path)
        return self._path_text

    def __repr__(self) -> str:
        return f"Task({self.name}, path={self.path}, step={self.step})"


class Call:
    """A task called by a running one: what it runs and who waits for it."""

    __slots__ = ("_origin", "awaited", "future", "index", "name", "node", "parent", "raw")

    def __init__(self, parent: Task, index: int, name: str, node: NodePlan, raw: Any, future: Any) -> None:
        self.parent = parent
        self.index = index
        self.name = name
        self.node = node
        self.raw = raw
        self.future = future
        self.awaited = False  # whether its caller waits for it
        self._origin: Origin | None = None

    @property
    def position(self) -> Position:
        """Where in the run it was made: what the results of calls are found by."""
        return self.parent.id, self.index

    @property
    def origin(self) -> Origin:
        """What was called, with what."""
        if self._origin is None:
            self._origin = Origin(self.name, digest(self.raw))
        return self._origin


def pull(head: Head, node: NodePlan, input: Any, step: int) -> Task:
    """A task triggered by channels."""
    return Task(head, node.name, node, node.path, node.triggers, node.id_text, input, step)


def push(head: Head, node: NodePlan, index: int, packet: Any, step: int) -> Task:
    """A task made by a `Send`."""
    task = Task(head, node.name, node, (PUSH, index, False), (PUSH,), f"{PUSH}{index}", packet.arg, step)
    if packet.timeout is not None:
        task.timeout = packet.timeout
    return task


def called(head: Head, call: Call, step: int) -> Task:
    """A task made by a call of a running task."""
    parent = call.parent
    path = (PUSH, parent.path, call.index, True)
    parts = f"{PUSH}{path_text(parent.path)}{call.index}"
    task = Task(head, call.name, call.node, path, (PUSH,), parts, call.raw, step)
    task.call = call
    return task


def handler(head: Head, failed: Task, node: NodePlan, error: BaseException) -> Task:
    """The error handler of a failed task; it gets that task's input and hangs below it."""
    path = (*failed.path[:3], "node_error_handler", False)
    parts = f"{PUSH}node_error_handler{failed.id}"
    task = Task(head, node.name, node, path, (PUSH,), parts, failed.input, failed.step)
    task.failed = (failed, error)
    return task


def by_path(tasks: Sequence[Task]) -> list[Task]:
    """Tasks in the order in which their writes are folded."""
    return sorted(tasks, key=lambda task: task.path_text)
