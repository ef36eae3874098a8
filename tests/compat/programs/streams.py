"""Shapes of what a stream yields, and of what invoke returns."""

import dataclasses
import operator
from typing import Annotated, Any, TypedDict

import pydantic
from compat.registry import Log, ask, differs, look, nodes, program, say
from harness.engine import Engine


def nested(E: Engine) -> Any:
    sub = E.graph(Log, nodes("x"), "START > x").compile()
    g = E.graph(Log, {"a": say("a"), "b": sub, "c": (say("c"), {"defer": True})}, "START > a > b > c")
    return g.compile(checkpointer=E.saver())


@program()
def shapes_of_chunks(E: Engine) -> Any:
    app, results = nested(E), []
    for n, mode in enumerate((None, "values", "updates", ["updates"], ["values", "updates"], "tasks", "debug")):
        for deep in (False, True):
            config = E.config(f"{n}{deep}")
            results.append(E.stream(app, {"log": []}, config, stream_mode=mode, subgraphs=deep))
    return results


@program()
def shapes_of_chunks_in_version_2(E: Engine) -> Any:
    app, results = nested(E), []
    for n, mode in enumerate(("values", ["updates", "values"], ["tasks", "checkpoints"], "custom", "debug")):
        for deep in (False, True):
            config = E.config(f"{n}{deep}")
            results.append(E.stream(app, {"log": []}, config, stream_mode=mode, subgraphs=deep, version="v2"))
    return results


@program()
def what_invoke_returns(E: Engine) -> Any:
    app = nested(E)
    modes: list[Any] = ["values", "updates", ["values"], ["values", "updates"], "tasks"]
    return [E.invoke(app, {"log": []}, E.config(str(n)), stream_mode=mode) for n, mode in enumerate(modes)]


@program()
def chosen_output_keys(E: Engine) -> Any:
    state = TypedDict("S", {"x": int, "y": int, "log": Annotated[list, operator.add]})
    app = E.graph(state, {"a": say("a", x=1), "b": say("b", y=2), "c": lambda s: None}, "START > a > b > c")
    app = app.compile(checkpointer=E.saver())
    results = []
    for n, keys in enumerate(("x", ["x"], ["x", "y"], ["log"])):
        results.append(look(E, app, {"log": ["in"]}, config=E.config(str(n)), output_keys=keys)["runs"])
        results.append(E.invoke(app, {"log": ["in"]}, E.config(f"i{n}"), output_keys=keys))
    return results, E.attempt(E.invoke, app, {"log": []}, E.config(), output_keys=["nobody"])


@program()
def updates_of_every_kind(E: Engine) -> Any:
    bodies = {
        "nothing": lambda s: None,
        "twice": lambda s: [E.Command(update={"log": ["one"]}), E.Command(update={"log": ["two"]})],
        "clean": lambda s: {"log": E.Overwrite(["clean"])},
        "jump": lambda s: E.Command(goto="end"),
        "end": say("end"),
    }
    app = E.graph(Log, bodies, "START > nothing > twice > clean > jump").compile(checkpointer=E.saver())
    return look(E, app, {"log": ["in"]})


@program()
def custom_chunks(E: Engine) -> Any:
    def a(state, writer):
        writer("by parameter")
        E.get_stream_writer()({"by": "function"})
        return {"log": ["a"]}

    def b(state, runtime):
        runtime.stream_writer(("by", "runtime"))
        return {"log": ["b"]}

    sub = E.graph(Log, {"b": b}, "START > b").compile()
    app = E.graph(Log, {"a": a, "sub": sub}, "START > a > sub").compile()
    modes: list[Any] = ["custom", ["custom", "updates"]]
    runs = [E.stream(app, {"log": []}, stream_mode=mode, subgraphs=deep) for mode in modes for deep in (False, True)]
    return runs, E.invoke(app, {"log": []})


