"""What listeners hear of a run, in a form that two engines can be compared by."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from harness.engine import ID
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers import BaseTracer

# Versions of packages, and ids: different in every run, or no concern of the engines.
_VOLATILE = ("lc_versions", "langgraph_checkpoint_ns", "checkpoint_ns", "thread_id")


class Recorder(BaseCallbackHandler):
    """Records chain runs as trees, in the order in which they started."""

    run_inline = True

    def __init__(self) -> None:
        self.runs: dict[UUID, dict[str, Any]] = {}
        self.roots: list[dict[str, Any]] = []

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        run: dict[str, Any] = {
            "name": name,
            "tags": tags,
            "metadata": labels(metadata),
            "depth": len(ns.split("|")) if (ns := (metadata or {}).get("langgraph_checkpoint_ns")) else 0,
            "input": plain(inputs),
            "children": [],
        }
        self.runs[run_id] = run
        parent = self.runs.get(parent_run_id) if parent_run_id else None
        (self.roots if parent is None else parent["children"]).append(run)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.runs[run_id]["output"] = plain(outputs)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self.runs[run_id]["error"] = kind_of(error)

    def trees(self) -> Any:
        """The runs that have no parent, each with what ran below it; siblings that ran at once in any order."""
        return [ordered(run) for run in self.roots]


class Tracer(BaseTracer):
    """What a tracer records: names, inputs and outputs."""

    run_inline = True

    def __init__(self) -> None:
        super().__init__()
        self.recorded: list[Any] = []

    def _persist_run(self, run: Any) -> None:
        self.recorded.append(self._shown(run))

    def _shown(self, run: Any) -> Any:
        error = (run.error or "").split("(")[0]
        children = sorted(map(self._shown, run.child_runs), key=repr)
        return run.name, run.run_type, plain(run.inputs), plain(run.outputs), error, children


def kind_of(error: BaseException) -> str:
    """The name of an error's class, or of the nearest one that both engines have."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__.endswith(("builtins", "errors")))


def ordered(run: dict[str, Any]) -> dict[str, Any]:
    children = sorted(map(ordered, run["children"]), key=lambda child: (_step(child), str(child["name"]), repr(child)))
    return {**run, "children": children}


def _step(run: dict[str, Any]) -> int:
    step = run["metadata"].get("langgraph_step", 0)
    return int(step)


def labels(metadata: dict[str, Any] | None) -> dict[str, Any]:
    return {key: plain(value) for key, value in (metadata or {}).items() if key not in _VOLATILE}


def plain(value: Any) -> Any:
    """A value without ids, and without classes that each engine has its own of."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str | int | float | None):
        return ID.sub("ID", value) if isinstance(value, str) else value
    return re.sub(r" at 0x[0-9a-f]+", "", ID.sub("ID", repr(value)))
