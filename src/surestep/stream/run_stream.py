"""What `stream_events(version="v3")` gives: a run that goes on as far as somebody reads.

Rules:
1. Whoever reads from a projection drives the run by one event at a time, for all projections.
2. An error of the run is raised to whoever reads on, and by `output`, `interrupted` and `interrupts`.
3. A run that is left stops, and its thread can be resumed: by `abort`, by the end of a `with` block, or when all tasks
   that wait for its next event are cancelled. One that is dropped stops when the garbage collector comes to it.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from surestep.stream._convert import convert_to_protocol_event
from surestep.stream._mux import StreamMux
from surestep.stream.stream_channel import StreamChannel

__all__ = ("AsyncGraphRunStream", "AsyncSubgraphRunStream", "GraphRunStream", "SubgraphRunStream")


class _RunStream:
    """What sync and async runs have in common: the projections, and how the run stands."""

    def __init__(self, mux: StreamMux, parts: Any = None) -> None:
        self._mux = mux
        self._exhausted = False
        self._error: BaseException | None = None
        if parts is not None:
            # Channels hold the run and the run holds them: if it is dropped, the garbage collector finds it, and would
            # close the generators that play it in any order. So they are held from outside until the rest is gone.
            weakref.finalize(mux, _let_go, parts).atexit = False

    @property
    def extensions(self) -> Mapping[str, Any]:
        """All projections by name; read-only."""
        return self._mux.extensions

    def __getattr__(self, name: str) -> Any:
        native: dict[str, Any] = self.__dict__["_mux"].native() if "_mux" in self.__dict__ else {}
        if name in native:
            return native[name]
        raise AttributeError(
            f"{type(self).__name__} has no projection {name!r}. There are: {', '.join(sorted(native))}; "
            "those of your own transformers are in `extensions`."
        )

    def _result(self, value: Any) -> Any:
        """The value, once the run has ended; the error of one that failed."""
        if (error := self._mux._events._error or self._error) is not None:
            raise error
        return value


def _let_go(parts: Any) -> None:
    """With its last reference a generator is closed: the outermost first."""


class _Inside(_RunStream):
    """What sync and async handles of a graph inside the run have in common: who it is, and how it ended."""

    def __init__(
        self,
        mux: StreamMux,
        *,
        path: tuple[str, ...],
        graph_name: str | None = None,
        trigger_call_id: str | None = None,
    ) -> None:
        super().__init__(None, mux, wire_pump=False)  # type: ignore[arg-type,call-arg]  # of the run stream beside
        self.path = path
        self.graph_name = graph_name
        self.trigger_call_id = trigger_call_id
        self.status: Any = "started"
        self.error: str | None = None
        self._seen_terminal = False

    def _finish(self, status: Any, error: str | None) -> None:
        self.status, self.error = status, error
        self._seen_terminal = self._exhausted = True

    def _goes_on(self) -> bool:
        return not self._seen_terminal and not self._mux.closed

    def _result(self, value: Any) -> Any:
        if self.status == "failed":
            raise RuntimeError(self.error)
        return super()._result(value)


class GraphRunStream(_RunStream):
    """A run of `stream_events`: iterate it for raw events, or read its projections (`values`, `messages`,
    `lifecycle`, `subgraphs` and others that were asked for) as its attributes."""

    def __init__(self, graph_iter: Iterator[Any] | None, mux: StreamMux, *, wire_pump: bool = True) -> None:
        super().__init__(mux, graph_iter)
        self._graph_iter = graph_iter
        if wire_pump:
            mux.bind_pump(self._pump_next)

    def _pump_next(self) -> bool:
        """Produce one more event; False when there is none, or the run has failed."""
        if self._exhausted or self._graph_iter is None:
            return False
        try:
            part = next(self._graph_iter, None)
            if part is not None:
                self._mux.push(convert_to_protocol_event(part))
                return True
        except BaseException as error:
            self._stop()
            self._mux.fail(error)
            if not isinstance(error, Exception):
                raise
        else:
            self._exhausted = True
            try:
                self._mux.close()
            except Exception as error:
                self._error = error
        return False

    def _stop(self) -> None:
        self._exhausted = True
        close = getattr(self._graph_iter, "close", None)
        if close is not None:
            close()

    def _drive(self) -> None:
        while self._pump_next():
            pass

    @property
    def output(self) -> dict[str, Any] | None:
        """The state at the end; runs the graph to its end. Raises the run's error."""
        self._drive()
        return self._result(self._mux.values)  # type: ignore[no-any-return]

    @property
    def interrupted(self) -> bool:
        """Whether the run paused with questions; runs the graph to its end."""
        self._drive()
        return bool(self._result(self._mux.interrupts))

    @property
    def interrupts(self) -> list[Any]:
        """The questions that the run paused with; runs the graph to its end."""
        self._drive()
        return list(self._result(self._mux.interrupts))

    def abort(self) -> None:
        """Stop the run. What was read stays; projections end."""
        if not self._exhausted:
            self._stop()
            self._mux.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._mux._events)

    def __enter__(self) -> GraphRunStream:
        return self

    def __exit__(self, *exc: object) -> None:
        self.abort()

    def interleave(self, *names: str) -> Iterator[tuple[str, Any]]:
        """Several projections at once, as (name, item) in the order in which items came. KeyError for a name that is
        no channel here, RuntimeError for one that somebody reads already."""
        mine: dict[str, StreamChannel[Any]] = {}
        try:
            for name in names:
                channel = self._mux.extensions[name]
                channel._subscribe(is_async=False)
                mine[name] = channel
            yield from self._merged(mine)
        finally:
            for channel in mine.values():
                channel._release()

    def _merged(self, channels: Mapping[str, StreamChannel[Any]]) -> Iterator[tuple[str, Any]]:
        while True:
            waiting = [(channel._items[0][0], name) for name, channel in channels.items() if channel._items]
            if waiting:
                name = min(waiting)[1]
                yield name, channels[name]._items.popleft()[1]
            elif all([channel._over() for channel in channels.values()]):
                return
            elif self._mux.pump is None or not self._mux.pump():
                if not any(channel._items or channel._closed for channel in channels.values()):
                    return


