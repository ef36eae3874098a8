"""Edges of every kind: lines, fans, barriers, branches, loops, Sends, deferred nodes."""

from typing import Annotated, Any, TypedDict

from compat.registry import Log, kept, look, nodes, program, say
from harness.engine import Engine


@program()
def line_in_all_modes(E: Engine) -> Any:
    state = TypedDict("S", {**Log.__annotations__, "n": int})
    g = E.graph(state, {"a": say("a", n=1), "b": say("b")}, "START > a > b")
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["in"]})


@program()
def line_in_debug_mode(E: Engine) -> Any:
    g = E.graph(Log, nodes("ab"), "START > a > b")
    return E.stream(g.compile(checkpointer=E.saver()), {"log": ["in"]}, E.config(), stream_mode="debug")


@program()
def line_without_a_saver(E: Engine) -> Any:
    app = E.graph(Log, nodes("ab"), "START > a > b > END").compile()
    runs = [E.stream(app, {"log": ["in"]}, stream_mode=m) for m in ("values", "updates", "tasks", "checkpoints")]
    return E.invoke(app, {"log": ["in"]}), runs


@program()
def two_turns_on_one_thread(E: Engine) -> Any:
    g = E.graph(Log, nodes("ab"), "START > a > b")
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["one"]}, {"log": ["two"]}, None)


@program()
def fan_out_and_in(E: Engine) -> Any:
    g = E.graph(Log, nodes("abcd", j=say("j")), "START > a", "a > d > j", "a > c > j", "a > b > j")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def long_fan_without_barrier_runs_the_join_twice(E: Engine) -> Any:
    g = E.graph(Log, nodes("a b c b2 j"), "START > a > b > b2 > j", "a > c > j")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def barrier_over_branches_of_unequal_length(E: Engine) -> Any:
    g = E.graph(Log, nodes("a b c b2 j"), "START > a > b > b2", "a > c", "b2, c > j > END")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def barrier_fires_again_in_a_loop(E: Engine) -> Any:
    def more(state: Any) -> str:
        return "b" if len(state["log"]) < 8 else "END"

    def both(state: Any) -> list[str]:
        return ["b", "c"] if len(state["log"]) < 8 else [E.END]

    g = E.graph(Log, nodes("b c j"), "START > b", "START > c", "b, c > j", ("j", both, ["b", "c", E.END]))
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def barrier_keeps_waiting_across_turns(E: Engine) -> Any:
    def first(state: Any) -> str:
        return state["log"][-1]

    g = E.graph(Log, nodes("b c j"), ("START", first, ["b", "c"]), "b, c > j")
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["b"]}, {"log": ["b"]}, {"log": ["c"]})


@program()
def two_barriers_into_one_node(E: Engine) -> Any:
    g = E.graph(Log, nodes("a b c d j"), *(f"START > {n}" for n in "abc"), "a > d", "a, b > j", "c, d > j")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def branch_by_name(E: Engine) -> Any:
    def route(state: Any) -> str:
        return state["log"][0]

    app = E.graph(Log, nodes("abc"), "START > a", ("a", route)).compile()
    return [E.invoke(app, {"log": [word]}) for word in ("b", "c", E.END)]


@program()
def branch_through_a_map(E: Engine) -> Any:
    def route(state: Any) -> Any:
        return state["log"][0]

    to = {True: "b", 7: "c", "end": E.END}
    app = E.graph(Log, nodes("abc"), "START > a", ("a", route, to)).compile()
    runs = [E.invoke(app, {"log": [word]}) for word in (True, 7, "end")]
    return runs, isinstance(E.attempt(E.invoke, app, {"log": ["lost"]}), KeyError)


@program()
def branch_to_several_and_to_none(E: Engine) -> Any:
    def route(state: Any) -> list[str]:
        return [word for word in state["log"][1:] if word != "a"]

    app = E.graph(Log, nodes("abc"), "START > a", ("a", route, ["b", "c", E.END])).compile()
    wanted: list[list[str]] = [["b", "c"], ["c", "b"], ["c", "c"], [], [E.END], ["b", E.END]]
    return [E.invoke(app, {"log": ["in", *words]}) for words in wanted]


@program()
def branch_sees_the_writes_of_its_own_node(E: Engine) -> Any:
    def route(state: Any) -> str:
        return "b" if state["log"] == ["in", "a"] else "c"

    g = E.graph(Log, nodes("abc", x=say("x")), "START > a", "START > x", ("a", route, ["b", "c"]))
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["in"]})


@program()
def several_branches_and_an_edge_from_one_node(E: Engine) -> Any:
    def one(state: Any) -> str:
        return "b"

    def two(state: Any) -> list[str]:
        return ["c", "b"]

    g = E.graph(Log, nodes("abcd"), "START > a > d", ("a", one, ["b"]), ("a", two, ["b", "c"]))
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def branch_from_the_start(E: Engine) -> Any:
    def route(state: Any) -> Any:
        return [E.Send("a", {"log": ["sent"]}), "b"]

    g = E.graph(Log, nodes("ab"), ("START", route, ["a", "b"]))
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["in"]})


@program()
def branch_without_a_valid_destination(E: Engine) -> Any:
    def nowhere(state: Any) -> Any:
        return None

    def end(state: Any) -> Any:
        return [E.Send(E.END, {})]

    return [
        type(E.attempt(E.invoke, E.graph(Log, nodes("a"), "START > a", ("a", path)).compile(), {"log": []})).__name__
        for path in (nowhere, end)
    ]