@program()
def custom_chunks_of_a_graph_called_inside(E: Engine) -> Any:
    def x(state, writer):
        writer("inside")
        return {"log": ["x"]}

    sub = E.graph(Log, {"x": x}, "START > x").compile()

    async def call(state, writer):
        writer("before")
        result = await E.inner(sub, {"log": []})
        writer("after")
        return result

    app = E.graph(Log, {"call": call}, "START > call").compile()
    return [E.stream(app, {"log": []}, stream_mode=["custom", "values"], subgraphs=deep) for deep in (False, True)]


@program()
def chunks_of_questions(E: Engine) -> Any:
    sub = E.graph(Log, {"x": ask(E, "x?")}, "START > x").compile()
    app = E.graph(Log, {"a": say("a"), "sub": sub}, "START > a > sub").compile(checkpointer=E.saver())
    results = []
    for n, mode in enumerate(("values", "updates", "tasks", ["values", "updates", "tasks"])):
        for version in ("v1", "v2"):
            config = E.config(f"{n}{version}")
            for given in ({"log": []}, E.Command(resume="r")):
                results.append(E.stream(app, given, config, stream_mode=mode, subgraphs=True, version=version))
    return results


@program()
def chunks_of_a_failed_run(E: Engine) -> Any:
    from harness.engine import Boom

    def bad(state: Any) -> Any:
        E.get_stream_writer()("last words")
        raise Boom("bad")

    app = E.graph(Log, {"a": say("a"), "bad": bad}, "START > a > bad").compile(checkpointer=E.saver())
    collected: list[Any] = []

    def sync() -> None:
        for chunk in app.stream(
            {"log": []}, E.config(), stream_mode=["values", "updates", "tasks", "custom", "checkpoints"]
        ):
            collected.append(chunk)

    async def run() -> None:
        options = {"stream_mode": ["values", "updates", "tasks", "custom", "checkpoints"]}
        async for chunk in app.astream({"log": []}, E.config(), **options):
            collected.append(chunk)

    return E.attempt(lambda: E.wait(run()) if E.is_async else sync()), collected


@program()
def typed_output_in_version_2(E: Engine) -> Any:
    class Model(pydantic.BaseModel):
        x: int
        y: str = "y"

    @dataclasses.dataclass
    class Data:
        x: int
        y: str = "y"

    results = []
    for schema in (Model, Data):
        app = E.graph(schema, {"a": lambda s: {"x": s.x + 1}}, "START > a").compile(checkpointer=E.saver())
        for version in ("v1", "v2"):
            config = E.config(version + schema.__name__)
            results.append(E.invoke(app, {"x": 1}, config, version=version))
            modes = ["values", "updates"]
            results.append(E.stream(app, {"x": 1}, E.config(version), stream_mode=modes, version=version))
    return results


@program()
def mode_of_a_node_and_of_the_whole(E: Engine) -> Any:
    app = nested(E)
    return app.stream_mode, [c for c in E.stream(app, {"log": []}, E.config())], app.name, app.get_name()


@program()
def names_tags_and_metadata_in_tasks(E: Engine) -> Any:
    bodies = {"a": (say("a"), {"metadata": {"color": "red"}}), "b": say("b")}
    app = E.graph(Log, bodies, "START > a > b").compile(checkpointer=E.saver())
    config = E.config() | {"tags": ["t1"], "metadata": {"m": 1}}
    return E.stream(app, {"log": []}, config, stream_mode="tasks")


@program()
def values_only_when_an_output_key_changed(E: Engine) -> Any:
    state = TypedDict("State", {"log": Annotated[list, operator.add], "hidden": int})
    g = E.graph(
        state,
        {"a": lambda s: {"hidden": 1}, "b": say("b"), "c": lambda s: None},
        "START > a > b > c",
        output_schema=Log,
    )
    app = g.compile()
    return E.stream(app, {"log": ["in"]}, stream_mode="values"), E.stream(
        app, {"log": ["in"]}, output_keys=["log"], stream_mode="values"
    )


