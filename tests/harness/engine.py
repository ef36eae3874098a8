"""`Engine`: the names of one engine, and its runs behind one face for the sync and the async driver.

A scenario is written once, as a plain function that takes an `Engine`, which decides how a run is driven:

* `sync`: `invoke`, `stream`, ...; node bodies are plain functions.
* `async`: `ainvoke`, `astream`, ... on a loop of the engine's own; node bodies are coroutine functions.
* `mixed`: `ainvoke`, `astream`, ..., while node bodies stay what the scenario wrote (plain functions run in
  threads).

A body that has to wait or to call another graph is written as `async def` with `await E.sleep(...)` and
`await E.inner(...)`; under the sync driver these never suspend, so the body runs as a plain function.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import itertools
import os
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import Any

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
ID = re.compile(rf"{_UUID}|(?<![0-9a-f])[0-9a-f]{{32}}(?![0-9a-f])")
VERSION = re.compile(r"\d{32}\.\d[\d.e-]*")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.:+]*")
ELAPSED = re.compile(r"elapsed: \d+\.\d+s")
_MADE_UP = re.compile("|".join(pattern.pattern for pattern in (VERSION, TIME, ID, ELAPSED)))

DRIVERS = ("sync", "async", "mixed")

_HOMES = {
    "graph": "StateGraph START END",
    "graph.message": "add_messages MessagesState push_message",
    "graph.ui": "push_ui_message delete_ui_message ui_message_reducer",
    "types": "CachePolicy Command Send interrupt RetryPolicy TimeoutPolicy Overwrite Interrupt StateUpdate GraphOutput",
    "config": "get_config get_store get_stream_writer",
    "runtime": "Runtime RunControl get_runtime",
    "errors": "GraphDrained GraphInterrupt GraphRecursionError InvalidUpdateError NodeError NodeTimeoutError "
    "NodeCancelledError EmptyInputError ParentCommand UnknownInterruptError ThreadConflict AlreadyAnswered "
    "AmbiguousResume",
    "channels": "LastValue AnyValue EphemeralValue UntrackedValue BinaryOperatorAggregate Topic DeltaChannel",
    "managed": "IsLastStep RemainingSteps",
    "pregel": "Pregel NodeBuilder",
    "checkpoint.memory": "InMemorySaver",
    "checkpoint.sqlite": "SqliteSaver",
    "checkpoint.sqlite.aio": "AsyncSqliteSaver",
    "checkpoint.serde.jsonplus": "JsonPlusSerializer",
    "store.memory": "InMemoryStore",
    "cache.base": "BaseCache",
    "cache.memory": "InMemoryCache",
    "cache.sqlite": "SqliteCache",
    "func": "entrypoint task",
    "stream": "StreamTransformer StreamChannel UpdatesTransformer CustomTransformer CheckpointsTransformer "
    "TasksTransformer DebugTransformer",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


class Boom(Exception):
    """What a scenario's node raises when it is meant to fail."""


