"""LangGraph's public names are here under the same paths, and what calls them there can call them here.

`langgraph_names.json` is what `scripts/langgraph-names` found by importing LangGraph 1.2.24.
"""

from __future__ import annotations

import ast
import enum
import importlib
import importlib.util
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

NAMES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "langgraph_names.json").read_text())

# What is not there yet, each with the work that brings it: modules, and methods of compiled graphs.
LATER: dict[str, str] = {}
LATER_METHODS: dict[str, str] = {}

# What will not be there: LangGraph itself warns who uses it.
NEVER = {
    "pregel.types": "its names are in `types`",
    "checkpoint.postgres.shallow": "`durability='exit'` does what these savers are for",
}
NEVER_NAMES = {
    ("checkpoint.postgres", "ShallowPostgresSaver"),
    ("checkpoint.postgres.aio", "AsyncShallowPostgresSaver"),
}

# Parameters that LangGraph's own classes and protocols spell in several ways, and how we do.
SPELLINGS = {"updates": "supersteps", "keys": "pairs", "mapping": "pairs"}

# What is another here, each with the reason. Of defaults: module, class or function, method or "", parameter.
OTHER_DEFAULTS = {
    (
        "checkpoint.serde.encrypted",
        "EncryptedSerializer",
        method,
        "serde",
    ): "theirs shares one among all; here each has its own"
    for method in ("", "from_pycryptodome_aes")
}
OTHER_VALUES = {
    ("version", "__version__"): "our own",
    ("checkpoint.base", "LATEST_VERSION"): "theirs is the number of a format that is no longer written",
}
OTHER_PROPERTIES = {("checkpoint.base.id", "UUID", "subsec"): "UUIDs of version 6 have no such part"}

HERE = [module for module in NAMES if module not in LATER and module not in NEVER]
ALL = [(module, name) for module in HERE for name in NAMES[module] if (module, name) not in NEVER_NAMES]


def having(what: str) -> list[tuple[str, str]]:
    """Module and name of all that this is known of."""
    return [(module, name) for module, name in ALL if NAMES[module][name].get(what) is not None]


def ours(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"surestep.{module}"), name)


def own_parameters(thing: Any) -> dict[str, inspect.Parameter]:
    return {p.name: p for p in inspect.signature(thing).parameters.values() if p.name not in ("self", "cls")}


def their_parameters(text: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(eval(f"lambda {text}: 0")).parameters)


def mine_for(name: str, got: Mapping[str, inspect.Parameter]) -> inspect.Parameter | None:
    """Our parameter of that name, or of the other spelling of it."""
    return got.get(name) or got.get(SPELLINGS.get(name, ""))


