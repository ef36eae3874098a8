"""`@task`: a function whose calls inside a run are tasks of their own, kept and never repeated once finished."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, get_type_hints, overload

from surestep._constants import RETURN
from surestep._context import current_task
from surestep._core.blueprint import NodePlan
from surestep._core.cache import namespace
from surestep._drive.call import Call, injections
from surestep.config import get_config
from surestep.pregel._deprecated import by_either_name
from surestep.pregel.node import PregelNode, Writer
from surestep.types import CachePolicy, RetryPolicy, TimeoutPolicy

if TYPE_CHECKING:
    from surestep._drive.context import TaskContext
    from surestep.cache.base import BaseCache

P = ParamSpec("P")
T = TypeVar("T")


class _ReturnWriter(Writer):
    """What a called task returns goes to whoever called it."""

    __slots__ = ()

    def __call__(self, value: Any) -> Sequence[tuple[str, Any]]:
        return ((RETURN, value),)


class CalledFunction(Call):
    """A function that is called with the arguments it was given, not with one input."""

    __slots__ = ()

    def __init__(self, func: Callable[..., Any], name: str) -> None:
        is_async = inspect.iscoroutinefunction(func)
        injects = injections(func, takes_input=False)
        super().__init__(name, None if is_async else func, func if is_async else None, injects, target=func)

    def _bind(self, raw: Any, task: TaskContext) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = raw
        missing = {name: get(task) for name, get in self.injects if name not in kwargs}
        return args, {**kwargs, **missing}

    def invoke(self, input: Any, task: TaskContext) -> Any:
        """What the function returns for its arguments."""
        if self.func is None:
            raise self._no_sync()
        args, kwargs = self._bind(input, task)
        return self.func(*args, **kwargs)

    async def ainvoke(self, input: Any, task: TaskContext) -> Any:
        """What the function returns for its arguments; a sync one runs in a thread."""
        args, kwargs = self._bind(input, task)
        if self.afunc is not None:
            return await self.afunc(*args, **kwargs)
        import asyncio

        assert self.func is not None
        return await asyncio.to_thread(self.func, *args, **kwargs)


def _name_of(func: Any) -> str:
    while isinstance(func, functools.partial):
        func = func.func
    return str(getattr(func, "__name__", type(func).__name__))


class TaskFunction(Generic[P, T]):
    """A function made a task. Calling it in a run starts it and gives a future: `.result()` in sync code,
    `await` in async code."""

    def __init__(
        self,
        func: Callable[P, T],
        *,
        name: str | None = None,
        retry_policy: Sequence[RetryPolicy] = (),
        cache_policy: CachePolicy[Any] | None = None,
        timeout: TimeoutPolicy | None = None,
    ) -> None:
        self.func = func
        self.name = name or _name_of(func)
        self.cache_policy = cache_policy
        if timeout is not None and not inspect.iscoroutinefunction(func):
            raise ValueError(
                "Node timeouts are only supported for async nodes because sync Python execution cannot be safely "
                f"cancelled in-process. Task '{self.name}' is sync."
            )
        node = PregelNode(
            channels="",
            triggers=[],
            bound=CalledFunction(func, self.name),
            writers=[_ReturnWriter()],
            retry_policy=retry_policy,
            cache_policy=cache_policy,
            timeout=timeout,
        )
        self.plan = NodePlan(self.name, node, {}, ())
        functools.update_wrapper(self, func)
        self.__name__ = self.name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Start the task; a future of what it returns. RuntimeError outside of a run."""
        context = current_task.get()
        if context is None:
            get_config()  # raises, and says what to do
            raise RuntimeError(f"Task '{self.name}' was called outside of a run: call it in an entrypoint or a node.")
        if self.cache_policy is not None:
            context.env.may_cache(self._result_classes)
        return context.call(self.name, self.plan, (args, kwargs))

    @functools.cached_property
    def _result_classes(self) -> set[type]:
        """The classes that its return annotation names."""
        from surestep.graph._reach import reachable_classes

        try:
            hint = get_type_hints(self.func, include_extras=True).get("return")
        except (NameError, TypeError):
            return set()
        return reachable_classes([hint])

    def clear_cache(self, cache: BaseCache[Any]) -> None:
        """Forget the results of this task in a cache."""
        if self.cache_policy is not None:
            cache.clear([namespace(self.plan, called=True)])

    async def aclear_cache(self, cache: BaseCache[Any]) -> None:
        """As `clear_cache`."""
        if self.cache_policy is not None:
            await cache.aclear([namespace(self.plan, called=True)])

    def __repr__(self) -> str:
        return f"TaskFunction({self.name!r})"


@overload
def task(__func_or_none__: Callable[P, T], /) -> TaskFunction[P, T]: ...


@overload
def task(
    __func_or_none__: None = None,
    *,
    name: str | None = None,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
    cache_policy: CachePolicy[Any] | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
    **kwargs: Any,
) -> Callable[[Callable[P, T]], TaskFunction[P, T]]: ...


def task(
    __func_or_none__: Any = None,
    *,
    name: str | None = None,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
    cache_policy: CachePolicy[Any] | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
    **kwargs: Any,
) -> Any:
    """A function as a task: inside a run, each call is started, kept when it has finished, and not repeated when the
    run is resumed.

    name: default the function's. retry_policy, timeout (seconds; async functions only): as for nodes. Calls get their
    kept results by their order within the caller, so code in front of a pause must make them in a fixed order, with the
    same arguments; else they raise `ReplayMismatch`.
    """
    retry_policy = by_either_name(kwargs, "retry", "retry_policy", retry_policy)
    policies = (retry_policy,) if isinstance(retry_policy, RetryPolicy) else tuple(retry_policy or ())

    def decorate(func: Callable[P, T]) -> TaskFunction[P, T]:
        return TaskFunction(
            func,
            name=name,
            retry_policy=policies,
            cache_policy=cache_policy,
            timeout=TimeoutPolicy.coerce(timeout),
        )

    return decorate if __func_or_none__ is None else decorate(__func_or_none__)
