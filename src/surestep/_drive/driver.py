"""What both drivers have: one run, where its parts go, and which method answers which command.

A method that has to wait is a coroutine function in the async driver; which ones may is said in `AT_ONCE`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from surestep._core.commands import (
    Abandon,
    Answer,
    AskAbove,
    Commit,
    Emit,
    LandedAbove,
    ListCheckpoints,
    Load,
    MoreLanded,
    Next,
    Recall,
    Remember,
    Replay,
    Save,
    Settle,
    Spawn,
    UseLedger,
)
from surestep._core.effects import DONE, EffectCall, Outcome
from surestep._core.events import Abandoned, Asked, Awaited, Called, Landed, Part, Stopped
from surestep._drive.context import TaskContext
from surestep._drive.env import Env, Sink
from surestep._drive.gate import Gate
from surestep._drive.saving import SaverCall, SaverPort
from surestep.errors import EffectFenced, RunCancelled

Saving: TypeAlias = Save | Commit
Loading: TypeAlias = Load | ListCheckpoints | Replay
Caching: TypeAlias = Recall | Remember

AT_ONCE = frozenset({Spawn, Abandon, Answer, MoreLanded})  # commands that neither driver waits for; the rest it may


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
    _use_ledger: Callable[[UseLedger], Any]
    _more_landed: Callable[[], list[Landed]]
    _above: Callable[[Asked | Landed], Any]  # tells the enclosing run's driver, and waits for its answer
    post: Callable[[TaskContext, Any], Any]  # an event with a call; the future of its answer

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
        self.above_call: EffectCall | None = None  # what the graph around this one is asked, for effects of ours
        self.admitting = False  # effects have been called
        self.over = False  # nobody hears of events any more
        env.driver = self
        assert env.runtime.control is not None
        self.control = env.runtime.control
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
        if kind is UseLedger:
            return self._use_ledger(command)
        if kind is MoreLanded:
            return self._more_landed()
        if kind is AskAbove or kind is LandedAbove:
            return self._above(self._scope_event(kind))
        assert kind in (Load, ListCheckpoints, Replay)
        return self._load(command)

    # effects

    def _scope_event(self, kind: type) -> Asked | Landed:
        """What the enclosing graph is told: ours would like to start effects; their wave has landed."""
        parent = self.env.parent
        assert parent is not None
        if kind is AskAbove:
            id = f"{self.env.ns}/{parent.next_effect('')}"
            self.above_call = EffectCall(parent.task, parent.attempt, id)
            return Asked(self.above_call)
        assert self.above_call is not None
        return Landed(self.above_call, Outcome(DONE))

    def _enter(self) -> None:
        """The task around this run, if there is one, runs a graph more."""
        if self.env.parent is not None:
            self.env.parent.count_graphs(1)
        self.control._runs.append(self._cancelled)

    def _cancelled(self) -> None:
        """Somebody cancelled the run by its control."""
        thread_id = self.env.config.get("configurable", {}).get("thread_id")
        self.put(Stopped(RunCancelled(thread_id, self.control.cancel_reason)))

    def _ledger_call(self, command: UseLedger) -> tuple[str, tuple[Any, ...], Mapping[str, Any]]:
        """The method of the saver, and what it is given: moves that let a body start need the thread."""
        kwargs = command.kwargs
        if self.env.hold is not None and command.method == "move_effects":
            if any(one.kind in ("admit", "retry") for one in command.args[0]):
                kwargs = {**kwargs, "hold": self.env.hold}
        return command.method, command.args, kwargs

    def _tell_pause(self, outcome: Any) -> None:
        """The task around a run that paused will pause too, when its code has come to that."""
        if self.env.parent is not None and getattr(outcome, "pause", None) is not None:
            self.env.parent.task.asked = True

    def _depart(self) -> None:
        self.control._runs.remove(self._cancelled)
        parent = self.env.parent
        if parent is not None:
            parent.count_graphs(-1)
            if parent.env.driver.admitting:
                parent.env.driver.put(Awaited(None))

    @staticmethod
    def refuse(event: Any) -> None:
        """Answer whoever comes when the run is over."""
        error: BaseException | None = None
        if type(event) is Called:
            error = Abandoned(started=False)
        elif type(event) is Asked or type(event) is Landed:
            error = EffectFenced(
                f"Effect '{event.call.name}' was called by '{event.call.task.name}', whose run is over. Nothing was "
                "executed."
            )
        if error is not None:
            with suppress(Exception):  # answered at the same moment
                event.call.future.set_exception(error)

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