def unlike(theirs: str, thing: Any) -> list[str]:
    """Why a call that fits the parameters `theirs` may not fit `thing`; empty when it always does."""
    expected, got = their_parameters(theirs), own_parameters(thing)
    kinds = {p.kind for p in got.values()}
    reasons = []
    for p in expected.values():
        mine = mine_for(p.name, got)
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
    order = [p.name for p in expected.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    mine_in_order = [p.name for p in got.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    order = [one if one in got else SPELLINGS.get(one, one) for one in order]
    if not reasons and inspect.Parameter.VAR_POSITIONAL not in kinds and mine_in_order[: len(order)] != order:
        reasons.append(f"the order of {order} is another")
    known = {*expected, *order}
    for p in got.values():
        named = p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        if named and p.default is p.empty and p.name not in known:
            reasons.append(f"{p.name} is required")
    return reasons


def same_default(theirs: Any, mine: Any) -> bool:
    """A default that the list could not hold is there as `<function its_name>`, or as `<its type>`."""
    if not (isinstance(theirs, str) and theirs.startswith("<")):
        return type(theirs) is type(mine) and bool(theirs == mine)
    kind, _, name = theirs.strip("<>").partition(" ")
    if kind == "function":
        return inspect.isroutine(mine) and (name.startswith("_") or mine.__name__ == name)
    return mine is not None and not isinstance(
        mine, bool | int | float | str | tuple
    )  # a mark, or an object made for it


def other_defaults(module: str, name: str) -> dict[tuple[str, str, str, str], str]:
    """What a caller gets who leaves a parameter out, where that is not what LangGraph takes."""
    known = NAMES[module][name]
    calls = {"": known.get("parameters"), **known.get("methods", {})}
    found = {}
    for method, theirs in calls.items():
        thing = getattr(ours(module, name), method, None) if method else ours(module, name)
        if theirs is None or thing is None:
            continue
        expected, got = their_parameters(theirs), own_parameters(thing)
        for p in expected.values():
            mine = mine_for(p.name, got)
            # a parameter of ours for what is one of their keywords more has no default to compare
            if mine is None or p.default is p.empty or mine.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
                continue
            if not same_default(p.default, mine.default):
                found[module, name, method, p.name] = f"{p.default!r} there, {mine.default!r} here"
    return found


@pytest.mark.parametrize(("module", "name"), ALL)
def test_name_is_here(module: str, name: str) -> None:
    ours(module, name)


@pytest.mark.parametrize(
    ("module", "name"), [one for one in having("parameters") if NAMES[one[0]][one[1]]["parameters"]]
)
def test_is_called_like_the_reference(module: str, name: str) -> None:
    assert unlike(NAMES[module][name]["parameters"], ours(module, name)) == []


@pytest.mark.parametrize(("module", "name"), having("methods"))
def test_methods_are_called_like_the_reference(module: str, name: str) -> None:
    wrong = []
    for method, theirs in NAMES[module][name]["methods"].items():
        if method in LATER_METHODS:
            continue
        mine = getattr(ours(module, name), method, None)
        if mine is None:
            wrong.append(f"{method} is missing")
        elif theirs is not None:
            wrong += [f"{method}: {reason}" for reason in unlike(theirs, mine)]
    assert not wrong


def test_defaults_are_those_of_the_reference() -> None:
    found = {place: what for module, name in ALL for place, what in other_defaults(module, name).items()}
    assert {place: what for place, what in found.items() if place not in OTHER_DEFAULTS} == {}
    assert OTHER_DEFAULTS.keys() - found.keys() == set(), "these are no longer others"


def test_what_comes_later_is_not_here_yet() -> None:
    """Who brings something takes it off the list."""
    assert [method for method in LATER_METHODS if hasattr(ours("pregel", "Pregel"), method)] == []
    assert [module for module in LATER if is_module(module)] == []


def test_what_is_left_out_is_not_here() -> None:
    assert [module for module in NEVER if is_module(module)] == []
    assert [
        name
        for module, name in NEVER_NAMES
        if is_module(module) and hasattr(importlib.import_module(f"surestep.{module}"), name)
    ] == []
    assert NEVER_NAMES <= {(module, name) for module in NAMES for name in NAMES[module]}


def is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(f"surestep.{name}") is not None
    except ModuleNotFoundError:  # nor is the package that it would be in
        return False


@pytest.mark.parametrize(("module", "name"), having("properties"))
def test_has_the_properties_of_the_reference(module: str, name: str) -> None:
    missing = [one for one in NAMES[module][name]["properties"] if not hasattr(ours(module, name), one)]
    assert missing == [one for *place, one in OTHER_PROPERTIES if place == [module, name]]


@pytest.mark.parametrize(("module", "name"), having("value"))
def test_constants_are_those_of_the_reference(module: str, name: str) -> None:
    mine, theirs = ours(module, name), ast.literal_eval(NAMES[module][name]["value"])
    same = (sorted(mine) if isinstance(mine, set | frozenset) else mine) == theirs
    assert same is ((module, name) not in OTHER_VALUES)


@pytest.mark.parametrize(("module", "name"), having("choices"))
def test_has_the_choices_of_the_reference(module: str, name: str) -> None:
    assert set(NAMES[module][name]["choices"]) <= set(get_args(ours(module, name)))


@pytest.mark.parametrize(("module", "name"), having("keys"))
def test_has_the_keys_of_the_reference(module: str, name: str) -> None:
    """What may be left out there may be left out here; a key more than theirs may be, too."""
    mine, theirs = ours(module, name), NAMES[module][name]
    assert set(theirs["keys"]) <= set(mine.__annotations__)
    assert set(mine.__required_keys__) <= set(theirs["keys"]) - set(theirs["optional"])


@pytest.mark.parametrize(("module", "name"), having("members"))
def test_has_the_members_of_the_reference(module: str, name: str) -> None:
    thing = ours(module, name)
    assert issubclass(thing, enum.Enum)
    assert NAMES[module][name]["members"].items() <= {key: one.value for key, one in thing.__members__.items()}.items()


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
    for module in HERE:
        exported = getattr(importlib.import_module(f"surestep.{module}"), "__all__", ())
        for name in exported:
            thing = ours(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                if not (thing.__doc__ or "").strip():
                    bare.append(f"{module}.{name}")
    assert not bare
