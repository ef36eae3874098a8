"""Questions, and answers that come late, twice, to nobody, or together with something else."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from cases.shared import Bodies, Log, ids, say
from harness.engine import Engine

WRONG = "ab" * 16


def waiting(E: Engine, app: Any) -> list[Any]:
    return [i.value for i in E.state(app, E.config()).interrupts]


@pytest.mark.parametrize("extra", ["alone", "beside a right one"])
def test_an_id_that_nobody_waits_for_is_refused(E: Engine, extra: str) -> None:
    """langgraph#8836: it was swallowed. Nothing runs, nothing is stored, the question stays open."""
    bodies = Bodies(E)
    app = E.graph(Log, {"a": bodies.ask("a")}, "START > a").compile(checkpointer=E.saver())
    known = ids(E.invoke(app, {"log": []}, E.config()))["a?"]
    answers = {WRONG: "x"} if extra == "alone" else {known: "yes", WRONG: "x"}
    error = E.attempt(E.invoke, app, E.Command(resume=answers), E.config())
    assert isinstance(error, E.UnknownInterruptError) and error.reason == "not_pending"
    assert WRONG in error.interrupt_ids and known in error.pending_ids
    assert bodies.runs["a"] == 1 and waiting(E, app) == ["a?"]
    assert E.invoke(app, E.Command(resume={known: "yes"}), E.config())["log"] == ["a=yes"]


def test_a_late_answer_changes_nothing(E: Engine) -> None:
    bodies = Bodies(E)
    app = E.graph(Log, {"a": bodies.ask("a"), "b": say("b")}, "START > a > b").compile(checkpointer=E.saver())
    known = ids(E.invoke(app, {"log": []}, E.config()))["a?"]
    E.invoke(app, E.Command(resume="no"), E.config())
    rows = len(E.rows(app.checkpointer, E.config()))
    for answer in ("yes", {known: "yes"}):
        assert isinstance(E.attempt(E.invoke, app, E.Command(resume=answer), E.config()), E.UnknownInterruptError)
    assert bodies.runs["a"] == 2 and E.state(app, E.config()).values == {"log": ["a=no", "b"]}
    assert len(E.rows(app.checkpointer, E.config())) == rows


def test_an_answer_to_a_thread_that_never_ran(E: Engine) -> None:
    app = E.graph(Log, {"a": Bodies(E).ask("a")}, "START > a").compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, E.Command(resume="x"), E.config("nobody"))
    assert isinstance(error, (E.UnknownInterruptError, E.EmptyInputError)), error
    assert E.rows(app.checkpointer, E.config("nobody")) == []


@pytest.mark.parametrize("inside", [False, True])
def test_a_node_at_its_later_question_is_still_named(E: Engine, inside: bool) -> None:
    """langgraph#6956: `next` was empty at the second question."""
    graph = E.graph(Log, {"a": Bodies(E).ask("a", "1", "2", "3")}, "START > a")
    if inside:
        graph = E.graph(Log, {"sub": graph.compile()}, "START > sub")
    app = graph.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    for number in ("1", "2", "3"):
        state = E.state(app, E.config())
        assert state.next == (("sub",) if inside else ("a",))
        assert [i.value for i in state.interrupts] == [number]
        end = E.invoke(app, E.Command(resume=number), E.config())
    assert end["log"] == ["a=123"] and E.state(app, E.config()).next == ()


def test_updates_that_come_with_answers_are_kept_once(E: Engine) -> None:
    """langgraph#5175"""
    app = E.graph(Log, {"a": Bodies(E).ask("a", "1", "2", "3")}, "START > a").compile(checkpointer=E.saver())
    E.invoke(app, {"log": ["in"]}, E.config())
    for number in ("1", "2", "3"):
        end = E.invoke(app, E.Command(resume=number, update={"log": ["u" + number]}), E.config())
    assert end["log"] == ["in", "u1", "u2", "u3", "a=123"]


