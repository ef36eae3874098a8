"""`python -m surestep.compat`: run a program for LangGraph, as it is, on surestep.

python -m surestep.compat script.py ARGUMENTS…
python -m surestep.compat -m module ARGUMENTS…
python -m surestep.compat -c CODE ARGUMENTS…
"""

from __future__ import annotations

import io
import os
import runpy
import sys
import zipfile
from types import ModuleType

from surestep.compat import install

__all__ = ("main",)


def main() -> None:
    """Run what the arguments say, as `python` would: it sees its own `sys.argv`, `sys.path` and `__name__`."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if arguments else 2)
    first, *rest = arguments
    if first in ("-m", "-c"):
        if not rest:
            sys.exit(f"surestep.compat: {first} needs an argument")
        what, *sys.argv[1:] = rest
        install()
        if first == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            sys.argv[0] = "-c"
            _run(what, "<string>")
    elif first.startswith("-"):
        sys.exit(f"surestep.compat: unknown option {first}; options of Python go before -m surestep.compat")
    elif not os.path.exists(first):
        sys.exit(f"surestep.compat: no file {first}")
    else:
        sys.argv = arguments
        install()
        if os.path.isdir(first) or zipfile.is_zipfile(first):
            runpy.run_path(first, run_name="__main__")
        else:
            if not sys.flags.safe_path:
                sys.path[0] = os.path.dirname(os.path.abspath(first))  # it was the working directory
            with io.open_code(os.path.abspath(first)) as file:
                _run(file.read(), first)


def _run(source: str | bytes, file: str) -> None:
    """Run a program's text as the module `__main__`, which stays: threads and exit handlers may outlive it."""
    module = ModuleType("__main__")
    if file != "<string>":
        module.__file__ = file
    sys.modules["__main__"] = module
    exec(compile(source, file, "exec"), module.__dict__)


if __name__ == "__main__":
    main()
