"""One stream of events, many projections: events go through all transformers, in order, and into the log."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from surestep._calls import adriven, driven
from surestep.stream._convert import event_of
from surestep.stream._types import ProtocolEvent, StreamTransformer, works_in_sync_runs
from surestep.stream.stream_channel import StreamChannel

log = logging.getLogger("surestep.stream")

TransformerFactory = Callable[[tuple[str, ...]], StreamTransformer]

Step = tuple[Any, str, tuple[Any, ...]]  # an object, the sync name of its method, and the arguments
Script = Generator[Step, Any, Any]


def play(script: Script) -> Any:
    """Make the calls that a script asks for."""
    return driven(script, lambda step: getattr(step[0], step[1])(*step[2]))


async def aplay(script: Script) -> Any:
    """The same with the async forms of the methods."""
    return await adriven(script, lambda step: getattr(step[0], f"a{step[1]}")(*step[2]))


class StreamMux:
    """The transformers of a run, or of a graph inside it, their projections, and the log of raw events.

    `factories` make the transformers for `scope`, and those of graphs inside; `transformers` are made already, and
    then there is nothing for graphs inside. Raises TypeError and ValueError for projections that are no dict or have
    a name that is taken, RuntimeError for a transformer that needs an async run in a sync one.
    """

    def __init__(
        self,
        transformers: Sequence[StreamTransformer] | None = None,
        *,
        factories: Sequence[TransformerFactory] | None = None,
        scope: tuple[str, ...] = (),
        is_async: bool = False,
        parent: StreamMux | None = None,
    ) -> None:
        self.scope = scope
        self.is_async = is_async
        self.values: Any = None  # the state of the graph, as its last values event said
        self.interrupts: list[Any] = []  # the questions that its values events showed
        self.pump: Callable[[], bool] | None = None
        self.apump: Callable[[], Awaitable[bool]] | None = None
        self._factories = list(factories) if factories is not None else None
        self._counts = parent is None  # only the log of the whole run numbers its events
        self._seq = itertools.count(1)
        self._stamps: itertools.count[int] = parent._stamps if parent is not None else itertools.count(1)
        self._events: StreamChannel[ProtocolEvent] = StreamChannel()
        self._events._bind(is_async=is_async, stamp=self._stamps.__next__)
        made = list(transformers) if transformers is not None else [make(scope) for make in factories or ()]
        self._transformers = [*(t for t in made if t.before_builtins), *(t for t in made if not t.before_builtins)]
        self._owners: dict[str, StreamTransformer] = {}
        self._projections: dict[str, Any] = {}
        self.extensions: Mapping[str, Any] = MappingProxyType(self._projections)
        for transformer in made:  # names are told apart in the order given, whoever sees events first
            self._register(transformer)

    def _register(self, transformer: StreamTransformer) -> None:
        name = type(transformer).__name__
        if not self.is_async and not works_in_sync_runs(transformer):
            raise RuntimeError(f"{name} requires an async run: use astream_events() with it.")
        projections = transformer.init()
        if not isinstance(projections, dict):
            raise TypeError(f"{name}.init() must return a dict of projections, not {type(projections).__name__}.")
        for key, projection in projections.items():
            if (owner := self._owners.get(key)) is not None:
                raise ValueError(f"Projections of {name} conflict: {key!r} is one of {type(owner).__name__} already.")
            self._owners[key] = transformer
            self._projections[key] = projection
            if isinstance(projection, StreamChannel):
                self._adopt(projection, transformer)
        transformer._on_register(self)

    def _adopt(self, channel: StreamChannel[Any], transformer: StreamTransformer) -> None:
        channel._bind(is_async=self.is_async, stamp=self._stamps.__next__)
        if channel.name is not None:
            method = channel.name if transformer._native else f"custom:{channel.name}"
            channel._wire(lambda item: self._log(event_of(method, [], item)))  # LangGraph names no graph here

    # events

    def push(self, event: ProtocolEvent) -> None:
        """Take in an event."""
        play(self._pushing(event))

    async def apush(self, event: ProtocolEvent) -> None:
        """Take in an event in an async run."""
        await aplay(self._pushing(event))

    def _pushing(self, event: ProtocolEvent) -> Script:
        params = event["params"]
        if event["method"] == "values" and tuple(params["namespace"]) == self.scope:
            self.values = params["data"]
            self.interrupts += params.get("interrupts", ())
        kept = True
        for transformer in self._transformers:
            if (yield transformer, "process", (event,)) is False:
                kept = False
        if kept and not self.closed:
            self._log(event)

    def _log(self, event: ProtocolEvent) -> None:
        if self._counts:
            event["seq"] = next(self._seq)
        self._events.push(event)

    # the end

    @property
    def closed(self) -> bool:
        """Whether the run has ended, or nobody wants more of it."""
        return self._events._closed

    def close(self) -> None:
        """The run has ended. Raises the first failure of a transformer, after all of them were told."""
        self._end(play(self._telling("finalize", None)))

    async def aclose(self) -> None:
        """`close` in an async run: scheduled work is waited for first."""
        failures = [await transformer._join() for transformer in self._transformers]
        self._end(await aplay(self._telling("finalize", next(filter(None, failures), None))))

    def fail(self, err: BaseException) -> None:
        """The run has failed."""
        play(self._telling("fail", None, err))
        self._end(None, err)

    async def afail(self, err: BaseException) -> None:
        """`fail` in an async run: scheduled work is cancelled first."""
        for transformer in self._transformers:
            await transformer._cancel()
        await aplay(self._telling("fail", None, err))
        self._end(None, err)

    def _telling(self, method: str, failure: BaseException | None, *args: Any) -> Script:
        """Tell every transformer, whatever others make of it; the first failure."""
        if self.closed:
            return None
        for transformer in self._transformers:
            try:
                yield transformer, method, args
            except Exception as error:
                log.warning("%s.%s() failed", type(transformer).__name__, method, exc_info=error)
                failure = failure or error
        return failure

    def _end(self, failure: BaseException | None, error: BaseException | None = None) -> None:
        if not self.closed:
            for channel in (*self._channels(), self._events):
                if not channel._closed:
                    channel.close() if error is None else channel.fail(error)
        if failure is not None:
            raise failure

    def _channels(self) -> list[StreamChannel[Any]]:
        return [found for found in self._projections.values() if isinstance(found, StreamChannel)]

    # who drives

    def bind_pump(self, pump: Callable[[], bool]) -> None:
        """`pump` makes the run produce one more event; False when there is none."""
        self.pump = pump
        for channel in (*self._channels(), self._events):
            channel._request_more = pump
        for transformer in self._transformers:
            getattr(transformer, "_bind_pump", _unbound)(pump)

    def bind_apump(self, pump: Callable[[], Awaitable[bool]]) -> None:
        """The same in an async run."""
        self.apump = pump
        for channel in (*self._channels(), self._events):
            channel._arequest_more = pump
        for transformer in self._transformers:
            getattr(transformer, "_bind_apump", _unbound)(pump)

    # looking around

    def transformer_by_key(self, key: str) -> StreamTransformer | None:
        """The transformer that a projection is of."""
        return self._owners.get(key)

    def native(self) -> dict[str, Any]:
        """The projections that are attributes of the run."""
        return {key: self._projections[key] for key, owner in self._owners.items() if owner._native}

    def modes(self) -> set[str]:
        """The stream modes that the transformers need."""
        return {mode for transformer in self._transformers for mode in transformer.required_stream_modes}

    def _make_child(self, scope: tuple[str, ...]) -> StreamMux:
        """The same for a graph inside, driven by the same pump."""
        if self._factories is None:
            raise RuntimeError("Only a StreamMux made from factories can make one for a graph inside.")
        child = StreamMux(factories=self._factories, scope=scope, is_async=self.is_async, parent=self)
        if self.pump is not None:
            child.bind_pump(self.pump)
        if self.apump is not None:
            child.bind_apump(self.apump)
        return child


def _unbound(pump: Any) -> None:
    """A transformer that does not drive."""