@pytest.mark.parametrize("by", ["value", "id"])
def test_an_answer_with_a_jump_goes_to_the_node_that_waits(E: Engine, by: str) -> None:
    """langgraph#6534: the node jumped to could get it."""
    for _ in range(10):
        nodes = {"ask": Bodies(E).ask("ask"), "other": Bodies(E).ask("other")}
        app = E.graph(Log, nodes, "START > ask").compile(checkpointer=E.saver())
        first = ids(E.invoke(app, {"log": []}, E.config()))
        answer = "A1" if by == "value" else {first["ask?"]: "A1"}
        second = ids(E.invoke(app, E.Command(resume=answer, goto="other"), E.config()))
        assert list(second) == ["other?"]
        end = E.invoke(app, E.Command(resume="A2"), E.config())
        assert sorted(end["log"]) == ["ask=A1", "other=A2"]


@pytest.mark.parametrize("value", [False, 0, 0.0, "", [], {}, (), b""])
def test_every_falsy_answer_reaches_its_node(E: Engine, value: Any) -> None:
    app = E.graph(Log, {"a": lambda s: {"log": ["got", E.interrupt("?")]}}, "START > a").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    end = E.invoke(app, E.Command(resume=value), E.config())
    assert "__interrupt__" not in end and end["log"][0] == "got" and end["log"][1] == value


def test_none_as_an_answer_is_refused_alone_and_taken_by_id(E: Engine) -> None:
    app = E.graph(Log, {"a": lambda s: {"log": [E.interrupt("?")]}}, "START > a").compile(checkpointer=E.saver())
    known = ids(E.invoke(app, {"log": []}, E.config()))["?"]
    alone = E.attempt(E.invoke, app, E.Command(resume=None), E.config())
    assert isinstance(alone, E.EmptyInputError) or alone == {"log": [None]}
    if isinstance(alone, Exception):
        assert waiting(E, app) == ["?"]
        assert E.invoke(app, E.Command(resume={known: None}), E.config()) == {"log": [None]}


def test_resume_at_the_head_by_its_id_is_a_resume(E: Engine) -> None:
    """langgraph#7361: the finished sibling must not run again, whoever names the checkpoint."""
    bodies = Bodies(E)
    nodes = {"done": bodies.say("done"), "a": bodies.ask("a", "1", "2")}
    app = E.graph(Log, nodes, "START > done", "START > a").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    for number in ("1", "2"):
        end = E.invoke(app, E.Command(resume=number), E.state(app, E.config()).config)
    assert sorted(end["log"]) == ["a=12", "done"] and bodies.runs["done"] == 1


@pytest.mark.parametrize("inside", [False, True])
def test_one_saved_question_answered_in_several_ways(E: Engine, inside: bool) -> None:
    """langgraph#6663: later answers were silently replaced by the first."""
    graph = E.graph(Log, {"x": say("x"), "a": Bodies(E).ask("a")}, "START > x > a")
    if inside:
        graph = E.graph(Log, {"sub": graph.compile()}, "START > sub")
    app = graph.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    old = E.state(app, E.config()).config
    ends = [E.attempt(E.invoke, app, E.Command(resume=word), old) for word in ("yes", "no", "yes")]
    assert ends[0] == {"log": ["x", "a=yes"]}
    assert [end["log"] for end in ends[1:]] == [["x", "a=no"], ["x", "a=yes"]]


@pytest.mark.parametrize("how", ["by hand", "as a node"])
def test_each_question_of_an_inner_graph_gets_its_own_answer(E: Engine, how: str) -> None:
    """langgraph#2870"""
    bodies = Bodies(E)
    inner = E.graph(Log, {n: bodies.ask(n) for n in "abc"}, "START > a > b > c").compile()

    async def call(state: Any) -> Any:
        return {"log": (await E.inner(inner, {"log": []}))["log"]}

    app = E.graph(Log, {"n": call if how == "by hand" else inner}, "START > n").compile(checkpointer=E.saver())
    result = E.invoke(app, {"log": []}, E.config())
    for question in ("a?", "b?", "c?"):
        assert list(ids(result)) == [question]
        result = E.invoke(app, E.Command(resume=question.upper()), E.config())
    assert result["log"] == ["a=A?", "b=B?", "c=C?"]
    assert bodies.runs == {"a": 2, "b": 2, "c": 2}


