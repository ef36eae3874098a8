"""What happens when something fails: retries, handlers, siblings, resume afterwards."""

import operator
import warnings
from typing import Annotated, Any, TypedDict

from compat.registry import Log, ask, differs, kept, look, nodes, program, say
from harness.engine import Boom, Engine


class Flaky:
    """A node body that fails as often as told, then logs how often it ran."""

    def __init__(self, failures: int, error: type[Exception] = Boom) -> None:
        self.failures, self.error, self.runs = failures, error, 0

    def __call__(self, state: Any) -> Any:
        self.runs += 1
        if self.runs <= self.failures:
            raise self.error(f"try {self.runs}")
        return {"log": [f"run {self.runs}"]}


def flaky(E: Engine, failures: int, error: type[Exception] = Boom) -> Any:
    body = Flaky(failures, error)
    return E.node(lambda state: body(state)), body


def quick(E: Engine, **options: Any) -> Any:
    return E.RetryPolicy(initial_interval=0.001, jitter=False, **options)


@program()
def failed_node_and_resume(E: Engine) -> Any:
    node, body = flaky(E, 1)
    app = E.graph(Log, {"a": say("a"), "b": node, "c": say("c")}, "START > a > b > c").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, None), body.runs


@program()
def failed_sibling_and_resume(E: Engine) -> Any:
    counts = {"good": 0}
    node, body = flaky(E, 1)

    def good(state: Any) -> Any:
        counts["good"] += 1
        return {"log": ["good"]}

    async def late(state: Any) -> Any:
        await E.sleep(0.01)
        return await node(state) if E.is_async and E.driver == "async" else node(state)

    app = E.graph(Log, {"good": good, "late": late, "j": say("j")}, "START > good > j", "START > late > j")
    app = app.compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, {"log": []}, E.config())
    seen = kept(E, app)
    return error, seen, look(E, app, None), counts, body.runs


@program()
def failed_first_node_and_new_input(E: Engine) -> Any:
    node, body = flaky(E, 1)
    app = E.graph(Log, {"a": node, "b": say("b")}, "START > a > b").compile(checkpointer=E.saver())
    return look(E, app, {"log": ["one"]}, {"log": ["two"]}), body.runs


@program()
def retries(E: Engine) -> Any:
    results = []
    for failures in (1, 2, 3):
        node, body = flaky(E, failures)
        app = E.graph(Log, {"a": (node, {"retry_policy": quick(E)})}, "START > a").compile(checkpointer=E.saver())
        results.append((look(E, app, {"log": []}), body.runs))
    return results


@program()
def which_errors_are_retried(E: Engine) -> Any:
    class Ours(ConnectionError):
        pass

    counts = []
    for error in (
        Boom,
        Ours,
        ValueError,
        TypeError,
        KeyError,
        OSError,
        TimeoutError,
        RuntimeError,
        ZeroDivisionError,
    ):
        node, body = flaky(E, 1, error)
        app = E.graph(Log, {"a": (node, {"retry_policy": quick(E)})}, "START > a").compile()
        E.attempt(E.invoke, app, {"log": []})
        counts.append((error.__name__, body.runs))
    return counts


@program()
def first_policy_that_matches_decides(E: Engine) -> Any:
    policies = [
        quick(E, max_attempts=2, retry_on=ValueError),
        quick(E, max_attempts=3, retry_on=[KeyError, Boom]),
        quick(E, max_attempts=5, retry_on=lambda error: True),
    ]
    counts = []
    for error in (ValueError, KeyError, Boom, OSError):
        node, body = flaky(E, 9, error)
        app = E.graph(Log, {"a": (node, {"retry_policy": policies})}, "START > a").compile()
        counts.append((E.attempt(E.invoke, app, {"log": []}), body.runs))
    return counts


@program()
def retry_clears_what_the_failed_try_wrote(E: Engine) -> Any:
    tries: list[int] = []

    def a(state, runtime):
        tries.append(runtime.execution_info.node_attempt)
        runtime.stream_writer(f"try {len(tries)}")
        if len(tries) < 3:
            raise Boom("again")
        return {"log": ["a"]}

    app = E.graph(Log, {"a": (a, {"retry_policy": quick(E)})}, "START > a").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}), tries


@program()
def a_question_is_not_retried(E: Engine) -> Any:
    tries: list[str] = []

    def a(state: Any) -> Any:
        tries.append("a")
        answer = E.interrupt("?")
        if len(tries) < 3:
            raise Boom("after the answer")
        return {"log": [answer]}

    app = E.graph(Log, {"a": (a, {"retry_policy": quick(E)})}, "START > a").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, E.Command(resume="yes")), tries


