"""Graphs inside graphs: as nodes, called inside nodes, with and without a memory, to any depth."""

import operator
from typing import Annotated, Any, TypedDict

from compat.registry import Log, ask, kept, look, nodes, program, say
from harness.engine import Engine

Other = TypedDict("Other", {"words": Annotated[list, operator.add]})


def spaces(E: Engine, app: Any, saver: Any) -> list[Any]:
    """The stored rows of every namespace of the thread."""
    return E.rows(saver, E.config())


@program()
def subgraph_as_a_node(E: Engine) -> Any:
    sub = E.graph(Log, nodes("xy"), "START > x > y").compile()
    g = E.graph(Log, {"a": say("a"), "sub": sub, "b": say("b")}, "START > a > sub > b")
    return look(E, g.compile(checkpointer=E.saver()), {"log": ["in"]}, subgraphs=True)


@program()
def subgraph_streamed_from_outside_only(E: Engine) -> Any:
    sub = E.graph(Log, nodes("xy"), "START > x > y").compile()
    g = E.graph(Log, {"a": say("a"), "sub": sub}, "START > a > sub")
    app = g.compile(checkpointer=E.saver())
    return look(E, app, {"log": ["in"]}), E.stream(app, {"log": []}, E.config("2"), stream_mode="debug", subgraphs=True)


@program()
def subgraph_called_inside_a_node(E: Engine) -> Any:
    def shout(state: Any) -> Any:
        E.get_stream_writer()("hello")
        return {"words": [word.upper() for word in state["words"]] + [E.interrupt("?")]}

    sub = E.graph(Other, {"shout": shout}, "START > shout").compile()

    async def wrap(state: Any) -> Any:
        result = await E.inner(sub, {"words": state["log"]})
        return {"log": result["words"]}

    app = E.graph(Log, {"wrap": wrap}, "START > wrap").compile(checkpointer=E.saver())
    return look(E, app, {"log": ["in"]}, E.Command(resume="R"), subgraphs=True)


@program()
def two_graphs_called_in_one_node(E: Engine) -> Any:
    one = E.graph(Other, {"x": lambda s: {"words": ["x"]}}, "START > x").compile()
    two = E.graph(Other, {"y": lambda s: {"words": ["y", E.interrupt("y?")]}}, "START > y").compile()

    async def wrap(state: Any) -> Any:
        results = [await E.inner(g, {"words": [str(n)]}) for n, g in enumerate((one, two, one))]
        return {"log": [result["words"] for result in results]}

    app = E.graph(Log, {"wrap": wrap}, "START > wrap").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, E.Command(resume="R"), subgraphs=True)


@program()
def two_questions_of_a_graph_called_inside(E: Engine) -> Any:
    sub = E.graph(Log, {"x": ask(E, "x?"), "y": ask(E, "y?")}, "START > x > y").compile()

    async def call(state: Any) -> Any:
        return {"log": (await E.inner(sub, {"log": []}))["log"]}

    app = E.graph(Log, {"call": call}, "START > call").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, E.Command(resume="1"), E.Command(resume="2"), subgraphs=True)


@program()
def three_levels_with_questions_at_each(E: Engine) -> Any:
    low = E.graph(Log, {"l1": say("l1"), "l2": ask(E, "low?")}, "START > l1 > l2").compile()
    mid = E.graph(Log, {"m1": ask(E, "mid?"), "m2": low, "m3": say("m3")}, "START > m1 > m2 > m3").compile()
    top = E.graph(Log, {"t1": say("t1"), "t2": mid, "t3": ask(E, "top?")}, "START > t1 > t2 > t3")
    answers = [E.Command(resume=str(n)) for n in range(3)]
    return look(E, top.compile(checkpointer=E.saver()), {"log": []}, *answers, subgraphs=True)


@program()
def state_of_a_paused_tree(E: Engine) -> Any:
    low = E.graph(Log, {"l1": say("l1"), "l2": ask(E, "low?")}, "START > l1 > l2").compile()
    mid = E.graph(Log, {"m1": say("m1"), "m2": low}, "START > m1 > m2").compile()
    saver = E.saver()
    app = E.graph(Log, {"t1": say("t1"), "t2": mid}, "START > t1 > t2").compile(checkpointer=saver)
    E.invoke(app, {"log": []}, E.config())
    seen = [E.state(app, E.config(), subgraphs=deep) for deep in (False, True)]
    inside = seen[1].tasks[0].state
    below = inside.tasks[0].state
    configs = [snapshot.config for snapshot in (inside, below)]
    return seen, [(E.state(app, c), E.history(app, c)) for c in configs], spaces(E, app, saver)


