"""The guarantees of effects, one scenario each, under every driver and saver."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from effects.world import Log, World, effects_of, say, states
from harness.engine import Boom, Engine

from surestep.effects import (
    Abort,
    Approve,
    Completed,
    EffectCancelled,
    EffectError,
    EffectUnknown,
    Reject,
    Retry,
    effect,
    gate,
)
from surestep.errors import ReplayMismatch
from surestep.types import Command, RetryPolicy, Send, interrupt


def asks(question: Any = "ok?", **options: Any) -> Any:
    def ask(state: Any) -> Any:
        return {"log": [type(gate(question, **options)).__name__]}

    return ask


# hold until decided


def test_beside_a_gate_an_effect_waits_for_the_decision(E: Engine) -> None:
    world = World(E)
    pay = world.effect("pay", lambda amount: amount + 1)
    nodes = {"pay": world.calling((pay, 4)), "ask": E.node(asks())}
    app = E.graph(Log, nodes, "START > pay", "START > ask").compile(checkpointer=E.saver())
    paused = E.invoke(app, {"log": []}, E.config())
    assert [one.value for one in paused["__interrupt__"]] == ["ok?"]
    assert world.happened == [] and states(E, app) == {"pay": "held"}
    held = [task.effects[0].name for task in E.state(app, E.config()).tasks if task.effects]
    assert held == ["pay"]
    done = E.invoke(app, Command(resume=Approve()), E.config())
    assert done["log"] == [5, "Approve"] or done["log"] == ["Approve", 5]
    assert world.happened == [("pay", 4)] and states(E, app) == {"pay": "done"}


def test_a_plain_interrupt_holds_too(E: Engine) -> None:
    world = World(E)
    nodes = {"pay": world.calling((world.effect("pay"), 4)), "ask": E.node(lambda s: {"log": [interrupt("?")]})}
    app = E.graph(Log, nodes, "START > pay", "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert world.happened == []
    E.invoke(app, Command(resume="fine"), E.config())
    assert world.happened == [("pay", 4)]


def test_an_effect_waits_for_siblings_that_have_not_come_to_their_question_yet(E: Engine) -> None:
    world = World(E)
    pay = world.effect("pay")

    async def slow(state: Any) -> Any:
        await E.sleep(0.03)
        return {"log": [str(gate("late?"))]}

    nodes = {"pay": world.calling((pay, 1)), "slow": E.node(slow)}
    app = E.graph(Log, nodes, "START > pay", "START > slow").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert world.happened == []
    E.invoke(app, Command(resume=Reject("no")), E.config())
    assert world.happened == [] and states(E, app) == {"pay": "cancelled"}


def test_two_effects_do_not_wait_for_each_other(E: Engine) -> None:
    world = World(E)
    a, b = world.effect("a"), world.effect("b")
    nodes = {"a": world.calling((a, 1)), "b": world.calling((b, 2))}
    app = E.graph(Log, nodes, "START > a", "START > b").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert sorted(world.happened) == [("a", 1), ("b", 2)]


def test_no_task_of_a_wave_goes_on_before_the_wave_has_landed(E: Engine) -> None:
    """Of two effects that started together the second takes longer; the first one's task asks right after its own."""
    world, asked = World(E), threading.Event()
    seen: list[Any] = []

    def ask() -> str:
        seen.append(list(world.happened))
        asked.set()
        return str(gate("and now?"))

    quick, more = world.effect("quick"), world.effect("more")
    if E.driver == "async":

        @effect(name="slow")
        async def slow() -> None:
            for _ in range(20):
                await E.sleep(0.0 if asked.is_set() else 0.005)
            world.happened.append(("slow",))

    else:
        slow = world.effect("slow", lambda: asked.wait(0.1))
    nodes = {"a": world.calling((quick,), then=ask), "b": world.calling((slow,), (more,))}
    app = E.graph(Log, nodes, "START > a", "START > b").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert sorted(seen[0]) == [("quick",), ("slow",)]
    assert states(E, app) == {"quick": "done", "slow": "done", "more": "held"}
    E.invoke(app, Command(resume=Approve()), E.config())
    assert sorted(world.happened) == [("more",), ("quick",), ("slow",)]