@program()
def failing_router(E: Engine) -> Any:
    runs = {"router": 0, "a": 0}

    def a(state: Any) -> Any:
        runs["a"] += 1
        return {"log": ["a"]}

    def route(state: Any) -> Any:
        runs["router"] += 1
        raise Boom("lost")

    app = E.graph(Log, {"a": a, "b": say("b")}, "START > a", ("a", route, ["b"])).compile(checkpointer=E.saver())
    return E.attempt(E.invoke, app, {"log": []}, E.config()), runs


def handled(E: Engine, handler: Any, *edges: str, **more: Any) -> Any:
    def bad(state: Any) -> Any:
        raise Boom("bad")

    bodies = {"bad": (bad, {"error_handler": E.node(handler)}), "z": say("z"), **more}
    return E.graph(Log, bodies, "START > bad", *edges)


@program()
def handler_routes(E: Engine) -> Any:
    def handler(state: Any, error: "NodeError") -> Any:  # noqa: F821  (the engine matches the name)
        told = [error.node, type(error.error).__name__, list(state["log"])]
        return E.Command(update={"log": [told]}, goto="z")

    return look(E, handled(E, handler, "bad > z").compile(checkpointer=E.saver()), {"log": ["in"]})


@program()
def handler_without_a_route_ends_the_branch(E: Engine) -> Any:
    app = handled(E, say("handled"), "bad > z").compile(checkpointer=E.saver())
    return look(E, app, {"log": ["in"]})


@program()
def handler_after_the_retries(E: Engine) -> Any:
    node, body = flaky(E, 9)
    options = {"retry_policy": quick(E, max_attempts=2), "error_handler": E.node(say("handled"))}
    app = E.graph(Log, {"a": (node, options)}, "START > a").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}), body.runs


@program()
def failing_handler_fails_the_run(E: Engine) -> Any:
    def handler(state: Any) -> Any:
        raise KeyError("worse")

    app = handled(E, handler, "bad > z").compile(checkpointer=E.saver())
    return look(E, app, {"log": ["in"]}, None)


@program()
def handler_of_a_node_in_a_subgraph(E: Engine) -> Any:
    sub = handled(E, say("handled"), "bad > z").compile()
    app = E.graph(Log, {"sub": sub, "b": say("b")}, "START > sub > b").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, subgraphs=True)


@program()
def handler_of_a_node_that_is_a_graph(E: Engine) -> Any:
    def fails(state: Any) -> Any:
        raise Boom("deep")

    def handler(state: Any, error: "NodeError") -> Any:  # noqa: F821
        return {"log": [error.node]}

    sub = E.graph(Log, {"x": say("x"), "y": fails}, "START > x > y").compile()
    bodies = {"sub": (sub, {"error_handler": E.node(handler)}), "b": say("b")}
    return look(E, E.graph(Log, bodies, "START > sub > b").compile(checkpointer=E.saver()), {"log": []})


@program()
def handler_that_runs_a_graph(E: Engine) -> Any:
    """It hangs below the task that failed, and what it runs below itself."""
    inner = E.graph(Log, {"x": say("x"), "q": ask(E, "?")}, "START > x > q").compile()

    async def handler(state: Any) -> Any:
        where = E.get_config()["configurable"]["checkpoint_ns"]
        E.get_stream_writer()(where)
        return await E.inner(inner, {"log": [where]})

    app = handled(E, handler).compile(checkpointer=E.saver())
    given = {"log": []}, E.Command(resume="ok")
    modes = ["values", "updates", "custom", "tasks"]
    return [E.attempt(E.stream, app, each, E.config(), stream_mode=modes, subgraphs=True) for each in given]


@differs(
    "The parents of a checkpoint are graphs, not tasks",
    ours=[[""]] * 3,
    theirs=[["", "bad"]] * 3,
)
def parents_of_a_graph_in_a_handler(E: Engine) -> Any:
    inner = E.graph(Log, {"x": say("x")}, "START > x").compile()
    saver = E.saver()

    async def handler(state: Any) -> Any:
        return await E.inner(inner, {"log": []})

    E.invoke(handled(E, handler).compile(checkpointer=saver), {"log": []}, E.config())
    parents = [row.metadata["parents"] for row in E.rows(saver, E.config())]
    return [sorted(ns.split(":")[0] for ns in each) for each in parents if each]


