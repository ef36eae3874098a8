"""What tells the code of one node from the code of another, also in another process: for keys of cached results.

A name is not enough. Two closures of one factory share theirs, and so do two versions of a function before and after
a deploy. So code counts with what it does, what it captured and where its edges lead. A captured value counts by its
content if that can be pickled and is small. If not (a connection, a model), only the very same object is the same.
What a function captured counts as it was when it was first looked at: a counter that moves on changes nothing.
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final
from uuid import uuid4

from surestep._core.blueprint import Identity
from surestep._drive.call import Call, is_graph

LARGE: Final = 1 << 20  # bytes of a pickle; captured values that take more count as objects


def identity_of(bound: Call | None, writers: Iterable[Any]) -> Identity:
    """The identity of a node that runs `bound` and hands the result to `writers`."""
    mark = _Describer()
    target: Any = bound.target if bound is not None else None
    named = isinstance(target, FunctionType | MethodType | BuiltinFunctionType)
    name = f"{target.__module__}.{target.__qualname__}" if named else None
    return Identity(name, mark([mark(bound), *(mark.writer(writer) for writer in writers)]).encode())


class _Describer:
    """Makes text of code and values that is equal for what does the same."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, str]] = {}  # id -> the thing, held so that its id stays taken, and its text
        self.open = 0  # things that are being described: how deep we are

    def __call__(self, thing: Any) -> str:
        if type(thing) in _PLAIN:
            return repr(thing)
        if id(thing) not in self.known:
            self.known[id(thing)] = thing, f"the one {self.open} above"  # for what refers to itself
            self.open += 1
            parts = type(thing).__qualname__, self._parts(thing)
            self.open -= 1
            self.known[id(thing)] = thing, sha256(repr(parts).encode()).hexdigest()
        return self.known[id(thing)][1]

    def _parts(self, thing: Any) -> Any:
        way = _WAYS.get(type(thing))
        if way is not None:
            return way(self, thing)
        if isinstance(thing, Call):
            return _marks.of(thing.target, lambda: self(getattr(thing, "steps", None) or thing.target))
        if isinstance(thing, tuple) and hasattr(thing, "_fields"):
            return [self(part) for part in thing]
        if is_graph(thing):
            return thing.name, [(name, self(node.bound), node.triggers) for name, node in thing.nodes.items()]
        call = type(thing).__call__ if callable(thing) else None
        runs = self(call) if isinstance(call, FunctionType) else None
        return runs, _content(thing) or _tokens.of(thing, lambda: uuid4().hex)

    def writer(self, writer: Any) -> Any:
        """A writer by what it was made of, but for the list of all nodes that it might lead to."""
        slots = sorted({slot for cls in type(writer).__mro__ for slot in getattr(cls, "__slots__", ())} - {"targets"})
        return self([type(writer).__qualname__, *(self(getattr(writer, slot, None)) for slot in slots)])

    def function(self, function: FunctionType) -> Any:
        captured = [self(_cell(cell)) for cell in function.__closure__ or ()]
        defaults = self(function.__defaults__), self(function.__kwdefaults__)
        return function.__module__, function.__qualname__, self(function.__code__), captured, defaults


_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})
_WAYS: Final[dict[type, Callable[[_Describer, Any], Any]]] = {
    FunctionType: _Describer.function,
    CodeType: lambda mark, code: (code.co_code, code.co_names, [mark(one) for one in code.co_consts]),
    MethodType: lambda mark, method: (mark(method.__self__), mark(method.__func__)),
    partial: lambda mark, it: [mark(part) for part in (it.func, it.args, it.keywords)],
    ModuleType: lambda mark, module: module.__name__,
    list: lambda mark, items: [mark(item) for item in items],
    tuple: lambda mark, items: [mark(item) for item in items],
    dict: lambda mark, items: [(mark(key), mark(value)) for key, value in items.items()],
    set: lambda mark, items: sorted(mark(item) for item in items),
    frozenset: lambda mark, items: sorted(mark(item) for item in items),
}


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # assigned later, or never
        return None


def _content(thing: Any) -> str | None:
    """A hash of what is in an object; None if that can't be told, or is too much to look at."""
    try:
        return _hashed(thing, fast=True)
    except Exception:
        try:
            return _hashed(thing, fast=False)  # it contains itself
        except Exception:  # whatever __reduce__ or __getstate__ of somebody's class may raise
            return None


def _hashed(thing: Any, fast: bool) -> str:
    sink = _Sink()
    pickler = _Pickler(sink, protocol=5)
    pickler.fast = fast  # without the memo, which would tell apart equal values by whether they share objects
    pickler.dump(thing)
    return sink.hash.hexdigest()


class _Pickler(pickle.Pickler):
    """Pickles sets by what is in them, not in the order that they happen to have in this process."""

    def persistent_id(self, thing: Any) -> Any:
        if type(thing) is set or type(thing) is frozenset:
            return type(thing).__name__, sorted(_hashed(item, fast=True) for item in thing)
        return None


class _Sink:
    """A file that keeps a hash of what is written."""

    def __init__(self) -> None:
        self.hash = sha256()
        self.size = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.size += size
        if self.size > LARGE:
            raise OverflowError
        self.hash.update(data)
        return size


class _Memory:
    """Text for objects, as long as they live: made once, and never for an object that can't be watched."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, str]] = {}  # id -> a weak reference, and the text

    def of(self, thing: Any, make: Callable[[], str]) -> str:
        found = self.known.get(id(thing))
        if found is not None and found[0]() is thing:
            return found[1]
        text = make()
        with suppress(TypeError):
            self.known[id(thing)] = weakref.ref(thing, partial(self._forget, id(thing))), text
        return text

    def _forget(self, key: int, dead: Any) -> None:
        if key in self.known and self.known[key][0] is dead:
            del self.known[key]


_marks = _Memory()  # of code
_tokens = _Memory()  # of captured values that nobody can look into
