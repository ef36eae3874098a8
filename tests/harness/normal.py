"""Normal forms: what two runs must have in common, without the names that each run makes up.

Task, checkpoint and interrupt ids become `#1`, `#2`, ... in order of appearance, channel versions `v1`, `v2`,
..., times `TIME`. What may come in any order (tasks that end at once, the order of control writes, sets, the
keys of a dictionary) gets a fixed one. Everything else is compared as it is, but for what surestep stores in
its own way on purpose:

* a tuple stays a tuple, where the reference reads a list back: both are lists here;
* the answer of a run hangs from the question that it answers, and not from the null task: a claim that two
  runs cannot both make. The row is left out, and what the task has stored of the answer is compared;
* beside a called task's result stands which call it was of; the row is left out;
* a task that recovered does not show its old error any more (it is still in the stored rows).
"""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.engine import ELAPSED, ID, TIME, VERSION, Boom, Chunks, Rows, masked

_ERROR = re.compile(r"(\w*(?:Error|Boom))\(.*\)", re.DOTALL)  # an exception, as savers keep it
_NULL = "00000000-0000-0000-0000-000000000000"
_CONTROL = ("branch:to:", "join:")


def normal(observation: Any) -> Any:
    """The observation as plain, comparable data."""
    return _Normal().of(observation)


class _Normal:
    def __init__(self) -> None:
        self._names: dict[str, str] = {_NULL: "NULL"}

    def of(self, x: Any) -> Any:
        if x is None or isinstance(x, (bool, int, float, bytes)):
            return x
        if isinstance(x, str):
            return self._text(x)
        if isinstance(x, BaseException):
            return self._error(x)
        if isinstance(x, Chunks):
            return [chunk for group in _settled(x) for chunk in self._group(group)]
        if isinstance(x, Rows):
            return self._rows(x)
        if isinstance(x, Mapping):
            return self._mapping(x)
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return self._fields(x, x._asdict())
        if isinstance(x, (list, tuple, deque)):
            ordered = sorted(x, key=masked) if len(x) > 1 and all(map(_question, x)) else x
            return [self.of(item) for item in ordered]
        if isinstance(x, (set, frozenset)):
            return ("set", sorted((self.of(item) for item in x), key=repr))
        return self._object(x)

    def _group(self, chunks: list[Any]) -> list[Any]:
        if not _at_once(chunks):
            return [self._chunk(chunk) for chunk in chunks]
        return sorted((self._chunk(chunk) for chunk in sorted(chunks, key=masked)), key=repr)

    def _chunk(self, chunk: Any) -> Any:
        return (type(chunk).__name__, self.of(chunk))

    def _rows(self, rows: Rows) -> list[Any]:
        """The rows by namespace, outer ones first. The names of inner ones hold task ids, which are made up:
        their order is that of what is stored, and of the numbers that their tasks have got already."""
        spaces: dict[str, list[Any]] = {}
        for row in rows:
            spaces.setdefault(row.config["configurable"]["checkpoint_ns"], []).append(row)

        def place(space: str) -> Any:
            known = ID.sub(lambda found: self._names.get(found[0], "?"), space)
            return masked(space), repr(normal(spaces[space])), known

        found = []
        for depth in sorted({space.count("|") + bool(space) for space in spaces}):
            level = [space for space in spaces if space.count("|") + bool(space) == depth]
            for space in sorted(level, key=place):
                found += [self.of(row) for row in spaces[space]]
        return found

    def _text(self, text: str) -> str:
        if VERSION.fullmatch(text):
            return f"v{int(text.split('.')[0])}"
        if TIME.fullmatch(text):
            return "TIME"
        text = ELAPSED.sub("elapsed", text)
        if said := _ERROR.fullmatch(text):
            return text if said[1] == "Boom" else f"{said[1]}(...)"
        return ID.sub(lambda found: self._names.setdefault(found[0], f"#{len(self._names)}"), text)

    def _error(self, error: BaseException) -> Any:
        if isinstance(error, Boom):
            return ("error", "Boom", self.of(error.args))
        return ("error", type(error).__name__)

    def _mapping(self, mapping: Mapping[Any, Any]) -> dict[Any, Any]:
        # Private keys of a config are no business of anybody outside of the engine.
        keys = sorted((key for key in mapping if key == "__pregel_tasks" or "__pregel_" not in str(key)), key=masked)
        return {self.of(key): "TIME" if key in ("ts", "timestamp") else self.of(mapping[key]) for key in keys}

    def _fields(self, x: Any, fields: Mapping[str, Any]) -> Any:
        if type(x).__name__ == "CheckpointTuple":
            fields = {**fields, "pending_writes": _ordered(fields["pending_writes"] or ())}
        if type(x).__name__ == "PregelTask" and fields["result"] is not None:
            fields = {**fields, "error": None}
        return (type(x).__name__, self._mapping(fields))

    def _object(self, x: Any) -> Any:
        if isinstance(x, type):
            return ("class", x.__name__)
        if dataclasses.is_dataclass(x):
            return self._fields(x, {f.name: getattr(x, f.name) for f in dataclasses.fields(x)})
        if hasattr(x, "model_fields_set"):
            return self._fields(x, dict(x))
        slots = [slot for cls in type(x).__mro__ for slot in getattr(cls, "__slots__", ())]
        if slots:
            return self._fields(x, {slot: getattr(x, slot, None) for slot in slots if slot[0] != "_"})
        return ("object", type(x).__name__, repr(x))


