"""Questions and answers: `interrupt()` in every place, answers by value and by id, static breakpoints."""

from typing import Any

from compat.registry import MODES, Log, ask, kept, look, nodes, program, say
from harness.engine import Engine


def questions(result: Any) -> dict[str, str]:
    """Question -> id, of what a run returned."""
    return {i.value: i.id for i in result.get("__interrupt__", ())}


@program()
def one_question(E: Engine) -> Any:
    g = E.graph(Log, nodes("ac", b=ask(E, "b?")), "START > a > b > c")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []}, E.Command(resume="yes"))


@program()
def questions_one_after_the_other(E: Engine) -> Any:
    def two(state: Any) -> Any:
        first = E.interrupt("first?")
        second = E.interrupt({"second": first})
        return {"log": [first, second]}

    g = E.graph(Log, {"two": two}, "START > two")
    answers = [E.Command(resume="1"), E.Command(resume="2")]
    return look(E, g.compile(checkpointer=E.saver()), {"log": []}, *answers)


@program()
def question_in_a_loop(E: Engine) -> Any:
    def again(state: Any) -> str:
        return E.END if state["log"][-1] == "b?=stop" else "b"

    g = E.graph(Log, {"b": ask(E, "b?")}, "START > b", ("b", again, ["b", E.END]))
    answers = [E.Command(resume=word) for word in ("go", "go", "stop")]
    return look(E, g.compile(checkpointer=E.saver()), {"log": []}, *answers)


@program()
def falsy_answers(E: Engine) -> Any:
    results = []
    for value in (False, 0, "", [], 0.0):
        app = E.graph(Log, {"a": lambda s: {"log": [E.interrupt("?")]}}, "START > a").compile(checkpointer=E.saver())
        E.invoke(app, {"log": []}, E.config())
        results.append((E.invoke(app, E.Command(resume=value), E.config()), kept(E, app)))
    return results


@program()
def parallel_questions_answered_together(E: Engine) -> Any:
    g = E.graph(Log, nodes("cj", a=ask(E, "a?"), b=ask(E, "b?")), *(f"START > {n} > j" for n in "abc"))
    app = g.compile(checkpointer=E.saver())
    first = E.invoke(app, {"log": ["in"]}, E.config())
    before = kept(E, app)
    ids = questions(first)
    answers = E.Command(resume={ids["a?"]: "A", ids["b?"]: "B"})
    return first, before, E.stream(app, answers, E.config(), stream_mode=MODES), kept(E, app)


@program()
def single_answer_for_several_questions_is_refused(E: Engine) -> Any:
    g = E.graph(Log, {"a": ask(E, "a?"), "b": ask(E, "b?")}, "START > a", "START > b")
    app = g.compile(checkpointer=E.saver())
    E.invoke(app, {"log": ["in"]}, E.config())
    refused = E.attempt(E.invoke, app, E.Command(resume="Z"), E.config())
    return isinstance(refused, RuntimeError), E.state(app, E.config()).interrupts


@program()
def questions_in_send_tasks(E: Engine) -> Any:
    def route(state: Any) -> Any:
        return [E.Send("w", {"n": n}) for n in range(3)]

    def w(packet: Any) -> Any:
        return {"log": [(packet["n"], E.interrupt(f"q{packet['n']}") if packet["n"] != 1 else "-")]}

    g = E.graph(Log, nodes("r end", w=w), "START > r", ("r", route, ["w"]), "w > end")
    app = g.compile(checkpointer=E.saver())
    ids = questions(E.invoke(app, {"log": []}, E.config()))
    before = kept(E, app)
    answers = E.Command(resume={ids["q0"]: "zero", ids["q2"]: "two"})
    return before, E.stream(app, answers, E.config(), stream_mode=MODES), kept(E, app)


@program()
def two_questions_each_in_parallel_nodes(E: Engine) -> Any:
    def two(name: str) -> Any:
        return lambda s: {"log": [E.interrupt(name + "1") + E.interrupt(name + "2")]}

    app = E.graph(Log, {n: two(n) for n in "ab"}, "START > a", "START > b").compile(checkpointer=E.saver())
    result, seen = E.invoke(app, {"log": []}, E.config()), []
    for _ in range(2):
        result = E.invoke(app, E.Command(resume={i: q + "!" for q, i in questions(result).items()}), E.config())
        seen.append((result, kept(E, app)))
    return seen


@program()
def question_without_a_saver(E: Engine) -> Any:
    app = E.graph(Log, nodes("a", b=ask(E, "b?")), "START > a > b").compile()
    refused = E.attempt(E.invoke, app, E.Command(resume="x"))
    return E.invoke(app, {"log": []}), E.stream(app, {"log": []}, stream_mode=["values", "updates"]), refused


@program()
def question_beside_a_finished_sibling(E: Engine) -> Any:
    ran: list[str] = []

    def done(state: Any) -> Any:
        ran.append("done")
        return {"log": ["done"]}

    g = E.graph(Log, {"done": done, "ask": ask(E, "?")}, "START > done", "START > ask")
    app = g.compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, E.Command(resume="y")), ran


@program()
def answer_with_an_update(E: Engine) -> Any:
    def two(state: Any) -> Any:
        return {"log": [E.interrupt("a") + E.interrupt("b")]}

    app = E.graph(Log, {"two": two}, "START > two").compile(checkpointer=E.saver())
    answers = [E.Command(resume=str(n), update={"log": [f"u{n}"]}) for n in (1, 2)]
    return look(E, app, {"log": ["in"]}, *answers)