@program()
def loop_with_a_bound(E: Engine) -> Any:
    def again(state: Any) -> str:
        return "a" if len(state["log"]) < 7 else E.END

    g = E.graph(Log, nodes("ab"), "START > a > b", ("b", again, ["a", E.END]))
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def node_that_triggers_itself(E: Engine) -> Any:
    def again(state: Any) -> str:
        return "a" if len(state["log"]) < 4 else E.END

    g = E.graph(Log, nodes("a"), "START > a", ("a", again))
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def sends_keep_their_order(E: Engine) -> Any:
    def route(state: Any) -> Any:
        return [E.Send("w", {"k": 2}), E.Send("w", {"k": 1}), "z"]

    def w(packet: Any) -> Any:
        return {"log": [packet["k"]]}

    g = E.graph(Log, nodes("r z j", w=w), "START > r", ("r", route, ["w", "z"]), "w > j", "z > j")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def send_and_edge_to_the_same_node(E: Engine) -> Any:
    def route(state: Any) -> Any:
        return [E.Send("w", {"log": ["sent"]}), E.Send("w", {"log": ["sent"]}), "w"]

    def w(state: Any) -> Any:
        return {"log": ["w:" + ",".join(state["log"])]}

    g = E.graph(Log, {"r": say("r"), "w": w}, "START > r", ("r", route, ["w"]))
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["in"]})


@program()
def sends_that_send_on(E: Engine) -> Any:
    def split(packet: Any) -> Any:
        n = packet.get("n", 3)
        return {"log": [n]} if n < 2 else E.Command(update={"log": [n]}, goto=[E.Send("w", {"n": n - 1})] * 2)

    g = E.graph(Log, {"w": split}, "START > w")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def branch_after_a_send_reads_the_state(E: Engine) -> Any:
    def spread(state: Any) -> Any:
        return [E.Send("w", {"other": i}) for i in range(2)]

    def route(state: Any) -> str:
        return "yes" if state["log"][:2] == ["in", "r"] else "no"

    def w(packet: Any) -> Any:
        return {"log": [packet["other"]]}

    g = E.graph(Log, nodes("r yes no", w=w), "START > r", ("r", spread, ["w"]), ("w", route, ["yes", "no"]))
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["in"]})


@program()
def deferred_node_waits_for_everything(E: Engine) -> Any:
    g = E.graph(Log, nodes("a b c b2", d=(say("d"), {"defer": True})), "START > a > b > b2 > d", "a > c > d")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def deferred_after_deferred(E: Engine) -> Any:
    deferred = {name: (say(name), {"defer": True}) for name in ("d1", "d2")}
    g = E.graph(Log, {"a": say("a"), **deferred}, "START > a > d1 > d2", "a > d2")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def deferred_barrier(E: Engine) -> Any:
    g = E.graph(
        Log,
        nodes("a b c long1 long2", d=(say("d"), {"defer": True})),
        "START > a",
        "a > b",
        "a > c",
        "a > long1 > long2",
        "b, c > d > END",
    )
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def deferred_node_reached_by_sends_and_loops(E: Engine) -> Any:
    def route(state: Any) -> Any:
        return [E.Send("w", {}), E.Send("w", {}), "d"]

    def again(state: Any) -> str:
        return "r" if len(state["log"]) < 6 else E.END

    g = E.graph(
        Log,
        {"r": say("r"), "w": say("w"), "d": (say("d"), {"defer": True})},
        "START > r",
        ("r", route, ["w", "d"]),
        ("d", again, ["r", E.END]),
    )
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def sequence(E: Engine) -> Any:
    def first(state: Any) -> Any:
        return {"log": ["first"]}

    builder = E.StateGraph(Log).add_sequence([E.node(first), ("second", E.node(say("second")))])
    builder.set_entry_point("first").set_finish_point("second")
    return look(E, builder.compile(checkpointer=E.saver()), {"log": []})


@program()
def nodes_of_many_kinds(E: Engine) -> Any:
    class Callable:
        def __call__(self, state: Any) -> Any:
            return {"log": ["object"]}

        def method(self, state: Any) -> Any:
            return {"log": ["method"]}

    thing = Callable()
    builder = E.StateGraph(Log).add_sequence([("o", thing), ("m", thing.method), ("l", lambda s: {"log": ["lambda"]})])
    builder.add_edge(E.START, "o")
    return E.invoke(builder.compile(), {"log": []})


@program()
def node_that_returns_a_graph(E: Engine) -> Any:
    sub = E.graph(Log, nodes("s"), "START > s").compile()

    def a(state: Any) -> Any:
        return sub

    return look(E, E.graph(Log, {"a": a}, "START > a").compile(checkpointer=E.saver()), {"log": ["in"]})


@program()
def wide_step_folds_by_name_not_by_time(E: Engine) -> Any:
    def late(name: str, seconds: float) -> Any:
        async def body(state: Any) -> Any:
            await E.sleep(seconds)
            return {"log": [name]}

        return body

    bodies = {name: late(name, (5 - i) / 200) for i, name in enumerate("edcba")}
    app = E.graph(Log, bodies, *(f"START > {name}" for name in bodies)).compile(checkpointer=E.saver())
    return E.invoke(app, {"log": []}, E.config()), kept(E, app)


@program()
def two_readers_of_one_write(E: Engine) -> Any:
    state = TypedDict("S", {"x": int, "seen": Annotated[list, lambda a, b: [*a, *b]]})

    def see(name: str) -> Any:
        return lambda s: {"seen": [(name, s["x"])]}

    g = E.graph(state, {"w": lambda s: {"x": s["x"] + 1}, "p": see("p"), "q": see("q")}, "START > w", "w > p", "w > q")
    return look(E, g.compile(checkpointer=E.saver()), {"x": 1, "seen": []})
