"""Both engines under one set of names, so that a test says a thing once and asks each of them."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any


def _names(root: str) -> SimpleNamespace:
    def module(path: str) -> Any:
        return importlib.import_module(f"{root}.{path}")

    found = SimpleNamespace(root=root)
    for path in ("graph", "types", "channels", "managed", "errors", "pregel", "runtime", "store.base"):
        for name in getattr(module(path), "__all__", ()):
            setattr(found, name, getattr(module(path), name))
    found.InMemorySaver = module("checkpoint.memory").InMemorySaver
    return found


ours = _names("surestep")
theirs = _names("langgraph")