def test_a_failed_sibling_holds_until_it_is_resumed(E: Engine) -> None:
    world, tries = World(E), []

    def fails(state: Any) -> Any:
        tries.append(1)
        if len(tries) == 1:
            raise Boom("first time")
        return {"log": ["ok"]}

    nodes = {"pay": world.calling((world.effect("pay"), 1)), "fails": E.node(fails)}
    app = E.graph(Log, nodes, "START > pay", "START > fails").compile(checkpointer=E.saver())
    assert isinstance(E.attempt(E.invoke, app, {"log": []}, E.config()), Boom)
    assert world.happened == []
    E.invoke(app, None, E.config())
    assert world.happened == [("pay", 1)]


def test_the_superstep_around_a_subgraph_holds_it(E: Engine) -> None:
    world = World(E)
    inner = E.graph(Log, {"pay": world.calling((world.effect("pay"), 1))}, "START > pay").compile()
    nodes = {"inner": inner, "ask": E.node(asks())}
    app = E.graph(Log, nodes, "START > inner", "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert world.happened == [] and states(E, app) == {"pay": "held"}
    E.invoke(app, Command(resume=Approve()), E.config())
    assert world.happened == [("pay", 1)]


def test_a_question_in_a_subgraph_holds_what_is_beside_it(E: Engine) -> None:
    world = World(E)
    inner = E.graph(Log, {"ask": E.node(asks())}, "START > ask").compile()
    nodes = {"inner": inner, "pay": world.calling((world.effect("pay"), 1))}
    app = E.graph(Log, nodes, "START > inner", "START > pay").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert world.happened == []
    E.invoke(app, Command(resume=Reject("no")), E.config())
    assert world.happened == [] and states(E, app) == {"pay": "cancelled"}


def test_packets_hold_each_other(E: Engine) -> None:
    world = World(E)
    pay = world.effect("pay")
    calling = {k: world.calling((pay, k)) for k in (1, 2, 3)}

    if E.driver == "async":

        async def work(state: Any) -> Any:
            return {"log": [str(gate("?"))]} if state["k"] == 0 else await calling[state["k"]](state)

    else:

        def work(state: Any) -> Any:
            return {"log": [str(gate("?"))]} if state["k"] == 0 else calling[state["k"]](state)

    builder = E.graph(Log, {"work": work})
    builder.add_conditional_edges(E.START, lambda s: [Send("work", {"k": k}) for k in range(4)])
    app = builder.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert world.happened == []
    E.invoke(app, Command(resume=Approve()), E.config())
    assert sorted(world.happened) == [("pay", 1), ("pay", 2), ("pay", 3)]


def test_with_one_task_at_a_time_nobody_waits_for_ever(E: Engine) -> None:
    world = World(E)
    nodes = {name: world.calling((world.effect(name), 1)) for name in "abc"}
    app = E.graph(Log, nodes, *(f"START > {n}" for n in "abc")).compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, {**E.config(), "max_concurrency": 1})
    assert sorted(world.happened) == [("a", 1), ("b", 1), ("c", 1)]


def test_an_eager_effect_does_not_wait_for_siblings_but_for_questions(E: Engine) -> None:
    world = World(E)
    eager = world.effect("eager", eager=True)

    async def waits_for_it(state: Any) -> Any:
        while not world.happened:
            await E.sleep(0.005)
        return {"log": ["saw it"]}

    nodes = {"eager": world.calling((eager, 1)), "waits": E.node(waits_for_it)}
    app = E.graph(Log, nodes, "START > eager", "START > waits").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert world.happened == [("eager", 1)]


def test_behind_a_gate_node_nothing_starts(E: Engine) -> None:
    started: list[str] = []

    def plain(state: Any) -> Any:
        started.append("plain")
        return {"log": ["plain"]}

    builder = E.graph(Log, {"plain": E.node(plain)}, "START > plain")
    builder.add_node("ask", E.node(asks()), gate=True)
    builder.add_edge(E.START, "ask")
    app = builder.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert started == []
    done = E.invoke(app, Command(resume=Approve()), E.config())
    assert started == ["plain"] and sorted(done["log"]) == ["Approve", "plain"]


