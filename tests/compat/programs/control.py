"""Command and Send: update, goto, graphs above, commands as input."""

import operator
from typing import Annotated, Any, TypedDict

from compat.registry import Log, differs, kept, look, nodes, program, say
from harness.engine import Engine


def command(E: Engine, name: str, **fields: Any) -> Any:
    """A node that logs its name and returns a Command."""
    return lambda state: E.Command(update={"log": [name]}, **fields)


@program()
def command_updates_and_jumps(E: Engine) -> Any:
    bodies = nodes("bcd", a=command(E, "a", goto="c"), e=command(E, "e", goto=["b", "d"]))
    g = E.graph(Log, bodies, "START > a", "c > e")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def command_adds_to_static_edges(E: Engine) -> Any:
    g = E.graph(Log, nodes("bc", a=command(E, "a", goto="c")), "START > a > b")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def goto_twice_is_once_and_send_twice_is_twice(E: Engine) -> Any:
    gotos = E.graph(
        Log,
        nodes("b", a=command(E, "a", goto=["b", "b"]), c=command(E, "c", goto="b")),
        "START > a",
        "START > c",
    )
    send = E.Send("b", {"log": []})
    sends = E.graph(Log, nodes("b", a=command(E, "a", goto=[send, "b", send])), "START > a")
    return [look(E, g.compile(checkpointer=E.saver()), {"log": []}) for g in (gotos, sends)]


@program()
def goto_the_end_is_nothing(E: Engine) -> Any:
    one = E.graph(Log, nodes("b", a=command(E, "a", goto=E.END)), "START > a > b")
    two = E.graph(Log, nodes("b", a=command(E, "a", goto=[E.END, "b"])), "START > a")
    return [E.invoke(g.compile(), {"log": []}) for g in (one, two)]


@program()
def command_in_every_form_of_update(E: Engine) -> Any:
    class Typed(TypedDict):
        log: list

    class Plain:
        log: list

        def __init__(self) -> None:
            self.log = ["plain"]

    updates = [{"log": ["dict"]}, [("log", ["pair"]), ("log", ["again"])], Plain(), None, {"nobody": 1}]
    results = []
    for value in updates:
        app = E.graph(Log, {"a": lambda s, value=value: E.Command(update=value, goto="b"), "b": say("b")}, "START > a")
        results.append(look(E, app.compile(checkpointer=E.saver()), {"log": []}))
    return results


@program()
def several_commands_of_one_node(E: Engine) -> Any:
    def a(state: Any) -> Any:
        first = E.Command(update={"log": ["one"]}, goto="b")
        return [first, {"log": ["two"]}, E.Command(goto=E.Send("c", {"log": []}))]

    g = E.graph(Log, nodes("bc", a=a), "START > a")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def command_with_branch_and_barrier(E: Engine) -> Any:
    def route(state: Any) -> str:
        return "c"

    bodies = nodes("bcdj", a=command(E, "a", goto="b"))
    g = E.graph(Log, bodies, "START > a", ("a", route, ["c"]), "a > d", "b, c, d > j")
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


def below(E: Engine, leaf: Any, *edges: Any, **kwargs: Any) -> Any:
    """A parent whose node `sub` is a graph with one node, `leaf`."""
    sub = E.graph(Log, {"first": say("first"), "leaf": leaf, "late": say("late")}, "START > first > leaf > late")
    bodies = {"sub": (sub.compile(**kwargs), {"destinations": ("x", "y")}), "x": say("x"), "y": say("y")}
    return E.graph(Log, bodies, "START > sub", *edges)


@program()
def parent_command(E: Engine) -> Any:
    up = {"graph": E.Command.PARENT}
    graphs = [
        below(E, command(E, "leaf", goto="x", **up)),
        below(E, command(E, "leaf", goto="x", **up), "sub > y"),
        below(E, command(E, "leaf", **up), "sub > y"),
        below(E, command(E, "leaf", goto=E.Send("x", {"log": []}), **up)),
        below(E, command(E, "leaf", goto=E.END, **up), "sub > y"),
    ]
    return [look(E, g.compile(checkpointer=E.saver()), {"log": ["in"]}, subgraphs=True) for g in graphs]


@program()
def parent_command_beside_a_sibling(E: Engine) -> Any:
    sub = E.graph(
        Log,
        {"leaf": command(E, "leaf", goto="x", graph=E.Command.PARENT), "twin": say("twin")},
        "START > leaf",
    )
    bodies = {"sub": (sub.compile(), {"destinations": ("x",)}), "other": say("other"), "x": say("x")}
    g = E.graph(Log, bodies, "START > sub", "START > other")
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["in"]})


@program()
def parent_command_through_three_levels(E: Engine) -> Any:
    leaf = E.graph(Log, {"leaf": command(E, "leaf", goto="m", graph=E.Command.PARENT)}, "START > leaf").compile()
    middle = E.graph(Log, {"inner": (leaf, {"destinations": ("m",)}), "m": say("m")}, "START > inner").compile()
    g = E.graph(Log, {"outer": middle, "end": say("end")}, "START > outer > end")
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["in"]})


@program()
def parent_command_of_a_graph_with_a_memory(E: Engine) -> Any:
    g = below(E, command(E, "leaf", goto="x", graph=E.Command.PARENT), checkpointer=True)
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["in"]}, {"log": ["again"]})


@program()
def command_to_a_graph_by_name(E: Engine) -> Any:
    def build(target: str) -> Any:
        def leaf(state: Any) -> Any:
            raise E.ParentCommand(E.Command(graph=target, update={"log": ["leaf"]}, goto="m"))

        lowest = E.graph(Log, nodes("m", leaf=leaf), "START > leaf").compile()
        middle = E.graph(Log, nodes("m", inner=lowest), "START > inner").compile()
        return E.graph(Log, nodes("m", outer=middle, end=say("end")), "START > outer > end")

    targets = ("leaf", "inner", "outer", "outer|inner", "outer|inner|leaf", "nobody")
    return [look(E, build(target).compile(checkpointer=E.saver()), {"log": []}) for target in targets]


