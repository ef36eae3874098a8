"""Packages written for LangGraph, running on surestep without a change.

    import surestep.compat
    surestep.compat.install()

From then on `import langgraph.X` gives the module `surestep.X` itself, so classes are the same under both names. To run
a program as it is: `python -m surestep.compat script.py ARGUMENTS…`, or `-m module`, or `-c code`.

What of `langgraph` is not surestep's:

* `langgraph.prebuilt`, and savers, stores and caches of other makers (children of `langgraph.checkpoint`, `.store` and
  `.cache`), come from the distributions that are installed for them. LangGraph itself need not be installed; where it
  is, nothing of it is loaded.
* Everything else is a ModuleNotFoundError that names the module and says what to do.

Rules:
1. Call `install` before anything imports LangGraph: RuntimeError if something has, because two engines in one program
   do not know each other's classes.
2. Calling it again, from any thread, changes nothing. It cannot be taken back.
3. It holds for this process. One that is started anew (multiprocessing's `spawn`) has to call it too.
"""

from __future__ import annotations

import sys
from threading import Lock

from surestep.compat._finder import ALIAS, OWN, Finder

__all__ = ("install", "installed")

_lock = Lock()


def install() -> None:
    """Make `langgraph.*` resolve to surestep in this process.

    Again, or in another thread: nothing changes. RuntimeError if modules of LangGraph are loaded already.
    """
    with _lock:
        if installed():
            return
        foreign = sorted(name for name in list(sys.modules) if _is_foreign(name))
        if foreign:
            shown = ", ".join(foreign[:5]) + (f" and {len(foreign) - 5} more" if len(foreign) > 5 else "")
            raise RuntimeError(
                f"LangGraph has been imported before surestep.compat.install() was called ({shown}). What holds its "
                "classes would not know surestep's. Call install() at the top of the program, before the imports, or "
                "run the program with `python -m surestep.compat`."
            )
        sys.meta_path.insert(0, Finder())


def installed() -> bool:
    """Whether `langgraph.*` resolves to surestep in this process."""
    return any(isinstance(finder, Finder) for finder in sys.meta_path)


def _is_foreign(name: str) -> bool:
    """Whether a module of that name is loaded and is not surestep's. The bare package has nothing in it."""
    if not name.startswith(f"{ALIAS}."):
        return False
    module = sys.modules.get(name)
    return module is not None and module is not sys.modules.get(OWN + name.removeprefix(ALIAS))
