"""Time travel and edits: replays, forks, update_state, bulk updates, filters of the history."""

from typing import Any

from compat.registry import MODES, Log, ask, branches, differs, kept, look, nodes, program, say
from harness.engine import Boom, Engine


def abc(E: Engine, **options: Any) -> Any:
    return E.graph(Log, nodes("abc"), "START > a > b > c").compile(checkpointer=E.saver(), **options)


def at(E: Engine, app: Any, *following: str) -> Any:
    """The config of the newest checkpoint whose next nodes are these."""
    return next(s.config for s in E.history(app, E.config()) if s.next == following)


def lines(E: Engine, app: Any) -> Any:
    return list(branches(E.history(app, E.config())))


@program()
def replay_fork_edit_and_go_on(E: Engine) -> Any:
    app = E.graph(Log, nodes("ab"), "START > a > b").compile(checkpointer=E.saver())
    seen = [E.invoke(app, {"log": ["i"]}, E.config()), lines(E, app)]
    old = at(E, app, "b")
    seen += [E.invoke(app, None, old), lines(E, app)]
    edited = E.update(app, old, {"log": ["U"]}, as_node="a")
    seen += [edited, lines(E, app), E.invoke(app, None, edited), lines(E, app)]
    seen += [E.invoke(app, None, E.config()), lines(E, app)]
    return [*seen, E.invoke(app, {"log": ["i2"]}, E.config()), lines(E, app), kept(E, app)]


@program()
def replay_from_every_checkpoint(E: Engine) -> Any:
    app = abc(E)
    E.invoke(app, {"log": ["i"]}, E.config())
    configs = [s.config for s in E.history(app, E.config())]
    return [(E.stream(app, None, c, stream_mode=MODES), lines(E, app)) for c in reversed(configs)]


@program()
def new_input_at_an_old_checkpoint(E: Engine) -> Any:
    app = abc(E)
    E.invoke(app, {"log": ["i"]}, E.config())
    return E.invoke(app, {"log": ["other"]}, at(E, app, "b")), lines(E, app), kept(E, app)


@program()
def edit_at_an_old_checkpoint_and_leave_the_head(E: Engine) -> Any:
    app = abc(E)
    E.invoke(app, {"log": ["i"]}, E.config())
    moved = E.update(app, at(E, app, "c"), {"log": ["X"]})
    return moved, E.state(app, E.config()), E.invoke(app, None, E.config()), kept(E, app)


@program()
def replay_of_an_edit_that_the_thread_has_left(E: Engine) -> Any:
    app = abc(E)
    E.invoke(app, {"log": ["i"]}, E.config())
    edit = E.update(app, at(E, app, "b"), {"log": ["X"]}, as_node="a")
    E.invoke(app, None, edit)
    return E.invoke(app, None, edit), lines(E, app)


@program()
def replay_asks_again(E: Engine) -> Any:
    app = E.graph(Log, {"a": say("a"), "b": ask(E, "b?"), "c": say("c")}, "START > a > b > c")
    app = app.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    E.invoke(app, E.Command(resume="one"), E.config())
    old = at(E, app, "b")
    again = E.invoke(app, None, old)
    return again, lines(E, app), E.invoke(app, E.Command(resume="two"), E.config()), kept(E, app)


@program()
def replay_of_a_parallel_step_runs_all_of_it(E: Engine) -> Any:
    ran: list[str] = []

    def count(name: str) -> Any:
        def body(state: Any) -> Any:
            ran.append(name)
            return {"log": [name]}

        return body

    g = E.graph(Log, {n: count(n) for n in "abj"}, "START > a > j", "START > b > j")
    app = g.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    ran.clear()
    return E.invoke(app, None, at(E, app, "a", "b")), sorted(ran), lines(E, app)


@program()
def breakpoints_fire_again_on_replay(E: Engine) -> Any:
    app = abc(E, interrupt_before=["b"])
    E.invoke(app, {"log": []}, E.config())
    E.invoke(app, None, E.config())
    return E.stream(app, None, at(E, app, "a"), stream_mode=MODES), lines(E, app)


