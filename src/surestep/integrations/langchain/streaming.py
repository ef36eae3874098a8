"""Nodes that stream what they return to LangChain's event streams (`astream_events`, `astream_log`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any

from langchain_core.tracers._streaming import _StreamingCallbackHandler

from surestep._drive.call import _add
from surestep.integrations.langchain.messages import StreamMessages
from surestep.integrations.watch import Told


def listeners(run: Any) -> list[Any]:
    """The handlers of a run that want to see chunks as they come."""
    return [
        handler
        for handler in run.handlers
        if isinstance(handler, _StreamingCallbackHandler) and not isinstance(handler, StreamMessages)
    ]


def is_streamed(run: Any) -> bool:
    """Whether anybody does."""
    return bool(listeners(run))


class StreamedCall:
    """Runnables in a row, run chunk by chunk. Only for runs on an event loop."""

    __slots__ = ("configs", "runnables")

    def __init__(self, runnables: Sequence[Any], configs: Sequence[Any]) -> None:
        self.runnables = runnables
        self.configs = configs

    async def ainvoke(self, input: Any, task: Any) -> Any:
        """All chunks of the last one, added up."""
        first, *others = zip(self.runnables, self.configs, strict=True)
        chunks: AsyncIterator[Any] = first[0].astream(input, first[1])
        for runnable, config in others:
            chunks = runnable.atransform(chunks, config)
        total: Any = None
        async for chunk in chunks:
            total = _add(total, chunk)
        return total


def tap(run: Any, output: Any) -> Generator[Any, Any, None]:
    """Show what a node returned to those who listen to chunks."""
    for handler in listeners(run):
        yield Told(_through, handler.tap_output_aiter, run.run_id, output), None


async def _through(tap_output: Callable[..., AsyncIterator[Any]], run_id: Any, output: Any) -> None:
    async for _ in tap_output(run_id, _once(output)):
        pass


async def _once(value: Any) -> AsyncIterator[Any]:
    yield value
