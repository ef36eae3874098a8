"""Where LangChain looks for the config of the code around it, while a task runs. Imports nothing of LangChain's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surestep._drive.context import TaskContext


class AmbientConfig(dict[str, Any]):
    """The config of a task, made when somebody looks at it: most nodes call nothing of LangChain's."""

    __slots__ = ("_task",)

    def __init__(self, task: TaskContext) -> None:
        self._task: TaskContext | None = task

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)  # a copy is a plain dict


def _looking(name: str) -> Callable[..., Any]:
    """A method of dict that fills the dict first."""
    method = getattr(dict, name)

    def look(self: AmbientConfig, *args: Any, **kwargs: Any) -> Any:
        task, self._task = self._task, None
        if task is not None:
            dict.update(self, task.config)
        return method(self, *args, **kwargs)

    look.__name__ = name
    return look


for _name in (
    *("__contains__", "__delitem__", "__eq__", "__getitem__", "__ior__", "__iter__", "__len__", "__ne__", "__or__"),
    *("__repr__", "__reversed__", "__ror__", "__setitem__", "copy", "get", "items", "keys", "pop", "popitem"),
    *("setdefault", "update", "values"),
):
    setattr(AmbientConfig, _name, _looking(_name))


def show_config(task: TaskContext) -> None:
    """Let LangChain, where it is loaded, find the task's config in this context (of context variables)."""
    module = sys.modules.get("langchain_core.runnables.config")
    variable = getattr(module, "var_child_runnable_config", None)  # None too while LangChain is being imported
    if variable is not None:
        variable.set(AmbientConfig(task))
