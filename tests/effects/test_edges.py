"""Effects where tasks, threads, loops, nested graphs and cancels meet."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextvars import copy_context
from typing import Any

import pytest
from effects.world import Log, World, effects_of, say, states
from harness.engine import Engine

from surestep.checkpoint.memory import InMemorySaver
from surestep.effects import Approve, Completed, EffectError, EffectFenced, Reject, current_effect, effect, gate
from surestep.func import entrypoint, task
from surestep.types import Command, TimeoutPolicy, interrupt


def plain(driver: str = "sync") -> Any:
    """An engine whose nodes are plain functions."""
    return Engine("surestep", driver, "memory")


@pytest.mark.parametrize("driver", ["sync", "mixed"])
def test_effects_in_threads_of_a_node(driver: str) -> None:
    """As LangChain's tool node calls tools."""
    with plain(driver) as E:
        happened: list[int] = []

        @effect
        def pay(amount: int) -> int:
            happened.append(amount)
            return amount

        def node(state: Any) -> Any:
            with ThreadPoolExecutor() as pool:
                futures = [pool.submit(copy_context().run, pay, k) for k in range(3)]
                return {"log": [future.result() for future in futures]}

        app = E.graph(Log, {"n": node}, "START > n").compile(checkpointer=E.saver())
        assert E.invoke(app, {"log": []}, E.config())["log"] == [0, 1, 2]
        assert sorted(happened) == [0, 1, 2]


@pytest.mark.parametrize("driver", ["sync", "mixed"])
def test_tasks_called_in_threads_of_a_node(driver: str) -> None:
    with plain(driver) as E:

        @task
        def double(n: int) -> int:
            return n * 2

        def node(state: Any) -> Any:
            with ThreadPoolExecutor() as pool:
                futures = [pool.submit(copy_context().run, lambda k=k: double(k).result()) for k in range(3)]
                return {"log": [future.result() for future in futures]}

        app = E.graph(Log, {"n": node}, "START > n").compile(checkpointer=E.saver())
        assert E.invoke(app, {"log": []}, E.config())["log"] == [0, 2, 4]


def test_an_async_node_that_runs_effects_side_by_side() -> None:
    with plain("async") as E:
        running: list[int] = []
        most: list[int] = []

        @effect
        async def pay(amount: int) -> int:
            running.append(amount)
            most.append(len(running))
            while len(most) < 3:  # all three are under way at once, or this never ends
                await asyncio.sleep(0.001)
            running.remove(amount)
            return amount

        async def node(state: Any) -> Any:
            return {"log": list(await asyncio.gather(*(pay(k) for k in range(3))))}

        app = E.graph(Log, {"n": node}, "START > n").compile(checkpointer=E.saver())
        assert E.invoke(app, {"log": []}, E.config())["log"] == [0, 1, 2]
        assert max(most) == 3


def test_a_sync_effect_on_the_event_loop_is_refused_with_a_way_out() -> None:
    with plain("async") as E:

        @effect
        def pay() -> str:
            return "paid"

        async def wrong(state: Any) -> Any:
            return {"log": [pay()]}

        async def right(state: Any) -> Any:
            return {"log": [await asyncio.to_thread(pay)]}

        app = E.graph(Log, {"n": wrong}, "START > n").compile(checkpointer=E.saver())
        assert "asyncio.to_thread" in str(E.attempt(E.invoke, app, {"log": []}, E.config()))
        app = E.graph(Log, {"n": right}, "START > n").compile(checkpointer=E.saver())
        assert E.invoke(app, {"log": []}, E.config())["log"] == ["paid"]


@pytest.mark.parametrize("how", ["result", "as_completed", "wait"])
def test_a_task_that_waits_for_a_called_one_is_settled(how: str) -> None:
    happened: list[int] = []

    @effect
    def pay(amount: int) -> int:
        happened.append(amount)
        return amount

    @task
    def paying(amount: int) -> int:
        return pay(amount)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(amounts: list[int]) -> list[int]:
        futures = [paying(amount) for amount in amounts]
        if how == "as_completed":
            return sorted(future.result() for future in as_completed(futures))
        if how == "wait":
            wait(futures)
        return [future.result() for future in futures]

    assert flow.invoke([1, 2, 3], {"configurable": {"thread_id": "1"}}) == [1, 2, 3]
    assert sorted(happened) == [1, 2, 3]


