"""The same program on langgraph and on surestep: listeners hear of the same runs."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from compat.tracing import streams, trees
from harness.engine import Engine

PROGRAMS = {**trees.PROGRAMS, **streams.PROGRAMS}


def observe(name: str, root: str, driver: str) -> Any:
    with Engine(root, driver) as E:
        return PROGRAMS[name](E)


@functools.cache
def reference(name: str, driver: str) -> Any:
    return observe(name, "langgraph", driver)


# LangChain's older event streams are deprecated, not gone.
@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
@pytest.mark.parametrize("driver", ["sync", "async", "mixed"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_listeners_hear_the_same(name: str, driver: str) -> None:
    assert observe(name, "surestep", driver) == reference(name, driver)
