"""The import hook: which module answers to a name of LangGraph's.

Rules:
1. What surestep has answers first, as the same module object: never a copy, never LangGraph's own.
2. What surestep lacks comes from an installed distribution only where other makers' parts are at home (GUESTS). A
   module of LangGraph's engine is never loaded: two engines in one process do not know each other's classes.
3. `from langgraph.store import x` asks for a child of the module that it got, `surestep.store.x`: guests answer to that
   name too.
4. The module that an alias gives keeps its own `__spec__`: reloading, running and finding it work as before.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final, NoReturn

ALIAS: Final = "langgraph"
OWN: Final = "surestep"

# Packages whose other children are distributions of their own
PORTS: Final = (f"{ALIAS}.checkpoint", f"{ALIAS}.store", f"{ALIAS}.cache")
GUESTS: Final = (f"{ALIAS}.prebuilt",)

# What to do about modules that people look for
ADVICE: Final = {
    "langgraph.prebuilt": "It is a distribution of its own: pip install --no-deps langgraph-prebuilt",
    "langgraph.checkpoint.conformance": "pip install --no-deps langgraph-checkpoint-conformance",
    "langgraph.checkpoint.postgres": "pip install --no-deps langgraph-checkpoint-postgres, or use another saver",
    "langgraph.checkpoint.redis": "pip install --no-deps langgraph-checkpoint-redis, or use another saver",
    "langgraph.store.redis": "pip install --no-deps langgraph-checkpoint-redis, or use another store",
    "langgraph_sdk": "It is the client of LangGraph's servers, and works beside surestep: pip install langgraph-sdk",
}


class Finder(MetaPathFinder):
    """Finds `langgraph` and what is in it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of LangGraph's name; None for other modules. ModuleNotFoundError if there is none."""
        top, _, rest = fullname.partition(".")
        if top == ALIAS:
            return self._find(fullname, rest)
        if fullname == "langgraph_sdk":
            return self._elsewhere(fullname, None) or _not_there(fullname)
        if top == OWN and rest:
            return self._guest_of_ours(fullname)
        return None

    def _find(self, name: str, rest: str) -> ModuleSpec | None:
        if not rest:
            return _bare_package(name)
        parent = name.rpartition(".")[0]
        if parent != ALIAS and not _is_ours(parent):
            return None  # a guest looks after its own children
        own = f"{OWN}.{rest}"
        spec = self._own(own)
        if spec is not None:
            return ModuleSpec(name, AliasLoader(own), is_package=spec.submodule_search_locations is not None)
        return (self._guest(name) if parent in PORTS or name in GUESTS else None) or _not_there(name)

    def _own(self, own: str) -> ModuleSpec | None:
        module = sys.modules.get(own)
        if module is None:
            parent = importlib.import_module(own.rpartition(".")[0])
            return self._elsewhere(own, list(getattr(parent, "__path__", ())))
        return module.__spec__ if module.__name__ == own else None  # else a guest that rule 3 put there

    def _guest(self, name: str) -> ModuleSpec | None:
        return self._elsewhere(name, _folders(name.rpartition(".")[0]))

    def _guest_of_ours(self, own: str) -> ModuleSpec | None:
        parent, _, child = own.rpartition(".")
        package = sys.modules.get(parent)
        if package is None:
            return None
        if not package.__name__.startswith(OWN):  # in a guest
            return ModuleSpec(own, AliasLoader(f"{package.__name__}.{child}"))
        name = ALIAS + own.removeprefix(OWN)
        if name.rpartition(".")[0] not in PORTS or self._elsewhere(own, list(package.__path__)) is not None:
            return None
        return ModuleSpec(own, AliasLoader(name)) if name in ADVICE or self._guest(name) is not None else None

    def _elsewhere(self, name: str, path: list[str] | None) -> ModuleSpec | None:
        """What the other finders say."""
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            if finder is not self and find_spec is not None:
                spec: ModuleSpec | None = find_spec(name, path)
                if spec is not None and spec.loader is not None:  # else a folder that Python takes for a package
                    return spec
        return None


class AliasLoader(Loader):
    """Hands out a module that has another name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself."""
        module = importlib.import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give it its spec back: the import system has just put the alias's there."""
        module.__spec__ = self.spec


def _bare_package(name: str) -> ModuleSpec:
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = _folders(name)
    return spec


def _is_ours(name: str) -> bool:
    """Whether what is loaded under this name of LangGraph's is surestep's."""
    return getattr(sys.modules.get(name), "__name__", None) == OWN + name.removeprefix(ALIAS)


def _folders(package: str) -> list[str]:
    """Where distributions put what they have of this package of LangGraph's."""
    top = PathFinder.find_spec(ALIAS)
    roots = (top.submodule_search_locations if top is not None else None) or ()
    return [os.path.join(root, *package.split(".")[1:]) for root in roots]


def _not_there(name: str) -> NoReturn:
    advice = ADVICE.get(name) or (
        "If it is private to LangGraph's engine, what imports it cannot run on surestep; docs/moving-from-langgraph.md "
        "lists what is there and what is not."
    )
    raise ModuleNotFoundError(f"neither surestep nor an installed package has {name!r}. {advice}", name=name)
