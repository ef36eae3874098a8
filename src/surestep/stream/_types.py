"""What flows through an event stream, and what may look at it on the way."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

log = logging.getLogger("surestep.stream")


class EventParams(TypedDict):
    """What an event says. `namespace`: the path of the graph it is from, empty for the outermost; `timestamp`:
    milliseconds since 1970; `interrupts`: the open questions, with `values` only."""

    namespace: list[str]
    timestamp: int
    data: Any
    interrupts: NotRequired[tuple[Any, ...]]


class ProtocolEvent(TypedDict):
    """One event of a run. `method`: the stream mode or the projection it is of; `seq`: its number, from 1, in the log
    of the whole run."""

    type: Literal["event"]
    event_id: NotRequired[str]
    seq: NotRequired[int]
    method: str
    params: EventParams


class StreamTransformer(ABC):
    """Makes projections of a run's events: it sees each event in order, and pushes what it makes of it to channels.

    A class is registered with a run (or a callable that takes the scope and makes one); an object is made for the
    run itself and one for each graph inside it that somebody follows. `scope` is that graph's namespace.

    `required_stream_modes`: the modes that the run must stream for it. `before_builtins`: sees events before the
    built-in transformers do, so that it may change them. A transformer that overrides an async method, or sets
    `requires_async`, works in async runs only; with `supports_sync` it says that its sync methods do all of it too.
    """

    requires_async: ClassVar[bool] = False
    supports_sync: ClassVar[bool] = False
    required_stream_modes: ClassVar[tuple[str, ...]] = ()
    before_builtins: ClassVar[bool] = False
    _native: ClassVar[bool] = False  # its projections are attributes of the run too

    scope: tuple[str, ...] = ()  # on the class as well: a subclass need not call our __init__

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        self.scope = scope

    @abstractmethod
    def init(self) -> dict[str, Any]:
        """The projections by name, channels mostly. Called once. Names must differ from those of other transformers."""

    def process(self, event: ProtocolEvent) -> bool:
        """Look at an event. False keeps it out of the log of raw events; other transformers see it all the same."""
        return True

    async def aprocess(self, event: ProtocolEvent) -> bool:
        """`process` in an async run: the next transformer sees the event when this is done."""
        return self.process(event)

    def finalize(self) -> None:  # noqa: B027 - most have nothing to say
        """The run has ended. What the transformer still has to say, it says now."""

    async def afinalize(self) -> None:
        """`finalize` in an async run, after all scheduled work is done."""
        self.finalize()

    def fail(self, err: BaseException) -> None:  # noqa: B027
        """The run has failed."""

    async def afail(self, err: BaseException) -> None:
        """`fail` in an async run; scheduled work has been cancelled."""
        self.fail(err)

    def schedule(
        self, coro: Coroutine[Any, Any, Any], *, on_error: Literal["log", "raise"] = "log"
    ) -> asyncio.Task[Any]:
        """Start work beside the run; it ends before `afinalize`. on_error: log a failure, or fail the run with it.

        RuntimeError without a running event loop.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError(
                f"{type(self).__name__}.schedule() requires a running event loop: use astream_events()."
            ) from None
        task = loop.create_task(coro)
        self._scheduled().append((task, on_error == "raise"))
        return task

    def _scheduled(self) -> list[tuple[asyncio.Task[Any], bool]]:
        """Work under way, and whether its failure is the run's."""
        return self.__dict__.setdefault("_tasks", [])  # type: ignore[no-any-return]

    async def _join(self) -> BaseException | None:
        """Wait for scheduled work; the first failure that counts."""
        failure: BaseException | None = None
        while tasks := self._scheduled():
            task, counts = tasks.pop(0)
            results: Any = await asyncio.gather(task, return_exceptions=True)
            error = results[0]
            if isinstance(error, BaseException):
                log.warning("Scheduled work of %s failed", type(self).__name__, exc_info=error)
                failure = failure or (error if counts else None)
        return failure

    async def _cancel(self) -> None:
        """Stop scheduled work, and wait until it has stopped."""
        tasks = [task for task, _ in self._scheduled()]
        self._scheduled().clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _on_register(self, mux: Any) -> None:  # noqa: B027
        """It is part of a multiplexer now."""


def works_in_sync_runs(transformer: StreamTransformer) -> bool:
    """Whether its sync methods are all there is to it."""
    cls = type(transformer)
    if cls.requires_async:
        return False
    own = any(getattr(cls, name) is not getattr(StreamTransformer, name) for name in ("aprocess", "afinalize", "afail"))
    return cls.supports_sync or not own