@program()
def handler_in_a_subgraph_shows_something(E: Engine) -> Any:
    def handler(state: Any) -> Any:
        E.get_stream_writer()("custom")

    app = E.graph(Log, {"sub": handled(E, handler).compile()}, "START > sub").compile()
    return [E.stream(app, {"log": []}, stream_mode="custom", subgraphs=deep) for deep in (True, False)]


@program()
def handler_of_a_send(E: Engine) -> Any:
    def route(state: Any) -> Any:
        return [E.Send("w", {"n": n}) for n in range(3)]

    def w(packet: Any) -> Any:
        if packet["n"] == 1:
            raise Boom("one")
        return {"log": [packet["n"]]}

    def handler(packet: Any, error: "NodeError") -> Any:  # noqa: F821
        return {"log": [("handled", dict(packet), error.node)]}

    bodies = {"r": say("r"), "w": (w, {"error_handler": E.node(handler)})}
    app = E.graph(Log, bodies, "START > r", ("r", route, ["w"])).compile(checkpointer=E.saver())
    return E.attempt(E.invoke, app, {"log": []}, E.config())


@program()
def defaults_of_a_graph(E: Engine) -> Any:
    def handler(state: Any, error: "NodeError") -> Any:  # noqa: F821
        return {"log": [("default", error.node)]}

    node, body = flaky(E, 9)
    own, _ = flaky(E, 9)
    bodies = {"a": node, "b": (own, {"error_handler": E.node(say("own"))})}
    builder = E.graph(Log, bodies, "START > a", "START > b")
    builder.set_node_defaults(retry_policy=quick(E, max_attempts=2), error_handler=E.node(handler))
    app = builder.compile(checkpointer=E.saver())
    return look(E, app, {"log": []}), body.runs


@program(drivers=("async",))
def failing_task_cancels_its_siblings(E: Engine) -> Any:
    async def slow(state: Any) -> Any:
        await E.sleep(0.5)
        return {"log": ["slow"]}

    node, _ = flaky(E, 1)
    app = E.graph(Log, {"slow": slow, "bad": node}, "START > slow", "START > bad").compile(checkpointer=E.saver())
    return E.attempt(E.invoke, app, {"log": []}, E.config()), kept(E, app)


@program(drivers=("sync",))
def failing_task_lets_its_siblings_finish(E: Engine) -> Any:
    async def slow(state: Any) -> Any:
        await E.sleep(0.05)
        return {"log": ["slow"]}

    node, _ = flaky(E, 1)
    app = E.graph(Log, {"slow": slow, "bad": node}, "START > slow", "START > bad").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, None)


@program(drivers=("sync",))
def coroutine_node_in_a_sync_run(E: Engine) -> Any:
    async def only(state: Any) -> Any:
        return {"log": ["only"]}

    app = E.StateGraph(Log).add_node("only", only).add_edge(E.START, "only").compile()
    return E.attempt(E.invoke, app, {"log": []})


@program()
def notes_on_the_error(E: Engine) -> Any:
    node, _ = flaky(E, 1)
    app = E.graph(Log, {"a": node}, "START > a").compile()
    notes = E.attempt(E.invoke, app, {"log": []}).__notes__
    return [note for note in notes if "'a'" in note] != []


@differs(
    "A question that has its answer is not shown as open, also when its node failed after the answer",
    ours=[[], "12"],
    theirs=[["second?"], "12"],
)
def questions_after_a_failure_keep_their_answers(E: Engine) -> Any:
    flag = {"fail": True}

    def two(state: Any) -> Any:
        first = E.interrupt("first?")
        second = E.interrupt("second?")
        if flag["fail"]:
            raise Boom("after both")
        return {"log": [first + second]}

    app = E.graph(Log, {"two": two}, "START > two").compile(checkpointer=E.saver())
    for given in ({"log": []}, E.Command(resume="1"), E.Command(resume="2")):
        E.attempt(E.invoke, app, given, E.config())
    flag["fail"] = False
    shown = [question.value for question in E.state(app, E.config()).interrupts]
    return shown, E.invoke(app, None, E.config())["log"][0]


@differs(
    "A retry starts the counters of a task anew: a graph called inside keeps its namespace",
    ours=lambda got: len(got) == 1 and got[0].count("|") == 0,
    theirs=lambda got: len(got) == 2,
)
def retry_of_a_node_that_calls_a_graph(E: Engine) -> Any:
    tries: list[int] = []
    sub = E.graph(Log, nodes("x"), "START > x").compile()

    async def call(state: Any) -> Any:
        result = await E.inner(sub, {"log": []})
        tries.append(1)
        if len(tries) < 2:
            raise Boom("once")
        return result

    app = E.graph(Log, {"call": (call, {"retry_policy": quick(E)})}, "START > call").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    spaces = {row.config["configurable"]["checkpoint_ns"] for row in E.rows(app.checkpointer, E.config())}
    return sorted(space for space in spaces if space)


