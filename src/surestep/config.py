"""What a node can look up from anywhere inside it: the config of its call, the store, the stream writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from surestep._config import ambient_config
from surestep._constants import CONFIG_KEY_RUNTIME
from surestep._context import current_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from surestep.store.base import BaseStore
    from surestep.types import RunnableConfig

__all__ = ("get_config", "get_store", "get_stream_writer")


def get_config() -> RunnableConfig:
    """The config of the node that is running. Raises RuntimeError outside of a node."""
    config = ambient_config()
    if config:
        return config
    raise _outside("get_config")


def get_store() -> BaseStore:
    """The store that the graph was compiled with; None when there is none. Raises RuntimeError outside of a
    node."""
    task = current_task.get()
    return cast("BaseStore", (_runtime("get_store") if task is None else task).store)


def get_stream_writer() -> Callable[[Any], None]:
    """A function that puts its argument on the custom stream; it does nothing when nobody streams "custom".

    Raises RuntimeError outside of a node.
    """
    task = current_task.get()
    return cast("Callable[[Any], None]", (_runtime("get_stream_writer") if task is None else task).stream_writer)


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