def test_a_caller_that_comes_to_a_question_holds_what_it_has_called() -> None:
    happened: list[int] = []

    @effect
    def pay(amount: int) -> int:
        happened.append(amount)
        return amount

    @task
    def paying(amount: int) -> int:
        return pay(amount)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(amount: int) -> Any:
        future = paying(amount)
        decision = gate("pay?")
        return future.result() if decision else "left"

    config = {"configurable": {"thread_id": "1"}}
    flow.invoke(5, config)
    assert happened == []
    assert flow.invoke(Command(resume=Approve()), config) == 5
    assert happened == [5]
    config = {"configurable": {"thread_id": "2"}}
    flow.invoke(6, config)
    assert flow.invoke(Command(resume=Reject("no")), config) == "left"
    assert happened == [5]


def test_an_async_caller_that_comes_to_a_question() -> None:
    happened: list[int] = []

    @effect
    async def pay(amount: int) -> int:
        happened.append(amount)
        return amount

    @task
    async def paying(amount: int) -> int:
        return await pay(amount)

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(amount: int) -> Any:
        future = paying(amount)
        await asyncio.sleep(0.01)
        decision = gate("pay?")
        return await future if decision else "left"

    async def run() -> None:
        config = {"configurable": {"thread_id": "1"}}
        await flow.ainvoke(5, config)
        assert happened == []
        assert await flow.ainvoke(Command(resume=Approve()), config) == 5
        assert happened == [5]

    asyncio.run(run())


@pytest.mark.parametrize("checkpointer", [None, True, False])
def test_in_a_graph_inside_a_graph_once(E: Engine, checkpointer: Any) -> None:
    """Also in one that keeps nothing of its own and starts over when it is resumed."""
    world = World(E)
    pay = world.effect("pay", lambda amount: amount)
    builder = E.graph(
        Log, {"pay": world.calling((pay, 3)), "ask": E.node(lambda s: {"log": [interrupt("?")]})}, "START > pay > ask"
    )
    inner = builder.compile(checkpointer=checkpointer)
    app = E.graph(Log, {"inner": inner}, "START > inner").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert world.happened == [("pay", 3)]
    assert E.invoke(app, Command(resume="yes"), E.config())["log"] == [3, "yes"]
    assert world.happened == [("pay", 3)]


