"""Random graphs on both engines: the same chunks, the same order of folded writes, the same stored rows."""

from __future__ import annotations

import pytest
from compat.generated import Graph, graphs, play
from harness.engine import DRIVERS, Engine
from harness.normal import normal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def same(graph: Graph, driver: str, savers: str = "memory") -> None:
    with Engine("langgraph", driver) as E:
        expected = normal(play(E, graph))
    with Engine("surestep", driver, savers) as E:
        assert normal(play(E, graph)) == expected


@settings(max_examples=60, suppress_health_check=QUIET)
@given(graphs(), st.sampled_from(DRIVERS))
def test_same_on_both_engines(graph: Graph, driver: str) -> None:
    same(graph, driver)


@settings(max_examples=15, suppress_health_check=QUIET)
@given(graphs(), st.sampled_from(DRIVERS))
def test_same_with_the_sqlite_saver(graph: Graph, driver: str) -> None:
    same(graph, driver, "sqlite")


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS)
@settings(max_examples=400, suppress_health_check=QUIET)
@given(graph=graphs())
def test_many_on_both_engines(graph: Graph, driver: str) -> None:
    same(graph, driver)


@settings(max_examples=25, suppress_health_check=QUIET)
@given(graphs())
def test_same_under_every_driver(graph: Graph) -> None:
    """Whoever drives, and whatever saves: what is stored is the same (chunks come in the order of the clock)."""
    seen = []
    for driver in DRIVERS:
        with Engine("surestep", driver, "sqlite" if driver == "sync" else "memory") as E:
            seen.append(normal(play(E, graph, modes=["values"])))
    assert seen[0] == seen[1] == seen[2]
