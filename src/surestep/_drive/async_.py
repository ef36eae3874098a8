"""Runs a core generator on an event loop. Reads side by side with `sync.py`.

Every attempt is an asyncio task in a context of its own. Everything that happens comes back through one inbox, also
from threads (sync nodes run on the loop's executor).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from typing import Any

from surestep._core.commands import Abandon, Answer, Emit, Next, Spawn, Unstorable, UseLedger
from surestep._core.events import (
    Abandoned,
    CallDropped,
    Called,
    Ended,
    Landed,
    Part,
    RunStopped,
    StepExpired,
    Stopped,
)
from surestep._core.task import Call, Task
from surestep._drive.body import body, run_async
from surestep._drive.caching import cache_call, without_cache
from surestep._drive.context import TaskContext, enter
from surestep._drive.driver import AT_ONCE, Caching, Driver, Loading, Saving
from surestep._drive.effect_async import ahear
from surestep._drive.env import Env
from surestep._drive.gate import PATIENCE
from surestep._drive.loop import Background, LoopFuture, Watch, through
from surestep._drive.pace import Paced
from surestep._drive.saving import SaverCall, SaverPort, SerializationError
from surestep._drive.scope import InScope
from surestep._drive.sync import noted
from surestep.errors import NodeCancelledError


class AsyncDriver(Driver):
    """One run on an event loop."""

    patience = PATIENCE

    def __init__(self, env: Env, port: SaverPort | None, *args: Any, **kwargs: Any) -> None:
        super().__init__(env, port, *args, **kwargs)
        self.turns: dict[int, asyncio.Semaphore] = {}  # by depth of call: a task never waits for its caller's turn
        self.waiting: list[tuple[float, TaskContext]] = []  # attempts not started, with their delay
        self.pump: asyncio.Task[Any] | None = None  # goes on with the run while a lone attempt waits for calls
        self.stopping = False  # a lone attempt is torn down, since the run is to end
        self.lone: TaskContext | None = None  # played in place
        self.player: asyncio.Task[Any] | None = None  # in which a lone attempt is played
        self.loop = asyncio.get_running_loop()
        self.inbox: deque[Any] = deque()
        self.wake: asyncio.Future[None] | None = None
        self.clock: tuple[int, asyncio.TimerHandle] | None = None  # of the step that is under way, if it is timed
        self.running: dict[TaskContext, asyncio.Task[None]] = {}
        self.background = Background(self.port) if self.port is not None and self.behind else None
        env.is_async = True

    # the loop

    async def drive(self, core: Any) -> AsyncGenerator[Part, None]:
        """Answer the core's commands until it ends; yields what our consumer is to see, and the outcome last."""
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
                    yield end.value
                    return
                failure = reply = None
                try:
                    if type(command) is Emit:
                        if (part := self._emit(command)) is not None:
                            yield part
                    elif type(command) is Next:
                        self._queue(command)
                        if (lone := self._start()) is not None:
                            reply = await self._play(lone)
                            if self.inbox:
                                self._collect()
                            for part in self._flush():
                                yield part
                            continue
                        while type(item := await self._take()) is Part:
                            if (part := self._show(item)) is not None:
                                yield part
                        reply = item
                    else:
                        reply = await self._done(command)
                except Exception as error:
                    failure = error
        except (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt):
            await self._finish(core)
            raise
        finally:
            await self._close()
            self._depart()

    async def _finish(self, core: Any) -> None:
        """The caller is gone or was cancelled: let the core settle, show nothing more. Not to be cancelled itself."""
        self._unread()
        await through(self._wind_up(core))

    async def _wind_up(self, core: Any) -> None:
        try:
            command = core.throw(RunStopped())
            while True:
                command = await self._unseen(command)
                self.outbox.clear()
        except (StopIteration, RunStopped):
            return

    async def _unseen(self, command: Any) -> Any:
        """Carry out a command while no consumer can look, keep what is to be shown; the command that follows."""
        reply = None
        try:
            if type(command) is Emit:
                self.outbox.append(self.env.part(command))
            else:
                reply = await self._done(command)
        except Exception as error:
            return self.core.throw(error)
        return self.core.send(reply)

    async def _done(self, command: Any) -> Any:
        reply = self._do(command)
        return reply if type(command) in AT_ONCE else await reply

    # the inbox

    def put(self, item: Any) -> None:
        """Take in an event or a part, from any thread."""
        if threading.get_ident() != self.thread:
            try:
                self.loop.call_soon_threadsafe(self.put, item)
            except RuntimeError:  # the loop is closed: nobody is left to hear of it
                self.refuse(item)
            return
        if self.over:
            self.refuse(item)
            return
        self.inbox.append(item)
        if type(item) is Stopped and self.lone is not None and self.player is not None:
            self.lone.fenced = self.stopping = True
            self.player.cancel()
        if self.wake is not None and not self.wake.done():
            self.wake.set_result(None)

    def _start_clock(self, step: int) -> None:
        assert self.step_timeout is not None
        if self.clock is None or self.clock[0] != step:
            self._stop_clock()
            self.clock = (step, self.loop.call_later(self.step_timeout, self.put, StepExpired(step)))

    def _stop_clock(self) -> None:
        if self.clock is not None:
            self.clock[1].cancel()

    async def _take(self) -> Any:
        while not self.inbox:
            self.wake = self.loop.create_future()
            await self.wake
        item = self.inbox.popleft()
        if self.gate is not None and type(item) is Part:
            self.gate.taken()
        return item

    async def _hear(self, command: Next) -> Any:
        self._queue(command)
        self._start(alone=False)
        return await self._wait()

    async def _wait(self) -> Any:
        """The next event; parts go to the outbox."""
        while type(item := await self._take()) is Part:
            self.outbox.append(item)
        return item

    # saving

    async def _save(self, command: Saving) -> None:
        assert self.port is not None
        if self.port.inline:
            self.port.write(command)
            return
        for do, arguments in self._saving(command):
            await do(*arguments)

    async def _settle(self) -> None:
        if self.background is not None:
            await self.background.settle()

    async def _load(self, command: Loading) -> Any:
        assert self.port is not None
        return self.port.answer(command, [await self._read(call) for call in self.port.reads(command)])

    async def _call(self, call: SaverCall) -> Any:
        """A call of the saver runs to its end, also when the run is cancelled meanwhile."""
        assert self.port is not None
        return await through(getattr(self.port.saver, f"a{call.name}")(*call.args, **call.kwargs))

    async def _read(self, call: SaverCall) -> Any:
        assert self.port is not None
        if call.name == "list":
            return [found async for found in self.port.saver.alist(*call.args, **call.kwargs)]
        return await getattr(self.port.saver, f"a{call.name}")(*call.args, **call.kwargs)

    async def _use_cache(self, command: Caching) -> Any:
        name, argument = cache_call(command)
        try:
            return await through(getattr(self.env.cache, f"a{name}")(argument))
        except Exception as error:
            return without_cache(command, error)

    # attempts

    def _spawn(self, command: Spawn) -> None:
        self._begin(*command)

    def _begin(self, task: Task, number: int, delay: float) -> None:
        context = TaskContext(self.env, task, number)
        self.contexts[task] = context
        context.started()
        context.scope = copy_context()
        context.scope.run(enter, context)
        self.waiting.append((delay, context))

    def _queue(self, command: Next) -> None:
        for task in command.starts:
            self._begin(task, 1, 0.0)
        if command.step is not None:
            self._start_clock(command.step)

    def _start(self, alone: bool = True) -> TaskContext | None:
        """Start what waits, each in a task of its own; a lone attempt is handed back, to be played in place."""
        waiting, self.waiting = self.waiting, []
        if alone and self.in_place and len(waiting) == 1 and not self.running and not self.inbox:
            delay, context = waiting[0]
            if not delay and context.task.timeout is None:
                return context
        for delay, context in waiting:
            attempt = self._attempt_and_tell(context, delay)
            self.running[context] = self.loop.create_task(attempt, context=context.scope)
        return None

    async def _play(self, context: TaskContext) -> Any:
        """Run a lone attempt here: no task, no turn of the loop, in the attempt's own context all the same."""
        self.player = caller = asyncio.current_task()
        cancels = caller.cancelling() if caller is not None else 0
        self.lone = context
        try:
            event: Any = await InScope(self._attempt(context, 0.0), context.scope)
        finally:
            self.lone = None
        if self.pump is not None:
            self.put(event)
            event, self.pump = await self.pump, None
        if self.stopping and caller is not None:  # the event that says so is in the inbox, in front of this one
            self.stopping = False
            caller.uncancel()
            self.put(event)
            return await self._wait()
        if caller is not None and caller.cancelling() > cancels:  # it is the run that was cancelled, not the node
            if event.error is not None:
                event = event._replace(error=Abandoned(started=True, error=asyncio.CancelledError()))
            self.put(event)
            raise asyncio.CancelledError
        return event

    def _collect(self) -> None:
        """Parts that a lone attempt left behind; events stay for the next time."""
        self.outbox.extend(item for item in self.inbox if type(item) is Part)
        self.inbox = deque(item for item in self.inbox if type(item) is not Part)

    def _turns(self, context: TaskContext) -> asyncio.Semaphore | None:
        if self.limit is None:
            return None
        return self.turns.setdefault(context.task.depth, asyncio.Semaphore(self.limit))

    async def _attempt_and_tell(self, context: TaskContext, delay: float) -> None:
        self.put(await self._attempt(context, delay))

    async def _attempt(self, context: TaskContext, delay: float) -> Ended:
        started, watch, turns = False, None, self._turns(context)
        error: BaseException | None = None
        try:
            if delay:
                await asyncio.sleep(delay)
            if turns is not None:
                await turns.acquire()
            started = True
            try:
                if context.task.timeout is not None:
                    watch = context.watch = Watch(self, context)
                tracer = self.env.tracer
                played = run_async(body(context) if tracer is None else tracer.body(context), context)
                await (played if self.gate is None else Paced(played, self.gate))
            finally:
                if watch is not None:
                    watch.cancel()
                    context.watch = None
                if turns is not None:
                    turns.release()
        except asyncio.CancelledError as cancelled:
            if context.fenced:
                error = Abandoned(started, cancelled)
            else:
                error = NodeCancelledError(context.task.name)
                error.__cause__ = cancelled
        except BaseException as raised:
            error = noted(raised, context)
        self.running.pop(context, None)
        if self.contexts.get(context.task) is context:
            del self.contexts[context.task]
        return Ended(context.task, context.attempt, context.writes, error)

    def _abandon(self, command: Abandon) -> None:
        context = self.contexts.get(command.task)
        if context is None:  # it has ended; its report is on the way
            return
        context.fenced = True
        if (running := self.running.get(context)) is not None:
            running.cancel()

    async def _close(self) -> None:
        """Nothing of the run is left behind."""
        self._unread()
        self._stop_clock()
        if self.background is not None:
            await through(self.background.close())
        self.over = True
        while self.inbox:
            self.refuse(self.inbox.popleft())

    # called tasks

    def call(self, context: TaskContext, name: str, spec: Any, raw: Any) -> Any:
        """Start a task for a running one; a future of its result that fits the place it is called from."""
        future = self._future()
        call = Call(context.task, context.next_number("calls"), name, spec, raw, future)
        future.add_done_callback(lambda done: self.put(CallDropped(call)) if done.cancelled() else None)
        future.call = call
        self._post(context, Called(call), future)
        return future

    def _future(self) -> Any:
        """A future that fits the place it is waited for in."""
        if threading.get_ident() == self.thread:
            return LoopFuture(self)
        from surestep._drive.future import CalledFuture

        return CalledFuture(self)

    def _post(self, context: TaskContext, event: Any, future: Any) -> None:
        self.put(event)
        if context is not self.lone:
            return
        if self.pump is not None and self.pump.done():  # nobody would hear of it
            future.cancel()
        else:
            self._start_pump(context)

    # effects

    def post(self, context: TaskContext, event: Any) -> Any:
        """Send an event with a call; the future of its answer."""
        self.admitting = True
        event.call.future = future = self._future()
        self._post(context, event, future)
        return future

    def _more_landed(self) -> list[Landed]:
        """What has landed meanwhile; other events stay for later, in their order."""
        found = [item for item in self.inbox if type(item) is Landed]
        if found:
            self.inbox = deque(item for item in self.inbox if type(item) is not Landed)
        return found

    @asynccontextmanager
    async def turn_aside(self, context: TaskContext) -> AsyncIterator[None]:
        """While a task waits for others to settle, its turn is theirs, and its clocks stand still."""
        turns, watch = self._turns(context), context.watch
        first = context.next_number("aside") == 0
        if turns is not None and first:
            turns.release()
        if watch is not None and first:
            watch.hold()
        try:
            yield
        finally:
            last = context.take_number("aside") == 0
            if turns is not None and last:
                await turns.acquire()
            if watch is not None and last:
                watch.go_on()

    @contextmanager
    def aside(self, context: TaskContext) -> Iterator[None]:
        """The same for a thread of the task's."""
        if self.over or (self.limit is None and context.watch is None):
            yield
            return
        leave = self.turn_aside(context)
        asyncio.run_coroutine_threadsafe(leave.__aenter__(), self.loop).result()
        try:
            yield
        finally:
            if not self.over:
                asyncio.run_coroutine_threadsafe(leave.__aexit__(None, None, None), self.loop).result()

    async def _use_ledger(self, command: UseLedger) -> Any:
        method, args, kwargs = self._ledger_call(command)
        try:
            return await through(getattr(self.env.ledger, f"a{method}")(*args, **kwargs))
        except SerializationError as error:
            raise Unstorable from error

    async def _above(self, event: Any) -> Any:
        assert self.env.parent is not None
        return await ahear(self.env.parent, event)

    def _start_pump(self, context: TaskContext) -> None:
        """A lone attempt called a task: somebody else has to go on with the run."""
        if threading.get_ident() != self.thread:
            self.loop.call_soon_threadsafe(self._start_pump, context)
        elif self.pump is None and context is self.lone:
            self.pump = self.loop.create_task(self._pump(context))
            self.pump.add_done_callback(self._pumped)

    def _pumped(self, pump: asyncio.Task[Any]) -> None:
        """If the pump broke off (a save was cancelled), nobody would ever answer the attempt that waits."""
        if self.player is not None and (pump.cancelled() or pump.exception() is not None):
            self.player.cancel()

    async def _pump(self, context: TaskContext) -> Any:
        """Play the core until the attempt that waits has ended; its end is for the loop that waits for it."""
        while True:
            item = await self._take()
            if type(item) is Part:
                self.outbox.append(item)
                continue
            if type(item) is Ended and item.task is context.task:
                return item
            command = self.core.send(item)
            while type(command) is not Next:
                command = await self._unseen(command)
            self._queue(command)
            self._start(alone=False)

    def _resolve(self, command: Answer) -> None:
        future = command.call.future
        if future.done():  # whoever waited was cancelled
            return
        if command.error is not None:
            future.set_exception(command.error)
            if isinstance(future, asyncio.Future):
                future.exception()  # heard of, even if the caller never asks
        else:
            future.set_result(command.value)


async def aplayed(parts: AsyncIterator[Any], hear: Callable[[Part], Any]) -> Any:
    """What the core returned, once it has ended; `hear` is told of the parts before."""
    item: Any = None
    async for item in parts:
        if type(item) is Part:
            hear(item)
    return item
