"""Type variables and classes with type parameters, as packages write them: fewer than there are will do."""

from __future__ import annotations

import importlib
from typing import Any, Generic

import pytest
import typing_extensions

from surestep.graph.state import CompiledStateGraph, StateGraph
from surestep.pregel import Pregel
from surestep.pregel.protocol import PregelProtocol
from surestep.typing import ContextT, InputT, OutputT, StateT

KINDS: list[Any] = [Pregel, StateGraph, CompiledStateGraph, PregelProtocol]


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_state_need_be_given(kind: Any) -> None:
    assert kind[dict].__args__ == (dict, type(None), dict, dict)
    assert kind[dict, str].__args__ == (dict, str, dict, dict)
    assert kind[dict, str, list].__args__ == (dict, str, list, dict)
    assert kind[dict, str, list, set].__args__ == (dict, str, list, set)


@pytest.mark.parametrize("kind", KINDS)
def test_a_subclass_has_its_own_parameters(kind: Any) -> None:
    class Mine(kind[dict, None, dict, dict], Generic[ContextT]):
        pass

    assert Mine[int].__args__ == (int,)


def test_variables_have_the_defaults_of_the_reference() -> None:
    theirs = importlib.import_module("langgraph.typing")
    for name in ("ContextT", "InputT", "OutputT"):
        ours = getattr(importlib.import_module("surestep.typing"), name)
        assert str(ours.__default__) == str(getattr(theirs, name).__default__) and ours.has_default()


def test_variables_with_and_without_defaults_mix() -> None:
    """A package's own variable with a default may come before ours, where typing_extensions checks that."""
    Response = typing_extensions.TypeVar("Response", default=Any)

    class Request(Generic[Response, ContextT]):
        pass

    class Graph(Generic[StateT, ContextT, InputT, OutputT]):
        pass

    assert Request[int, str].__args__ == (int, str) and Graph[int, str, int, int]
