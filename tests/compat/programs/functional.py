"""Entrypoints and tasks: futures, what is kept of them, `previous`, failures, retries, questions, nesting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from compat.registry import MODES, Log, differs, kept, look, program
from harness.engine import Boom, Engine

Body = Callable[..., Any]


class Tasks:
    """Tasks that count their calls, and entrypoints that wait for them, under any driver."""

    def __init__(self, E: Engine, **options: Any) -> None:
        self.E, self.options, self.runs = E, options, Counter[str]()

    def task(self, name: str, body: Body, **options: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.runs[name] += 1
            return body(*args, **kwargs)

        return self.E.task(name=name, **options)(self.E.node(counted))

    async def of(self, future: Any) -> Any:
        """What a task returned."""
        return await future if self.E.is_async else future.result()

    def flow(self, body: Body, **options: Any) -> Any:
        return self.E.entrypoint(checkpointer=self.E.saver(), **options)(self.E.node(body))

    def counts(self) -> dict[str, int]:
        return dict(self.runs)


def ask_after(t: Tasks, *calls: tuple[Any, ...]) -> Any:
    """An entrypoint that makes these calls, asks, and returns all of it."""

    async def flow(given: Any) -> Any:
        results = [await t.of(task(*args)) for task, *args in calls]
        return [*results, t.E.interrupt("?")]

    return t.flow(flow)


@program()
def one_task(E: Engine) -> Any:
    t = Tasks(E)
    double = t.task("double", lambda n: 2 * n)

    async def flow(n: Any) -> Any:
        return await t.of(double(n)) + 1

    return look(E, t.flow(flow), 4), t.counts()


@program()
def tasks_side_by_side(E: Engine) -> Any:
    t = Tasks(E)
    double = t.task("double", lambda n: 2 * n)

    async def flow(n: Any) -> Any:
        futures = [double(i) for i in range(n)]
        return [await t.of(future) for future in futures]

    return look(E, t.flow(flow), 5, stream_mode="values"), t.counts()


@program()
def a_task_that_calls_a_task(E: Engine) -> Any:
    t = Tasks(E)
    inner = t.task("inner", lambda n: n + 1)

    async def call_inner(n: Any) -> Any:
        return 10 * await t.of(inner(n))

    outer = E.task(name="outer")(E.node(call_inner))

    async def flow(n: Any) -> Any:
        return await t.of(outer(n))

    return look(E, t.flow(flow), 1), t.counts()


@program()
def finished_tasks_are_not_repeated(E: Engine) -> Any:
    t = Tasks(E)
    one, two = t.task("one", lambda: 1), t.task("two", lambda n: 2 * n)
    app = ask_after(t, (one,), (two, 4))
    return look(E, app, "x", E.Command(resume="y")), t.counts()


@program()
def keyword_arguments_and_defaults(E: Engine) -> Any:
    t = Tasks(E)
    add = t.task("add", lambda a, b=2, *, c=3: [a, b, c])

    async def flow(n: Any) -> Any:
        futures = [add(n), add(n, 5), add(n, c=6), add(b=7, a=n)]
        return [await t.of(future) for future in futures]

    return look(E, t.flow(flow), 1, stream_mode="values")


@program()
def previous_of_a_thread(E: Engine) -> Any:
    t = Tasks(E)

    async def flow(n: Any, *, previous: Any = None) -> Any:
        return n + (previous or 0)

    app = t.flow(flow)
    return [E.invoke(app, n, E.config()) for n in (1, 2, 3)], E.invoke(app, 9, E.config("2")), kept(E, app)


@program()
def output_and_saved_value_differ(E: Engine) -> Any:
    t = Tasks(E)

    async def flow(n: Any, *, previous: Any = None) -> Any:
        return E.entrypoint.final(value=previous, save=[*(previous or []), n])

    app = t.flow(flow)
    return [E.invoke(app, n, E.config()) for n in (1, 2, 3)], kept(E, app)


@program()
def a_failed_task_is_run_again(E: Engine) -> Any:
    t, broken = Tasks(E), [True]

    def fail() -> Any:
        if broken.pop() if broken else False:
            raise Boom("once")
        return "done"

    good, bad = t.task("good", lambda: "good"), t.task("bad", fail)

    async def flow(given: Any) -> Any:
        return [await t.of(good()), await t.of(bad())]

    app = t.flow(flow)
    return E.attempt(E.invoke, app, "x", E.config()), E.invoke(app, "x", E.config()), t.counts()["good"]


@program()
def a_failure_is_caught_by_the_caller(E: Engine) -> Any:
    t = Tasks(E)

    def fail() -> Any:
        raise Boom("always")

    bad = t.task("bad", fail)

    async def flow(given: Any) -> Any:
        try:
            return await t.of(bad())
        except Boom as error:
            return f"caught {error}"

    return look(E, t.flow(flow), "x"), t.counts()


@program()
def a_task_with_retries(E: Engine) -> Any:
    t = Tasks(E)

    def fail() -> Any:
        if t.runs["bad"] < 3:
            raise Boom("not yet")
        return t.runs["bad"]

    policy = E.RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=3, retry_on=Boom)
    bad = t.task("bad", fail, retry_policy=policy)

    async def flow(given: Any) -> Any:
        return await t.of(bad())

    return look(E, t.flow(flow), "x"), t.counts()


@program()
def a_question_in_a_task(E: Engine) -> Any:
    t = Tasks(E)
    before, asks = t.task("before", lambda: 1), t.task("asks", lambda: E.interrupt("in the task"))

    async def flow(given: Any) -> Any:
        return [await t.of(before()), await t.of(asks()), E.interrupt("after it")]

    return look(E, t.flow(flow), "x", E.Command(resume="a"), E.Command(resume="b")), t.counts()


@program()
def an_entrypoint_in_an_entrypoint(E: Engine) -> Any:
    t = Tasks(E)
    one = t.task("one", lambda n: n + 1)

    async def inner_flow(n: Any) -> Any:
        return [await t.of(one(n)), E.interrupt("inner")]

    inner = E.entrypoint()(E.node(inner_flow))

    async def flow(n: Any) -> Any:
        return [await t.of(one(n)), await E.inner(inner, n)]

    return look(E, t.flow(flow), 1, E.Command(resume="y"), subgraphs=True), t.counts()


@program()
def tasks_in_a_node(E: Engine) -> Any:
    t = Tasks(E)
    word = t.task("word", lambda n: f"w{n}")

    async def node(state: Any) -> Any:
        return {"log": [await t.of(word(1)), await t.of(word(2)), E.interrupt("?")]}

    app = E.graph(Log, {"n": node}, "START > n").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, E.Command(resume="y")), t.counts()


@program()
def methods_and_names(E: Engine) -> Any:
    class Desk:
        def __init__(self, fee: int) -> None:
            self.fee = fee

        def price(self, n: int) -> int:
            return n + self.fee

    t, desk = Tasks(E), Desk(5)
    price = t.task("price of a desk", desk.price)

    async def flow(n: Any) -> Any:
        return await t.of(price(n))

    return look(E, t.flow(flow), 1), price.__name__


@program()
def streams_of_an_entrypoint(E: Engine) -> Any:
    t = Tasks(E)
    word = t.task("word", lambda n: f"w{n}")

    async def flow(n: Any) -> Any:
        writer = E.get_stream_writer()
        writer("begin")
        result = await t.of(word(n))
        writer(f"end {result}")
        return result

    app = t.flow(flow)
    return [E.stream(app, 1, E.config(mode), stream_mode=mode) for mode in MODES]


@program()
def what_a_task_shows(E: Engine) -> Any:
    """It is shown where its caller is."""
    t = Tasks(E)
    inner = t.task("inner", lambda n: E.get_stream_writer()(f"inner {n}"))

    async def outer(n: Any) -> Any:
        E.get_stream_writer()(f"outer {n}")
        return await t.of(inner(n))

    async def flow(n: Any) -> Any:
        return await t.of(E.task(name="outer")(E.node(outer))(n))

    app = t.flow(flow)
    return [E.stream(app, 1, E.config(str(deep)), stream_mode="custom", subgraphs=deep) for deep in (True, False)]


@differs(
    "A task that has returned is not carried out again when its caller is tried again",
    ours=lambda got: got == [["paid", 2], {"pay": 1}],
    theirs=lambda got: got == [["paid", 2], {"pay": 2}],
)
def retry_of_a_caller(E: Engine) -> Any:
    t, tries = Tasks(E), Counter[str]()
    pay = t.task("pay", lambda: "paid")

    async def flow(given: Any) -> Any:
        result = await t.of(pay())
        tries["flow"] += 1
        if tries["flow"] == 1:
            raise Boom("after the payment")
        return [result, tries["flow"]]

    policy = E.RetryPolicy(initial_interval=0.001, jitter=False, retry_on=Boom)
    return E.invoke(t.flow(flow, retry_policy=policy), "x", E.config()), t.counts()


def _changed_before_it_goes_on(E: Engine, first: Any, second: Any) -> Any:
    """A thread pauses after a call; by the time it goes on, the code makes another call in its place."""
    t = Tasks(E)
    tasks = {"pay": t.task("pay", lambda n: f"paid {n}"), "refund": t.task("refund", lambda n: f"refunded {n}")}
    now = [first]

    async def flow(given: Any) -> Any:
        name, amount = now[0]
        return [await t.of(tasks[name](amount)), E.interrupt("?")]

    app = t.flow(flow)
    E.invoke(app, "x", E.config())
    now[0] = second
    changed = E.attempt(E.invoke, app, E.Command(resume="y"), E.config())
    now[0] = first
    return changed, E.attempt(E.invoke, app, None, E.config()), t.counts()


@differs(
    "A call with other arguments does not get the result that was kept for those before",
    ours=lambda got: got[0][:2] == ("error", "ReplayMismatch") and got[1:] == [["paid 10", "y"], {"pay": 1}],
    theirs=lambda got: got[0] == ["paid 10", "y"],
)
def other_arguments_in_a_replay(E: Engine) -> Any:
    return _changed_before_it_goes_on(E, ("pay", 10), ("pay", 99))


@differs(
    "A call of another task in the place of one that has a result is an error, and is not carried out",
    ours=lambda got: got[0][:2] == ("error", "ReplayMismatch") and got[1:] == [["paid 10", "y"], {"pay": 1}],
    theirs=lambda got: got[0] == ["refunded 10", "y"],
)
def another_task_in_a_replay(E: Engine) -> Any:
    return _changed_before_it_goes_on(E, ("pay", 10), ("refund", 10))