def test_an_effect_node_starts_when_its_siblings_are_settled_and_runs_once(E: Engine) -> None:
    runs: list[str] = []

    def pay(state: Any) -> Any:
        runs.append("pay")
        return {"log": ["paid"]}

    builder = E.graph(Log, {"ask": E.node(asks())}, "START > ask")
    builder.add_node("pay", E.node(pay), effect=True)
    builder.add_edge(E.START, "pay")
    app = builder.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert runs == []
    assert sorted(E.invoke(app, Command(resume=Approve()), E.config())["log"]) == ["Approve", "paid"]
    assert runs == ["pay"]


# reject cancels


def test_a_rejection_cancels_for_good_and_harms_no_sibling(E: Engine) -> None:
    world = World(E)
    nodes = {"pay": world.calling((world.effect("pay"), 1)), "ask": E.node(asks()), "other": E.node(say("other"))}
    app = E.graph(Log, nodes, "START > pay", "START > ask", "START > other").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    done = E.invoke(app, Command(resume=Reject("too much")), E.config(actor="ann"))
    assert sorted(done["log"]) == ["Reject", "other"] and world.happened == []
    (record,) = effects_of(E, app).effects
    assert (record.state, record.reason, record.actor) == ("cancelled", "too much", "ann")
    assert [one.kind for one in effects_of(E, app).decisions] == ["ask", "reject"]


