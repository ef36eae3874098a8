"""LangChain Runnables as nodes, and graphs as Runnables. Loaded only when LangChain is in the process.

A Runnable inside a node finds the node's config where LangChain looks for it: in the context variable
`var_child_runnable_config`, which drivers set for every task while LangChain is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.runnables import Runnable, RunnableLambda, RunnableSequence
from langchain_core.runnables.config import var_child_runnable_config

from surestep._drive.call import Call
from surestep.pregel.main import Pregel

if TYPE_CHECKING:
    from surestep._drive.context import TaskContext

Runnable.register(Pregel)


class RunnableCall(Call):
    """A Runnable as a node: it is invoked with the task's config."""

    __slots__ = ()

    def __init__(self, runnable: Any, name: str | None) -> None:
        super().__init__(name or runnable.get_name(), None, target=runnable)
        self.is_async = _is_natively_async(runnable)

    def invoke(self, input: Any, task: TaskContext) -> Any:
        """What the Runnable returns for `input`."""
        return self.target.invoke(input, task.config)

    async def ainvoke(self, input: Any, task: TaskContext) -> Any:
        """What the Runnable returns for `input`."""
        return await self.target.ainvoke(input, task.config)


def coerce_runnable(runnable: Any, name: str | None) -> Call:
    """A Runnable as a Call."""
    return RunnableCall(runnable, name)


def _is_natively_async(runnable: Any) -> bool:
    """Whether it can be cancelled: it has an `ainvoke` of its own that does not just borrow a thread."""
    if isinstance(runnable, RunnableLambda):
        return hasattr(runnable, "afunc")
    if isinstance(runnable, RunnableSequence):
        return all(_is_natively_async(step) for step in runnable.steps)
    if hasattr(runnable, "bound"):
        return _is_natively_async(runnable.bound)
    return isinstance(runnable, Pregel) or type(runnable).ainvoke is not Runnable.ainvoke


def enter(task: TaskContext) -> None:
    """Let Runnables that are called in this context find the task's config."""
    var_child_runnable_config.set(task.config)  # type: ignore[arg-type]
