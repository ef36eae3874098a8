"""What `stream_events(version="v3")` gives: a run that goes on as far as somebody reads.

Rules:
1. Whoever reads from a projection drives the run by one event at a time, for all projections.
2. An error of the run is raised to whoever reads on, and by `output`, `interrupted` and `interrupts`.
3. A run that is left (`abort`, the end of a `with` block) stops; its thread can be resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from surestep.stream._convert import convert_to_protocol_event
from surestep.stream._mux import StreamMux
from surestep.stream.stream_channel import StreamChannel

__all__ = ("AsyncGraphRunStream", "AsyncSubgraphRunStream", "GraphRunStream", "SubgraphRunStream")


class _RunStream:
    """What sync and async runs have in common: the projections, and how the run stands."""

    def __init__(self, mux: StreamMux) -> None:
        self._mux = mux
        self._exhausted = False
        self._error: BaseException | None = None

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


class GraphRunStream(_RunStream):
    """A run of `stream_events`: iterate it for raw events, or read its projections (`values`, `messages`,
    `lifecycle`, `subgraphs` and others that were asked for) as its attributes."""

    def __init__(self, graph_iter: Iterator[Any] | None, mux: StreamMux, *, wire_pump: bool = True) -> None:
        super().__init__(mux)
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


class SubgraphRunStream(GraphRunStream):
    """A graph inside the run, followed by itself. Reading from it drives the whole run.

    `path`: its namespace; `graph_name`: the agent's or its node's name; `trigger_call_id`: the task it runs in;
    `status`: "started" until it has ended; `error`: with "failed".
    """

    def __init__(
        self,
        mux: StreamMux,
        *,
        path: tuple[str, ...],
        graph_name: str | None = None,
        trigger_call_id: str | None = None,
    ) -> None:
        super().__init__(None, mux, wire_pump=False)
        self.path = path
        self.graph_name = graph_name
        self.trigger_call_id = trigger_call_id
        self.status: Any = "started"
        self.error: str | None = None
        self._seen_terminal = False

    def _finish(self, status: Any, error: str | None) -> None:
        self.status, self.error = status, error
        self._seen_terminal = self._exhausted = True

    def _drive(self) -> None:
        while not self._seen_terminal and not self._mux.closed and self._mux.pump is not None and self._mux.pump():
            pass

    def _result(self, value: Any) -> Any:
        if self.status == "failed":
            raise RuntimeError(self.error)
        return super()._result(value)


class AsyncGraphRunStream(_RunStream):
    """A run of `astream_events`: as `GraphRunStream`, read with `async for`; its questions are awaited."""

    def __init__(self, graph_aiter: AsyncIterator[Any] | None, mux: StreamMux, *, wire_pump: bool = True) -> None:
        super().__init__(mux)
        self._graph_aiter = graph_aiter
        self._turn = asyncio.Lock()  # of several readers one drives
        self._pending: asyncio.Task[Any] | None = None  # the event that is on its way, whoever waits for it
        if wire_pump:
            mux.bind_apump(self._apump_next)

    async def _apump_next(self) -> bool:
        """Produce one more event, or wait while another reader does; False when there is none."""
        if self._turn.locked():
            async with self._turn:
                return True  # another reader has: look again what it brought
        async with self._turn:
            return await self._produce()

    async def _produce(self) -> bool:
        if self._exhausted or self._graph_aiter is None:
            return False
        try:
            part = await self._next_part()
            if part is not None:
                await self._mux.apush(convert_to_protocol_event(part))
                return True
        except asyncio.CancelledError:
            if not self._exhausted:  # the reader was cancelled, not the run
                raise
        except BaseException as error:
            await self._stop()
            await self._mux.afail(error)
            if not isinstance(error, Exception):
                raise
        else:
            self._exhausted = True
            try:
                await self._mux.aclose()
            except Exception as error:
                self._error = error
        return False

    async def _next_part(self) -> Any:
        """The next part of the run. A reader that is cancelled leaves it to the next one."""
        if self._pending is None:
            self._pending = asyncio.ensure_future(_next_of(self._graph_aiter))
        part = await asyncio.shield(self._pending)
        self._pending = None
        return part

    async def _stop(self) -> None:
        self._exhausted = True
        pending, self._pending = self._pending, None
        if pending is not None and not pending.done():
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)
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


async def _next_of(parts: Any) -> Any:
    return await anext(parts, None)


class AsyncSubgraphRunStream(AsyncGraphRunStream):
    """A graph inside an async run; see `SubgraphRunStream`."""

    def __init__(
        self,
        mux: StreamMux,
        *,
        path: tuple[str, ...],
        graph_name: str | None = None,
        trigger_call_id: str | None = None,
    ) -> None:
        super().__init__(None, mux, wire_pump=False)
        self.path = path
        self.graph_name = graph_name
        self.trigger_call_id = trigger_call_id
        self.status: Any = "started"
        self.error: str | None = None
        self._seen_terminal = False

    def _finish(self, status: Any, error: str | None) -> None:
        self.status, self.error = status, error
        self._seen_terminal = self._exhausted = True

    async def _drive(self) -> None:
        pump = self._mux.apump
        while not self._seen_terminal and not self._mux.closed and pump is not None and await pump():
            pass

    def _result(self, value: Any) -> Any:
        if self.status == "failed":
            raise RuntimeError(self.error)
        return super()._result(value)