@program()
def parent_command_without_a_parent(E: Engine) -> Any:
    up = E.Command(graph=E.Command.PARENT, goto="a")
    app = E.graph(Log, {"a": lambda s: up}, "START > a").compile(checkpointer=E.saver())
    ask = E.graph(Log, {"a": lambda s: {"log": [E.interrupt("?")]}}, "START > a").compile(checkpointer=E.saver())
    E.invoke(ask, {"log": []}, E.config("2"))
    return E.attempt(E.invoke, app, {"log": []}, E.config()), E.attempt(E.invoke, ask, up, E.config("2"))


@program()
def parent_command_from_a_graph_called_inside(E: Engine) -> Any:
    sub = E.graph(Log, {"leaf": command(E, "leaf", goto="x", graph=E.Command.PARENT)}, "START > leaf").compile()

    async def call(state: Any) -> Any:
        await E.inner(sub, {"log": []})
        raise AssertionError("the command leaves this node at once")

    g = E.graph(Log, {"call": (call, {"destinations": ("x",)}), "x": say("x")}, "START > call")
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["in"]})


@program()
def command_as_input_of_a_thread_that_waits(E: Engine) -> Any:
    g = E.graph(Log, nodes("abc"), "START > a > b")
    app = g.compile(checkpointer=E.saver(), interrupt_after=["a"])
    return look(E, app, {"log": []}, E.Command(update={"log": ["u"]}, goto="c"))


@program()
def command_as_input_of_a_finished_thread(E: Engine) -> Any:
    app = E.graph(Log, nodes("abc"), "START > a > b").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, E.Command(goto="c"), E.Command(goto=E.Send("b", {"log": ["s"]})))


@program()
def command_as_input_with_an_update_only(E: Engine) -> Any:
    app = E.graph(Log, nodes("ab"), "START > a > b").compile(checkpointer=E.saver(), interrupt_before=["b"])
    return look(E, app, {"log": []}, E.Command(update={"log": ["u"]}), None)


@program()
def command_from_a_node_reached_by_send(E: Engine) -> Any:
    def route(state: Any) -> Any:
        return [E.Send("w", {"n": n}) for n in range(3)]

    def w(packet: Any) -> Any:
        return E.Command(update={"log": [packet["n"]]}, goto="end" if packet["n"] % 2 else ())

    g = E.graph(Log, nodes("r end", w=w), "START > r", ("r", route, ["w"]))
    return look(E, g.compile(checkpointer=E.saver()), {"log": []})


@program()
def sends_stored_with_the_checkpoint_survive_a_pause(E: Engine) -> Any:
    def route(state: Any) -> Any:
        return [E.Send("w", {"n": n}) for n in range(2)]

    def w(packet: Any) -> Any:
        return {"log": [packet["n"]]}

    g = E.graph(Log, nodes("r end", w=w), "START > r", ("r", route, ["w"]), "w > end")
    return look(E, g.compile(checkpointer=E.saver(), interrupt_before=["w"]), {"log": []}, None)


@differs(
    "A Command as the first input is applied once",
    ours=lambda got: got["log"] == ["q", "a", "b", "b"] or got["log"] == ["q", "a", "b"],
    theirs=lambda got: got["log"] == ["q", "q", "a", "b", "b"],
)
def command_as_first_input(E: Engine) -> Any:
    app = E.graph(Log, nodes("ab"), "START > a > b").compile(checkpointer=E.saver())
    return E.invoke(app, E.Command(update={"log": ["q"]}, goto="b"), E.config())


@differs(
    "An empty Command is an empty input",
    ours=[("error", "EmptyInputError")] * 2,
    theirs=[("error", "UnboundLocalError")] * 2,
)
def empty_command(E: Engine) -> Any:
    app = E.graph(Log, nodes("ab"), "START > a > b").compile(checkpointer=E.saver(), interrupt_before=["b"])
    E.invoke(app, {"log": []}, E.config())
    return [E.attempt(E.invoke, app, command, E.config()) for command in (E.Command(), E.Command(resume=None))]


@differs(
    "A goto, a Send or a router that names a node that is not there raises; the reference logs and goes on",
    ours=lambda got: got == [("error", "InvalidUpdateError")] * 4,
    theirs=lambda got: not any(isinstance(result, tuple) for result in got),
)
def unknown_targets(E: Engine) -> Any:
    def nowhere(state: Any) -> str:
        return "nowhere"

    def sent(state: Any) -> Any:
        return E.Send("nowhere", {})

    graphs = [
        E.graph(Log, {"a": command(E, "a", goto="nowhere")}, "START > a"),
        E.graph(Log, {"a": command(E, "a", goto=E.Send("nowhere", {}))}, "START > a"),
        E.graph(Log, nodes("a"), "START > a", ("a", nowhere)),
        E.graph(Log, nodes("a"), "START > a", ("a", sent)),
    ]
    return [E.attempt(E.invoke, g.compile(), {"log": []}) for g in graphs]


@program()
def numbers_flow_through_commands(E: Engine) -> Any:
    state = TypedDict("S", {"n": Annotated[int, operator.add], "log": Annotated[list, operator.add]})

    def step(s: Any) -> Any:
        return E.Command(update={"n": 1, "log": [s["n"]]}, goto="step" if s["n"] < 3 else E.END)

    app = E.graph(state, {"step": step}, "START > step").compile(checkpointer=E.saver())
    return E.invoke(app, {"n": 0}, E.config()), kept(E, app)
