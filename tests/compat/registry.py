"""How a program gets onto the list, and what most of them look at."""

from __future__ import annotations

import importlib
import operator
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from harness.engine import DRIVERS, Engine

MODES = ["values", "updates", "custom", "tasks", "checkpoints"]


@dataclass(frozen=True)
class Program:
    name: str
    run: Callable[[Engine], Any]
    drivers: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Difference(Program):
    """A program that surestep answers differently on purpose.

    `ours` and `theirs` look at the normalised observation and say whether it is the expected one: theirs so
    that a reference that changed its mind is noticed too.
    """

    reason: str
    ours: Callable[[Any], bool]
    theirs: Callable[[Any], bool]


PROGRAMS: list[Program] = []
DIFFERENCES: list[Difference] = []


def program(*, drivers: tuple[str, ...] = DRIVERS) -> Callable[[Callable[[Engine], Any]], Any]:
    """Puts a function on the list of programs that both engines must answer alike."""

    def add(run: Callable[[Engine], Any]) -> Any:
        PROGRAMS.append(Program(_name(run), run, drivers))
        return run

    return add


def differs(reason: str, *, ours: Any, theirs: Any, drivers: tuple[str, ...] = DRIVERS) -> Callable[..., Any]:
    """Puts a function on the list of deliberate differences. `ours` and `theirs`: a value, or a predicate."""

    def add(run: Callable[[Engine], Any]) -> Any:
        DIFFERENCES.append(Difference(_name(run), run, drivers, reason, _matcher(ours), _matcher(theirs)))
        return run

    return add


def load_all() -> None:
    """Imports every module of programs, once."""
    package = importlib.import_module("compat.programs")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"compat.programs.{module.name}")


def failed(result: Any) -> bool:
    """Whether a normalised result is an exception."""
    return isinstance(result, tuple) and result[0] == "error"


def _name(run: Callable[..., Any]) -> str:
    return f"{run.__module__.rsplit('.', 1)[-1]}-{run.__name__}"


def _matcher(expected: Any) -> Callable[[Any], bool]:
    return expected if callable(expected) else lambda got: got == expected


# -- what programs are made of -------------------------------------------------------------------------------


class Log(TypedDict):
    """The state of most programs: a list that grows, so that order shows."""

    log: Annotated[list, operator.add]


def say(*words: Any, **more: Any) -> Callable[[Any], Any]:
    """A node that logs its words (and sets other keys)."""

    def body(state: Any) -> dict[str, Any]:
        return {"log": list(words), **more}

    return body


def nodes(names: str, **more: Any) -> dict[str, Any]:
    """Nodes that log their own name, one for each letter or word."""
    return {name: say(name) for name in (names.split() if " " in names else names)} | more


def ask(E: Engine, question: Any, name: str | None = None) -> Callable[[Any], Any]:
    """A node that logs the answer to its question."""

    def body(state: Any) -> dict[str, Any]:
        return {"log": [(name or str(question)) + "=" + str(E.interrupt(question))]}

    return body


def look(E: Engine, app: Any, *inputs: Any, config: Any = None, **options: Any) -> Any:
    """Runs the inputs one after the other on one thread and tells everything that can be seen of it."""
    config = config or E.config()
    seen: dict[str, Any] = {"runs": []}
    options = {"stream_mode": MODES, **options}
    for given in inputs:
        seen["runs"].append(E.attempt(E.stream, app, given, config, **options))
    seen |= kept(E, app, config)
    return seen


def kept(E: Engine, app: Any, config: Any = None) -> dict[str, Any]:
    """What the thread has to show for itself: state, history, stored rows."""
    config = config or E.config()
    return {
        "state": E.attempt(E.state, app, config, subgraphs=True),
        "history": E.attempt(E.history, app, config),
        "rows": E.rows(app.checkpointer, config),
    }


def branches(snapshots: list[Any]) -> Iterator[Any]:
    """A history in short: id, parent, source, step, next."""
    for snapshot in snapshots:
        parent = snapshot.parent_config and snapshot.parent_config["configurable"]["checkpoint_id"]
        metadata = snapshot.metadata or {}
        yield (
            snapshot.config["configurable"]["checkpoint_id"],
            parent,
            metadata.get("source"),
            metadata.get("step"),
            snapshot.next,
            snapshot.values,
        )
