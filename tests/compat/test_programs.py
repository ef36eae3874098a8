"""The same program on langgraph and on surestep: results, streams, states and stored rows agree."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from compat.registry import DIFFERENCES, PROGRAMS, Difference, Program, load_all
from harness.engine import Engine
from harness.normal import normal

load_all()


def observe(program: Program, root: str, driver: str, savers: str = "memory") -> Any:
    with Engine(root, driver, savers) as E:
        return normal(program.run(E))


@functools.cache
def reference(program: Program, driver: str, savers: str = "memory") -> Any:
    return observe(program, "langgraph", driver, savers)


def cases(programs: Any) -> Any:
    return [pytest.param(p, driver, id=f"{p}-{driver}") for p in programs for driver in p.drivers]


@pytest.mark.parametrize(("program", "driver"), cases(PROGRAMS))
def test_program(program: Program, driver: str) -> None:
    assert observe(program, "surestep", driver) == reference(program, driver)


@pytest.mark.parametrize("savers", ["sqlite", "ref-memory", "ref-sqlite"])
@pytest.mark.parametrize("program", [pytest.param(p, id=str(p)) for p in PROGRAMS])
def test_saver_does_not_show(program: Program, savers: str) -> None:
    driver = program.drivers[0] if savers == "sqlite" else program.drivers[-1]
    got = observe(program, "surestep", driver, savers)
    if got != (expected := reference(program, driver)) and savers == "ref-sqlite":
        # That saver has a way of its own with two answers of one task: it leaves the first one alone.
        expected = reference(program, driver, "sqlite")
    assert got == expected


@pytest.mark.parametrize(("difference", "driver"), cases(DIFFERENCES))
def test_difference(difference: Difference, driver: str) -> None:
    ours, theirs = observe(difference, "surestep", driver), reference(difference, driver)
    assert difference.ours(ours), f"{difference.reason}\ngot {ours}"
    assert difference.theirs(theirs), f"the reference does something else now\ngot {theirs}"
