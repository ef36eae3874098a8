"""Limits of a run: steps, seconds, and the wish to stop at the next boundary."""

from typing import Any

from compat.programs.faults import quick
from compat.registry import Log, kept, look, nodes, program, say
from harness.engine import Engine


@program()
def step_limits(E: Engine) -> Any:
    def again(state: Any) -> str:
        return "a" if len(state["log"]) < 4 else E.END

    g = E.graph(Log, nodes("a"), "START > a", ("a", again, ["a", E.END]))
    results = []
    for limit in (1, 2, 3, 4, 5, 6):
        app = g.compile(checkpointer=E.saver())
        config = E.config() | {"recursion_limit": limit}
        results.append((E.attempt(E.invoke, app, {"log": []}, config), kept(E, app)))
    return results


@program()
def step_limit_of_a_resume_and_of_a_fork(E: Engine) -> Any:
    g = E.graph(Log, nodes("a b c d"), "START > a > b > c > d")
    results = []
    for limit in (1, 2, 3):
        app = g.compile(checkpointer=E.saver(), interrupt_after=["a"])
        E.invoke(app, {"log": []}, E.config())
        old = E.state(app, E.config()).config
        config = E.config() | {"recursion_limit": limit}
        resumed = E.attempt(E.invoke, app, None, config)
        forked = E.attempt(E.invoke, app, None, {**config, **old})
        results.append((resumed, forked))
    return results


@program()
def step_limit_that_makes_no_sense(E: Engine) -> Any:
    app = E.graph(Log, nodes("a"), "START > a").compile()
    errors = [E.attempt(E.invoke, app, {"log": []}, {"recursion_limit": limit}) for limit in (0, -1)]
    return errors, "GRAPH_RECURSION_LIMIT" in str(E.attempt(E.invoke, app, {"log": []}, {"recursion_limit": 1}))


@program()
def drain_and_resume(E: Engine) -> Any:
    def a(state, runtime):
        runtime.control.request_drain("deploy")
        return {"log": ["a", runtime.drain_requested]}

    app = E.graph(Log, {"a": a, "b": say("b"), "c": say("c")}, "START > a > b > c").compile(checkpointer=E.saver())
    control = E.RunControl()
    stopped = E.attempt(E.invoke, app, {"log": []}, E.config(), control=control)
    return stopped, stopped.reason, control.drain_reason, kept(E, app), look(E, app, None)


@program()
def drain_before_the_run_and_in_the_last_step(E: Engine) -> Any:
    def a(state, runtime):
        runtime.control.request_drain()
        return {"log": ["a"]}

    app = E.graph(Log, {"a": a}, "START > a").compile(checkpointer=E.saver())
    control = E.RunControl()
    control.request_drain("early")
    early = E.attempt(E.invoke, app, {"log": []}, E.config("early"), control=control)
    last = E.attempt(E.invoke, app, {"log": []}, E.config("last"), control=E.RunControl())
    return early, kept(E, app, E.config("early")), last, kept(E, app, E.config("last"))


@program()
def drain_inside_a_subgraph(E: Engine) -> Any:
    ran: list[str] = []

    def x(state, runtime):
        ran.append("x")
        runtime.control.request_drain("deep")
        return {"log": ["x"]}

    def y(state: Any) -> Any:
        ran.append("y")
        return {"log": ["y"]}

    sub = E.graph(Log, {"x": x, "y": y}, "START > x > y").compile()
    app = E.graph(Log, {"a": say("a"), "sub": sub, "b": say("b")}, "START > a > sub > b").compile(
        checkpointer=E.saver()
    )
    stopped = E.attempt(E.invoke, app, {"log": []}, E.config(), control=E.RunControl())
    return stopped, stopped.reason, kept(E, app), E.invoke(app, None, E.config()), ran


