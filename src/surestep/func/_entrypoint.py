"""`@entrypoint`: a function as a graph of one node, which calls tasks."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from surestep._constants import PREVIOUS
from surestep.channels.ephemeral_value import EphemeralValue
from surestep.channels.last_value import LastValue
from surestep.constants import END, START
from surestep.pregel._deprecated import by_either_name
from surestep.pregel.main import Pregel
from surestep.pregel.node import PregelNode, Writer
from surestep.types import CachePolicy, RetryPolicy, TimeoutPolicy

R = TypeVar("R")
S = TypeVar("S")


class _EntrypointWriter(Writer):
    """The function's result is the output, and what the next call finds as `previous`."""

    __slots__ = ()

    def __call__(self, value: Any) -> Sequence[tuple[str, Any]]:
        if isinstance(value, entrypoint.final):
            return ((END, value.value), (PREVIOUS, value.save))
        return ((END, value), (PREVIOUS, value))


class entrypoint:
    """Make a function a graph: `@entrypoint(checkpointer=...)`.

    The function takes the input as its first parameter, and by name what nodes may take (`previous`, `config`,
    `runtime`, `store`, `writer`). Its result is the output; `entrypoint.final(value=..., save=...)` tells the output
    from what is saved as `previous`. Raises ValueError for a function without parameters or a timeout on a sync one,
    NotImplementedError for a generator.
    """

    @dataclass(frozen=True, kw_only=True, slots=True)
    class final(Generic[R, S]):
        """A result whose output and saved value differ."""

        value: R
        save: S

    def __init__(
        self,
        checkpointer: Any = None,
        store: Any = None,
        cache: Any = None,
        context_schema: Any = None,
        cache_policy: CachePolicy[Any] | None = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
        **kwargs: Any,
    ) -> None:
        context_schema = by_either_name(kwargs, "config_schema", "context_schema", context_schema)
        retry_policy = by_either_name(kwargs, "retry", "retry_policy", retry_policy)
        self.checkpointer = checkpointer
        self.store = store
        self.cache = cache
        self.context_schema = context_schema
        self.cache_policy = cache_policy
        self.retry_policy = retry_policy
        self.timeout = TimeoutPolicy.coerce(timeout)

    def __call__(self, func: Callable[..., Any]) -> Pregel[Any, Any, Any, Any]:
        """The graph of the function."""
        if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
            raise NotImplementedError("Generators are disallowed as entrypoints; stream with get_stream_writer().")
        parameters = list(inspect.signature(func).parameters.values())
        if not parameters:
            raise ValueError("An entrypoint must have at least one parameter: the input of the graph.")
        name = getattr(func, "__name__", type(func).__name__)
        if self.timeout is not None and not inspect.iscoroutinefunction(func):
            raise ValueError(
                "Node timeouts are only supported for async nodes because sync Python execution cannot be safely "
                f"cancelled in-process. Node '{name}' is sync."
            )
        input_type, output_type, saved_type = _types_of(func, parameters[0])
        node = PregelNode(
            channels=START,
            triggers=[START],
            bound=func,
            writers=[_EntrypointWriter()],
            retry_policy=self.retry_policy,
            cache_policy=self.cache_policy,
            timeout=self.timeout,
        )
        channels: dict[str, Any] = {
            START: EphemeralValue(input_type),
            END: LastValue(output_type, END),
            PREVIOUS: LastValue(saved_type, PREVIOUS),
        }
        return Pregel(
            nodes={name: node},
            channels=channels,
            input_channels=START,
            output_channels=END,
            stream_channels=END,
            stream_mode="updates",
            stream_eager=True,
            checkpointer=_told_of_classes(self.checkpointer, channels.values()),
            store=self.store,
            cache=_told_of_classes(self.cache, channels.values()),
            context_schema=self.context_schema,
        )


def _told_of_classes(keeper: Any, channels: Iterable[Any]) -> Any:
    """The saver or cache, allowed to revive the classes that the function's annotations name."""
    from surestep.graph._reach import reachable_classes

    allow = getattr(keeper, "with_allowlist", None)
    classes = reachable_classes((), channels)
    return allow(classes) if allow is not None and classes else keeper


def _types_of(func: Callable[..., Any], first: inspect.Parameter) -> tuple[Any, Any, Any]:
    """Types of input, output and saved value, as far as the annotations say."""
    try:
        hints = typing.get_type_hints(func)
    except (NameError, TypeError):
        hints = {}
    given = hints.get(first.name, first.annotation)
    result = hints.get("return", Any)
    input_type = Any if given is inspect.Parameter.empty or isinstance(given, str) else given
    if result is entrypoint.final:
        return input_type, Any, Any
    if typing.get_origin(result) is entrypoint.final:
        value, saved = typing.get_args(result)
        return input_type, value, saved
    return input_type, result, result
