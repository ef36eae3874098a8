"""What a node is told besides its state: config, runtime, context, store, writer."""

import dataclasses
from typing import Any, TypedDict

import pydantic
from compat.registry import Log, look, nodes, program, say
from harness.engine import Engine


@dataclasses.dataclass
class Data:
    who: str
    n: int = 1


class Model(pydantic.BaseModel):
    who: str
    n: int = 1


class Plain(TypedDict):
    who: str


def told(E: Engine, **options: Any) -> Any:
    """An app whose node logs its context, found in three ways."""

    def a(state, runtime):
        return {"log": [runtime.context, E.get_runtime().context == runtime.context]}

    sub = E.graph(Log, {"x": lambda s: {"log": [E.get_runtime().context]}}, "START > x").compile()
    return E.graph(Log, {"a": a, "sub": sub}, "START > a > sub", **options).compile()


@program()
def context_of_every_kind(E: Engine) -> Any:
    given: list[tuple[Any, Any]] = [
        (None, None),
        (None, {"free": 1}),
        (Data, {"who": "me"}),
        (Data, Data("me", 2)),
        (Model, {"who": "me", "n": "3"}),
        (Plain, {"who": "me", "more": 1}),
        (Data, {"nobody": 1}),
        (Model, {"n": 1}),
    ]
    results = []
    for schema, context in given:
        app = told(E, context_schema=schema)
        results.append(E.attempt(E.invoke, app, {"log": []}, context=context))
    return results


@program()
def execution_info_of_a_task(E: Engine) -> Any:
    def a(state, runtime):
        info = runtime.execution_info
        ids = info.checkpoint_id, info.task_id
        return {"log": [(info.checkpoint_ns, info.thread_id, info.run_id, info.node_attempt, ids)]}

    sub = E.graph(Log, {"a": a}, "START > a").compile()
    app = E.graph(Log, {"a": a, "sub": sub}, "START > a > sub").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}), E.invoke(app.builder.compile(), {"log": []})


@program()
def config_of_a_task(E: Engine) -> Any:
    def a(state, config):
        public = {k: v for k, v in config["configurable"].items() if not k.startswith("__")}
        same = E.get_config()["configurable"]["checkpoint_ns"] == public["checkpoint_ns"]
        metadata = {k: v for k, v in config["metadata"].items() if k.startswith("langgraph_") or k == "m"}
        return {"log": [public, metadata, sorted(config.get("tags") or []), same, config.get("recursion_limit")]}

    def b(state, config):
        return {"log": [config["metadata"].get("own"), config["metadata"]["langgraph_step"]]}

    sub = E.graph(Log, {"a": a}, "START > a").compile()
    bodies = {"a": a, "sub": sub, "b": (b, {"metadata": {"own": 1}})}
    app = E.graph(Log, bodies, "START > a > sub > b").compile(checkpointer=E.saver())
    config = E.config(user="u") | {"metadata": {"m": 1}, "tags": ["t"], "recursion_limit": 50}
    return E.invoke(app, {"log": []}, config), E.invoke(app, {"log": []}, E.config("2"))


@program()
def config_of_a_task_reached_by_send(E: Engine) -> Any:
    def w(packet, config):
        metadata = config["metadata"]
        return {"log": [(metadata["langgraph_path"], metadata["langgraph_triggers"], metadata["langgraph_node"])]}

    def route(state: Any) -> Any:
        return [E.Send("w", {}), E.Send("w", {})]

    app = E.graph(Log, {"r": say("r"), "w": w}, "START > r", ("r", route, ["w"])).compile()
    return E.invoke(app, {"log": []})


@program()
def store_is_handed_to_nodes(E: Engine) -> Any:
    store = E.InMemoryStore()

    def a(state, runtime):
        return {"log": [runtime.store is store, E.get_store() is store]}

    def b(state, store):
        return {"log": [store is not None]}

    sub = E.graph(Log, {"a": a}, "START > a").compile()
    app = E.graph(Log, {"a": a, "sub": sub, "b": b}, "START > a > sub > b").compile(store=store)
    return E.invoke(app, {"log": []})


@program()
def nodes_without_a_store_and_a_writer(E: Engine) -> Any:
    def a(state, runtime, writer, config):
        writer("nobody listens")
        runtime.stream_writer("nor here")
        runtime.heartbeat()
        return {"log": [runtime.store, runtime.previous, runtime.server_info, runtime.context]}

    return E.invoke(E.graph(Log, {"a": a}, "START > a").compile(), {"log": []})


@program()
def routers_are_told_as_nodes_are(E: Engine) -> Any:
    def route(state, runtime, config):
        return runtime.context["to"] if config["metadata"]["langgraph_node"] == "a" else "b"

    app = E.graph(Log, nodes("abc"), "START > a", ("a", route, ["b", "c"])).compile()
    return E.invoke(app, {"log": []}, context={"to": "c"}), E.invoke(app, {"log": []}, context={"to": "b"})


@program()
def config_of_the_caller_is_left_alone(E: Engine) -> Any:
    config = E.config(user="u") | {"metadata": {"m": 1}, "tags": ["t"]}
    before = repr(config)
    app = E.graph(Log, nodes("ab"), "START > a > b").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, config)
    E.state(app, config)
    E.update(app, config, {"log": ["x"]})
    return repr(config) == before


@program()
def thread_ids_are_text(E: Engine) -> Any:
    app = E.graph(Log, nodes("a"), "START > a").compile(checkpointer=E.saver())
    E.invoke(app, {"log": ["n"]}, {"configurable": {"thread_id": 7}})
    return E.state(app, E.config("7")), E.invoke(app, {"log": ["again"]}, E.config("7"))