@differs(
    "`durability` without a saver is ignored",
    ours=lambda got: got == {"log": ["a"]},
    theirs=("error", "AttributeError"),
)
def durability_without_a_saver(E: Engine) -> Any:
    app = E.graph(Log, nodes("a"), "START > a").compile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return E.attempt(E.invoke, app, {"log": []}, durability="sync")


@differs(
    "A builder with a default handler may be compiled as often as one likes",
    ours=lambda got: got == [{"log": ["handled"]}] * 2,
    theirs=lambda got: got == ("error", "ValueError"),
)
def compile_twice_with_a_default_handler(E: Engine) -> Any:
    def bad(state: Any) -> Any:
        raise Boom("bad")

    builder = E.graph(Log, {"bad": bad}, "START > bad").set_node_defaults(error_handler=E.node(say("handled")))
    return E.attempt(lambda: [E.invoke(builder.compile(), {"log": []}) for _ in range(2)])


@differs(
    "A handled failure in a parallel step is handled: it is not raised as well",
    ours=lambda got: got == {"log": ["handled", "other"]},
    theirs=lambda got: got in ({"log": ["handled", "other"]}, ("error", "Boom", ("bad",))),
)
def handled_failure_beside_a_sibling(E: Engine) -> Any:
    app = handled(E, say("handled"), "START > other", other=say("other")).compile()
    result = E.attempt(E.invoke, app, {"log": []})
    return {"log": sorted(result["log"])} if isinstance(result, dict) else result


@differs(
    "A router that failed is asked again on resume, and the way it shows is taken",
    ours=lambda got: got[1] == {"router": 2, "sink": 1},
    theirs=lambda got: got[1]["sink"] == 0,
)
def router_that_failed_once(E: Engine) -> Any:
    runs = {"router": 0, "sink": 0}

    def route(state: Any) -> str:
        runs["router"] += 1
        if runs["router"] == 1:
            raise Boom("once")
        return "sink"

    def sink(state: Any) -> Any:
        runs["sink"] += 1
        return {"log": ["sink"]}

    app = E.graph(Log, {"a": say("a"), "sink": sink}, "START > a", ("a", route, ["sink"]))
    app = app.compile(checkpointer=E.saver())
    E.attempt(E.invoke, app, {"log": []}, E.config())
    return E.invoke(app, None, E.config()), runs


@differs(
    "A handler's command for the graph around its own gets there",
    ours={"log": ["up"]},
    theirs=lambda got: got[:2] == ("error", "ParentCommand"),
)
def handler_in_a_subgraph_commands_the_parent(E: Engine) -> Any:
    def handler(state: Any) -> Any:
        return E.Command(graph=E.Command.PARENT, update={"log": ["up"]})

    app = E.graph(Log, {"sub": handled(E, handler).compile()}, "START > sub").compile()
    return E.attempt(E.invoke, app, {"log": []})


@differs(
    "A handler that ran is not run again because a sibling paused",
    ours=lambda got: got[1] == 1 and sorted(got[0]["log"]) == ["?=ok", "handled"],
    theirs=lambda got: got[1] != 1 or got[0] == ("error", "Boom", ("bad",)),
)
def handler_beside_a_question(E: Engine) -> Any:
    runs: list[int] = []

    def handler(state: Any) -> Any:
        runs.append(1)
        return {"log": ["handled"]}

    app = handled(E, handler, "START > ask", ask=ask(E, "?")).compile(checkpointer=E.saver())
    E.attempt(E.invoke, app, {"log": []}, E.config())
    return E.attempt(E.invoke, app, E.Command(resume="ok"), E.config()), len(runs)


@program()
def totals_survive_a_failed_turn(E: Engine) -> Any:
    state = TypedDict("S", {"n": Annotated[int, operator.add]})
    fail = {"now": False}

    def add(s: Any) -> Any:
        if fail["now"]:
            raise Boom("now")
        return {"n": 1}

    app = E.graph(state, {"add": add, "more": add}, "START > add > more").compile(checkpointer=E.saver())
    results = [E.invoke(app, {"n": 10}, E.config())]
    fail["now"] = True
    results.append(E.attempt(E.invoke, app, {"n": 10}, E.config()))
    fail["now"] = False
    return results, E.invoke(app, {"n": 10}, E.config()), kept(E, app)
