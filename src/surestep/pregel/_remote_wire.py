"""What goes to a server and what comes back, as plain data: configs, commands, snapshots, parts of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from surestep._core.blueprint import INTERRUPT
from surestep._core.events import Part
from surestep._core.ids import NS_SEP, ns_path
from surestep._drive.context import TASK_KEY
from surestep.errors import GraphInterrupt, ParentCommand
from surestep.types import Command, Interrupt, PregelTask, StateSnapshot

# Keys of `configurable` that mean something in this process only.
_OURS = frozenset({"checkpoint_map", "checkpoint_id", "checkpoint_ns"})
_ABSENT: Any = object()


class RemoteException(Exception):
    """Raised when the server says that a run failed; the argument is what it says."""


def sanitized(config: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a config that a server can take: plain values under text keys, and nothing of this process."""
    found: dict[str, Any] = {}
    if "recursion_limit" in config:
        found["recursion_limit"] = config["recursion_limit"]
    if "tags" in config:
        found["tags"] = [tag for tag in config["tags"] if isinstance(tag, str)]
    for key in ("metadata", "configurable"):
        if key in config:
            plain = _plain(config[key])
            found[key] = {k: v for k, v in plain.items() if k not in _OURS and not k.startswith("__")}
    return found


def thread_and_config(config: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The thread's id (None without one) and the rest of a config, as a server takes them."""
    plain = sanitized(config)
    return plain.get("configurable", {}).pop("thread_id", None), plain


def _plain(value: Any) -> Any:
    """The value as JSON has it; what has no such form is left out."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        items = {key: _plain(item) for key, item in value.items() if isinstance(key, str)}
        return {key: item for key, item in items.items() if item is not _ABSENT}
    if isinstance(value, (list, tuple)):
        return [item for item in map(_plain, value) if item is not _ABSENT]
    return _ABSENT


def command_of(input: Any) -> tuple[Any, dict[str, Any] | None]:
    """(input, command) of a run: a Command goes to the server as one."""
    if not isinstance(input, Command):
        return input, None
    return None, {key: value for key, value in asdict(input).items() if key != "graph" or value is not None}


# threads


def checkpoint_of(config: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The checkpoint that a config addresses, as the server names it; None for the latest."""
    wanted = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")
    configurable = (config or {}).get("configurable") or {}
    found = {key: configurable[key] for key in wanted if key in configurable}
    return found or None


def config_at(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """The config that addresses a checkpoint of the server's."""
    return {
        "configurable": {
            "thread_id": checkpoint["thread_id"],
            "checkpoint_ns": checkpoint.get("checkpoint_ns", ""),
            "checkpoint_id": checkpoint.get("checkpoint_id"),
            "checkpoint_map": checkpoint.get("checkpoint_map") or {},
        }
    }


def snapshot_of(state: Mapping[str, Any]) -> StateSnapshot:
    """A thread's state as the server gives it."""
    tasks = tuple(_task_of(task) for task in state.get("tasks") or ())
    parent = state.get("parent_checkpoint")
    return StateSnapshot(
        values=state["values"],
        next=tuple(state.get("next") or ()),
        config=config_at(state["checkpoint"]),  # type: ignore[arg-type]
        metadata=state.get("metadata") or {},  # type: ignore[arg-type]
        created_at=state.get("created_at"),
        parent_config=config_at(parent) if parent else None,  # type: ignore[arg-type]
        tasks=tasks,
        interrupts=tuple(question for task in tasks for question in task.interrupts),
    )


def _task_of(task: Mapping[str, Any]) -> PregelTask:
    state: Any = None
    if task.get("state"):
        state = snapshot_of(task["state"])
    elif task.get("checkpoint"):
        state = config_at(task["checkpoint"])
    return PregelTask(
        id=task["id"],
        name=task["name"],
        path=(),
        error=Exception(task["error"]) if task.get("error") else None,
        interrupts=tuple(_question(question) for question in task.get("interrupts") or ()),
        state=state,
        result=task.get("result"),
    )


def _question(said: Mapping[str, Any]) -> Interrupt[Any]:
    return Interrupt(value=said.get("value"), **({"id": said["id"]} if said.get("id") else {}))


# parts of a stream


class Stream:
    """One stream of a run on a server: which modes to ask for, and how its parts are handed on.

    A run inside another graph's node shows its parts there too, and pauses that graph when it pauses.
    """

    def __init__(self, config: Mapping[str, Any], stream_mode: Any, subgraphs: bool, version: str) -> None:
        self.version = version
        self.subgraphs = subgraphs
        self.tagged = stream_mode is not None and not isinstance(stream_mode, str)
        wanted: Sequence[str] = (stream_mode or "updates",) if not self.tagged else tuple(stream_mode)
        self.wanted = frozenset(wanted)
        configurable = config.get("configurable") or {}
        self.ns = ns_path(configurable.get("checkpoint_ns") or "")
        self.above = _listeners(configurable.get(TASK_KEY))

    def options(self) -> dict[str, Any]:
        """What the server is asked for. `updates` always: they tell of questions."""
        modes = dict.fromkeys([*sorted(self.wanted | self.above.keys()), "updates"])
        return {
            "stream_mode": ["messages-tuple" if mode == "messages" else mode for mode in modes],
            "stream_subgraphs": self.subgraphs or bool(self.above),
            "if_not_exists": "create",
        }

    def parts(self, part: Any) -> Iterator[Any]:
        """What our caller gets for a part of the server's; raises what it tells of."""
        mode, *inner = part.event.split(NS_SEP)
        data = part.data
        if mode == "error":
            raise RemoteException(data)
        if mode == "command":
            raise ParentCommand(_command_said(data))
        if mode == "updates" and self.ns and isinstance(data, dict) and data.get(INTERRUPT):
            raise GraphInterrupt([_question(question) for question in data[INTERRUPT]])
        if mode == "messages" and isinstance(data, list):
            data = tuple(data)
        ns = (*self.ns, *inner)
        if mode in self.above:
            self.above[mode](Part(ns, mode, data))
        if mode in self.wanted:
            yield self._shaped(part, ns, mode, data)

    def _shaped(self, part: Any, ns: tuple[str, ...], mode: str, data: Any) -> Any:
        if self.version == "v2":
            return _as_v2(ns, mode, data)
        if self.subgraphs:
            return (ns, mode, data) if self.tagged else (ns, data)
        return part._replace(event=mode, data=data) if self.tagged else data


def _command_said(data: Mapping[str, Any]) -> Command[Any]:
    goto = data.get("goto", ())
    return Command(**{**data, "goto": tuple(goto) if isinstance(goto, list) else goto})


def _as_v2(ns: tuple[str, ...], mode: str, data: Any) -> dict[str, Any]:
    if mode != "values" or not isinstance(data, dict):
        return {"type": mode, "ns": ns, "data": data}
    values = {key: value for key, value in data.items() if key != INTERRUPT}
    questions = tuple(_question(question) for question in data.get(INTERRUPT) or ())
    return {"type": mode, "ns": ns, "data": values, "interrupts": questions}


def _listeners(parent: Any) -> dict[str, Callable[[Part], None]]:
    """Who wants to see parts of a graph inside, by mode: the runs around the node that we run in."""
    if parent is None:
        return {}
    down = parent.env.down
    found: dict[str, Callable[[Part], None]] = dict.fromkeys(down.modes, down.put) if down is not None else {}
    for handler in getattr(parent.config.get("callbacks"), "handlers", ()):
        if getattr(handler, "subgraphs", False) and hasattr(handler, "show"):  # streams messages, from any depth
            found["messages"] = handler.put
    return found
