"""What a node can look up from anywhere inside it: the config of its call, the store, the stream writer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

from surestep._constants import CONFIG_KEY_RUNTIME
from surestep._context import current_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from surestep.store.base import BaseStore
    from surestep.types import RunnableConfig

__all__ = ("get_config", "get_store", "get_stream_writer")


def get_config() -> RunnableConfig:
    """The config of the node that is running. Raises RuntimeError outside of a node."""
    task = current_task.get()
    if task is not None:
        return cast("RunnableConfig", task.config)
    langchain = sys.modules.get("langchain_core.runnables.config")
    if langchain is not None:
        config = langchain.var_child_runnable_config.get()
        if config:
            return cast("RunnableConfig", config)
    raise _outside("get_config")


def get_store() -> BaseStore:
    """The store that the graph was compiled with. Raises RuntimeError outside of a node, or without a
    store."""
    task = current_task.get()
    store = task.store if task is not None else getattr(_runtime("get_store"), "store", None)
    if store is None:
        raise RuntimeError(
            "Called get_store in a graph without a store: pass one to compile(), for example InMemoryStore()."
        )
    return cast("BaseStore", store)


def get_stream_writer() -> Callable[[Any], None]:
    """A function that puts its argument on the custom stream; it does nothing when nobody streams "custom".

    Raises RuntimeError outside of a node.
    """
    task = current_task.get()
    writer = task.stream_writer if task is not None else _runtime("get_stream_writer").stream_writer
    return cast("Callable[[Any], None]", writer)


def _runtime(caller: str) -> Any:
    """The runtime in the ambient config, for code that LangChain runs between a node and this call."""
    try:
        return get_config()["configurable"][CONFIG_KEY_RUNTIME]
    except (RuntimeError, KeyError):
        raise _outside(caller) from None


def _outside(caller: str) -> RuntimeError:
    return RuntimeError(
        f"Called {caller} outside of a runnable context: it works inside a node or a task that a graph "
        "runs. In a thread that the node started itself, run the function in a copy of the node's context "
        "(contextvars.copy_context)."
    )
