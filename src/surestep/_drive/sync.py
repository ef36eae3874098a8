"""Runs a core generator with threads. Reads side by side with `async_.py`.

A lone task runs on the caller's own thread: no hand-over, and a traceback that reads as if the node had been called.
Several run on threads of the crew, at most `limit` at once. Everything that happens comes back through one inbox.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any

from surestep._core.commands import NEXT, Abandon, Answer, Emit, Next, Spawn, Unstorable, UseLedger
from surestep._core.events import Abandoned, Called, Ended, Landed, Part, RunStopped, StepExpired
from surestep._core.task import Call
from surestep._drive import crew
from surestep._drive.body import body, run_sync
from surestep._drive.caching import cache_call, without_cache
from surestep._drive.context import TaskContext, enter
from surestep._drive.driver import Caching, Driver, Loading, Saving
from surestep._drive.effect import hear
from surestep._drive.env import Env
from surestep._drive.lanes import Lanes
from surestep._drive.saving import BACKLOG, SaverCall, SaverPort, SerializationError

WAKE = object()  # in the inbox: look again
Parts = Iterator[tuple[tuple[str, ...], str, Any]]
MAX_THREADS = min(32, (os.cpu_count() or 1) + 4)  # a run's default limit, as concurrent.futures has it


class SyncDriver(Driver):
    """One run on threads."""

    patience = None

    def __init__(self, env: Env, port: SaverPort | None, *args: Any, **kwargs: Any) -> None:
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        self.put = self.inbox.put
        super().__init__(env, port, *args, **kwargs)
        self.waiting: deque[tuple[float, Spawn]] = deque()  # attempts not started, with the time they are due
        self.lanes: dict[int, Lanes] = {}  # by depth of call: a task never waits for a thread that its caller holds
        self.background = Background(self.port) if self.port is not None and self.behind else None
        self.lone: TaskContext | None = None  # runs on the run's own thread: whoever waits in it goes on with the run
        self.pumping = threading.Lock()
        self.broken: BaseException | None = None  # what broke off a command (Ctrl-C) while a node waited
        self.deadline: tuple[int, float] | None = None  # of the step that is under way, if it has one

    # the loop

    def drive(self, core: Any) -> Iterator[Part]:
        """Answer the core's commands until it ends; yields what our consumer is to see, returns the outcome."""
        self.core = core
        self._enter()
        reply: Any = None
        failure: BaseException | None = None
        try:
            while True:
                try:
                    command = core.throw(failure) if failure is not None else core.send(reply)
                except StopIteration as end:
                    self._tell_pause(end.value)
                    yield from self._flush()
                    return end.value  # type: ignore[no-any-return]
                failure = reply = None
                try:
                    if type(command) is Emit:
                        if (part := self._emit(command)) is not None:
                            yield part
                        continue
                    if type(command) is Next:
                        while (reply := self._next(command)) is None:
                            yield from self._flush()
                            command = NEXT if command.step is None else Next((), command.step)
                        if type(reply) is Ended:
                            self.contexts.pop(reply.task, None)
                    else:
                        reply = self._do(command)
                except Exception as error:
                    failure = error
                if self.outbox:
                    yield from self._flush()
        except (GeneratorExit, KeyboardInterrupt):
            self._finish(core)
            raise
        finally:
            self._unread()
            if self.background is not None:
                self.background.close()
            self._close_inbox()
            self._depart()

    def _finish(self, core: Any) -> None:
        """The caller is gone: let the core settle, show nothing more."""
        self._unread()
        try:
            command = core.throw(RunStopped())
            while True:
                command = self._unseen(command)
                self.outbox.clear()
        except (StopIteration, RunStopped):
            return

    def _unseen(self, command: Any) -> Any:
        """Carry out a command while no consumer can look, keep what is to be shown; the command that follows."""
        reply = None
        try:
            if type(command) is Emit:
                self.outbox.append(self.env.part(command))
            else:
                reply = self._do(command)
        except Exception as error:
            return self.core.throw(error)
        return self.core.send(reply)

    # saving

    def _save(self, command: Saving) -> None:
        assert self.port is not None
        if self.port.inline:
            self.port.write(command)
            return
        for do, arguments in self._saving(command):
            do(*arguments)

    def _settle(self) -> None:
        if self.background is not None:
            self.background.settle()

    def _load(self, command: Loading) -> Any:
        assert self.port is not None
        return self.port.answer(command, [self._read(call) for call in self.port.reads(command)])

    def _call(self, call: SaverCall) -> Any:
        assert self.port is not None
        return getattr(self.port.saver, call.name)(*call.args, **call.kwargs)

    def _read(self, call: SaverCall) -> Any:
        found = self._call(call)
        return list(found) if call.name == "list" else found

    def _use_cache(self, command: Caching) -> Any:
        name, argument = cache_call(command)
        try:
            return getattr(self.env.cache, name)(argument)
        except Exception as error:
            return without_cache(command, error)

    # attempts

    def _spawn(self, command: Spawn) -> None:
        self.waiting.append((time.monotonic() + command.delay if command.delay else 0.0, command))

    def _queue(self, command: Next) -> None:
        self.waiting.extend([(0.0, Spawn(task, 1, 0.0)) for task in command.starts])
        if command.step is not None:
            self._start_clock(command.step)

    def _next(self, command: Next) -> Any:
        """The next event: a lone attempt is run here and now, others on threads."""
        starts, waiting = command.starts, self.waiting
        if self.in_place and len(starts) + len(waiting) == 1 and self.inbox.empty():
            if not (self.lanes and self._busy()):
                return self._run_here(waiting.popleft()[1] if waiting else Spawn(starts[0], 1, 0.0))
        self._queue(command)
        while True:
            item = self._take()
            if type(item) is Part:
                self.outbox.append(item)
                if self.modes:
                    return None  # let the consumer have it first
            elif item is not WAKE:
                return item

    def _run_here(self, lone: Spawn) -> Ended:
        if lone.delay:
            time.sleep(lone.delay)
        self.contexts[lone.task] = context = TaskContext(self.env, lone.task, lone.attempt)
        self.thread = threading.get_ident()
        self.lone = context
        event = copy_context().run(attempt, context)
        self.lone = None
        if self.pumping.locked():  # a thread of the node's goes on with the run: it is this thread's turn again
            self.inbox.put(WAKE)
            with self.pumping:
                pass
        if not self.inbox.empty():
            self._collect()
        if self.broken is not None:  # the core does not wait for this event yet
            self.inbox.put(event)
            raise self.broken
        return event

    def _start_clock(self, step: int) -> None:
        assert self.step_timeout is not None
        if self.deadline is None or self.deadline[0] != step:
            self.deadline = (step, time.monotonic() + self.step_timeout)

    def _take(self) -> Any:
        """What comes next, an event or a part; starts attempts meanwhile whose time has come."""
        while True:
            timeout = self._start_due()
            if self.deadline is not None:
                left = self.deadline[1] - time.monotonic()
                timeout = left if timeout is None else min(left, timeout)
                if left <= 0:
                    step, self.deadline = self.deadline[0], None
                    return StepExpired(step)
            try:
                item = self.inbox.get(timeout=timeout)
            except Empty:
                continue
            if self.gate is not None and type(item) is Part:
                self.gate.taken()
            return item

    def _hear(self, command: Next) -> Any:
        self._queue(command)
        return self._wait()

    def _wait(self) -> Any:
        """The next event; parts go to the outbox."""
        while type(item := self._take()) is Part or item is WAKE:
            if type(item) is Part:
                self.outbox.append(item)
            elif self.pumping.locked():
                return item
        return item

    def _collect(self) -> None:
        """Parts that an inline attempt left behind; events stay for the next time."""
        for item in self._taken_out():
            (self.outbox.append if type(item) is Part else self.inbox.put)(item)

    def _start_due(self) -> float | None:
        """Start the attempts whose time has come; seconds until the next one's, if any."""
        now, later = time.monotonic(), []
        while self.waiting:
            due, spawn = self.waiting.popleft()
            if due > now:
                later.append((due, spawn))
            else:
                self._start(TaskContext(self.env, spawn.task, spawn.attempt))
        self.waiting.extend(later)
        return min(due for due, _ in later) - now if later else None

    def _start(self, context: TaskContext) -> None:
        self.contexts[context.task] = context
        context.scope = copy_context()
        depth = context.task.depth
        if depth not in self.lanes:
            self.lanes[depth] = Lanes(self.limit or MAX_THREADS, attempt, self.inbox.put)
        self.lanes[depth].start(context)

    def _busy(self) -> bool:
        return any(lanes.busy or lanes.away for lanes in self.lanes.values())

    def _abandon(self, command: Abandon) -> None:
        """A thread can't be stopped: only what has not started is taken back."""
        task, number = command.task, command.attempt
        kept = [item for item in self.waiting if item[1].task is not task]
        if len(kept) < len(self.waiting):
            self.waiting = deque(kept)
            self.inbox.put(Ended(task, number, [], Abandoned(started=False)))
            return
        context = self.contexts.get(task)
        if context is None:  # it has ended; its report is on the way
            return
        lanes = self.lanes.get(task.depth)
        if lanes is not None and lanes.take_back(context):
            self.inbox.put(Ended(task, number, [], Abandoned(started=False)))
        elif self.deadline is None and self.step_timeout is not None:  # out of time: nobody waits for it any more
            context.fenced = True
            self.inbox.put(Ended(task, number, [], Abandoned(started=True)))

    # called tasks

    def _resolve(self, command: Answer) -> None:
        future = command.call.future
        if future.done():  # whoever waited has given up
            return
        if command.error is not None:
            future.set_exception(command.error)
        else:
            future.set_result(command.value)

    def call(self, context: TaskContext, name: str, spec: Any, raw: Any) -> Any:
        """Start a task for a running one; a future of its result."""
        future = waitable(self)
        future.call = call = Call(context.task, context.next_number("calls"), name, spec, raw, future)
        self._post(Called(call))
        return future

    def pump_for(self, done: Callable[[], bool]) -> None:
        """Go on with the run while its own thread runs a node, which waits here or in a thread of its own."""
        while not done() and self.lone is not None:
            with self.pumping:
                if not done() and self.lone is not None:
                    self._pump_one()

    def _pump_one(self) -> None:
        if self.broken is not None:
            raise self.broken
        if (event := self._wait()) is WAKE:
            return
        try:
            command = self.core.send(event)
            while type(command) is not Next:
                command = self._unseen(command)
        except BaseException as error:
            self.broken = error
            raise
        self._queue(command)

    # effects

    def post(self, context: TaskContext, event: Any) -> Any:
        """Send an event with a call; the future of its answer."""
        self.admitting = True
        event.call.future = future = waitable(self)
        self._post(event)
        return future

    def _more_landed(self) -> list[Landed]:
        """What has landed meanwhile; other events stay for later, in their order."""
        found = self._taken_out()
        for item in found:
            if type(item) is not Landed:
                self.inbox.put(item)
        return [item for item in found if type(item) is Landed]

    def _taken_out(self) -> list[Any]:
        found: list[Any] = []
        while not self.inbox.empty():
            found.append(self.inbox.get_nowait())
        return found

    def _post(self, event: Any) -> None:
        self.inbox.put(event)
        if self.over:
            self.refuse(event)

    def _close_inbox(self) -> None:
        """Nobody hears of events any more: who still sends some is told."""
        self.over = True
        for event in self._taken_out():
            self.refuse(event)

    @contextmanager
    def aside(self, context: TaskContext) -> Iterator[None]:
        """While a task waits for others to settle, its lane is free for them."""
        lanes = self.lanes.get(context.task.depth)
        if lanes is None or context is self.lone:
            yield
            return
        if context.next_number("aside") == 0:  # the first of its threads to wait
            lanes.step_aside()
        try:
            yield
        finally:
            if context.take_number("aside") == 0:
                lanes.come_back()

    def _use_ledger(self, command: UseLedger) -> Any:
        try:
            method, args, kwargs = self._ledger_call(command)
            return getattr(self.env.ledger, method)(*args, **kwargs)
        except SerializationError as error:
            raise Unstorable from error

    def _above(self, event: Any) -> Any:
        assert self.env.parent is not None
        return hear(self.env.parent, event)