def test_a_graph_called_in_a_node_is_held_with_it(E: Engine) -> None:
    world = World(E)
    inner = E.graph(Log, {"pay": world.calling((world.effect("pay"), 3))}, "START > pay").compile()

    async def calls(state: Any) -> Any:
        return await E.inner(inner, {"log": []})

    nodes = {"calls": E.node(calls), "ask": E.node(lambda s: {"log": [str(gate("?"))]})}
    app = E.graph(Log, nodes, "START > calls", "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert world.happened == []
    E.invoke(app, Command(resume=Approve()), E.config())
    assert world.happened == [("pay", 3)]


@pytest.mark.parametrize("driver", ["async", "mixed"])
def test_after_a_cancel_the_straggler_is_fenced(driver: str) -> None:
    with plain(driver) as E:
        happened: list[int] = []
        told: list[BaseException] = []
        started, go_on, ended = threading.Event(), threading.Event(), threading.Event()

        @effect
        def pay() -> None:
            happened.append(1)

        def work() -> None:
            started.set()
            go_on.wait(10)
            try:
                pay()
            except BaseException as error:
                told.append(error)
            ended.set()

        async def anode(state: Any) -> Any:
            await asyncio.to_thread(work)

        def node(state: Any) -> Any:
            work()

        app = E.graph(Log, {"n": anode if driver == "async" else node}, "START > n").compile(checkpointer=E.saver())

        async def cancel() -> None:
            run = asyncio.create_task(app.ainvoke({"log": []}, E.config()))
            await asyncio.to_thread(started.wait)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            go_on.set()
            await asyncio.to_thread(ended.wait)

        E.wait(cancel())
        assert happened == [] and [type(error) for error in told] == [EffectFenced]


@pytest.mark.parametrize("what", ["cancel", "timeout"])
def test_a_body_that_has_begun_is_waited_for_and_recorded_as_late(what: str) -> None:
    with plain("async") as E:
        begun, may_end = asyncio.Event(), asyncio.Event()

        @effect
        async def pay() -> str:
            begun.set()
            await may_end.wait()
            return "receipt"

        async def node(state: Any) -> Any:
            return {"log": [await pay()]}

        builder = E.graph(Log, {})
        builder.add_node("n", node, timeout=TimeoutPolicy(run_timeout=0.02) if what == "timeout" else None)
        builder.add_edge(E.START, "n")
        app = builder.compile(checkpointer=E.saver())

        async def run() -> None:
            running = asyncio.create_task(app.ainvoke({"log": []}, E.config()))
            await begun.wait()
            if what == "cancel":
                running.cancel()
            await asyncio.sleep(0.05)
            assert not running.done()
            may_end.set()
            with pytest.raises((asyncio.CancelledError, Exception)):
                await running

        E.wait(run())
        (record,) = effects_of(E, app).effects
        assert (record.state, record.late, record.result) == ("done", True, "receipt")


def test_waiting_for_admission_does_not_count_towards_a_timeout() -> None:
    with plain("async") as E:

        @effect
        async def pay() -> str:
            return "paid"

        async def node(state: Any) -> Any:
            return {"log": [await pay()]}

        async def slow(state: Any) -> Any:
            await asyncio.sleep(0.15)
            return {"log": ["slow"]}

        builder = E.graph(Log, {"slow": slow}, "START > slow")
        builder.add_node("n", node, timeout=0.1)
        builder.add_edge(E.START, "n")
        app = builder.compile(checkpointer=E.saver())
        assert sorted(E.invoke(app, {"log": []}, E.config())["log"]) == ["paid", "slow"]


def test_a_failure_of_the_ledger_is_the_runs_failure_and_nothing_happens(E: Engine) -> None:
    world = World(E)
    app = E.graph(Log, {"n": world.calling((world.effect("pay"), 1))}, "START > n").compile(checkpointer=E.saver())

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise OSError("disk full")

    async def abroken(*args: Any, **kwargs: Any) -> Any:
        raise OSError("disk full")

    saver = app.checkpointer
    kind = type(saver)
    patched = type("Broken", (kind,), {"move_effects": broken, "amove_effects": abroken})
    saver.__class__ = patched
    assert isinstance(E.attempt(E.invoke, app, {"log": []}, E.config()), OSError)
    assert world.happened == []
    saver.__class__ = kind
    E.invoke(app, None, E.config())
    assert world.happened == [("pay", 1)]


def test_an_outcome_that_cannot_be_recorded_is_in_doubt_and_holds_nobody_up(E: Engine) -> None:
    world = World(E)
    app = E.graph(Log, {"n": world.calling((world.effect("pay"), 1))}, "START > n").compile(checkpointer=E.saver())
    kind = type(app.checkpointer)

    def broken(self: Any, moves: Any, hold: Any = None) -> Any:
        if moves[0].kind != "admit":
            raise OSError("disk full")
        return kind.move_effects(self, moves, hold)

    async def abroken(self: Any, moves: Any, hold: Any = None) -> Any:
        if moves[0].kind != "admit":
            raise OSError("disk full")
        return await kind.amove_effects(self, moves, hold)

    app.checkpointer.__class__ = type("Broken", (kind,), {"move_effects": broken, "amove_effects": abroken})
    assert isinstance(E.attempt(E.invoke, app, {"log": []}, E.config()), OSError)
    app.checkpointer.__class__ = kind
    assert world.happened == [("pay", 1)] and states(E, app) == {"pay": "admitted"}
    (question,) = E.invoke(app, None, E.config())["__interrupt__"]
    assert question.value["effect"] == "pay"
    assert E.invoke(app, Command(resume=Completed("seen")), E.config())["log"] == ["seen"]
    assert world.happened == [("pay", 1)]


def test_graphs_side_by_side_in_a_node_hold_each_other() -> None:
    with plain("async") as E:
        happened: list[int] = []

        @effect
        async def pay() -> None:
            happened.append(1)

        async def pays(state: Any) -> Any:
            await pay()

        async def asks(state: Any) -> Any:
            await asyncio.sleep(0.03)
            return {"log": [str(gate("?"))]}

        paying = E.graph(Log, {"pays": pays}, "START > pays").compile()
        asking = E.graph(Log, {"asks": asks}, "START > asks").compile()

        async def both(state: Any) -> Any:
            inner = asking.ainvoke({"log": []}), paying.ainvoke({"log": []})
            for result in await asyncio.gather(*inner, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result

        app = E.graph(Log, {"both": both}, "START > both").compile(checkpointer=E.saver())
        E.invoke(app, {"log": []}, E.config())
        assert happened == []
        E.invoke(app, Command(resume=Approve()), E.config())
        assert happened == [1]


def test_a_third_party_saver_says_what_it_cannot_carry(E: Engine) -> None:
    from langgraph.checkpoint.memory import InMemorySaver as Theirs

    world = World(E)
    app = E.graph(Log, {"n": world.calling((world.effect("pay"), 1))}, "START > n").compile(checkpointer=Theirs())
    error = E.attempt(E.invoke, app, {"log": []}, E.config())
    assert isinstance(error, EffectError) and "InMemorySaver has none" in str(error)
    assert world.happened == []


def test_methods_signatures_and_hints_stay() -> None:
    import inspect
    import typing

    class Bank:
        def __init__(self) -> None:
            self.client = threading.Lock()  # could not be stored, and need not be

        @effect
        def pay(self, amount: int, to: str = "me") -> str:
            """Pay."""
            return f"{amount} to {to} under {len(current_effect().idempotency_key)}"

    bank = Bank()
    assert [*inspect.signature(Bank.pay).parameters] == ["self", "amount", "to"]
    assert Bank.pay.__doc__ == "Pay." and typing.get_type_hints(Bank.pay)["amount"] is int
    with plain() as engine:
        app = engine.graph(Log, {"n": lambda s: {"log": [bank.pay(3)]}}, "START > n").compile(
            checkpointer=InMemorySaver()
        )
        assert engine.invoke(app, {"log": []}, engine.config())["log"] == ["3 to me under 32"]
        (record,) = effects_of(engine, app).effects
        assert record.arguments == {"amount": 3, "to": "me"}


def test_deleting_a_thread_keeps_what_stands_for_all_time(E: Engine) -> None:
    world = World(E)
    pay = world.effect("pay", lambda tx: "receipt", key=lambda tx: tx)
    tell = world.effect("tell")
    app = E.graph(Log, {"n": world.calling((pay, "tx"), (tell, "you"))}, "START > n").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    saver = app.checkpointer
    E.wait(saver.adelete_thread("1")) if E.is_async else saver.delete_thread("1")
    assert states(E, app) == {"pay": "done"}
    assert effects_of(E, app).effects[0].arguments is None
    E.invoke(app, {"log": []}, E.config())
    assert [name for name, *_ in world.happened] == ["pay", "tell", "tell"]


class Declined(Exception):
    """An error of a class of this program's own."""

    def __init__(self, code: int) -> None:
        super().__init__(f"declined with {code}", code)
        self.code = code


def test_decisions_and_outcomes_outlive_the_process(tmp_path: Any) -> None:
    from surestep.checkpoint.sqlite import SqliteSaver

    with plain() as E:
        tries: list[int] = []

        @effect
        def pay(amount: int) -> int:
            tries.append(amount)
            raise Declined(51)

        def node(state: Any) -> Any:
            decision = gate("pay?")
            return {"log": [repr(decision), pay(5)]}

        builder = E.graph(Log, {"n": node}, "START > n")

        def in_a_process(given: Any) -> Any:
            with SqliteSaver.from_conn_string(str(tmp_path / "db")) as saver:
                app = builder.compile(checkpointer=saver)
                return E.attempt(E.invoke, app, given, E.config()), effects_of(E, app)

        in_a_process({"log": []})
        for given in (Command(resume=Approve({"limit": 9})), None, None):
            error, found = in_a_process(given)
            assert type(error) is Declined and error.code == 51
        assert tries == [5] and found.effects[0].result.args == ("declined with 51", 51)
        assert [one.kind for one in found.decisions] == ["ask", "approve"]


def test_an_attempt_that_timed_out_is_fenced() -> None:
    """Its thread goes on, while the run is under way still."""
    with plain("async") as E:
        happened: list[int] = []
        told: list[BaseException] = []
        go_on, ended = threading.Event(), threading.Event()

        @effect
        def pay() -> None:
            happened.append(1)

        def work() -> None:
            go_on.wait(10)
            try:
                pay()
            except BaseException as error:
                told.append(error)
            ended.set()

        async def slow(state: Any) -> Any:
            await asyncio.to_thread(work)

        async def sibling(state: Any) -> Any:
            while not ended.is_set():
                await asyncio.sleep(0.005)

        def handled(state: Any) -> Any:
            go_on.set()
            return {"log": ["timed out"]}

        builder = E.graph(Log, {"sibling": sibling}, "START > sibling")
        builder.add_node("slow", slow, timeout=0.02, error_handler=handled)
        builder.add_edge(E.START, "slow")
        app = builder.compile(checkpointer=E.saver())
        assert E.invoke(app, {"log": []}, E.config())["log"] == ["timed out"]
        assert happened == [] and [type(error) for error in told] == [EffectFenced]


def test_the_checkpoint_is_stored_before_an_effect_starts(E: Engine) -> None:
    """Also in `exit` durability, which stores the rest at the end."""
    world = World(E)
    stored: list[int] = []
    saver = E.saver()

    def look(amount: int) -> None:
        rows = saver.storage["1"][""] if hasattr(saver, "storage") else _rows(saver)
        stored.append(len(rows))

    nodes = {"first": E.node(say("first")), "n": world.calling((world.effect("pay", look), 1))}
    app = E.graph(Log, nodes, "START > first > n").compile(checkpointer=saver)
    E.invoke(app, {"log": []}, E.config(), durability="exit")
    assert stored == [1]


def _rows(saver: Any) -> Any:
    import sqlite3

    file = saver.conn.execute("PRAGMA database_list").fetchone()[2]
    with sqlite3.connect(file) as conn:
        found = conn.execute("SELECT * FROM surestep_checkpoints").fetchall()
    conn.close()
    return found


def test_an_eager_effect_waits_for_an_open_question(E: Engine) -> None:
    world = World(E)
    asked = threading.Event()

    def ask(state: Any) -> Any:
        asked.set()
        return {"log": [str(gate("?"))]}

    eager = world.effect("eager", eager=True)

    async def pays(state: Any) -> Any:
        while not asked.is_set():
            await E.sleep(0.002)
        await E.sleep(0.03)
        return {}

    builder = E.graph(Log, {"ask": E.node(ask)}, "START > ask")
    calls = world.calling((eager, 1))

    if E.driver == "async":

        async def late(state: Any) -> Any:
            await pays(state)
            return await calls(state)

    else:

        def late(state: Any) -> Any:
            asked.wait(10)
            threading.Event().wait(0.03)
            return calls(state)

    builder.add_node("late", late)
    builder.add_edge(E.START, "late")
    app = builder.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert world.happened == []
    E.invoke(app, Command(resume=Reject("no")), E.config())
    assert world.happened == []


def test_a_held_task_is_not_started_again_while_a_question_is_open(E: Engine) -> None:
    world, runs = World(E), []
    inner = world.calling((world.effect("pay"), 1))

    if E.driver == "async":

        async def pays(state: Any) -> Any:
            runs.append(1)
            return await inner(state)

    else:

        def pays(state: Any) -> Any:
            runs.append(1)
            return inner(state)

    nodes = {
        "pays": pays,
        "a": E.node(lambda s: {"log": [str(gate("a"))]}),
        "b": E.node(lambda s: {"log": [str(gate("b"))]}),
    }
    app = E.graph(Log, nodes, "START > pays", "START > a", "START > b").compile(checkpointer=E.saver())
    first, second = E.invoke(app, {"log": []}, E.config())["__interrupt__"]
    E.invoke(app, Command(resume={first.id: Approve()}), E.config())
    assert runs == [1]
    E.invoke(app, Command(resume={second.id: Approve()}), E.config())
    assert runs == [1, 1] and world.happened == [("pay", 1)]