@program()
def question_whose_node_reads_its_config(E: Engine) -> Any:
    def b(state, config):  # an annotation that is not RunnableConfig would keep the config out
        ns = config["configurable"]["checkpoint_ns"]
        return {"log": [ns, E.interrupt(ns)]}

    app = E.graph(Log, {"b": b}, "START > b").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, E.Command(resume="yes"))


@program()
def new_input_drops_a_question(E: Engine) -> Any:
    g = E.graph(Log, nodes("ac", b=ask(E, "b?")), "START > a > b > c")
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["one"]}, {"log": ["two"]}, E.Command(resume="yes"))


@program()
def breakpoints_before_and_after(E: Engine) -> Any:
    g = E.graph(Log, nodes("abc"), "START > a > b > c")
    app = g.compile(checkpointer=E.saver(), interrupt_before=["b"], interrupt_after=["b"])
    return look(E, app, {"log": []}, None, None)


@program()
def breakpoints_everywhere(E: Engine) -> Any:
    g = E.graph(Log, nodes("ab"), "START > a > b")
    before = g.compile(checkpointer=E.saver(), interrupt_before="*")
    after = g.compile(checkpointer=E.saver(), interrupt_after="*")
    return look(E, before, {"log": []}, None, None), look(E, after, {"log": []}, None, None)


@program()
def breakpoints_of_one_call(E: Engine) -> Any:
    app = E.graph(Log, nodes("abc"), "START > a > b > c").compile(checkpointer=E.saver())
    seen = look(E, app, {"log": []}, interrupt_before=["b"])
    again = E.invoke(app, None, E.config(), interrupt_after=["b"])
    return seen, again, E.state(app, E.config()).next, E.invoke(app, None, E.config())


@program()
def breakpoint_in_a_parallel_step(E: Engine) -> Any:
    g = E.graph(Log, nodes("abcj"), *(f"START > {n} > j" for n in "abc"))
    app = g.compile(checkpointer=E.saver(), interrupt_before=["b", "j"])
    return look(E, app, {"log": []}, None, None)


@program()
def breakpoint_passed_with_a_command(E: Engine) -> Any:
    app = E.graph(Log, nodes("abc"), "START > a > b").compile(checkpointer=E.saver(), interrupt_before=["b"])
    return look(E, app, {"log": []}, E.Command(update={"log": ["u"]}), {"log": ["new"]}, None)


@program()
def breakpoint_in_a_loop(E: Engine) -> Any:
    def again(state: Any) -> str:
        return "a" if len(state["log"]) < 3 else E.END

    g = E.graph(Log, nodes("a"), "START > a", ("a", again, ["a", E.END]))
    return look(E, g.compile(checkpointer=E.saver(), interrupt_after=["a"]), {"log": []}, None, None, None)


@program()
def breakpoint_without_a_saver(E: Engine) -> Any:
    app = E.graph(Log, nodes("ab"), "START > a > b").compile(interrupt_before=["b"])
    return E.invoke(app, {"log": []}), E.stream(app, {"log": []}, stream_mode=["values", "updates"])


@program()
def breakpoint_and_question_in_one_node(E: Engine) -> Any:
    app = E.graph(Log, {"a": say("a"), "b": ask(E, "b?")}, "START > a > b")
    app = app.compile(checkpointer=E.saver(), interrupt_before=["b"])
    return look(E, app, {"log": []}, None, E.Command(resume="yes"))


@program()
def failure_wins_over_a_question(E: Engine) -> Any:
    from harness.engine import Boom

    flag = {"fail": True}

    async def fails(state: Any) -> Any:
        await E.sleep(0.02)
        if flag["fail"]:
            raise Boom("later")
        return {"log": ["fine"]}

    g = E.graph(Log, {"ask": ask(E, "?"), "fails": fails}, "START > ask", "START > fails")
    app = g.compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, {"log": []}, E.config())
    before = kept(E, app)
    flag["fail"] = False
    return error, before, look(E, app, E.Command(resume="y"))


@program()
def answers_in_two_versions_of_output(E: Engine) -> Any:
    app = E.graph(Log, nodes("a", b=ask(E, "b?")), "START > a > b").compile(checkpointer=E.saver())
    first = E.invoke(app, {"log": []}, E.config(), version="v2")
    return first, first.interrupts, E.invoke(app, E.Command(resume="x"), E.config(), version="v2")


@program()
def question_with_a_schema(E: Engine) -> Any:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}

    def b(state: Any) -> Any:
        return {"log": [E.interrupt("ok?", response_schema=schema)]}

    app = E.graph(Log, {"b": b}, "START > b").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, E.Command(resume={"ok": True}))


@program()
def interrupt_outside_of_a_run(E: Engine) -> Any:
    return E.attempt(E.interrupt, "?"), E.attempt(E.get_config)


@program()
def answer_reaches_every_level_of_say(E: Engine) -> Any:
    inner = E.graph(Log, nodes("x", y=ask(E, "inner?")), "START > x > y").compile()
    middle = E.graph(Log, {"m1": say("m1"), "m2": inner, "m3": say("m3")}, "START > m1 > m2 > m3").compile()
    g = E.graph(Log, {"o1": say("o1"), "o2": middle, "o3": say("o3")}, "START > o1 > o2 > o3")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []}, E.Command(resume="yes"), subgraphs=True)
