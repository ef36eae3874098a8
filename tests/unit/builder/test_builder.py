"""Declaring a graph: what is refused, with which words, and what a compiled graph is made of."""

from __future__ import annotations

import importlib
import logging
import operator
import subprocess
import sys
from typing import Annotated, Any, TypedDict

import pytest
from unit.builder.engines import ours, theirs

import surestep.graph
from surestep.checkpoint.memory import InMemorySaver
from surestep.graph import END, START, StateGraph
from surestep.graph.state import CompiledStateGraph
from surestep.managed import RemainingSteps
from surestep.types import CachePolicy, RetryPolicy, TimeoutPolicy
from surestep.warnings import LangGraphDeprecatedSinceV05, LangGraphDeprecatedSinceV10


class State(TypedDict):
    x: Annotated[list, operator.add]


class Other(TypedDict):
    z: int


def node(state: Any) -> None:
    return None


async def anode(state: Any) -> None:
    return None


def two(E: Any) -> Any:
    return E.StateGraph(State).add_node("a", node).add_node("b", node)


REFUSED: list[tuple[Any, type[Exception], str | None]] = [
    (lambda E: two(E).add_node("a", node), ValueError, "Node `a` already present"),
    (lambda E: two(E).add_node("__start__", node), ValueError, "Node `__start__` is reserved"),
    (lambda E: two(E).add_node("__end__", node), ValueError, "Node `__end__` is reserved"),
    (lambda E: two(E).add_node("c:d", node), ValueError, "':' is a reserved character and is not allowed in the node"),
    (lambda E: two(E).add_node("c|d", node), ValueError, "'\\|' is a reserved character and is not allowed in"),
    (lambda E: two(E).add_node("c"), RuntimeError, None),
    (lambda E: two(E).add_node("c", 3), TypeError, "Expected a Runnable, callable or dict"),
    (lambda E: two(E).add_node(3, node), TypeError, None),
    (lambda E: two(E).add_edge("__end__", "a"), ValueError, "END cannot be a start node"),
    (lambda E: two(E).add_edge("a", "__start__"), ValueError, "START cannot be an end node"),
    (lambda E: two(E).add_edge(["a", "q"], "b"), ValueError, "Need to add_node `q` first"),
    (lambda E: two(E).add_edge(["a", "__end__"], "b"), ValueError, "END cannot be a start node"),
    (lambda E: two(E).add_edge(["a", "__start__"], "b"), ValueError, "Need to add_node `__start__` first"),
    (lambda E: two(E).add_edge(["a"], "__start__"), ValueError, "START cannot be an end node"),
    (lambda E: two(E).add_edge(["a"], "q"), ValueError, "Need to add_node `q` first"),
    (lambda E: two(E).add_sequence([]), ValueError, "Sequence requires at least one node."),
    (lambda E: two(E).add_sequence([node, node]), ValueError, "Node names must be unique: node with the name 'node'"),
    (lambda E: two(E).add_sequence([("a", node)]), ValueError, "Node names must be unique: node with the name 'a'"),
    (lambda E: two(E).compile(), ValueError, "Graph must have an entrypoint: add at least one edge from START"),
    (lambda E: two(E).add_edge("__start__", "a").add_edge("q", "a").compile(), ValueError, "starting at unknown node"),
    (lambda E: two(E).add_edge("__start__", "a").add_edge("a", "q").compile(), ValueError, "ending at unknown node"),
    (
        lambda E: two(E).add_edge("__start__", "a").add_conditional_edges("q", node).compile(),
        ValueError, "Found edge starting at unknown node 'q'",
    ),
    (
        lambda E: two(E).add_edge("__start__", "a").add_conditional_edges("a", node, ["q"]).compile(),
        ValueError, "At 'a' node, 'node' branch found unknown target 'q'",
    ),
    (
        lambda E: two(E).add_node("c", node, destinations=("q",)).add_edge("__start__", "c").compile(),
        ValueError, "Found edge ending at unknown node `q`",
    ),
    (
        lambda E: two(E).add_edge("__start__", "a").compile(interrupt_before=["q"]),
        ValueError, "Interrupt node `q` not found",
    ),
    (lambda E: two(E).add_edge("__start__", "a").compile(checkpointer=3), TypeError, "Invalid checkpointer"),
    (
        lambda E: two(E).add_node("c", node, timeout=3).add_edge("__start__", "c").compile(),
        ValueError, "Node timeouts are only supported for async nodes.*Node 'c' is sync",
    ),
    (
        lambda E: two(E).set_node_defaults(timeout=3).add_edge("__start__", "a").compile(),
        ValueError, "Node timeouts are only supported for async nodes.*Node 'a' is sync",
    ),
    (
        lambda E: two(E).add_node("__error_handler__c", node).add_node("c", node, error_handler=node),
        ValueError, "Auto-generated error handler node `__error_handler__c` already exists",
    ),
    (
        lambda E: E.StateGraph(State).add_node("__default_error_handler__", node)
        .add_edge("__start__", "__default_error_handler__").set_node_defaults(error_handler=node).compile(),
        ValueError, "Auto-generated default error handler node",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("declare", "error", "says"), REFUSED)
def test_what_is_refused(engine: Any, declare: Any, error: type[Exception], says: str | None) -> None:
    with pytest.raises(error, match=says):
        declare(engine)


def test_errors_name_the_nodes_there_are() -> None:
    with pytest.raises(ValueError, match=r"add_node\('q', ...\).*Nodes: 'a', 'b'"):
        two(ours).add_edge(START, "a").add_edge("a", "q").compile()


@pytest.mark.parametrize("method", [StateGraph, StateGraph(State).add_node], ids=["StateGraph", "add_node"])
def test_unknown_arguments_are_refused(method: Any) -> None:
    """LangGraph takes them and says nothing."""
    with pytest.raises(TypeError, match="unexpected arguments: 'retires'"):
        method(State, retires=3)


def test_a_join_needs_a_source() -> None:
    """LangGraph makes a join that nothing completes."""
    with pytest.raises(ValueError, match="The join to 'a' needs at least one source"):
        two(ours).add_edge([], "a")


def test_old_names_of_arguments(engine: Any) -> None:
    with pytest.warns(DeprecationWarning, match="`config_schema` is deprecated") as caught:
        graph = engine.StateGraph(State, config_schema=Other)
    assert graph.context_schema is Other
    with pytest.warns(DeprecationWarning, match="`input` is deprecated"):
        assert engine.StateGraph(State, input=Other).input_schema is Other
    with pytest.warns(DeprecationWarning, match="`output` is deprecated"):
        assert engine.StateGraph(State, output=Other).output_schema is Other
    with pytest.warns(DeprecationWarning, match="`retry` is deprecated"):
        engine.StateGraph(State).add_node("a", node, retry=engine.RetryPolicy())
    with pytest.warns(DeprecationWarning, match="`input` is deprecated"):
        assert engine.StateGraph(State).add_node("a", node, input=Other).nodes["a"].input_schema is Other
    if engine is ours:
        assert caught[0].category is LangGraphDeprecatedSinceV10
        assert caught[0].filename == __file__
        with pytest.warns(LangGraphDeprecatedSinceV05):
            StateGraph(State, input=Other)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_new_name_of_an_argument_counts(engine: Any) -> None:
    """Where both are given."""
    old, new = engine.RetryPolicy(max_attempts=2), engine.RetryPolicy(max_attempts=5)
    entrypoint = importlib.import_module(f"{engine.root}.func").entrypoint
    graph = engine.StateGraph(State, config_schema=int, context_schema=Other, input=int, input_schema=Other)
    assert graph.context_schema is graph.input_schema is Other
    assert graph.add_node("a", node, retry=old, retry_policy=new).nodes["a"].retry_policy is new
    assert entrypoint(retry=old, retry_policy=new).retry_policy is new
    assert entrypoint(config_schema=int, context_schema=Other).context_schema is Other
    ends: Any = {"nodes": {}, "channels": {}, "input_channels": "a", "output_channels": "a", "auto_validate": False}
    assert engine.Pregel(**ends, config_type=int, context_schema=Other).context_schema is Other


def test_the_declaration_can_be_read(engine: Any) -> None:
    graph = two(engine).add_edge("__start__", "a").add_edge("a", "b").add_edge("a", "b").add_edge(["a", "b"], "__end__")
    assert graph.edges == {("__start__", "a"), ("a", "b")}
    assert graph.waiting_edges == {(("a", "b"), "__end__")}
    assert ("a", "b") in graph.edges and len(graph.edges) == 2
    assert not graph.compiled
    assert graph.validate() is graph and graph.compiled
    assert graph.set_entry_point("b") is graph and graph.set_finish_point("b") is graph
    assert graph.edges == {("__start__", "a"), ("a", "b"), ("__start__", "b"), ("b", "__end__")}
    assert (graph.state_schema, graph.input_schema, graph.output_schema, graph.context_schema) == (State,) * 3 + (None,)


def test_edges_keep_their_order() -> None:
    names = [f"n{number}" for number in range(20)]
    graph = StateGraph(State)
    for name in names:
        graph.add_node(name, node)
    for name in reversed(names):
        graph.add_edge(START, name)
    assert [end for _, end in graph.edges] == names[::-1]
    writer = graph.compile().nodes[START].writers[0]
    assert [channel for channel, _ in writer(None)] == [f"branch:to:{name}" for name in names[::-1]]


def test_a_sequence(engine: Any) -> None:
    graph = engine.StateGraph(State).add_sequence([node, ("named", node), anode])
    assert list(graph.nodes) == ["node", "named", "anode"]
    assert graph.edges == {("node", "named"), ("named", "anode")}


def test_changes_after_compiling_are_told_of(engine: Any, caplog: pytest.LogCaptureFixture) -> None:
    graph = two(engine).add_edge("__start__", "a")
    graph.compile()
    with caplog.at_level(logging.WARNING):
        graph.add_node("c", node).add_edge("a", "c").add_conditional_edges("a", node)
    assert [record.getMessage().split(" to a graph")[0] for record in caplog.records] == [
        "Adding a node", "Adding an edge", "Adding an edge",
    ]  # fmt: skip


# --- lowering --------------------------------------------------------------------------------------------------


def full(E: Any) -> Any:
    graph = E.StateGraph(State, context_schema=Other)
    graph.add_node("a", node, metadata={"k": 1}, retry_policy=E.RetryPolicy(max_attempts=2))
    graph.add_node("b", node, input_schema=Other, error_handler=node, cache_policy=E.CachePolicy(ttl=3))
    graph.add_node("c", node, defer=True).add_node("d", anode, timeout=5)
    graph.add_edge("__start__", "a").add_edge("a", "b").add_edge("__start__", "d")
    graph.add_edge(["a", "b"], "c").add_edge(["a", "b"], "d").add_conditional_edges("a", node, ["b"])
    return graph


def test_a_graph_is_lowered_alike() -> None:
    found = []
    for E in (ours, theirs):
        app = full(E).compile(name="Named", interrupt_before=["a"], interrupt_after="*")
        nodes = {
            key: (n.channels, n.triggers, list(n.tags or ()), n.metadata, n.is_error_handler, n.error_handler_node)
            for key, n in app.nodes.items()
        }
        channels = {key: type(channel).__name__ for key, channel in app.channels.items()}
        attributes = [
            getattr(app, name)
            for name in (
                *("input_channels", "output_channels", "stream_channels", "stream_mode", "name", "context_schema"),
                *("interrupt_before_nodes", "interrupt_after_nodes", "node_error_handler_map"),
            )
        ]
        found.append((nodes, channels, attributes))
    assert found[0] == found[1]


def test_policies_reach_the_nodes() -> None:
    nodes = full(ours).compile().nodes
    assert nodes["a"].retry_policy == (RetryPolicy(max_attempts=2),)
    assert nodes["b"].cache_policy == CachePolicy(ttl=3)
    assert nodes["d"].timeout == TimeoutPolicy(run_timeout=5.0)
    assert nodes["c"].retry_policy == ()


def test_all_of_a_node_but_its_branches_is_one_writer() -> None:
    nodes = full(ours).compile().nodes
    assert [len(nodes[key].writers) for key in (START, "a", "b")] == [1, 2, 1]
    assert list(nodes["a"].writers[0]({"x": [1]})) == [
        ("x", [1]), ("branch:to:b", None), ("join:a+b:c", "a"), ("join:a+b:d", "a"),
    ]  # fmt: skip


def test_private_keys_are_streamed_but_not_given(engine: Any) -> None:
    graph = engine.StateGraph(State).add_node("a", node, input_schema=Other).add_edge("__start__", "a")
    app = graph.compile()
    assert (app.output_channels, app.stream_channels) == (["x"], ["x", "z"])
    assert app.invoke({"x": [1], "z": 3}) == {"x": [1]}


def test_a_single_state_is_the_root(engine: Any) -> None:
    app = engine.StateGraph(Annotated[list, operator.add]).add_node("a", node).add_edge("__start__", "a").compile()
    assert (app.output_channels, app.stream_channels, app.nodes["a"].channels) == ("__root__",) * 3


def test_defaults_are_for_nodes_without_their_own() -> None:
    own, default = RetryPolicy(max_attempts=7), RetryPolicy(max_attempts=2)
    graph = two(ours)
    graph.add_node("c", anode, retry_policy=own, error_handler=anode, timeout=9, cache_policy=CachePolicy(ttl=1))
    graph.add_edge(START, "c").set_node_defaults(retry_policy=default).set_node_defaults(
        cache_policy=CachePolicy(ttl=2), error_handler=node
    )
    nodes = graph.compile().nodes
    assert nodes["a"].retry_policy == (default,) and nodes["c"].retry_policy == (own,)
    assert nodes["a"].cache_policy == CachePolicy(ttl=2) and nodes["c"].cache_policy == CachePolicy(ttl=1)
    assert nodes["a"].error_handler_node == "__default_error_handler__"
    assert nodes["c"].error_handler_node == "__error_handler__c"
    for handler in ("__default_error_handler__", "__error_handler__c"):
        assert nodes[handler].retry_policy == (default,)  # handlers are retried, not cached, not handled
        assert nodes[handler].cache_policy is None and nodes[handler].error_handler_node is None
        assert nodes[handler].is_error_handler


def test_a_builder_with_a_default_handler_compiles_again() -> None:
    """LangGraph adds the handler to the builder and refuses it the second time."""
    graph = two(ours).add_edge(START, "a").set_node_defaults(error_handler=node)
    first, second = graph.compile(), graph.compile()
    assert list(first.nodes) == list(second.nodes)
    assert list(graph.nodes) == ["a", "b"]
    with pytest.raises(ValueError, match="already exists"):
        again = two(theirs).add_edge("__start__", "a").set_node_defaults(error_handler=node)
        again.compile() and again.compile()


def test_compiled_graphs_can_be_extended() -> None:
    graph = two(ours).add_edge(START, "a").add_edge("a", "b")
    app = graph.compile()
    assert type(app) is CompiledStateGraph and app.builder is graph
    graph.add_node("c", lambda state: {"x": ["c"]})
    app.attach_node("c", graph.nodes["c"])
    app.attach_edge("b", "c")
    assert app.validate().invoke({"x": []}) == {"x": ["c"]}


def test_the_saver_stays_the_callers() -> None:
    saver = InMemorySaver()
    app = two(ours).add_edge(START, "a").compile(checkpointer=saver)
    assert app.checkpointer is saver


def test_importing_graphs_is_light() -> None:
    code = (
        "import sys; import surestep.graph; "
        "heavy = {'asyncio', 'langchain_core', 'pydantic', 'typing_extensions', 'sqlite3'}; "
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_message_graphs_are_made_when_asked_for() -> None:
    assert surestep.graph.MessageGraph.__name__ == "MessageGraph"
    with pytest.raises(AttributeError, match="Nothing"):
        surestep.graph.Nothing  # type: ignore[attr-defined]  # noqa: B018
    assert END == "__end__"


def test_schemas_are_mappings_of_their_keys() -> None:
    """Packages ask whether a key is there: `"active_agent" in builder.schemas[builder.state_schema]`."""

    class State(TypedDict):
        left: RemainingSteps
        text: str

    builder = StateGraph(State)
    assert list(builder.schemas[builder.state_schema]) == ["text", "left"]
    assert "other" not in builder.schemas[State]