def _question(x: Any) -> bool:
    """Whether `x` is an interrupt. Those that parallel tasks raised are joined in any order."""
    return type(x).__name__ == "Interrupt" or (isinstance(x, dict) and x.keys() == {"value", "id", "response_schema"})


def _ordered(writes: Iterable[Any]) -> list[Any]:
    """Pending writes with the control writes of a task, which have no order of their own, sorted."""
    rows: list[Any] = []
    for write in writes:
        if write[1] == "__resume__" and (write[0] == _NULL or write[0].startswith("answer:")):
            continue
        if write[1] == "__called__":
            continue
        rows.append(tuple(write))
        i = len(rows) - 1
        while i and _same_control(rows[i - 1], rows[i]) and rows[i - 1][1] > rows[i][1]:
            rows[i - 1], rows[i] = rows[i], rows[i - 1]
            i -= 1
    return rows


def _same_control(a: Any, b: Any) -> bool:
    return a[0] == b[0] and a[1].startswith(_CONTROL) and b[1].startswith(_CONTROL)


def _settled(chunks: Chunks) -> Iterator[list[Any]]:
    """The chunks in groups: each run of "a task ended" chunks is one, every other chunk is alone."""
    ended: list[Any] = []
    for chunk in chunks:
        if _mode(chunk) is not None:
            ended.append(chunk)
            continue
        yield ended
        yield [chunk]
        ended = []
    yield ended


def _at_once(ended: list[Any]) -> bool:
    """Whether several tasks had a part in the group: with threads their chunks mix in any way."""
    modes = [_mode(chunk) for chunk in ended]
    return "cached" in modes or max(modes.count(mode) for mode in ("updates", "asked", "result")) > 1


def _mode(chunk: Any) -> str | None:
    """What a task emitted at its end: `updates`, `cached`, `asked`, `custom` or `result`; else None."""
    if isinstance(chunk, dict) and {"type", "ns", "data"} <= chunk.keys():
        mode, payload = chunk["type"], chunk["data"]
        asked = bool(chunk.get("interrupts"))
    elif isinstance(chunk, tuple) and len(chunk) in (2, 3) and isinstance(chunk[-2], str):
        mode, payload = chunk[-2:]
        asked = isinstance(payload, dict) and "__interrupt__" in payload
    else:
        return None
    if mode == "updates":
        return "cached" if "__metadata__" in payload else "updates"
    if mode == "values":
        return "asked" if asked else None
    if (mode == "tasks" and "result" in payload) or (mode == "debug" and payload["type"] == "task_result"):
        return "result"
    return "custom" if mode == "custom" else None