@pytest.mark.parametrize("answer", [{"type": "reject", "reason": "no"}, {"decisions": [{"type": "reject"}]}])
def test_the_answers_of_approval_screens_reject_too(E: Engine, answer: Any) -> None:
    world = World(E)
    nodes = {"pay": world.calling((world.effect("pay"), 1)), "ask": E.node(lambda s: {"log": [str(interrupt("?"))]})}
    app = E.graph(Log, nodes, "START > pay", "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    E.invoke(app, Command(resume=answer), E.config())
    assert world.happened == [] and states(E, app) == {"pay": "cancelled"}


def test_a_node_may_catch_the_cancel(E: Engine) -> None:
    world = World(E)
    pay = world.effect("pay")
    inner = world.calling((pay, 1))

    if E.driver == "async":

        async def careful(state: Any) -> Any:
            try:
                return await inner(state)
            except EffectCancelled as cancelled:
                return {"log": [f"not paid: {cancelled.reason}"]}

    else:

        def careful(state: Any) -> Any:
            try:
                return inner(state)
            except EffectCancelled as cancelled:
                return {"log": [f"not paid: {cancelled.reason}"]}

    nodes = {"pay": careful, "ask": E.node(asks())}
    app = E.graph(Log, nodes, "START > pay", "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert "not paid: no" in E.invoke(app, Command(resume=Reject("no")), E.config())["log"]


def test_of_two_questions_the_second_still_holds(E: Engine) -> None:
    world = World(E)
    nodes = {
        "pay": world.calling((world.effect("pay"), 1)),
        "a": E.node(asks("a?")),
        "b": E.node(asks("b?")),
    }
    app = E.graph(Log, nodes, "START > pay", "START > a", "START > b").compile(checkpointer=E.saver())
    first, second = E.invoke(app, {"log": []}, E.config())["__interrupt__"]
    E.invoke(app, Command(resume={first.id: Approve()}), E.config())
    assert world.happened == [] and states(E, app) == {"pay": "held"}
    E.invoke(app, Command(resume={second.id: Approve()}), E.config())
    assert world.happened == [("pay", 1)]


def test_a_node_that_swallows_the_pause_is_paused_all_the_same(E: Engine) -> None:
    world = World(E)
    inner = world.calling((world.effect("pay"), 1))

    if E.driver == "async":

        async def swallows(state: Any) -> Any:
            try:
                return await inner(state)
            except Exception:
                return {"log": ["went on"]}

    else:

        def swallows(state: Any) -> Any:
            try:
                return inner(state)
            except Exception:
                return {"log": ["went on"]}

    nodes = {"pay": swallows, "ask": E.node(asks())}
    app = E.graph(Log, nodes, "START > pay", "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    done = E.invoke(app, Command(resume=Approve()), E.config())
    assert "went on" not in done["log"] and world.happened == [("pay", 1)]


# once


def test_an_effect_before_a_pause_happens_once(E: Engine) -> None:
    world = World(E)
    pay = world.effect("pay", lambda amount: amount * 2)
    app = E.graph(Log, {"n": world.calling((pay, 2), then=lambda: interrupt("?"))}, "START > n").compile(
        checkpointer=E.saver()
    )
    E.invoke(app, {"log": []}, E.config())
    assert E.invoke(app, Command(resume="yes"), E.config())["log"] == [4, "yes"]
    assert world.happened == [("pay", 2)]


def test_an_effect_before_a_retried_failure_happens_once(E: Engine) -> None:
    world, tries = World(E), []

    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("flaky")
        return "ok"

    builder = E.graph(Log, {})
    policy = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=3)
    builder.add_node("n", world.calling((world.effect("pay"), 1), then=flaky), retry_policy=policy)
    builder.add_edge(E.START, "n")
    app = builder.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert world.happened == [("pay", 1)] and len(tries) == 3


def test_a_final_failure_is_raised_again_and_not_tried_again(E: Engine) -> None:
    world, tries = World(E), []

    def refused(amount: int) -> None:
        tries.append(amount)
        raise ValueError("account closed")

    app = E.graph(Log, {"n": world.calling((world.effect("pay", refused), 1))}, "START > n").compile(
        checkpointer=E.saver()
    )
    for _ in range(2):
        error = E.attempt(E.invoke, app, {"log": []} if not tries else None, E.config())
        assert isinstance(error, ValueError) and error.args == ("account closed",)
    assert tries == [1] and states(E, app) == {"pay": "failed"}


def test_the_body_is_retried_under_one_idempotency_key(E: Engine) -> None:
    from surestep.effects import current_effect

    world, keys = World(E), []

    def flaky(amount: int) -> str:
        keys.append(current_effect().idempotency_key)
        if len(keys) < 3:
            raise ConnectionError
        return "ok"

    policy = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=3)
    pay = world.effect("pay", flaky, retry_policy=policy)
    app = E.graph(Log, {"n": world.calling((pay, 1))}, "START > n").compile(checkpointer=E.saver())
    assert E.invoke(app, {"log": []}, E.config())["log"] == ["ok"]
    assert len(keys) == 3 and len(set(keys)) == 1


def test_a_business_key_is_one_intent_over_all_threads(E: Engine) -> None:
    world = World(E)
    pay = world.effect("pay", lambda tx, amount: f"receipt {tx}", key=lambda tx, amount: tx)
    saver = E.saver()
    app = E.graph(Log, {"n": world.calling((pay, "tx1", 5))}, "START > n").compile(checkpointer=saver)
    for thread in ("1", "2"):
        assert E.invoke(app, {"log": []}, E.config(thread))["log"] == ["receipt tx1"]
    assert world.happened == [("pay", "tx1", 5)]
    other = E.graph(Log, {"n": world.calling((pay, "tx1", 6))}, "START > n").compile(checkpointer=saver)
    assert isinstance(E.attempt(E.invoke, other, {"log": []}, E.config("3")), ReplayMismatch)
    assert world.happened == [("pay", "tx1", 5)]


def test_the_same_key_twice_in_one_step_happens_once(E: Engine) -> None:
    world = World(E)
    pay = world.effect("pay", lambda tx: "receipt", key=lambda tx: tx)
    nodes = {"a": world.calling((pay, "tx")), "b": world.calling((pay, "tx"))}
    app = E.graph(Log, nodes, "START > a", "START > b").compile(checkpointer=E.saver())
    assert E.invoke(app, {"log": []}, E.config())["log"] == ["receipt", "receipt"]
    assert world.happened == [("pay", "tx")]


def test_code_that_changed_gets_an_error_and_no_other_result(E: Engine) -> None:
    world, saver = World(E), E.saver()
    pay, tell = world.effect("pay"), world.effect("tell")

    def app(*calls: Any) -> Any:
        node = world.calling(*calls, then=lambda: interrupt("?"))
        return E.graph(Log, {"n": node}, "START > n").compile(checkpointer=saver)

    E.invoke(app((pay, 1)), {"log": []}, E.config())
    for changed in (app((pay, 2)), app((tell, 1))):
        assert isinstance(E.attempt(E.invoke, changed, None, E.config()), ReplayMismatch)
    assert world.happened == [("pay", 1)]
    E.invoke(app((pay, 1)), Command(resume="yes"), E.config())
    assert world.happened == [("pay", 1)]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_once_in_every_durability(E: Engine, durability: str) -> None:
    world = World(E)
    node = world.calling((world.effect("pay"), 1), then=lambda: interrupt("?"))
    app = E.graph(Log, {"first": E.node(say("first")), "n": node}, "START > first > n").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config(), durability=durability)
    E.invoke(app, Command(resume="yes"), E.config(), durability=durability)
    assert world.happened == [("pay", 1)]