@program()
def history_of_a_subgraph_by_its_namespace(E: Engine) -> Any:
    sub = E.graph(Log, {"x": say("x"), "y": ask(E, "?"), "z": say("z")}, "START > x > y > z").compile()
    app = E.graph(Log, {"sub": sub}, "START > sub").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    space = E.state(app, E.config()).tasks[0].state["configurable"]["checkpoint_ns"]
    config = E.config(checkpoint_ns=space)
    before = E.state(app, config), E.history(app, config)
    E.invoke(app, E.Command(resume="r"), E.config())
    return before, E.state(app, config), E.history(app, config), E.history(app, config, limit=1)


@program()
def subgraph_with_a_memory_of_its_own(E: Engine) -> Any:
    sub = E.graph(Other, {"x": lambda s: {"words": [len(s["words"])]}}, "START > x").compile(checkpointer=True)

    async def call(state: Any) -> Any:
        return {"log": [(await E.inner(sub, {"words": ["w"]}))["words"]]}

    app = E.graph(Log, {"call": call}, "START > call").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, {"log": []}, {"log": []}, subgraphs=True)


@program()
def subgraph_node_with_a_memory_of_its_own(E: Engine) -> Any:
    state = TypedDict("S", {"log": Annotated[list, operator.add], "turns": Annotated[int, operator.add]})
    sub = E.graph(state, {"x": lambda s: {"turns": 1, "log": [s["turns"]]}}, "START > x").compile(checkpointer=True)
    app = E.graph(Log, {"sub": sub, "z": say("z")}, "START > sub > z").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, {"log": []}, subgraphs=True)


@program()
def two_memories_called_in_one_node(E: Engine) -> Any:
    sub = E.graph(Other, {"x": lambda s: {"words": [len(s["words"])]}}, "START > x").compile(checkpointer=True)

    async def call(state: Any) -> Any:
        results = [await E.inner(sub, {"words": [word]}) for word in "ab"]
        return {"log": [result["words"] for result in results]}

    app = E.graph(Log, {"call": call}, "START > call").compile(checkpointer=E.saver())
    return [E.attempt(look, E, app, {"log": []}, {"log": []})]


@program()
def subgraph_with_a_memory_and_a_question(E: Engine) -> Any:
    sub = E.graph(Log, {"x": say("x"), "y": ask(E, "y?")}, "START > x > y").compile(checkpointer=True)
    app = E.graph(Log, {"sub": sub}, "START > sub").compile(checkpointer=E.saver())
    turn = [{"log": ["in"]}, E.Command(resume="r")]
    return look(E, app, *turn, *turn, subgraphs=True)


@program()
def subgraph_that_keeps_nothing(E: Engine) -> Any:
    ran: list[str] = []

    def x(state: Any) -> Any:
        ran.append("x")
        return {"log": ["x"]}

    sub = E.graph(Log, {"x": x, "y": ask(E, "y?")}, "START > x > y").compile(checkpointer=False)
    app = E.graph(Log, {"sub": sub}, "START > sub").compile(checkpointer=E.saver())
    # the rows differ: we keep the answer beside the task, so that a second question does not ask the first again
    asked = E.invoke(app, {"log": []}, E.config())
    return [i.value for i in asked["__interrupt__"]], E.invoke(app, E.Command(resume="r"), E.config()), ran


@program()
def savers_that_make_no_sense(E: Engine) -> Any:
    g = E.graph(Log, nodes("a"), "START > a")
    root = E.attempt(E.invoke, g.compile(checkpointer=True), {"log": []}, E.config())
    return root, E.attempt(g.compile, checkpointer="memory"), E.attempt(E.state, g.compile(), E.config())


@program()
def inner_graph_on_a_thread_of_its_own(E: Engine) -> Any:
    saver = E.saver()
    sub = E.graph(Log, nodes("x"), "START > x").compile(checkpointer=saver)

    async def call(state: Any) -> Any:
        return {"log": (await E.inner(sub, {"log": ["mine"]}, E.config("other")))["log"]}

    app = E.graph(Log, {"call": call}, "START > call").compile(checkpointer=saver)
    return look(E, app, {"log": []}), E.rows(saver, E.config("other"))