@program()
def resume_at_the_head_by_its_id(E: Engine) -> Any:
    ran: list[str] = []

    def done(state: Any) -> Any:
        ran.append("done")
        return {"log": ["done"]}

    app = E.graph(Log, {"done": done, "ask": ask(E, "?")}, "START > done", "START > ask")
    app = app.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    head = E.state(app, E.config()).config
    return E.invoke(app, E.Command(resume="ok"), head), ran, kept(E, app)


@program()
def update_as_each_node(E: Engine) -> Any:
    def route(state: Any) -> str:
        return "b" if state["log"][-1] == "to b" else "c"

    g = E.graph(Log, nodes("abcd"), "START > a", ("a", route, ["b", "c"]), "b > d")
    results = []
    for node, word in (("a", "to b"), ("a", "to c"), ("b", "w"), ("d", "w"), ("__start__", "w")):
        app = g.compile(checkpointer=E.saver(), interrupt_before=["b", "c"])
        E.invoke(app, {"log": []}, E.config())
        moved = E.update(app, E.config(), {"log": [word]}, as_node=node)
        results.append((moved, E.state(app, E.config()), E.invoke(app, None, E.config()), kept(E, app)))
    return results


@program()
def update_of_a_fresh_thread(E: Engine) -> Any:
    app = abc(E)
    first = E.update(app, E.config(), {"log": ["edit"]})
    second = E.update(app, E.config("2"), {"log": ["edit"]}, as_node="b")
    return first, kept(E, app), E.invoke(app, None, E.config()), second, E.invoke(app, None, E.config("2"))


@program()
def update_without_saying_as_which_node(E: Engine) -> Any:
    app = abc(E)
    E.invoke(app, {"log": []}, E.config())
    one = E.update(app, E.config(), {"log": ["edit"]})
    g = E.graph(Log, nodes("ab"), "START > a", "START > b").compile(checkpointer=E.saver())
    E.invoke(g, {"log": []}, E.config())
    return one, E.state(app, E.config()), E.attempt(E.update, g, E.config(), {"log": ["edit"]})


@program()
def updates_that_are_refused(E: Engine) -> Any:
    app = abc(E)
    E.invoke(app, {"log": []}, E.config())
    unknown = E.attempt(E.update, app, E.config(), {"log": ["x"]}, as_node="nobody")
    update = E.StateUpdate
    return [
        unknown,
        E.attempt(E.update, app, E.config(), "text", as_node="a"),
        E.attempt(E.bulk_update, app, E.config(), []),
        E.attempt(E.bulk_update, app, E.config(), [[]]),
        E.attempt(E.bulk_update, app, E.config(), [[update({"log": []}), update({"log": []})]]),
        E.attempt(E.update, app, E.config(), {}, as_node="__input__"),
        E.attempt(E.update, app, E.config("fresh"), None, as_node="__copy__"),
        E.attempt(E.update, app.builder.compile(), E.config(), {"log": ["x"]}),
        lines(E, app),
    ]


@program()
def update_with_none_runs_the_edges(E: Engine) -> Any:
    app = abc(E, interrupt_before=["b"])
    E.invoke(app, {"log": []}, E.config())
    moved = E.update(app, E.config(), None, as_node="b")
    return moved, kept(E, app)


@program()
def update_that_ends_the_run(E: Engine) -> Any:
    app = abc(E, interrupt_before=["b"])
    E.invoke(app, {"log": []}, E.config())
    moved = E.update(app, E.config(), None, as_node=E.END)
    return moved, kept(E, app), E.invoke(app, {"log": ["again"]}, E.config())


@program()
def update_as_input(E: Engine) -> Any:
    app = abc(E)
    E.update(app, E.config(), {"log": ["as input"]}, as_node="__input__")
    seen = kept(E, app)
    result = E.invoke(app, None, E.config())
    E.update(app, E.config(), {"log": ["more"]}, as_node="__input__")
    return seen, result, kept(E, app)


