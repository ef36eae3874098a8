"""LangGraph's public names are here under the same paths, and what calls them there can call them here.

`langgraph_names.json` is what `scripts/langgraph-names` found by importing LangGraph 1.2.24.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

NAMES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "langgraph_names.json").read_text())

# Methods of compiled graphs that are not there yet, each with the work that brings it.
LATER = {
    "stream_events": "event streams",
}

# Parameters that LangGraph's own classes and protocols spell in two ways; we have the first of each pair.
SPELLINGS = {"supersteps": "updates", "pairs": "keys"}

ALL = [(module, name) for module, names in NAMES.items() for name in names]


def ours(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"surestep.{module}"), name)


def unlike(theirs: str, thing: Any) -> list[str]:
    """Why a call that fits the parameters `theirs` may not fit `thing`; empty when it always does."""
    expected = inspect.signature(eval(f"lambda {theirs}: 0")).parameters.values()
    got = {p.name: p for p in inspect.signature(thing).parameters.values() if p.name not in ("self", "cls")}
    kinds = {p.kind for p in got.values()}
    reasons = []
    for p in expected:
        mine = got.get(p.name) or next((got[k] for k, v in SPELLINGS.items() if v == p.name and k in got), None)
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if mine is None:
            if p.VAR_KEYWORD not in kinds:
                reasons.append(f"no parameter {p.name}")
        elif p.kind is p.POSITIONAL_OR_KEYWORD and mine.kind is mine.KEYWORD_ONLY:
            reasons.append(f"{p.name} by keyword only")
        elif p.kind is p.KEYWORD_ONLY and mine.kind is mine.POSITIONAL_ONLY:
            reasons.append(f"{p.name} by position only")
        elif p.default is not p.empty and mine.default is mine.empty:
            reasons.append(f"{p.name} has no default")
    order = [p.name for p in expected if p.kind is p.POSITIONAL_OR_KEYWORD]
    mine_in_order = [p.name for p in got.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    mine_in_order = [SPELLINGS.get(one, one) if SPELLINGS.get(one) in order else one for one in mine_in_order]
    if not reasons and inspect.Parameter.VAR_POSITIONAL not in kinds and mine_in_order[: len(order)] != order:
        reasons.append(f"the order of {order} is another")
    known = {p.name for p in expected} | {k for k, v in SPELLINGS.items() if v in order}
    for p in got.values():
        named = p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        if named and p.default is p.empty and p.name not in known:
            reasons.append(f"{p.name} is required")
    return reasons


@pytest.mark.parametrize(("module", "name"), ALL)
def test_name_is_here(module: str, name: str) -> None:
    ours(module, name)


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, n in ALL if NAMES[m][n].get("parameters")])
def test_is_called_like_the_reference(module: str, name: str) -> None:
    assert unlike(NAMES[module][name]["parameters"], ours(module, name)) == []


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, n in ALL if "methods" in NAMES[m][n]])
def test_methods_are_called_like_the_reference(module: str, name: str) -> None:
    wrong = []
    for method, theirs in NAMES[module][name]["methods"].items():
        if method in LATER:
            continue
        mine = getattr(ours(module, name), method, None)
        if mine is None:
            wrong.append(f"{method} is missing")
        elif theirs is not None:
            wrong += [f"{method}: {reason}" for reason in unlike(theirs, mine)]
    assert not wrong


def test_what_comes_later_is_not_here_yet() -> None:
    assert [method for method in LATER if hasattr(ours("pregel", "Pregel"), method)] == []


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, n in ALL if "keys" in NAMES[m][n]])
def test_has_the_keys_of_the_reference(module: str, name: str) -> None:
    assert set(NAMES[module][name]["keys"]) <= set(ours(module, name).__annotations__)


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, n in ALL if "members" in NAMES[m][n]])
def test_has_the_members_of_the_reference(module: str, name: str) -> None:
    thing = ours(module, name)
    assert issubclass(thing, enum.Enum)
    assert set(NAMES[module][name]["members"]) <= set(thing.__members__)


def test_public_modules_say_what_they_export() -> None:
    package = Path(importlib.import_module("surestep").__file__ or "").parent
    silent = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        # integrations/ is loaded by the engine when the other package is in use, not by programs
        if any(part.startswith("_") or part == "integrations" for part in parts):
            continue
        module = importlib.import_module(".".join(parts))
        exported = getattr(module, "__all__", None)
        defined = [
            name
            for name, thing in vars(module).items()
            if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__
        ]
        if exported is None and defined:
            silent.append(f"{module.__name__} has no __all__ but {', '.join(defined)}")
        elif exported is not None:
            missing = [name for name in exported if not hasattr(module, name)]
            silent += [f"{module.__name__}.{name} is missing" for name in missing]
    assert not silent


def test_public_names_have_docstrings() -> None:
    bare = []
    for module in NAMES:
        exported = getattr(importlib.import_module(f"surestep.{module}"), "__all__", ())
        for name in exported:
            thing = ours(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                if not (thing.__doc__ or "").strip():
                    bare.append(f"{module}.{name}")
    assert not bare
