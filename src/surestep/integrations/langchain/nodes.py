"""LangChain Runnables as nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel, RunnableSequence

from surestep._drive.call import Call, is_graph
from surestep.integrations.langchain.callable import RunnableCallable

if TYPE_CHECKING:
    from surestep._drive.context import TaskContext


class RunnableCall(Call):
    """A Runnable as a node: it is invoked with the task's config."""

    __slots__ = ()

    def __init__(self, runnable: Any, name: str | None) -> None:
        super().__init__(name or runnable.get_name(), None, target=runnable)
        self.is_async = _is_natively_async(runnable)
        if isinstance(runnable, RunnableCallable):  # for who looks at a node's code; it is run as a Runnable
            self.func, self.afunc = runnable.func, runnable.afunc

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
    if isinstance(runnable, RunnableCallable):
        return runnable.afunc is not None
    if isinstance(runnable, RunnableLambda):
        return hasattr(runnable, "afunc")
    if isinstance(runnable, RunnableSequence):
        return all(_is_natively_async(step) for step in runnable.steps)
    if isinstance(runnable, RunnableParallel):
        return all(_is_natively_async(step) for step in runnable.steps__.values())
    if hasattr(runnable, "bound"):
        return _is_natively_async(runnable.bound)
    return is_graph(runnable) or type(runnable).ainvoke is not Runnable.ainvoke