@program()
def copy_of_a_checkpoint(E: Engine) -> Any:
    app = abc(E)
    E.invoke(app, {"log": []}, E.config())
    copied = E.update(app, at(E, app, "b"), None, as_node="__copy__")
    return copied, kept(E, app), E.invoke(app, None, copied), lines(E, app)


@program()
def bulk_updates(E: Engine) -> Any:
    update = E.StateUpdate
    app = E.graph(Log, nodes("abcj"), *(f"START > {n} > j" for n in "abc")).compile(checkpointer=E.saver())
    steps = [
        [update({"log": ["in"]}, "__input__")],
        [update({"log": ["in"]}, "__start__")],
        [update({"log": ["B"]}, "b"), update({"log": ["A"]}, "a"), update({"log": ["C"]}, "c")],
        [update({"log": ["J"]}, "j")],
    ]
    moved = E.bulk_update(app, E.config(), steps)
    return moved, kept(E, app)


@program()
def update_with_a_command_and_sends(E: Engine) -> Any:
    def route(state: Any) -> Any:
        return [E.Send("w", {"n": n}) for n in range(2)]

    def w(packet: Any) -> Any:
        return {"log": [packet["n"]]}

    app = E.graph(Log, nodes("ab", w=w), "START > a", ("a", route, ["w"])).compile(checkpointer=E.saver())
    first = E.update(app, E.config(), {"log": ["x"]}, as_node="a")
    between = kept(E, app)
    second = E.invoke(app, None, E.config())
    E.update(app, E.config(), E.Command(update={"log": ["c"]}, goto="b"), as_node="b")
    return first, between, second, kept(E, app), E.invoke(app, None, E.config())


@program()
def overwrite_in_an_update(E: Engine) -> Any:
    app = abc(E)
    E.invoke(app, {"log": ["in"]}, E.config())
    E.update(app, E.config(), {"log": E.Overwrite(["clean"])}, as_node="c")
    return E.state(app, E.config()), lines(E, app)


@program()
def update_answers_a_failed_step(E: Engine) -> Any:
    def fails(state: Any) -> Any:
        raise Boom("always")

    app = E.graph(Log, {"a": say("a"), "b": fails, "c": say("c")}, "START > a > b > c").compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, {"log": []}, E.config())
    seen = kept(E, app)
    E.update(app, E.config(), {"log": ["by hand"]}, as_node="b")
    return error, seen, E.invoke(app, None, E.config()), kept(E, app)


@program()
def history_with_filters(E: Engine) -> Any:
    app = abc(E)
    for word in ("one", "two"):
        E.invoke(app, {"log": [word]}, E.config())
    every = E.history(app, E.config())
    options: list[dict[str, Any]] = [
        {"limit": 2},
        {"filter": {"source": "input"}},
        {"filter": {"source": "loop", "step": 1}},
        {"before": every[3].config},
        {"before": every[3].config, "limit": 2, "filter": {"source": "loop"}},
        {"filter": {"nothing": "such"}},
    ]
    return [list(branches(E.history(app, E.config(), **option))) for option in options]


@program()
def metadata_of_the_caller_is_stored(E: Engine) -> Any:
    app = abc(E)
    config = E.config() | {"metadata": {"user": "u1", "purpose": "test", "deep": {"x": 1}}, "tags": ["t"]}
    E.invoke(app, {"log": []}, config)
    return E.rows(app.checkpointer, E.config()), list(branches(E.history(app, E.config(), filter={"user": "u1"})))


@program()
def state_of_a_thread_that_is_not_there(E: Engine) -> Any:
    app = abc(E)
    missing = "1ef00000-0000-6000-8000-000000000000"
    return [
        E.state(app, E.config("nobody")),
        E.history(app, E.config("nobody")),
        E.state(app, E.config("nobody", checkpoint_id=missing)),
        E.attempt(E.state, app, {}),
        E.attempt(E.invoke, app, {"log": []}, {}),
        E.attempt(E.invoke, app, {"log": []}),
    ]


