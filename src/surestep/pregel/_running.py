"""Running a graph: `stream`, `invoke` and `batch`, each in its sync and async form.

A call's arguments become a `Prepared` run; a driver plays it; what comes out is shaped for the caller.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from surestep._context import current_task
from surestep._core.blueprint import Blueprint
from surestep._core.events import Part
from surestep._core.run import Outcome, Run, run
from surestep._drive.owned import Owned
from surestep._drive.sync import SyncDriver, played
from surestep.integrations.watch import watch
from surestep.pregel._holding import Tenure, aholding, holding
from surestep.pregel._prepare import Call, Prepared, as_modes, prepare
from surestep.pregel._shape import conclude, result, shaper

if TYPE_CHECKING:
    from surestep.types import RunnableConfig


class RunMethods:
    """The methods that run a graph."""

    name: str
    debug: bool
    stream_mode: Any
    stream_eager: bool
    step_timeout: float | None
    output_channels: Any

    @property
    def blueprint(self) -> Blueprint:
        """The graph as the core sees it."""
        raise NotImplementedError

    def _coerce_output(self, mode: str, data: Any) -> Any:
        """Output of a v2 stream as the class of its schema."""
        return data

    def stream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: Any = None,
        print_mode: Any = (),
        output_keys: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        durability: Any = None,
        control: Any = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Run the graph and yield what happens, as it happens.

        input: a dict of state keys, a `Command`, or None to continue the thread. stream_mode: one mode or several
        (then parts are tagged with theirs); default: the graph's own. print_mode: modes to print as well. subgraphs:
        also parts of graphs inside nodes, with their namespace. durability: "sync", "async" (default) or "exit".
        control: a `RunControl` to stop the run with. version: "v1" (payloads and tuples) or "v2" (dicts).
        Raises what a node raises, GraphRecursionError, GraphDrained, ThreadConflict, EmptyInputError.
        """
        return shown(self, input, config, options_given(locals()))

    def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: Any = None,
        print_mode: Any = (),
        output_keys: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        durability: Any = None,
        control: Any = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """As `stream`, on the running event loop."""
        return ashown(self, input, config, options_given(locals()))

    def invoke(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: Any = "values",
        print_mode: Any = (),
        output_keys: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        durability: Any = None,
        control: Any = None,
        version: str = "v1",
        **kwargs: Any,
    ) -> Any:
        """Run the graph and return its output: the state, or with another stream_mode a list of all parts.

        Arguments as in `stream`. A pause adds `"__interrupt__"`, a list of `Interrupt`s, to the state; with
        version="v2" the result is a `GraphOutput(value, interrupts)`.
        """
        options = options_given(locals())
        if stream_mode != "values":
            return list(self.stream(input, config, **self._with_output_keys(options)))
        prepared, hear = self._invoke_plan(input, config, options)
        parts = self._sync_parts(prepared, live=False)
        return self._result(prepared, played(parts, hear), version)

    async def ainvoke(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: Any = "values",
        print_mode: Any = (),
        output_keys: Any = None,
        interrupt_before: Any = None,
        interrupt_after: Any = None,
        durability: Any = None,
        control: Any = None,
        version: str = "v1",
        **kwargs: Any,
    ) -> Any:
        """As `invoke`, on the running event loop. When it is cancelled, it ends only after nothing of the run can
        write any more.
        """
        options = options_given(locals())
        if stream_mode != "values":
            return [part async for part in self.astream(input, config, **self._with_output_keys(options))]
        prepared, hear = self._invoke_plan(input, config, options)
        from surestep._drive.async_ import aplayed

        parts = self._async_parts(prepared, live=False)
        return self._result(prepared, await aplayed(parts, hear), version)

    def _with_output_keys(self, options: dict[str, Any]) -> dict[str, Any]:
        """A list of an invoke's parts shows the output channels, where a stream shows all of the state."""
        keys = options["output_keys"]
        return {**options, "output_keys": self.output_channels if keys is None else keys}

    def _invoke_plan(self, input: Any, config: Any, options: dict[str, Any]) -> tuple[Prepared, Callable[[Part], Any]]:
        """Arguments of `invoke` -> a prepared run, and what to do with its parts: print them, if anything."""
        del options["stream_mode"], options["version"]
        printed = self._printed_modes(options.pop("print_mode"), options.pop("debug", None))
        call = Call(input, config, modes=printed, whole_output=True, **_durability_of(options))
        return prepare(self, call), _printing(lambda part: None, printed, frozenset())

    def batch(
        self, inputs: Sequence[Any], config: Any = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> list[Any]:
        """`invoke` on each input, side by side; results in the order of the inputs."""
        from surestep.pregel._batch import batch

        return batch(self, inputs, config, return_exceptions, kwargs)

    async def abatch(
        self, inputs: Sequence[Any], config: Any = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> list[Any]:
        """`ainvoke` on each input, side by side; results in the order of the inputs."""
        from surestep.pregel._batch import abatch

        return await abatch(self, inputs, config, return_exceptions, kwargs)

    # what they share

    def _sync_parts(self, prepared: Prepared, live: bool) -> Iterator[Part]:
        driver = SyncDriver(prepared.env, prepared.port, prepared.modes, **self._manner(prepared, live))
        parts = driver.drive(self._core(prepared))
        if prepared.env.hold is not None and not prepared.nested:
            parts = holding(Tenure(driver, prepared.strategy), parts)
        watched = watch(cast(Any, self), prepared, is_async=False)
        return parts if watched is None else watched.sync(parts)

    def _async_parts(self, prepared: Prepared, live: bool) -> AsyncGenerator[Any, None]:
        from surestep._drive.async_ import AsyncDriver

        driver = AsyncDriver(prepared.env, prepared.port, prepared.modes, **self._manner(prepared, live))
        parts = driver.drive(self._core(prepared))
        if prepared.env.hold is not None and not prepared.nested:
            parts = aholding(Tenure(driver, prepared.strategy), parts)
        watched = watch(cast(Any, self), prepared, is_async=True)
        return parts if watched is None else watched.async_(Owned(parts))

    def _core(self, prepared: Prepared) -> Any:
        prepared.env.run = Run(self.blueprint, prepared.request, prepared.show)
        return run(prepared.env.run)

    def _manner(self, prepared: Prepared, live: bool) -> dict[str, Any]:
        """How a driver is to run it."""
        return dict(
            subgraphs=prepared.subgraphs,
            live=live or self.stream_eager,
            limit=prepared.limit,
            durability=prepared.durability,
            step_timeout=self.step_timeout,
        )

    def _result(self, prepared: Prepared, outcome: Outcome, version: str) -> Any:
        """What `invoke` returns, or an error that says how the run ended."""
        self._conclude(prepared, outcome)
        return result(outcome, version, self._coerce_output)

    def _conclude(self, prepared: Prepared, outcome: Outcome) -> None:
        request = prepared.request
        conclude(cast(Any, self), outcome, request.recursion_limit, request.control, prepared.nested)

    def _printed_modes(self, print_mode: Any, debug: bool | None) -> frozenset[str]:
        if self.debug if debug is None else debug:
            return frozenset(("updates", "values"))
        return as_modes(print_mode or ())[0]


def options_given(given: dict[str, Any]) -> dict[str, Any]:
    """What a public method was given (its `locals()`) beside the graph, the input and the config."""
    kwargs = given.pop("kwargs")
    for name in ("self", "input", "config"):
        del given[name]
    return {**given, **kwargs}


def shown(graph: Any, input: Any, config: Any, options: dict[str, Any]) -> Iterator[Any]:
    """A run's parts as its caller sees them."""
    prepared, shape, live = _stream_plan(graph, input, config, options)
    parts = graph._sync_parts(prepared, live)
    try:
        while True:
            try:
                part = next(parts)
            except StopIteration as end:
                outcome = end.value
                break
            yield from shape(part)
        graph._conclude(prepared, outcome)
    finally:
        parts.close()


async def ashown(graph: Any, input: Any, config: Any, options: dict[str, Any]) -> AsyncIterator[Any]:
    """A run's parts as its caller sees them, on the event loop."""
    prepared, shape, live = _stream_plan(graph, input, config, options)
    parts: Owned[Any] = Owned(graph._async_parts(prepared, live))
    try:
        async for part in parts:
            if type(part) is Outcome:
                graph._conclude(prepared, part)
            else:
                for seen in shape(part):
                    yield seen
    finally:
        await parts.aclose()


def _stream_plan(
    graph: Any, input: Any, config: Any, options: dict[str, Any]
) -> tuple[Prepared, Callable[[Part], Any], bool]:
    """Arguments of `stream` -> a prepared run, how its parts are shown, and whether nodes stream while they run."""
    version = options.pop("version")
    if version not in ("v1", "v2"):
        raise ValueError(f"version must be 'v1' or 'v2', got {version!r}.")
    printed = graph._printed_modes(options.pop("print_mode", ()), options.pop("debug", None))
    modes, tagged = as_modes(options.pop("stream_mode") or _default_mode(graph))
    options = _durability_of(options)
    prepared = prepare(graph, Call(input, config, modes=modes | printed, **options))
    live = prepared.subgraphs or not modes.isdisjoint(("custom", "messages", "tools"))
    shape = shaper(tagged, prepared.subgraphs, version, prepared.env.path, graph._coerce_output)
    return prepared, _printing(shape, printed, modes), live


def _default_mode(graph: Any) -> Any:
    return "values" if current_task.get() is not None else graph.stream_mode


def _printing(shape: Callable[[Part], Any], printed: frozenset[str], shown: frozenset[str]) -> Callable[[Part], Any]:
    """The parts to hand over for a part: the shaped one, or none where it is only printed."""
    if not printed:
        return lambda part: (shape(part),)

    def print_and_shape(part: Part) -> Any:
        if part.mode in printed:
            where = f"[{'|'.join(part.ns)}] " if part.ns else ""
            sys.stdout.write(f"{where}[{part.mode}] {part.payload!r}\n")
        return (shape(part),) if part.mode in shown else ()

    return print_and_shape


def _durability_of(options: dict[str, Any]) -> dict[str, Any]:
    """Options with the old name of durability understood."""
    before = options.pop("checkpoint_during", None)
    if before is not None:
        import warnings

        from surestep.warnings import LangGraphDeprecatedSinceV10

        if options.get("durability") is not None:
            raise ValueError("Pass durability or checkpoint_during (its old name), not both.")
        warnings.warn(
            "`checkpoint_during` is deprecated; use durability='async' (True) or 'exit' (False).",
            category=LangGraphDeprecatedSinceV10,
            stacklevel=4,
        )
        options["durability"] = "async" if before else "exit"
    return options
