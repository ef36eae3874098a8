"""What the scenarios share: a state with a log, effects that count, and looks at the ledger."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from harness.engine import Engine

from surestep.effects import effect


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    amount: int


class World:
    """The world outside: what happened in it, in order."""

    def __init__(self, E: Engine) -> None:
        self.E = E
        self.happened: list[Any] = []
        self.lock = threading.Lock()

    def effect(self, name: str, body: Callable[..., Any] | None = None, **options: Any) -> Any:
        """An effect of that name: async where bodies of nodes are, else a plain function."""
        E, world = self.E, self

        def act(*args: Any) -> Any:
            result = body(*args) if body is not None else None
            with world.lock:
                world.happened.append((name, *args))
            return result

        if E.driver != "async":
            return effect(name=name, **options)(act)

        async def aact(*args: Any) -> Any:
            return act(*args)

        return effect(name=name, **options)(aact)

    def calling(self, *calls: tuple[Any, ...], then: Callable[[], Any] | None = None) -> Any:
        """A node that calls effects one after the other, each (effect, *arguments), and logs what they return."""
        E = self.E

        if E.driver != "async":

            def body(state: Any) -> Any:
                found = [call(*args) for call, *args in calls]
                return {"log": [*found, *([then()] if then is not None else [])]}

            return body

        async def abody(state: Any) -> Any:
            found = [await call(*args) for call, *args in calls]
            return {"log": [*found, *([then()] if then is not None else [])]}

        return abody


def say(name: str) -> Any:
    return lambda state: {"log": [name]}


def effects_of(E: Engine, app: Any, thread: str = "1") -> Any:
    if E.is_async:
        return E.wait(app.aget_effects(E.config(thread)))
    return app.get_effects(E.config(thread))


def states(E: Engine, app: Any, thread: str = "1") -> dict[str, str]:
    """The states of a thread's effects, by name."""
    return {record.name: record.state for record in effects_of(E, app, thread).effects}