class SubgraphRunStream(_Inside, GraphRunStream):
    """A graph inside the run, followed by itself. Reading from it drives the whole run.

    `path`: its namespace; `graph_name`: the agent's or its node's name; `trigger_call_id`: the task it runs in;
    `status`: "started" until it has ended; `error`: with "failed".
    """

    def _drive(self) -> None:
        pump = self._mux.pump
        while self._goes_on() and pump is not None and pump():
            pass


class AsyncGraphRunStream(_RunStream):
    """A run of `astream_events`: as `GraphRunStream`, read with `async for`; its questions are awaited."""

    def __init__(self, graph_aiter: AsyncIterator[Any] | None, mux: StreamMux, *, wire_pump: bool = True) -> None:
        super().__init__(mux, graph_aiter)
        self._graph_aiter = graph_aiter
        self._turn: asyncio.Task[bool] | None = None  # in which the run's next event comes
        self._waiting = 0  # readers that wait for it
        if wire_pump:
            mux.bind_apump(self._apump_next)

    async def _apump_next(self) -> bool:
        """Wait for the run's next event, with all others who do; False when there is none."""
        if self._exhausted or self._graph_aiter is None:
            return False
        if self._turn is None:
            self._turn = asyncio.ensure_future(self._produce())
        turn = self._turn
        self._waiting += 1
        try:
            return await asyncio.shield(turn)
        except asyncio.CancelledError:
            if turn.cancelled():  # the run was left by somebody else
                return False
            if self._waiting == 1 and not turn.done():  # nobody is left who waits for it
                await self.abort()
            raise
        finally:
            self._waiting -= 1

    async def _produce(self) -> bool:
        try:
            part = await anext(self._graph_aiter, None)  # type: ignore[arg-type]
            if part is not None:
                await self._mux.apush(convert_to_protocol_event(part))
                return True
        except Exception as error:
            self._turn = None  # it is this one
            await self._stop()
            await self._mux.afail(error)
        else:
            self._exhausted = True
            try:
                await self._mux.aclose()
            except Exception as error:
                self._error = error
        finally:
            self._turn = None
        return False

    async def _stop(self) -> None:
        self._exhausted = True
        turn, self._turn = self._turn, None
        if turn is not None and not turn.done():
            turn.cancel()
            await asyncio.wait([turn])
        close = getattr(self._graph_aiter, "aclose", None)
        if close is not None:
            await close()

    async def _drive(self) -> None:
        while await self._apump_next():
            pass

    async def output(self) -> dict[str, Any] | None:
        """The state at the end; runs the graph to its end. Raises the run's error."""
        await self._drive()
        return self._result(self._mux.values)  # type: ignore[no-any-return]

    async def interrupted(self) -> bool:
        """Whether the run paused with questions; runs the graph to its end."""
        await self._drive()
        return bool(self._result(self._mux.interrupts))

    async def interrupts(self) -> list[Any]:
        """The questions that the run paused with; runs the graph to its end."""
        await self._drive()
        return list(self._result(self._mux.interrupts))

    async def abort(self) -> None:
        """Stop the run, with all that it has under way."""
        if not self._exhausted:
            await self._stop()
            await self._mux.aclose()

    def __aiter__(self) -> AsyncIterator[Any]:
        return aiter(self._mux._events)

    async def __aenter__(self) -> AsyncGraphRunStream:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.abort()


class AsyncSubgraphRunStream(_Inside, AsyncGraphRunStream):
    """A graph inside an async run; see `SubgraphRunStream`."""

    async def _drive(self) -> None:
        pump = self._mux.apump
        while self._goes_on() and pump is not None and await pump():
            pass