# no silent doubt


def in_doubt(E: Engine, world: World, **options: Any) -> Any:
    """A graph whose effect can't tell, the first time, whether it happened."""
    from surestep.testing import AnswerLost

    tries: list[int] = []

    def lost(amount: int) -> str:
        tries.append(amount)
        if len(tries) == 1:
            world.happened.append(("pay", amount))
            raise AnswerLost("no answer")
        return "receipt"

    node = world.calling((world.effect("pay", lost, **options), 7))
    return E.graph(Log, {"n": node}, "START > n").compile(checkpointer=E.saver())


def test_a_doubt_is_asked_about_and_settled_by_what_somebody_found(E: Engine) -> None:
    world = World(E)
    app = in_doubt(E, world)
    (question,) = E.invoke(app, {"log": []}, E.config())["__interrupt__"]
    assert question.value["effect"] == "pay" and states(E, app) == {"pay": "unknown"}
    (record,) = effects_of(E, app).effects
    assert question.value["idempotency_key"] == record.id
    done = E.invoke(app, Command(resume=Completed("found it")), E.config())
    assert done["log"] == ["found it"] and world.happened == [("pay", 7)] and states(E, app) == {"pay": "done"}


def test_a_doubt_may_be_tried_again_or_given_up(E: Engine) -> None:
    world = World(E)
    app = in_doubt(E, world)
    E.invoke(app, {"log": []}, E.config())
    assert E.invoke(app, Command(resume=Retry()), E.config())["log"] == ["receipt"]
    assert len(world.happened) == 2
    app = in_doubt(E, World(E))
    E.invoke(app, {"log": []}, E.config())
    error = E.attempt(E.invoke, app, Command(resume=Abort("leave it")), E.config())
    assert "leave it" in str(error) and states(E, app) == {"pay": "failed"}


def test_an_answer_that_settles_no_doubt_is_refused_and_the_question_stays(E: Engine) -> None:
    world = World(E)
    app = in_doubt(E, world)
    E.invoke(app, {"log": []}, E.config())
    assert "Completed" in str(E.attempt(E.invoke, app, Command(resume="yes"), E.config()))
    assert E.invoke(app, Command(resume=Completed("found")), E.config())["log"] == ["found"]


def test_a_doubt_that_is_to_fail_fails_every_time(E: Engine) -> None:
    world = World(E)
    app = in_doubt(E, world, on_unknown="fail")
    for given in ({"log": []}, None):
        assert isinstance(E.attempt(E.invoke, app, given, E.config()), EffectUnknown)
    assert world.happened == [("pay", 7)]


def test_a_doubt_that_is_to_be_tried_again_is_when_somebody_resumes(E: Engine) -> None:
    world = World(E)
    app = in_doubt(E, world, on_unknown="retry")
    assert isinstance(E.attempt(E.invoke, app, {"log": []}, E.config()), EffectUnknown)
    assert E.invoke(app, None, E.config())["log"] == ["receipt"]