@program()
def fork_of_a_tree_from_its_root(E: Engine) -> Any:
    sub = E.graph(Log, {"x": say("x"), "y": ask(E, "y?")}, "START > x > y").compile()
    app = E.graph(Log, {"a": say("a"), "sub": sub, "b": say("b")}, "START > a > sub > b")
    app = app.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    E.invoke(app, E.Command(resume="one"), E.config())
    again = E.invoke(app, None, at(E, app, "sub"))
    return again, lines(E, app), E.invoke(app, E.Command(resume="two"), E.config()), kept(E, app)


@program()
def fork_of_a_subgraph_with_a_memory(E: Engine) -> Any:
    sub = E.graph(Log, {"x": say("x"), "y": ask(E, "y?")}, "START > x > y").compile(checkpointer=True)
    app = E.graph(Log, {"a": say("a"), "sub": sub, "b": say("b")}, "START > a > sub > b")
    app = app.compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    E.invoke(app, E.Command(resume="one"), E.config())
    again = E.invoke(app, None, at(E, app, "sub"))
    return again, lines(E, app), E.invoke(app, E.Command(resume="two"), E.config()), kept(E, app)


@program()
def run_id_names_the_run_in_metadata(E: Engine) -> Any:
    app = abc(E)
    E.invoke(app, {"log": []}, E.config(run_id="r-7"))
    return [row.metadata for row in E.rows(app.checkpointer, E.config())], look(E, app, None)


@differs(
    "A branch that was worked on is not run again in place: the new try is a branch of its own",
    ours=[["a"], [["work", "work"]] * 3],
    theirs=[["a", "q=yes"], [["work", "work"]] * 2],
)
def failed_branch_run_again(E: Engine) -> Any:
    """The branch's question was answered, then its sibling failed; the second try asks, and has no answer yet."""

    def work(packet: Any) -> Any:
        if packet == "fail":
            raise Boom(packet)
        return {"log": [f"q={E.interrupt('q')}"]}

    def route(state: Any) -> Any:
        return [E.Send("work", "ask"), E.Send("work", "fail")]

    app = E.graph(Log, {"a": say("a"), "work": work}, "START > a", ("a", route, ["work"]))
    app = app.compile(checkpointer=E.saver())
    for given in ({"log": []}, None, E.Command(resume="yes"), None):
        E.attempt(E.invoke, app, given, at(E, app, "work", "work") if given is None else E.config())
    past = [s.next for s in E.history(app, E.config()) if set(s.next) == {"work"}]
    return E.state(app, E.config()).values["log"], past


@differs(
    "A thread that waits at a node which a release renamed does not end as if it were done, nor lose its answer",
    ours=lambda got: [r[1] for r in got[:2]] == ["MissingNodeError"] * 2 and got[2:] == [["old=yes"], ["new"]],
    theirs=lambda got: got[0] == {"log": []},
)
def a_node_that_a_release_renamed(E: Engine) -> Any:
    def release(name: str) -> Any:
        return E.graph(Log, {name: ask(E, name, "old") if name == "old" else say(name)}, f"START > {name}").compile(
            checkpointer=saver
        )

    saver = E.saver()
    E.invoke(release("old"), {"log": []}, E.config())
    refused = E.attempt(E.invoke, release("new"), E.Command(resume="yes"), E.config())
    again = E.attempt(E.invoke, release("new"), None, E.config())
    answered = E.attempt(E.invoke, release("old"), E.Command(resume="yes"), E.config())
    E.invoke(release("old"), {"log": []}, E.config("2"))
    anew = E.attempt(E.invoke, release("new"), {"log": []}, E.config("2"))
    return [refused, again, *(result["log"] if isinstance(result, dict) else result for result in (answered, anew))]
