"""Event streams of runs on a server, over the SDK's own."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, ClassVar

from surestep.types import Command

log = logging.getLogger("surestep.pregel.remote")


def _translate_command_input(input: Any) -> Any:
    """The input of an event stream: of a Command the answer it brings. NotImplementedError for its other parts."""
    if not isinstance(input, Command):
        return input
    for name, given in (("goto", bool(input.goto)), ("update", input.update is not None)):
        if given:
            raise NotImplementedError(
                f"A Command with `{name}` can't be the input of a remote event stream, which takes `resume` only. "
                "Use stream() or update_state()."
            )
    return input.resume


class _ChannelProjection:
    """One channel's data, for which the SDK has no projection of its own."""

    def __init__(self, thread: Any, channel: str) -> None:
        self._thread = thread
        self._channel = channel

    def _decoder(self) -> Any:
        from langgraph_sdk.stream.decoders import DataDecoder

        return DataDecoder(self._channel)

    def __iter__(self) -> Iterator[Any]:
        decoder = self._decoder()
        for event in self._thread.subscribe([self._channel]):
            yield from decoder.feed(event)

    async def __aiter__(self) -> AsyncIterator[Any]:
        decoder = self._decoder()
        async for event in self._thread.subscribe([self._channel]):
            for data in decoder.feed(event):
                yield data


class _ProjectionRegistry(Mapping[str, Any]):
    """All projections by name; a name that is none of the protocol's is one of the graph's own."""

    _TYPED: ClassVar = ("values", "messages", "tool_calls", "subgraphs")
    _DECODED: ClassVar = ("updates", "checkpoints", "tasks", "custom")
    _NATIVE: ClassVar = (*_TYPED, *_DECODED)

    def __init__(self, thread: Any) -> None:
        self._thread = thread

    def __getitem__(self, name: str) -> Any:
        if name in self._TYPED:
            return getattr(self._thread, name)
        if name in self._DECODED:
            return _ChannelProjection(self._thread, name)
        return self._thread.extensions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._NATIVE)

    def __len__(self) -> int:
        return len(self._NATIVE)


class _Remote:
    """What sync and async streams share. The run starts when the stream is entered."""

    def __init__(self, client: Any, sdk_thread: Any, input: Any, config: Any, metadata: Any) -> None:
        self._client = client
        self._thread = sdk_thread
        self._start_kwargs = {"input": _translate_command_input(input), "config": config, "metadata": metadata}
        self._run_id: str | None = None
        self._events: Any = None
        self._aborted = False
        self.extensions = _ProjectionRegistry(sdk_thread)

    def __getattr__(self, name: str) -> Any:
        if name in _ProjectionRegistry._NATIVE:
            return self.extensions[name]
        raise AttributeError(f"A remote run has no projection {name!r}; those of the graph are in `extensions`.")

    def _to_cancel(self) -> tuple[str, str] | None:
        """Thread and run to cancel, once."""
        first, self._aborted = not self._aborted, True
        return (self._thread.thread_id, self._run_id) if first and self._run_id is not None else None


class _RemoteGraphRunStream(_Remote):
    """A run on a server, read as `GraphRunStream` is. To be entered: `with graph.stream_events(...) as run`."""

    def __init__(self, *, sync_client: Any, sdk_thread: Any, input: Any, config: Any, metadata: Any) -> None:
        super().__init__(sync_client, sdk_thread, input, config, metadata)

    def __enter__(self) -> _RemoteGraphRunStream:
        self._thread.__enter__()
        try:
            self._run_id = self._thread.run.start(**self._start_kwargs)["run_id"]
        except BaseException as error:
            self._thread.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(self, *exc: Any) -> None:
        self._thread.__exit__(*exc)

    def __iter__(self) -> Iterator[Any]:
        if self._events is None:
            self._events = iter(self._thread.events)
        return self._events  # type: ignore[no-any-return]

    @property
    def output(self) -> Any:
        """The state at the end."""
        return self._thread.output

    @property
    def interrupted(self) -> bool:
        """Whether the run paused with questions."""
        return bool(self._thread.interrupted)

    @property
    def interrupts(self) -> list[Any]:
        """The questions that the run paused with."""
        return list(self._thread.interrupts)

    def interleave(self, *names: str) -> Iterator[tuple[str, Any]]:
        """Several projections at once, as (name, item) in the order in which items came."""
        return iter(self._thread.interleave_projections(list(names)))

    def abort(self) -> None:
        """Cancel the run, and let go of the connection."""
        closed = self._aborted
        if (run := self._to_cancel()) is not None:
            try:
                self._client.runs.cancel(*run, wait=False)
            except Exception:
                log.warning("The run %s could not be cancelled", run[1], exc_info=True)
        if not closed:
            self._thread.close()


class _AsyncRemoteGraphRunStream(_Remote):
    """A run on a server, read as `AsyncGraphRunStream` is. To be entered with `async with`."""

    def __init__(self, *, client: Any, sdk_thread: Any, input: Any, config: Any, metadata: Any) -> None:
        super().__init__(client, sdk_thread, input, config, metadata)

    async def __aenter__(self) -> _AsyncRemoteGraphRunStream:
        await self._thread.__aenter__()
        try:
            self._run_id = (await self._thread.run.start(**self._start_kwargs))["run_id"]
        except BaseException as error:
            await self._thread.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._thread.__aexit__(*exc)

    def __aiter__(self) -> AsyncIterator[Any]:
        if self._events is None:
            self._events = aiter(self._thread.events)
        return self._events  # type: ignore[no-any-return]

    async def output(self) -> Any:
        """The state at the end."""
        return await self._thread.output

    async def interrupted(self) -> bool:
        """Whether the run paused with questions."""
        return bool(self._thread.interrupted)

    async def interrupts(self) -> list[Any]:
        """The questions that the run paused with."""
        return list(self._thread.interrupts)

    async def abort(self) -> None:
        """Cancel the run, and let go of the connection."""
        closed = self._aborted
        if (run := self._to_cancel()) is not None:
            try:
                await self._client.runs.cancel(*run, wait=False)
            except Exception:
                log.warning("The run %s could not be cancelled", run[1], exc_info=True)
        if not closed:
            await self._thread.close()
