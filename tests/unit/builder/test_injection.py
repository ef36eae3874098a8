"""Which parameters are filled, by name and annotation; and the same with annotations left as text."""

import functools
from types import SimpleNamespace
from typing import Annotated, Any, Optional

import pytest
from langchain_core.runnables import RunnableConfig as LangChainConfig

from surestep._drive.call import coerce, injections
from surestep.errors import NodeError
from surestep.graph import StateGraph
from surestep.runtime import Runtime
from surestep.store.base import BaseStore
from surestep.store.memory import InMemoryStore
from surestep.types import RunnableConfig, StreamWriter

TASK: Any = SimpleNamespace(
    config="the config",
    runtime="the runtime",
    store="the store",
    stream_writer="the writer",
    previous="the previous",
    node_error="the error",
)


class MyStore(InMemoryStore):
    pass


def filled(func: Any) -> dict[str, Any]:
    """What a call gets besides its input."""
    return {name: get(TASK) for name, get in injections(func)}


ACCEPTED = [
    (lambda s, config: ..., "the config"),
    (lambda s, *, config: ..., "the config"),
    (lambda s, writer: ..., "the writer"),
    (lambda s, store: ..., "the store"),
    (lambda s, previous: ..., "the previous"),
    (lambda s, runtime: ..., "the runtime"),
]


@pytest.mark.parametrize(("func", "value"), ACCEPTED)
def test_without_annotation(func: Any, value: str) -> None:
    assert list(filled(func).values()) == [value]


def annotated(name: str, annotation: Any) -> Any:
    def func(state: Any, **kwargs: Any) -> dict[str, Any]:
        return kwargs

    import inspect

    parameters = [
        inspect.Parameter("state", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation),
    ]
    func.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return func


YES = [
    *(("config", a) for a in (RunnableConfig, LangChainConfig, Optional[RunnableConfig], LangChainConfig | None)),  # noqa: UP045
    *(("config", a) for a in ("RunnableConfig", "Optional[RunnableConfig]", "RunnableConfig | None")),
    ("config", "runnables.RunnableConfig"),
    ("config", Annotated[RunnableConfig, "note"]),
    *(("writer", a) for a in (StreamWriter, "StreamWriter", StreamWriter | None)),
    *(("store", a) for a in (BaseStore, BaseStore | None, "BaseStore", "Optional[BaseStore]", "BaseStore | None")),
    *(("store", a) for a in (MyStore, "MyStore")),
    *(("runtime", a) for a in (Runtime, Runtime[dict], "Runtime[Context]", Any)),
    ("previous", int),
    *(("error", a) for a in (NodeError, "NodeError", NodeError | None)),
]
NO = [
    *(("store", a) for a in (dict, Any, "Storehouse", "dict | BaseStore")),
    *(("writer", a) for a in (int, "Writer")),
    *(("error", a) for a in (Exception, "Exception", str)),
]


@pytest.mark.parametrize(("name", "annotation"), YES, ids=str)
def test_annotations_that_ask_for_it(name: str, annotation: Any) -> None:
    assert filled(annotated(name, annotation)) == {name: f"the {name}"}


@pytest.mark.parametrize(("name", "annotation"), NO, ids=str)
def test_annotations_that_ask_for_something_else(name: str, annotation: Any) -> None:
    assert filled(annotated(name, annotation)) == {}


@pytest.mark.parametrize("annotation", [dict, Any, "Settings"], ids=str)
def test_a_config_of_another_type_is_warned_of(annotation: Any) -> None:
    with pytest.warns(UserWarning, match="should be typed as 'RunnableConfig'"):
        assert filled(annotated("config", annotation)) == {}


def test_an_error_needs_its_annotation() -> None:
    assert filled(lambda s, error: ...) == {}


def test_parameters_of_no_name_of_ours_stay_the_callers() -> None:
    assert filled(lambda s, config, limit=3, **rest: ...) == {"config": "the config"}
    assert filled(lambda s, *config: ...) == {}


def test_positional_only_parameters_are_not_filled() -> None:
    def node(state: Any, config: Any, /) -> None: ...

    assert filled(node) == {}


def test_methods_objects_and_wrappers() -> None:
    class Node:
        def method(self, state: Any, runtime: Runtime) -> None: ...
        def __call__(self, state: Any, *, store: BaseStore) -> None: ...

        @staticmethod
        def static(state: Any, writer: StreamWriter) -> None: ...

    @functools.wraps(Node.static)
    def wrapper(*args: Any, **kwargs: Any) -> None: ...

    assert list(filled(Node().method)) == ["runtime"]
    assert list(filled(Node())) == ["store"]
    assert list(filled(Node.static)) == list(filled(wrapper)) == ["writer"]


def test_a_partial_keeps_what_it_binds() -> None:
    def node(state: Any, *, store: BaseStore, runtime: Runtime) -> Any: ...

    assert list(filled(functools.partial(node, store="mine"))) == ["runtime"]


def test_builtins_without_a_signature_are_just_called() -> None:
    assert filled(dict) == {}
    assert coerce(dict).invoke([("a", 1)], TASK) == {"a": 1}


def test_the_first_parameter_is_the_input() -> None:
    assert filled(lambda config: ...) == {}
    assert coerce(lambda store: {"got": store}).invoke(3, TASK) == {"got": 3}

    def node(runtime: Runtime) -> None: ...
    def ours(config: RunnableConfig) -> None: ...

    assert coerce(node).injects == ()
    with pytest.raises(TypeError, match=r"first parameter of 'ours' receives the node's input.*\(state, config\)"):
        coerce(ours)


def test_a_task_function_may_ask_with_its_first_parameter() -> None:
    def called(writer: StreamWriter) -> None: ...

    assert [name for name, _ in injections(called, takes_input=False)] == ["writer"]


def test_the_warning_is_at_the_line_that_adds_the_node() -> None:
    def node(state: Any, config: dict[str, Any] | None = None) -> None: ...

    with pytest.warns(UserWarning, match="'config' parameter of 'node'") as caught:
        StateGraph(dict).add_node("n", node)  # type: ignore[type-var]
    assert caught[0].filename == __file__
