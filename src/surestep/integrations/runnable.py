"""Graphs are LangChain Runnables, without LangChain being imported for it.

`Runnable` is an abstract class and graphs are registered with it: not before it is there, but before anybody can ask.
What a Runnable can do and a graph has no own way to do is borrowed from Runnable itself, when somebody calls it.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from types import FunctionType, MethodType
from typing import Any, Final, cast

from surestep._config import ensure_config

# Names for which LangChain is imported if it is not yet in the process.
BORROWED: Final = frozenset(
    (
        *("abatch_as_completed", "as_tool", "assign", "atransform"),
        *("batch_as_completed", "bind", "config_specs", "get_prompts", "map", "pick", "pipe"),
        *("transform", "with_alisteners", "with_fallbacks", "with_listeners", "with_retry", "with_types"),
    )
)
_MISSING: Final[Any] = object()


class AsRunnable:
    """What makes a graph a Runnable."""

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        # `isinstance(graph, Runnable)` reads this before it decides: time to register, if LangChain came meanwhile.
        _register(type(self))
        return type(self)

    def __getattr__(self, name: str) -> Any:
        """What graphs borrow from Runnable. AttributeError for everything else."""
        if name[:2] == "__" or (name not in BORROWED and "langchain_core.runnables.base" not in sys.modules):
            raise _no_attribute(self, name)
        try:
            found = getattr(_runnable(self, name), name, _MISSING)
        except ImportError as error:
            raise AttributeError(str(error), name=name, obj=self) from error
        if isinstance(found, FunctionType):
            return MethodType(found, self)
        if isinstance(found, property) and found.fget is not None:
            return found.fget(self)
        if found is _MISSING:
            raise _no_attribute(self, name)
        return found

    def astream_events(self, input: Any, config: Any = None, **kwargs: Any) -> AsyncIterator[Any]:
        """What happens in a run and in everything it calls, as LangChain's events (version="v1" or "v2")."""
        events = _runnable(self, "astream_events").astream_events
        return cast("AsyncIterator[Any]", events(self, input, self._with_limit(config), **kwargs))

    def astream_log(self, input: Any, config: Any = None, **kwargs: Any) -> AsyncIterator[Any]:
        """What happens in a run, as patches of a log. Deprecated in LangChain."""
        log = _runnable(self, "astream_log").astream_log
        return cast("AsyncIterator[Any]", log(self, input, self._with_limit(config), **kwargs))

    def _with_limit(self: Any, config: Any) -> dict[str, Any]:
        """A config with the recursion limit that the run would have had: LangChain's own default is another one."""
        return {**(config or {}), "recursion_limit": ensure_config(self.config, config)["recursion_limit"]}

    def __or__(self, other: Any) -> Any:
        """The graph, and then `other` on its output: a sequence."""
        return _runnable(self, "|").__or__(self, other)

    def __ror__(self, other: Any) -> Any:
        """`other`, and then the graph on its output: a sequence."""
        return _runnable(self, "|").__ror__(self, other)


def borrowed(graph: Any, name: str) -> Any:
    """A method that the graph borrows from Runnable."""
    return MethodType(getattr(_runnable(graph, name), name), graph)


def _register(kind: type[Any]) -> None:
    base = sys.modules.get("langchain_core.runnables.base")
    runnable = getattr(base, "Runnable", None)  # None while LangChain is being imported
    if runnable is not None and not issubclass(kind, runnable):
        runnable.register(kind)


def _runnable(graph: Any, wanted: str) -> Any:
    """LangChain's Runnable, imported if need be. ImportError if it can't be."""
    try:
        from langchain_core.runnables import Runnable
    except ImportError as error:
        raise ImportError(
            f"{type(graph).__name__} has {wanted!r} from LangChain, which is not installed: pip install langchain-core"
        ) from error
    _register(type(graph))
    return Runnable


def _no_attribute(graph: Any, name: str) -> AttributeError:
    return AttributeError(f"{type(graph).__name__!r} object has no attribute {name!r}", name=name, obj=graph)