@pytest.mark.parametrize("happened", [True, False])
def test_a_read_back_function_settles_a_doubt(E: Engine, happened: bool) -> None:
    world = World(E)
    app = in_doubt(E, world, on_unknown=lambda amount: Completed("it did") if happened else None)
    assert E.invoke(app, {"log": []}, E.config())["log"] == ["it did" if happened else "receipt"]


def test_a_result_that_cannot_be_stored_leaves_a_doubt_and_says_so(E: Engine) -> None:
    import threading

    world = World(E)
    pay = world.effect("pay", lambda amount: threading.Lock())
    app = E.graph(Log, {"n": world.calling((pay, 1))}, "START > n").compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, {"log": []}, E.config())
    assert isinstance(error, EffectUnknown) and "did happen" in str(error)
    assert states(E, app) == {"pay": "unknown"} and world.happened == [("pay", 1)]


def test_arguments_that_cannot_be_stored_are_refused_before_anything_happens(E: Engine) -> None:
    import threading

    world = World(E)
    app = E.graph(Log, {"n": world.calling((world.effect("pay"), threading.Lock()))}, "START > n").compile(
        checkpointer=E.saver()
    )
    assert E.attempt(E.invoke, app, {"log": []}, E.config()) is not None
    assert world.happened == []


# an approval is spent once, on what was shown


def test_a_gate_asks_again_when_what_it_binds_has_changed(E: Engine) -> None:
    def ask(state: Any) -> Any:
        return {"log": [type(gate({"amount": amount[0]}, binds=amount[0])).__name__]}

    amount = [40]
    app = E.graph(Log, {"ask": E.node(ask)}, "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    amount[0] = 4000
    (again,) = E.invoke(app, Command(resume=Approve()), E.config())["__interrupt__"]
    assert again.value == {"amount": 4000}
    assert E.invoke(app, Command(resume=Approve()), E.config())["log"] == ["Approve"]


def test_a_gate_whose_time_is_up_counts_as_rejected(E: Engine) -> None:
    world = World(E)
    nodes = {"pay": world.calling((world.effect("pay"), 1)), "ask": E.node(asks(expires=-1.0))}
    app = E.graph(Log, nodes, "START > pay", "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    error = E.attempt(E.invoke, app, Command(resume=Approve()), E.config())
    assert isinstance(error, E.AlreadyAnswered)
    assert E.invoke(app, None, E.config())["log"] == ["Reject"]
    assert world.happened == [] and "expire" in [one.kind for one in effects_of(E, app).decisions]


def test_a_gate_takes_no_answer_that_is_no_decision(E: Engine) -> None:
    app = E.graph(Log, {"ask": E.node(asks())}, "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    assert "Approve" in str(E.attempt(E.invoke, app, Command(resume="yes"), E.config()))
    assert E.invoke(app, Command(resume={"type": "approve"}), E.config())["log"] == ["Approve"]


# where effects can't be guarded


def test_outside_of_a_run_an_effect_says_what_to_do(E: Engine) -> None:
    world = World(E)
    pay = world.effect("pay")
    with pytest.raises(EffectError, match=r"pay\.direct"):
        E.wait(pay(1)) if E.driver == "async" else pay(1)
    assert world.happened == []
    E.wait(pay.direct(1)) if E.driver == "async" else pay.direct(1)
    assert world.happened == [("pay", 1)]


def test_without_a_saver_an_effect_is_refused(E: Engine) -> None:
    world = World(E)
    app = E.graph(Log, {"n": world.calling((world.effect("pay"), 1))}, "START > n").compile()
    error = E.attempt(E.invoke, app, {"log": []})
    assert isinstance(error, EffectError) and "no ledger" in str(error)
    assert world.happened == []


def test_an_effect_in_an_effect_is_refused(E: Engine) -> None:
    world = World(E)
    inner = world.effect("inner")
    if E.driver == "async":

        async def abody() -> Any:
            return await inner()

        from surestep.effects import effect

        outer = effect(name="outer")(abody)
    else:
        outer = world.effect("outer", lambda: inner())
    app = E.graph(Log, {"n": world.calling((outer,))}, "START > n").compile(checkpointer=E.saver())
    assert isinstance(E.attempt(E.invoke, app, {"log": []}, E.config()), EffectError)
    assert world.happened == []
