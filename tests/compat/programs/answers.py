"""Answers that the reference lets pass in silence, and what surestep makes of them."""

from typing import Any

from compat.programs.pauses import questions
from compat.registry import Log, ask, differs, failed, program, say
from harness.engine import Engine


def counted(E: Engine, runs: dict[str, int], name: str, question: str = "") -> Any:
    """A node that counts its starts and logs the answer to its question."""

    def body(state: Any) -> Any:
        runs[name] = runs.get(name, 0) + 1
        return {"log": [f"{name}={E.interrupt(question or name)}"]}

    return body


@differs(
    "A branch that got no answer is not started again",
    ours=lambda got: got == [[{"a": 2, "b": 1}, {"a": 2, "b": 2}], ["b"], ["a=1", "b=2"]],
    theirs=lambda got: got == [[{"a": 2, "b": 2}, {"a": 2, "b": 3}], ["b"], ["a=1", "b=2"]],
)
def one_answer_of_two(E: Engine) -> Any:
    runs: dict[str, int] = {}
    g = E.graph(Log, {n: counted(E, runs, n) for n in "ab"}, "START > a", "START > b")
    app = g.compile(checkpointer=E.saver())
    ids = questions(E.invoke(app, {"log": []}, E.config()))
    middle = E.invoke(app, E.Command(resume={ids["a"]: "1"}), E.config())
    seen = [dict(runs)]
    end = E.invoke(app, E.Command(resume={ids["b"]: "2"}), E.config())
    return [*seen, dict(runs)], sorted(questions(middle)), end["log"]


@differs(
    "An id that names no open question is refused, and nothing runs",
    ours=lambda got: got == [("error", "UnknownInterruptError"), {"a": 1}, 1],
    theirs=lambda got: not failed(got[0]),
)
def answer_to_a_question_that_nobody_asked(E: Engine) -> Any:
    runs: dict[str, int] = {}
    app = E.graph(Log, {"a": counted(E, runs, "a")}, "START > a").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    result = E.attempt(E.invoke, app, E.Command(resume={"ab" * 16: "yes"}), E.config())
    return result, runs, len(E.state(app, E.config()).interrupts)


@differs(
    "An answer to a thread that waits for nothing is refused",
    ours=lambda got: failed(got[0]) and got[1:] == [{"a": 2}, ["a=no"]],
    theirs=lambda got: got[0] == {"log": ["a=no"]},
)
def answer_to_a_finished_thread(E: Engine) -> Any:
    runs: dict[str, int] = {}
    app = E.graph(Log, {"a": counted(E, runs, "a")}, "START > a").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    E.invoke(app, E.Command(resume="no"), E.config())
    late = E.attempt(E.invoke, app, E.Command(resume="yes"), E.config())
    return late, runs, E.state(app, E.config()).values["log"]


@differs(
    "The same answer twice: the second is refused by name",
    ours=lambda got: got == [{"log": ["a=1", "b=2"]}, ("error", "AlreadyAnswered")],
    theirs=lambda got: not failed(got[1]),
)
def answer_given_twice(E: Engine) -> Any:
    runs: dict[str, int] = {}
    g = E.graph(Log, {n: counted(E, runs, n) for n in "ab"}, "START > a", "START > b")
    app = g.compile(checkpointer=E.saver())
    ids = questions(E.invoke(app, {"log": []}, E.config()))
    E.invoke(app, E.Command(resume={ids["a"]: "1"}), E.config())
    twice = E.attempt(E.invoke, app, E.Command(resume={ids["a"]: "3"}), E.config())
    return E.invoke(app, E.Command(resume={ids["b"]: "2"}), E.config()), twice


@differs(
    "One value for several questions is refused by a class of its own, before anything is stored",
    ours=lambda got: got[0] == ("error", "AmbiguousResume") and got[1:] == [{"a": 1, "b": 1}, 2],
    theirs=lambda got: got[0] == ("error", "RuntimeError"),
)
def one_value_for_two_questions(E: Engine) -> Any:
    runs: dict[str, int] = {}
    g = E.graph(Log, {n: counted(E, runs, n) for n in "ab"}, "START > a", "START > b")
    app = g.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    error = E.attempt(E.invoke, app, E.Command(resume="x"), E.config())
    return error, runs, len(E.state(app, E.config()).interrupts)


@differs(
    "An empty dictionary is an answer like any other; the reference takes it for a map of no ids",
    ours=lambda got: got == {"log": ["a={}"]},
    theirs=lambda got: "__interrupt__" in got,
)
def empty_dictionary_as_the_answer(E: Engine) -> Any:
    app = E.graph(Log, {"a": ask(E, "a")}, "START > a").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    return E.invoke(app, E.Command(resume={}), E.config())