def played(parts: Iterator[Part], hear: Callable[[Part], Any]) -> Any:
    """What the core returned, once it has ended; `hear` is told of the parts before."""
    while True:
        try:
            hear(next(parts))
        except StopIteration as end:
            return end.value


def attempt(context: TaskContext) -> Ended:
    """Run one attempt at a task, whatever comes of it."""
    context.started()
    enter(context)
    error: BaseException | None = None
    try:
        tracer = context.env.tracer
        run_sync(body(context) if tracer is None else tracer.body(context), context)
    except BaseException as raised:
        error = noted(raised, context)
    return Ended(context.task, context.attempt, context.writes, error)


def noted(error: BaseException, context: TaskContext) -> BaseException:
    """The error with a note of where it happened."""
    error.add_note(f"During task with name '{context.task.name}' and id '{context.task.id}'")
    return error


def waitable(driver: SyncDriver) -> Any:
    """A future whose `result()` may be waited for on the run's own thread too."""
    from surestep._drive.future import CalledFuture

    return CalledFuture(driver)


class Background:
    """Saves that a run in `async` durability does not wait for: kept in order, at most `BACKLOG` of them waiting."""

    def __init__(self, port: SaverPort) -> None:
        self.saver = port.saver
        self.changed = threading.Condition()
        self.queue: deque[list[SaverCall]] = deque()
        self.busy = False
        self.error: BaseException | None = None

    def put(self, calls: list[SaverCall]) -> None:
        """Hand over calls; raises the first failure of earlier ones."""
        with self.changed:
            while len(self.queue) >= BACKLOG and self.error is None:
                self.changed.wait()
            self._raise()
            self.queue.append(calls)
            if not self.busy:
                self.busy = True
                crew.start(self._work)

    def settle(self) -> None:
        """Wait until nothing is left; raises the first failure."""
        with self.changed:
            while self.busy:
                self.changed.wait()
            self._raise()

    def close(self) -> None:
        with self.changed:
            while self.busy:
                self.changed.wait()

    def _raise(self) -> None:
        if self.error is not None:
            raise self.error

    def _work(self) -> None:
        while True:
            with self.changed:
                if not self.queue or self.error is not None:
                    self.busy = False
                    self.queue.clear()
                    self.changed.notify_all()
                    return
                calls = self.queue.popleft()
                self.changed.notify_all()
            try:
                for call in calls:
                    getattr(self.saver, call.name)(*call.args, **call.kwargs)
            except BaseException as error:
                self.error = error