@program()
def drain_and_a_breakpoint(E: Engine) -> Any:
    def a(state, runtime):
        runtime.control.request_drain()
        return {"log": ["a"]}

    app = E.graph(Log, {"a": a, "b": say("b")}, "START > a > b").compile(checkpointer=E.saver(), interrupt_before=["b"])
    return E.attempt(E.invoke, app, {"log": []}, E.config(), control=E.RunControl()), kept(E, app)


@program(drivers=("async",))
def node_runs_out_of_time(E: Engine) -> Any:
    async def slow(state: Any) -> Any:
        await E.sleep(5)
        return {"log": ["slow"]}

    app = E.graph(Log, {"slow": (slow, {"timeout": 0.02}), "z": say("z")}, "START > slow > z")
    app = app.compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, {"log": []}, E.config())
    return error, error.kind, error.node, error.run_timeout, error.idle_timeout, kept(E, app)


@program(drivers=("async",))
def node_is_idle_for_too_long(E: Engine) -> Any:
    async def busy(state: Any) -> Any:
        for n in range(4):
            await E.sleep(0.02)
            E.get_stream_writer()(n)
        return {"log": ["busy"]}

    async def idle(state: Any) -> Any:
        await E.sleep(5)

    policy = E.TimeoutPolicy(idle_timeout=0.06)
    one = E.graph(Log, {"busy": (busy, {"timeout": policy})}, "START > busy").compile()
    two = E.graph(Log, {"idle": (idle, {"timeout": policy})}, "START > idle").compile()
    error = E.attempt(E.invoke, two, {"log": []})
    return E.invoke(one, {"log": []}), error, error.kind, error.idle_timeout


@program(drivers=("async",))
def only_a_heartbeat_counts(E: Engine) -> Any:
    async def beats(state, runtime):
        for _ in range(4):
            await E.sleep(0.15)
            runtime.heartbeat()
        return {"log": ["beats"]}

    async def talks(state, runtime):
        for n in range(20):
            await E.sleep(0.15)
            runtime.stream_writer(n)
        return {"log": ["talks"]}

    policy = E.TimeoutPolicy(idle_timeout=0.5, refresh_on="heartbeat")
    apps = [E.graph(Log, {"n": (body, {"timeout": policy})}, "START > n").compile() for body in (beats, talks)]
    return [E.attempt(E.invoke, app, {"log": []}) for app in apps]


@program(drivers=("async",))
def time_limit_is_retried_and_handled(E: Engine) -> Any:
    tries: list[int] = []

    async def slow(state: Any) -> Any:
        tries.append(1)
        if len(tries) < 3:
            await E.sleep(5)
        return {"log": [f"try {len(tries)}"]}

    async def never(state: Any) -> Any:
        await E.sleep(5)

    def handler(state: Any, error: "NodeError") -> Any:  # noqa: F821
        return {"log": [type(error.error).__name__]}

    retried = {"timeout": 0.02, "retry_policy": quick(E)}
    caught = {"timeout": 0.02, "error_handler": E.node(handler)}
    app = E.graph(Log, {"slow": (slow, retried), "never": (never, caught)}, "START > slow > never")
    return E.attempt(E.invoke, app.compile(), {"log": []}), len(tries)


@program()
def time_limit_of_a_plain_function_is_refused(E: Engine) -> Any:
    g = E.StateGraph(Log)
    g.add_node("a", lambda s: s, timeout=1).add_edge(E.START, "a")
    return E.attempt(g.compile), E.attempt(E.TimeoutPolicy.coerce, 0), E.attempt(E.TimeoutPolicy.coerce, -1)


@program(drivers=("async",))
def time_limit_of_a_send(E: Engine) -> Any:
    async def w(packet: Any) -> Any:
        await E.sleep(packet["s"])
        return {"log": [packet["s"]]}

    def route(state: Any) -> Any:
        return [E.Send("w", {"s": 0.001}), E.Send("w", {"s": 5}, timeout=0.02)]

    app = E.graph(Log, {"r": say("r"), "w": w}, "START > r", ("r", route, ["w"])).compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, {"log": []}, E.config())
    return error, error.node, kept(E, app)