@program()
def parallel_subgraphs_with_questions(E: Engine) -> Any:
    def part(name: str) -> Any:
        return E.graph(Log, {"x": say(name), "y": ask(E, name + "?")}, "START > x > y").compile()

    app = E.graph(Log, {"p": part("p"), "q": part("q"), "j": say("j")}, "START > p > j", "START > q > j")
    app = app.compile(checkpointer=E.saver())
    first = E.invoke(app, {"log": []}, E.config())
    before = kept(E, app)
    answers = {i.id: i.value.upper() for i in first["__interrupt__"]}
    return first, before, E.invoke(app, E.Command(resume=answers), E.config()), kept(E, app)


@program()
def parallel_questions_inside_one_subgraph(E: Engine) -> Any:
    sub = E.graph(
        Log,
        {"s": say("s"), "x": ask(E, "x?"), "y": ask(E, "y?"), "z": say("z")},
        "START > s",
        "s > x",
        "s > y",
        "x, y > z",
    ).compile()
    app = E.graph(Log, {"sub": sub}, "START > sub").compile(checkpointer=E.saver())
    first = E.invoke(app, {"log": []}, E.config())
    answers = {i.id: i.value.upper() for i in first["__interrupt__"]}
    return first, E.invoke(app, E.Command(resume=answers), E.config()), kept(E, app)


@program()
def same_graph_as_two_nodes_and_in_sends(E: Engine) -> Any:
    sub = E.graph(Log, nodes("x"), "START > x").compile()

    def route(state: Any) -> Any:
        return [E.Send("s1", {"log": [n]}) for n in range(2)] + ["s2"]

    app = E.graph(Log, {"r": say("r"), "s1": sub, "s2": sub}, "START > r", ("r", route, ["s1", "s2"]))
    app = app.compile(checkpointer=E.saver())
    return E.invoke(app, {"log": []}, E.config()), kept(E, app)


@program()
def breakpoint_inside_a_subgraph(E: Engine) -> Any:
    sub = E.graph(Log, nodes("xyz"), "START > x > y > z").compile(interrupt_before=["y"])
    app = E.graph(Log, {"a": say("a"), "sub": sub, "b": say("b")}, "START > a > sub > b").compile(
        checkpointer=E.saver()
    )
    return look(E, app, {"log": []}, None, subgraphs=True)


@program()
def schemas_of_parent_and_child_overlap_in_part(E: Engine) -> Any:
    child = TypedDict("Child", {"shared": str, "own": str})
    parent = TypedDict("Parent", {"shared": str, "other": str})
    sub = E.graph(child, {"x": lambda s: {"shared": s["shared"] + "x", "own": "o"}}, "START > x").compile()
    app = E.graph(parent, {"sub": sub}, "START > sub").compile(checkpointer=E.saver())
    return look(E, app, {"shared": "in", "other": "kept"}, subgraphs=True)


@program()
def failure_inside_a_subgraph_resumes_inside(E: Engine) -> Any:
    from harness.engine import Boom

    ran: list[str] = []

    def x(state: Any) -> Any:
        ran.append("x")
        return {"log": ["x"]}

    def y(state: Any) -> Any:
        ran.append("y")
        if ran.count("y") == 1:
            raise Boom("once")
        return {"log": ["y"]}

    sub = E.graph(Log, {"x": x, "y": y}, "START > x > y").compile()
    app = E.graph(Log, {"a": say("a"), "sub": sub}, "START > a > sub").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}, None, subgraphs=True), ran


@program()
def update_of_a_paused_subgraph(E: Engine) -> Any:
    sub = E.graph(Log, {"x": say("x"), "y": say("y"), "z": say("z")}, "START > x > y > z")
    sub = sub.compile(interrupt_before=["z"])
    app = E.graph(Log, {"sub": sub, "b": say("b")}, "START > sub > b").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, E.config())
    inside = E.state(app, E.config(), subgraphs=True).tasks[0].state.config
    moved = E.update(app, inside, {"log": ["edit"]})
    between = E.state(app, E.config(), subgraphs=True)
    return moved, between, E.invoke(app, None, E.config()), kept(E, app)


@program()
def list_of_subgraphs(E: Engine) -> Any:
    low = E.graph(Log, nodes("l"), "START > l").compile()
    mid = E.graph(Log, {"m": low}, "START > m").compile()
    app = E.graph(Log, {"a": say("a"), "t": mid}, "START > a > t").compile()
    flat = [name for name, _ in app.get_subgraphs()]
    deep = [name for name, _ in app.get_subgraphs(recurse=True)]
    return flat, deep, [name for name, _ in app.get_subgraphs(namespace="t|m", recurse=True)]