class Engine:
    """One engine under one driver. Public names of the engine are attributes: `E.StateGraph`, `E.Command`.

    `savers` names where checkpoints go: `memory` or `sqlite` of this engine, `ref-memory` or `ref-sqlite` of
    langgraph (a saver that knows nothing of surestep).
    """

    def __init__(self, root: str = "surestep", driver: str = "sync", savers: str = "memory") -> None:
        self.root, self.driver, self.savers = root, driver, savers
        self._stack, self._astack = ExitStack(), AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(name)
        return getattr(load(self.root, _HOME[name]), name)

    def __repr__(self) -> str:
        return f"<{self.root} {self.driver} {self.savers}>"

    # -- the life of an engine ------------------------------------------------------------------------------

    def __enter__(self) -> Engine:
        if self.root == "langgraph":
            self._stack.enter_context(_no_warnings())
        else:  # a report, not a fault: the case of its own asks for it
            self._stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", "The join .* may never fire")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._loop is not None:
            self.wait(self._astack.aclose())
            self.wait(self._loop.shutdown_asyncgens())
            self.wait(self._loop.shutdown_default_executor())
            self._loop.close()
        self._stack.close()

    @property
    def is_async(self) -> bool:
        return self.driver != "sync"

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """This engine's own event loop, made when it is first asked for."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop

    def wait(self, awaitable: Any) -> Any:
        """The result of `awaitable`, run on this engine's own event loop."""
        return self.loop.run_until_complete(awaitable)

    # -- runs -----------------------------------------------------------------------------------------------

    def invoke(self, app: Any, *args: Any, **kwargs: Any) -> Any:
        return self.wait(app.ainvoke(*args, **kwargs)) if self.is_async else app.invoke(*args, **kwargs)

    def stream(self, app: Any, *args: Any, **kwargs: Any) -> Chunks:
        """All chunks of one run. Chunks of tasks that may end in any order are put in order when compared."""
        if not self.is_async:
            return Chunks(app.stream(*args, **kwargs))

        async def collect() -> Chunks:
            return Chunks([chunk async for chunk in app.astream(*args, **kwargs)])

        return self.wait(collect())

    def attempt(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What the call returns, or the exception that it raised."""
        try:
            return method(*args, **kwargs)
        except Exception as error:
            return error

    def batch(self, app: Any, *args: Any, **kwargs: Any) -> Any:
        return self.wait(app.abatch(*args, **kwargs)) if self.is_async else app.batch(*args, **kwargs)

    def state(self, app: Any, config: Any, **kwargs: Any) -> Any:
        return self.wait(app.aget_state(config, **kwargs)) if self.is_async else app.get_state(config, **kwargs)

    def history(self, app: Any, config: Any, **kwargs: Any) -> list[Any]:
        if not self.is_async:
            return list(app.get_state_history(config, **kwargs))

        async def collect() -> list[Any]:
            return [snapshot async for snapshot in app.aget_state_history(config, **kwargs)]

        return self.wait(collect())

    def update(self, app: Any, *args: Any, **kwargs: Any) -> Any:
        if self.is_async:
            return self.wait(app.aupdate_state(*args, **kwargs))
        return app.update_state(*args, **kwargs)

    def bulk_update(self, app: Any, *args: Any, **kwargs: Any) -> Any:
        if self.is_async:
            return self.wait(app.abulk_update_state(*args, **kwargs))
        return app.bulk_update_state(*args, **kwargs)

    # -- savers ---------------------------------------------------------------------------------------------

    def saver(self) -> Any:
        """A new, empty saver; closed with the engine."""
        kind = self.savers.removeprefix("ref-")
        root = "langgraph" if self.savers.startswith("ref-") else self.root
        if kind == "memory":
            return load(root, "checkpoint.memory").InMemorySaver()
        path = self.file("checkpoints.sqlite")
        if self.is_async:
            saver = load(root, "checkpoint.sqlite.aio").AsyncSqliteSaver
            return self.wait(self._astack.enter_async_context(saver.from_conn_string(path)))
        return self._stack.enter_context(load(root, "checkpoint.sqlite").SqliteSaver.from_conn_string(path))

    def rows(self, saver: Any, config: Any, **kwargs: Any) -> Rows:
        """All stored checkpoints with their pending writes: by namespace, newest first."""
        if not self.is_async:
            return Rows(saver.list(config, **kwargs))

        async def collect() -> Rows:
            return Rows([row async for row in saver.alist(config, **kwargs)])

        return self.wait(collect())

    def file(self, name: str) -> str:
        """The path of a new file in a directory that goes away with the engine."""
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="surestep-"))
        return os.path.join(folder, name)

    # -- node bodies ----------------------------------------------------------------------------------------

    def node(self, body: Callable[..., Any]) -> Callable[..., Any]:
        """`body` as this driver takes it: a plain function (`sync`), a coroutine function (`async`)."""
        if inspect.iscoroutinefunction(body):
            return body if self.is_async else _finished(body)
        return _started(body) if self.driver == "async" else body

    async def inner(self, graph: Any, *args: Any, **kwargs: Any) -> Any:
        """The result of another graph, called from within a node body."""
        return await graph.ainvoke(*args, **kwargs) if self.is_async else graph.invoke(*args, **kwargs)

    async def sleep(self, seconds: float) -> None:
        if self.is_async:
            await asyncio.sleep(seconds)
        else:
            time.sleep(seconds)

    # -- shorthands -----------------------------------------------------------------------------------------

    def graph(self, schema: Any, nodes: dict[str, Any], *edges: Any, **kwargs: Any) -> Any:
        """A builder with these nodes and edges. `"a > b > c"` chains, `"a, b > c"` is a barrier."""
        builder = self.StateGraph(schema, **kwargs)
        for name, body in nodes.items():
            options: dict[str, Any] = {}
            if isinstance(body, tuple):
                body, options = body
            plain = inspect.isfunction(body) or inspect.ismethod(body)
            builder.add_node(name, self.node(body) if plain else body, **options)
        for edge in edges:
            self._edge(builder, edge)
        return builder

    def _edge(self, builder: Any, edge: Any) -> None:
        if not isinstance(edge, str):
            source, path, *rest = edge
            plain = inspect.isfunction(path)
            builder.add_conditional_edges(self._name(source), self.node(path) if plain else path, *rest)
            return
        stops = [[self._name(name.strip()) for name in stop.split(",")] for stop in edge.split(">")]
        for start, (end,) in itertools.pairwise(stops):
            builder.add_edge(start if len(start) > 1 else start[0], end)

    def _name(self, name: str) -> str:
        return {"START": self.START, "END": self.END}.get(name, name)

    @staticmethod
    def config(thread: str = "1", **configurable: Any) -> dict[str, Any]:
        return {"configurable": {"thread_id": thread, **configurable}}


class Chunks(list[Any]):
    """The chunks of one run; `harness.normal` knows which of them may come in any order."""


class Rows(list[Any]):
    """Rows of a saver, of several namespaces; `harness.normal` knows that these have no order among each other."""


def masked(x: Any) -> str:
    """The text of `x` without what each run makes up: a sort key that two runs share."""
    return _MADE_UP.sub("#", repr(x))


def load(root: str, module: str) -> Any:
    """A module of an engine; langgraph warns while it is imported, which is not ours to fail on."""
    with _no_warnings() if root == "langgraph" else ExitStack():
        return importlib.import_module(f"{root}.{module}")


@contextmanager
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _started(body: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(body)
    async def run(*args: Any, **kwargs: Any) -> Any:
        return body(*args, **kwargs)

    return run


def _finished(body: Callable[..., Any]) -> Callable[..., Any]:
    """The coroutine function as a plain one: it never suspends, because `E.sleep` and `E.inner` do not."""

    @functools.wraps(body)
    def run(*args: Any, **kwargs: Any) -> Any:
        coroutine = body(*args, **kwargs)
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value
        coroutine.close()
        raise AssertionError(f"{body.__name__} waits for something that the sync driver cannot wait for")

    return run
