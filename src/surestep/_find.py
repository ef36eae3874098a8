"""What command lines name: a graph by the place where a program keeps it (`module:name`), a database."""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class CommandError(Exception):
    """What the user has to hear instead of a traceback."""


def find_graph(place: str) -> Any:
    """The compiled graph at `module:name` or `file.py:name`; the name may have dots.

    A builder is compiled, a function without parameters is called. CommandError says what is not there. What the
    module itself raises when it is imported is left as it is.
    """
    path, colon, name = place.rpartition(":")
    module = _load(path if colon else place)
    if not colon or not name:
        raise CommandError(f"which graph of {place.rstrip(':')}? {_known(module)}")
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise CommandError(f"no {name} in {path}. {_known(module)}") from None
    graph = _compiled(found)
    if graph is None and callable(found) and not isinstance(found, type):
        graph = _compiled(found())
    if graph is None:
        raise CommandError(f"{place} is no graph but of the type {type(found).__name__}. {_known(module)}")
    return graph


def _load(path: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:  # as with `python -m`
        sys.path.insert(0, here)
    if path.endswith(".py"):
        return _load_file(Path(path))
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{path}.".startswith(f"{missing.name}."):
            raise  # the module is there; it misses another
        raise CommandError(f"no module {path}; it is looked for here and where Python's packages are") from None
    except (TypeError, ValueError):  # "", ".bot"
        raise CommandError(f"{path!r} is no name of a module") from None


def _load_file(path: Path) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    if not path.is_file():
        raise CommandError(f"no file {path}")
    sys.path.insert(0, str(path.resolve().parent))  # as with `python file.py`
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # the name ends with .py
    module = module_from_spec(spec)
    sys.modules[path.stem] = module  # annotations of its classes are looked up there
    spec.loader.exec_module(module)
    return module


def _compiled(thing: Any) -> Any:
    """The compiled graph that a thing is or builds; None if it does neither."""
    from surestep.graph import StateGraph
    from surestep.pregel import Pregel

    if isinstance(thing, StateGraph):
        return thing.compile()
    return thing if isinstance(thing, Pregel) else None


def _known(module: ModuleType) -> str:
    from surestep.graph import StateGraph
    from surestep.pregel import Pregel

    names = [name for name, thing in vars(module).items() if isinstance(thing, StateGraph | Pregel)]
    return f"Graphs in it: {', '.join(names)}." if names else "There is no graph at its top level."


def is_postgres(url: str) -> bool:
    """Whether that is a URL or a connection string of PostgreSQL, and no file."""
    return url.startswith(("postgres://", "postgresql://")) or re.match(r"\w+ *= *\S", url) is not None