@pytest.mark.parametrize("levels", [1, 2])
def test_branches_of_an_inner_graph_are_answered_one_by_one(E: Engine, levels: int) -> None:
    """langgraphjs#1552: the inner graph must not start over, and its finished branches not run again."""
    bodies = Bodies(E)
    nodes = {"s": bodies.say("s"), "x": bodies.ask("x"), "y": bodies.ask("y"), "z": bodies.say("z")}
    graph = E.graph(Log, nodes, "START > s > x", "s > y", "x, y > z")
    for _ in range(levels):
        graph = E.graph(Log, {"sub": graph.compile()}, "START > sub")
    app = graph.compile(checkpointer=E.saver())
    result = E.invoke(app, {"log": []}, E.config())
    for question in ("x?", "y?"):
        open_now = ids(result)
        assert question in open_now
        result = E.invoke(app, E.Command(resume={open_now[question]: "!"}), E.config())
    assert result["log"] == ["s", "x=!", "y=!", "z"]
    assert bodies.runs == {"s": 1, "x": 2, "y": 2, "z": 1}


@pytest.mark.parametrize("where", ["nodes", "sends", "inner graphs"])
def test_a_branch_without_an_answer_is_not_started(E: Engine, where: str) -> None:
    """langgraph#5952, #6208: its code in front of the question ran again for every answer of another."""
    bodies = Bodies(E)
    if where == "nodes":
        g = E.graph(Log, {n: bodies.ask(n) for n in "abc"}, *(f"START > {n}" for n in "abc"))
    elif where == "sends":

        def one(packet: Any) -> Any:
            bodies.start(packet["n"])
            return {"log": [packet["n"] + "=" + E.interrupt(packet["n"] + "?")]}

        def route(state: Any) -> Any:
            return [E.Send("one", {"n": n}) for n in "abc"]

        g = E.graph(Log, {"one": one}, ("START", route, ["one"]))
    else:
        inner = {n: E.graph(Log, {n: bodies.ask(n)}, f"START > {n}").compile() for n in "abc"}
        g = E.graph(Log, {f"g{n}": inner[n] for n in "abc"}, *(f"START > g{n}" for n in "abc"))
    app = g.compile(checkpointer=E.saver())
    result, expected = E.invoke(app, {"log": []}, E.config()), {"a": 1, "b": 1, "c": 1}
    for name in "bca":
        open_now = ids(result)
        result = E.invoke(app, E.Command(resume={open_now[name + "?"]: "!"}), E.config())
        expected[name] += 1
        assert bodies.runs == expected
        assert sorted(ids(result)) == [q for q in ("a?", "b?", "c?") if expected[q[0]] == 1]
    assert sorted(result["log"]) == ["a=!", "b=!", "c=!"]


def test_waiting_branches_come_back_with_their_questions(E: Engine) -> None:
    """With nothing to answer, `None` asks all open questions again; nothing else is lost by it."""
    bodies = Bodies(E)
    app = E.graph(Log, {n: bodies.ask(n) for n in "ab"}, "START > a", "START > b").compile(checkpointer=E.saver())
    first = ids(E.invoke(app, {"log": []}, E.config()))
    again = ids(E.invoke(app, None, E.config()))
    assert first == again
    end = E.invoke(app, E.Command(resume={first["a?"]: "1", first["b?"]: "2"}), E.config())
    assert end["log"] == ["a=1", "b=2"]


@pytest.mark.parametrize("node", [None, "done"])
def test_an_update_in_the_middle_of_a_step(E: Engine, node: str | None) -> None:
    """The finished sibling's result and the open question both survive it."""
    bodies = Bodies(E)
    nodes = {"done": bodies.say("done"), "a": bodies.ask("a"), "end": say("end")}
    app = E.graph(Log, nodes, "START > done", "START > a", "done, a > end").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    E.update(app, E.config(), {"log": ["edit"]}, as_node=node)
    assert waiting(E, app) == ["a?"] and "a" in E.state(app, E.config()).next
    end = E.invoke(app, E.Command(resume="y"), E.config())
    assert sorted(end["log"]) == ["a=y", "done", "edit", "end"] and bodies.runs["done"] == 1


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_question_that_cannot_be_stored_is_an_error(E: Engine, durability: str) -> None:
    app = E.graph(Log, {"a": lambda s: {"log": [E.interrupt(threading.Lock())]}}, "START > a")
    app = app.compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, {"log": []}, E.config(), durability=durability)
    assert isinstance(error, Exception) and "lock" in str(error).lower(), error