@differs(
    "An old checkpoint can be answered again, in another way: each answer makes a branch of its own",
    ours=lambda got: got == [["a=yes"], ["a=no"], ["a=maybe"]],
    theirs=lambda got: got == [["a=yes"]] * 3,
)
def old_question_answered_again(E: Engine) -> Any:
    app = E.graph(Log, {"a": ask(E, "a")}, "START > a").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    old = E.state(app, E.config()).config
    return [E.invoke(app, E.Command(resume=word), old)["log"] for word in ("yes", "no", "maybe")]


@differs(
    "An update beside an open question keeps what the finished siblings wrote, and keeps the question open",
    ours=lambda got: got == [["ask"], ["?"], ["?=y", "done", "edit"], {"done": 1}],
    theirs=lambda got: got[0] != ["ask"] or got[3] != {"done": 1},
)
def update_beside_an_open_question(E: Engine) -> Any:
    runs = {"done": 0}

    def done(state: Any) -> Any:
        runs["done"] += 1
        return {"log": ["done"]}

    g = E.graph(Log, {"done": done, "ask": ask(E, "?")}, "START > done", "START > ask")
    app = g.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    E.attempt(E.update, app, E.config(), {"log": ["edit"]})
    state = E.state(app, E.config())
    result = E.attempt(E.invoke, app, E.Command(resume="y"), E.config())
    log = sorted(result["log"]) if isinstance(result, dict) else result
    return list(state.next), [i.value for i in state.interrupts], log, runs


@differs(
    "A run addressed at a checkpoint inside a subgraph goes on there, not at the subgraph's beginning",
    ours=["c", "ask"],
    theirs=["a", "b", "c", "ask"],
)
def run_from_inside_a_subgraph(E: Engine) -> Any:
    ran: list[str] = []

    def note(name: str) -> Any:
        return lambda state: ran.append(name) or {"log": [name]}

    def asks(state: Any) -> Any:
        ran.append("ask")
        return {"log": [E.interrupt("?")]}

    sub = E.graph(Log, {n: note(n) for n in "abc"} | {"ask": asks}, "START > a > b > c > ask").compile()
    app = E.graph(Log, {"sub": sub}, "START > sub").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    space = E.state(app, E.config(), subgraphs=True).tasks[0].state.config["configurable"]["checkpoint_ns"]
    past = E.history(app, E.config(checkpoint_ns=space))
    target = next(snapshot for snapshot in past if snapshot.next == ("c",))
    ran.clear()
    E.invoke(app, None, target.config)
    return list(ran)


@differs(
    "With resume and goto in one Command the answer belongs to the node that waits, not to the one jumped to",
    ours=lambda got: got == [["other?"], ["ask=A1", "other=A2"]],
    theirs=bool,  # a race there: either node may get the answer
)
def answer_with_a_jump(E: Engine) -> Any:
    def other(state: Any) -> Any:
        return {"log": ["other=" + E.interrupt("other?")]}

    def asks(state: Any) -> Any:
        return {"log": ["ask=" + E.interrupt("ask?")]}

    app = E.graph(Log, {"ask": asks, "other": other}, "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    first = E.invoke(app, E.Command(resume="A1", goto="other"), E.config())
    second = E.invoke(app, E.Command(resume="A2"), E.config())
    return sorted(questions(first)), sorted(second["log"])


@differs(
    "A jump alone does not start the node again that waits; its question stays open",
    ours=lambda got: got == [["?"], ["z"], {"ask": 1}, ["ask=y", "z"]],
    theirs=lambda got: got == [["?"], ["z"], {"ask": 2}, ["ask=y", "z"]],
)
def jump_beside_an_open_question(E: Engine) -> Any:
    runs: dict[str, int] = {}
    nodes = {"ask": counted(E, runs, "ask", "?"), "z": say("z")}
    app = E.graph(Log, nodes, "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    jumped = E.invoke(app, E.Command(goto="z"), E.config())
    between = dict(runs)
    end = E.invoke(app, E.Command(resume="y"), E.config())
    return sorted(questions(jumped)), jumped["log"], between, sorted(end["log"])


@program()
def none_as_input_while_a_question_is_open(E: Engine) -> Any:
    runs: dict[str, int] = {}
    app = E.graph(Log, {"ask": counted(E, runs, "ask", "?")}, "START > ask").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    again = E.invoke(app, None, E.config())
    told = E.stream(app, None, E.config(), stream_mode="updates")
    told[:] = [{key: [i.value for i in value] for key, value in chunk.items()} for chunk in told]
    between = dict(runs)
    return sorted(questions(again)), between, told, E.invoke(app, E.Command(resume="y"), E.config())["log"]
