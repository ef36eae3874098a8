"""What both drivers have: one run, where its parts go, and which method answers which command.

A method that has to wait is a coroutine function in the async driver; which ones may is said in `AT_ONCE`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from surestep._core.commands import (
    Abandon,
    Answer,
    Commit,
    Emit,
    ListCheckpoints,
    Load,
    Next,
    Recall,
    Remember,
    Replay,
    Save,
    Settle,
    Spawn,
)
from surestep._core.events import Part
from surestep._drive.context import TaskContext
from surestep._drive.env import Env, Sink
from surestep._drive.gate import Gate
from surestep._drive.saving import SaverCall, SaverPort

Saving: TypeAlias = Save | Commit
Loading: TypeAlias = Load | ListCheckpoints | Replay
Caching: TypeAlias = Recall | Remember

AT_ONCE = frozenset({Spawn, Abandon, Answer})  # commands that neither driver waits for; the rest it may


class Driver:
    """One run: its state, its stream, and who does what the core asks for."""

    # each driver's own
    put: Callable[[Any], None]  # takes in an event or a part, from any thread
    patience: float | None  # seconds that a thread waits for the stream's reader; None: as long as it takes
    call: Callable[[TaskContext, str, Any, Any], Any]  # starts a task for a running one
    _hear: Callable[[Next], Any]  # starts what is to be started; the next event
    _spawn: Callable[[Spawn], None]
    _abandon: Callable[[Abandon], None]
    _resolve: Callable[[Answer], None]
    _save: Callable[[Saving], Any]
    _settle: Callable[[], Any]
    _load: Callable[[Loading], Any]
    _use_cache: Callable[[Caching], Any]
    _call: Callable[[SaverCall], Any]

    def __init__(
        self,
        env: Env,
        port: SaverPort | None,
        modes: frozenset[str] = frozenset(),
        *,
        subgraphs: bool = False,
        live: bool = False,
        limit: int | None = None,
        durability: str = "sync",
        step_timeout: float | None = None,
    ) -> None:
        self.env = env
        self.port = port
        self.modes = modes  # what our own consumer asked for
        self.above = env.parent.env.down if env.parent is not None else None  # nested: where parts go too
        self.limit = limit
        self.step_timeout = step_timeout
        self.in_place = not live and step_timeout is None  # whether a lone attempt is run by whoever drives
        self.behind = port is not None and durability == "async" and not port.inline  # saves that nobody waits for
        self.background: Any = None  # what makes them
        self.contexts: dict[Any, TaskContext] = {}  # task -> its current attempt
        self.outbox: deque[Part] = deque()  # parts that came while the consumer could not look
        self.core: Any = None
        self.thread = threading.get_ident()
        self.gate = Gate(self.put, self.patience) if live else None
        put = self.put if self.gate is None else self.gate.put
        env.put_part = self.above.put if self.above is not None and not modes else put
        env.calls = self.call
        env.down = self.above
        if subgraphs:
            env.down = Sink(modes | (self.above.modes if self.above is not None else frozenset()), put)

    def _do(self, command: Any) -> Any:
        """Carry a command out: the reply to it, in the async driver to be awaited unless its kind is in `AT_ONCE`."""
        kind = type(command)
        if kind is Commit or kind is Save:
            return self._save(command)
        if kind is Next:
            return self._hear(command)
        if kind is Spawn:
            return self._spawn(command)
        if kind is Settle:
            return self._settle()
        if kind is Abandon:
            return self._abandon(command)
        if kind is Answer:
            return self._resolve(command)
        if kind is Recall or kind is Remember:
            return self._use_cache(command)
        assert kind in (Load, ListCheckpoints, Replay)
        return self._load(command)

    # the stream

    def _unread(self) -> None:
        """Nobody reads the stream any more."""
        if self.gate is not None:
            self.gate.close()

    def _emit(self, command: Emit) -> Part | None:
        return self._show(self.env.part(command))

    def _show(self, part: Part) -> Part | None:
        if self.above is not None and part.mode in self.above.modes:
            self.above.put(part)
        return part if part.mode in self.modes else None

    def _flush(self) -> Iterator[Part]:
        """Show what nodes put on the stream, in the order in which it came."""
        while self.outbox:
            if (part := self._show(self.outbox.popleft())) is not None:
                yield part

    # saving

    def _saving(self, command: Saving) -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
        """What keeps the command's rows: functions with their arguments, to be called one after the other."""
        assert self.port is not None
        if self.background is not None:
            if not command.urgent:
                yield self.background.put, (self.port.saves(command, background=True),)
                return
            yield self.background.settle, ()
        for call in self.port.saves(command, background=False):
            yield self._call, (call,)