@program()
def batches(E: Engine) -> Any:
    app = E.graph(Log, nodes("ab"), "START > a > b").compile(checkpointer=E.saver())
    inputs = [{"log": [str(n)]} for n in range(4)]
    many = E.batch(app, inputs, [E.config(str(n)) for n in range(4)])

    def bad(state: Any) -> Any:
        raise ValueError(state["log"][0])

    fails = E.graph(Log, {"bad": bad}, "START > bad").compile()
    kept_errors = E.batch(fails, inputs[:2], return_exceptions=True)
    return many, kept_errors, E.attempt(E.batch, fails, inputs[:2]), E.batch(app, [])


@program()
def config_of_a_compiled_graph(E: Engine) -> Any:
    def a(state, config):
        told = config["configurable"].get("who"), config.get("tags"), config["metadata"].get("m")
        return {"log": [told]}

    app = E.graph(Log, {"a": a}, "START > a").compile().with_config(configurable={"who": "me"}, tags=["t"])
    app = app.with_config({"metadata": {"m": 1}, "recursion_limit": 3})
    other = {"configurable": {"who": "you"}, "tags": ["u"]}
    return E.invoke(app, {"log": []}), E.invoke(app, {"log": []}, other)


@differs(
    "`with_config` keeps what the graph knows of its output",
    ours=lambda got: got[0] == "GraphOutput" and got[1]["value"][0] == "Model",
    theirs=lambda got: got[1]["value"] == {"x": 2},
)
def with_config_keeps_the_output_type(E: Engine) -> Any:
    class Model(pydantic.BaseModel):
        x: int

    app = E.graph(Model, {"a": lambda s: {"x": s.x + 1}}, "START > a").compile().with_config(tags=["t"])
    return E.invoke(app, {"x": 1}, version="v2")


@differs(
    "Any sequence of modes gives tagged chunks, not a list alone",
    ours=lambda got: [chunk[1][0] for chunk in got] == ["values", "updates", "values"],
    theirs=lambda got: all(chunk[0] == "dict" for chunk in got),
)
def modes_in_a_tuple(E: Engine) -> Any:
    app = E.graph(Log, nodes("a"), "START > a").compile()
    return E.stream(app, {"log": []}, stream_mode=("values", "updates"))


class Typed(pydantic.BaseModel):
    x: int


def typed(E: Engine, schema: Any, name: str, node: Any, **options: Any) -> Any:
    return E.graph(schema, {name: node}, f"START > {name}").compile(**options)


@program()
def typed_checkpoints_in_version_2(E: Engine) -> Any:
    results = []
    for mode in ("checkpoints", "debug"):
        app = typed(E, Typed, "a", lambda state: {"x": state.x + 1}, checkpointer=E.saver())
        results.append(E.stream(app, {"x": 1}, E.config(mode), stream_mode=mode, version="v2"))
    return results


@program()
def typed_parts_of_a_graph_streamed_by_a_node(E: Engine) -> Any:
    inner = typed(E, Typed, "x", lambda state: {"x": state.x + 1})
    seen: list[Any] = []
    options: Any = {"stream_mode": ["values", "updates", "tasks"], "version": "v2"}

    def call(state: Any) -> Any:
        seen.extend(inner.stream({"x": 1}, **options))
        return {"log": ["called"]}

    async def acall(state: Any) -> Any:
        seen.extend([part async for part in inner.astream({"x": 1}, **options)])
        return {"log": ["called"]}

    app = typed(E, Log, "call", acall if E.is_async else call)
    return E.invoke(app, {"log": []}), seen


@differs(
    "The state of a nested graph is no instance of the outer graph's class",
    ours=lambda got: [type(part[1]["data"]) for part in got] == [tuple, dict, dict, tuple],
    theirs=lambda got: [type(part[1]["data"]) for part in got] == [tuple, tuple, tuple, tuple],
)
def parts_of_nested_graphs_in_version_2(E: Engine) -> Any:
    class Inner(pydantic.BaseModel):
        x: int

    inner = typed(E, Inner, "x", lambda state: {"x": state.x + 1})
    return E.stream(typed(E, Typed, "sub", inner), {"x": 1}, stream_mode="values", subgraphs=True, version="v2")
