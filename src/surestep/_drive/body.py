"""The node's side of a task: its function, then its writers. Written once, run by two runners.

The generator yields `(call, input)` for every piece of user code to run and is sent what it returned. What the node
wrote ends up in `task.writes`, all of it or nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from surestep._core.ids import NS_SEP, recast
from surestep.errors import ParentCommand
from surestep.types import Command

if TYPE_CHECKING:
    from surestep._drive.context import TaskContext

Body = Generator["tuple[Any, Any]", Any, Any]  # (a `Call` or what looks like one, its input) -> its result


def body(context: TaskContext) -> Body:
    """Run a node on its input and collect its writes."""
    try:
        yield from play(context)
    except ParentCommand as parent:
        yield from redirected(parent, context)


def play(context: TaskContext) -> Body:
    """The node itself: its function, then its writers. Returns what the function returned."""
    task = context.task
    spec = task.node.spec
    value = task.given()
    if spec.bound is not None:  # type: ignore[attr-defined]
        value = yield spec.bound, value  # type: ignore[attr-defined]
    yield from write(spec.writers, value, context)  # type: ignore[attr-defined]
    return value


def redirected(parent: ParentCommand, context: TaskContext) -> Body:
    """A command came out of the node that is meant for a graph around it: this one, or it goes on."""
    command = addressed_to_me(parent.args[0], context)
    context.writes.clear()
    yield from write(context.task.node.spec.writers, command, context)  # type: ignore[attr-defined]


def write(writers: Sequence[Any], value: Any, context: TaskContext) -> Body:
    """Give what a node returned to its writers; ask its routers where to go."""
    writes = context.writes
    for writer in writers:
        if writer.path is None:
            writes.extend(writer(value))
        else:
            chosen = yield writer.path, writer.input(context.fresh, value)
            writes.extend(writer.route(chosen))


def addressed_to_me(command: Command[Any], context: TaskContext) -> Command[Any]:
    """A command that came up from inside: applied here when it means this graph, else passed on."""
    task = context.task
    if command.graph in (task.ns, recast(task.ns), task.name):
        return Command(update=command.update, goto=command.goto)
    if command.graph == Command.PARENT:
        above = context.env.ns.split(NS_SEP)
        while above and above[-1].isdigit():
            above.pop()
        command = Command(graph=NS_SEP.join(above), update=command.update, goto=command.goto)
    raise ParentCommand(command)


def run_sync(steps: Body, context: TaskContext) -> None:
    """Run a body on this thread."""
    try:
        call, value = next(steps)
        while True:
            try:
                result = call.invoke(value, context)
            except BaseException as error:
                call, value = steps.throw(error)
            else:
                call, value = steps.send(result)
    except StopIteration:
        return


async def run_async(steps: Body, context: TaskContext) -> None:
    """Run a body on this event loop."""
    try:
        call, value = next(steps)
        while True:
            try:
                result = await call.ainvoke(value, context)
            except BaseException as error:
                call, value = steps.throw(error)
            else:
                call, value = steps.send(result)
    except StopIteration:
        return
