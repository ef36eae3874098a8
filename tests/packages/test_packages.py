"""Published packages for LangGraph run on surestep as they are, where LangGraph is not installed.

Each file in scenarios/ is a program for LangGraph. It runs under `python -m surestep.compat`, on every saver, sync and
async, and fails if anything is not as it says. All but `broken` and `effects` run on LangGraph itself too.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from packages.environment import make

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent / "src"
SCENARIOS = sorted(path.stem for path in (HERE / "scenarios").glob("*.py") if path.stem != "world")
DRIVERS = [f"{saver} {kind}" for saver in ("memory", "sqlite") for kind in ("sync", "async")]


@pytest.fixture(scope="session")
def python() -> Path:
    return make()


def run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("LANG", "PYTHON"))}
    environment["PYTHONPATH"] = str(SOURCE)
    return subprocess.run([str(python), *arguments], capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(python: Path, name: str) -> None:
    done = run(python, "-m", "surestep.compat", str(HERE / "scenarios" / f"{name}.py"))
    assert done.returncode == 0, done.stderr
    *played, last = done.stdout.splitlines()
    assert {line.partition(" ")[2] for line in played} == set(DRIVERS)
    assert len(played) % len(DRIVERS) == 0
    assert last == "not surestep's: langgraph.prebuilt"


def test_langgraph_is_not_there(python: Path) -> None:
    done = run(python, "-c", "import langgraph.graph")
    assert "No module named 'langgraph.graph'" in done.stderr
    assert not list(python.parent.parent.glob("lib/*/site-packages/langgraph-*"))
    assert not list(python.parent.parent.glob("lib/*/site-packages/langgraph_checkpoint*"))


def test_every_package_has_a_scenario() -> None:
    assert SCENARIOS == ["agents", "broken", "deep", "effects", "prebuilt", "supervisor", "swarm"]
