"""Many inputs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def configs_for(config: Any, count: int) -> list[Any]:
    """One config an input: the same one for all, or a list of them."""
    if isinstance(config, Sequence):
        if len(config) != count:
            raise ValueError(
                f"batch got {count} inputs and {len(config)} configs; pass one config, or one for each input."
            )
        return list(config)
    return [config] * count


def batch(graph: Any, inputs: Sequence[Any], config: Any, return_exceptions: bool, kwargs: dict[str, Any]) -> list[Any]:
    """Results of `invoke` in the order of the inputs, on threads (`max_concurrency` of the first config)."""
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    configs = configs_for(config, len(inputs))
    if not inputs:
        return []

    def one(input: Any, own: Any) -> Any:
        try:
            return graph.invoke(input, own, **kwargs)
        except Exception as error:
            if return_exceptions:
                return error
            raise

    if len(inputs) == 1:
        return [one(inputs[0], configs[0])]
    with ThreadPoolExecutor((configs[0] or {}).get("max_concurrency")) as pool:
        futures = [pool.submit(copy_context().run, one, *pair) for pair in zip(inputs, configs, strict=True)]
        return [future.result() for future in futures]


async def abatch(
    graph: Any, inputs: Sequence[Any], config: Any, return_exceptions: bool, kwargs: dict[str, Any]
) -> list[Any]:
    """Results of `ainvoke` in the order of the inputs, on the event loop (`max_concurrency` of the first config)."""
    import asyncio
    from contextlib import AsyncExitStack

    configs = configs_for(config, len(inputs))
    if not inputs:
        return []
    limit = (configs[0] or {}).get("max_concurrency")
    turns = asyncio.Semaphore(limit) if limit else None

    async def one(input: Any, own: Any) -> Any:
        async with AsyncExitStack() as stack:
            if turns is not None:
                await stack.enter_async_context(turns)
            return await graph.ainvoke(input, own, **kwargs)

    pairs = zip(inputs, configs, strict=True)
    return list(await asyncio.gather(*(one(*pair) for pair in pairs), return_exceptions=return_exceptions))
