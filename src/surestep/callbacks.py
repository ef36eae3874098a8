"""Callbacks about the life of a graph: it paused, it was resumed.

Put a GraphCallbackHandler among the `callbacks` of the config. With LangChain installed it is one of
LangChain's callback handlers too and hears of everything else; without, it hears of these events only.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from uuid import UUID

    from langchain_core.callbacks.base import BaseCallbackHandler

    from surestep.types import Interrupt, RunnableConfig

    class GraphCallbackHandler(BaseCallbackHandler):
        """Base of handlers: override what you want to hear of. Both methods may be async."""

        def on_interrupt(self, event: GraphInterruptEvent) -> Any:
            """The graph paused."""

        def on_resume(self, event: GraphResumeEvent) -> Any:
            """The graph was resumed."""


__all__ = (
    "GraphCallbackHandler",
    "GraphInterruptEvent",
    "GraphLifecycleEvent",
    "GraphLifecycleStatus",
    "GraphResumeEvent",
    "get_async_graph_callback_manager_for_config",
    "get_sync_graph_callback_manager_for_config",
)

logger = logging.getLogger(__name__)

GraphLifecycleStatus: TypeAlias = Literal[
    "input", "pending", "done", "interrupt_before", "interrupt_after", "out_of_steps"
]
"""Where the run is: it just started, it waits for answers, it stopped before or after a node, ..."""


@dataclass(frozen=True, slots=True)
class _Event:
    """Which run it is of, and where that is."""

    run_id: UUID | None
    status: GraphLifecycleStatus
    checkpoint_id: str
    checkpoint_ns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphInterruptEvent(_Event):
    """The outermost graph paused: at which checkpoint, and what it asks."""

    interrupts: tuple[Interrupt[Any], ...]


@dataclass(frozen=True, slots=True)
class GraphResumeEvent(_Event):
    """A graph, this one or one nested in it, goes on from a checkpoint."""


GraphLifecycleEvent: TypeAlias = GraphInterruptEvent | GraphResumeEvent
"""Either event."""


def __getattr__(name: str) -> Any:
    if name == "GraphCallbackHandler":
        return _handler_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def _handler_class() -> Any:
    # Made when asked for: LangChain takes longer to import than everything else here together.
    base: Any
    try:
        from surestep.integrations.callbacks import BaseCallbackHandler as base
    except ImportError:
        base = object

    class GraphCallbackHandler(base):  # type: ignore[misc]
        """Base of handlers: override what you want to hear of. Both methods may be async."""

        is_graph_callback_handler = True
        raise_error = False
        """Whether an exception in the handler ends the run; otherwise it is logged."""
        run_inline = False
        """Whether a sync handler of an async run is called in the event loop, and not in a thread."""

        def on_interrupt(self, event: GraphInterruptEvent) -> Any:
            """The graph paused."""

        def on_resume(self, event: GraphResumeEvent) -> Any:
            """The graph was resumed."""

    GraphCallbackHandler.__qualname__ = "GraphCallbackHandler"
    return GraphCallbackHandler


class _Manager:
    """The graph handlers of a run."""

    def __init__(self, handlers: Sequence[GraphCallbackHandler] | None = None, *, run_id: UUID | None = None) -> None:
        self.handlers: list[Any] = list(handlers or ())
        self.run_id = run_id

    def add_handler(self, handler: Any, inherit: bool = True) -> None:
        """Add a handler; one that is no GraphCallbackHandler is kept and told nothing."""
        self.handlers.append(handler)

    def _listeners(self) -> list[Any]:
        return [handler for handler in self.handlers if _listens(handler)]


class _GraphCallbackManager(_Manager):
    """Tells the handlers from sync code; an async handler runs in an event loop of its own."""

    def on_interrupt(self, event: GraphInterruptEvent) -> None:
        """Tell all that the graph paused."""
        for handler in self._listeners():
            _tell(handler, handler.on_interrupt, event)

    def on_resume(self, event: GraphResumeEvent) -> None:
        """Tell all that the graph was resumed."""
        for handler in self._listeners():
            _tell(handler, handler.on_resume, event)


class _AsyncGraphCallbackManager(_Manager):
    """Tells the handlers from async code; a sync handler runs in a thread, unless it says `run_inline`."""

    async def on_interrupt(self, event: GraphInterruptEvent) -> None:
        """Tell all that the graph paused."""
        for handler in self._listeners():
            await _atell(handler, handler.on_interrupt, event)

    async def on_resume(self, event: GraphResumeEvent) -> None:
        """Tell all that the graph was resumed."""
        for handler in self._listeners():
            await _atell(handler, handler.on_resume, event)


def _tell(handler: Any, method: Callable[[Any], Any], event: GraphLifecycleEvent) -> None:
    try:
        outcome = method(event)
        if inspect.isawaitable(outcome):
            _wait_for(outcome)
    except Exception as error:
        _failed(handler, method, error)


async def _atell(handler: Any, method: Callable[[Any], Any], event: GraphLifecycleEvent) -> None:
    import asyncio

    try:
        if inspect.iscoroutinefunction(method) or handler.run_inline:
            outcome = method(event)
            if inspect.isawaitable(outcome):
                await outcome
        else:
            await asyncio.to_thread(method, event)
    except Exception as error:
        _failed(handler, method, error)


def _failed(handler: Any, method: Any, error: Exception) -> None:
    logger.warning("Error in %s.%s callback: %r", type(handler).__name__, method.__name__, error)
    if handler.raise_error:
        raise error


def _wait_for(outcome: Awaitable[Any]) -> None:
    """Run an async handler to its end from sync code, whether or not this thread has a running event loop."""
    import asyncio
    import contextvars
    from concurrent.futures import ThreadPoolExecutor

    async def finish() -> None:
        await outcome

    with ThreadPoolExecutor(1) as pool:
        pool.submit(contextvars.copy_context().run, asyncio.run, finish()).result()


def get_sync_graph_callback_manager_for_config(
    config: RunnableConfig, *, run_id: UUID | None = None
) -> _GraphCallbackManager:
    """What tells the graph handlers among the config's callbacks; one that tells nobody when there are
    none."""
    return _GraphCallbackManager(graph_handlers(config.get("callbacks")), run_id=run_id)


def get_async_graph_callback_manager_for_config(
    config: RunnableConfig, *, run_id: UUID | None = None
) -> _AsyncGraphCallbackManager:
    """What tells the graph handlers among the config's callbacks; one that tells nobody when there are
    none."""
    return _AsyncGraphCallbackManager(graph_handlers(config.get("callbacks")), run_id=run_id)


def graph_handlers(callbacks: Any) -> list[GraphCallbackHandler]:
    """The graph handlers among callbacks: a handler, a list of them, or a LangChain callback manager."""
    if callbacks is None:
        return []
    if not isinstance(callbacks, list):
        callbacks = getattr(callbacks, "handlers", [callbacks])
    return [handler for handler in callbacks if _listens(handler)]


def _listens(handler: Any) -> bool:
    return getattr(handler, "is_graph_callback_handler", False) is True
