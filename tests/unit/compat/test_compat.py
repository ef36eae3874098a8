"""`surestep.compat`: LangGraph's names give surestep's modules. Each test is a process of its own.

LangGraph is installed in the environment that runs these tests, and nothing of it may be loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import surestep.graph

NAMES = json.loads((Path(__file__).resolve().parents[2] / "langgraph_names.json").read_text())
PACKAGE = Path(surestep.graph.__file__).parent.parent
# Those that are not there: tests/test_exports.py
OURS = [
    name for name in NAMES if any((PACKAGE / name.replace(".", "/")).with_suffix(end).exists() for end in ("", ".py"))
]


def python(*arguments: str, path: Path | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), str(path)]))
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=cwd)


def run(code: str, path: Path | None = None) -> str:
    """What a program prints that calls install() first."""
    done = python("-c", "import surestep.compat\nsurestep.compat.install()\n" + dedent(code), path=path)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_module_is_the_same_object() -> None:
    out = run(
        f"""
        import importlib, sys
        for name in {sorted(OURS)}:
            there, here = (importlib.import_module(f"{{top}}.{{name}}") for top in ("langgraph", "surestep"))
            assert there is here and here.__spec__.name == here.__name__ == f"surestep.{{name}}", name
            parent, _, child = f"langgraph.{{name}}".rpartition(".")
            assert getattr(sys.modules[parent], child) is here
        files = {{name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}}
        print(*[name for name, file in files.items() if "site-packages/langgraph/" in file])
        """
    )
    assert out == ""


def test_classes_are_the_same() -> None:
    run(
        """
        from langgraph.graph import StateGraph
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
        from langgraph.types import Command
        import langgraph.func as func
        import surestep.checkpoint.sqlite.aio, surestep.func, surestep.graph.state, surestep.types
        assert StateGraph is surestep.graph.state.StateGraph and Command is surestep.types.Command
        assert AsyncSqliteSaver is surestep.checkpoint.sqlite.aio.AsyncSqliteSaver and func is surestep.func
        """
    )


def test_again_and_in_threads() -> None:
    out = run(
        """
        import importlib, sys, threading
        from surestep.compat import install, installed
        gate = threading.Barrier(8)
        found = []
        def work():
            gate.wait()
            install()
            for name in ("graph", "types", "checkpoint.sqlite", "pregel.protocol", "func", "store.memory"):
                found.append((name, importlib.import_module(f"langgraph.{name}")))
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        install()
        print(installed(), sum(type(f).__name__ == "Finder" for f in sys.meta_path), len(found))
        print(all(module is sys.modules[f"surestep.{name}"] for name, module in found))
        """
    )
    assert out.split() == ["True", "1", "48", "True"]


def test_too_late() -> None:
    done = python("-c", "import langgraph.graph, surestep.compat as c; print(c.installed()); c.install()")
    assert done.stdout.strip() == "False"
    assert "RuntimeError: LangGraph has been imported before surestep.compat.install()" in done.stderr
    assert "langgraph." in done.stderr and "python -m surestep.compat" in done.stderr


def test_the_bare_package_may_be_there() -> None:
    code = "import langgraph, surestep.compat as c; c.install(); import langgraph.types as t; "
    done = python("-c", code + "print(t.__name__, langgraph.types is t)")
    assert done.stdout.split() == ["surestep.types", "True"], done.stderr


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("import langgraph.checkpoint.redis", "pip install --no-deps langgraph-checkpoint-redis"),
        ("from langgraph.checkpoint import redis", "pip install --no-deps langgraph-checkpoint-redis"),
        ("import langgraph.checkpoint.redis.aio", "has 'langgraph.checkpoint.redis'"),
        ("import langgraph.pregel._loop", "private to LangGraph's engine"),
        ("import langgraph.nonsense", "has 'langgraph.nonsense'"),
        ("from langgraph.checkpoint import nonsense", "cannot import name 'nonsense'"),
        ("import langgraph.types.nonsense", "'langgraph.types' is not a package"),
    ],
)
def test_what_is_not_there_is_named(statement: str, said: str) -> None:
    out = run(f"try:\n    {statement}\nexcept ImportError as error:\n    print(type(error).__name__, error)")
    assert said in out


def test_what_is_not_installed_is_named() -> None:
    out = run(
        """
        import sys
        sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry]
        for name in ("langgraph_sdk", "langgraph.prebuilt"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                print(error.name, error)
        """
    )
    first, second = out.splitlines()
    assert first.startswith("langgraph_sdk ") and "pip install langgraph-sdk" in first
    assert second.startswith("langgraph.prebuilt ") and "pip install --no-deps langgraph-prebuilt" in second


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """A folder with parts of `langgraph` by other makers, and a piece of an engine."""
    for file, text in {
        "checkpoint/mydb/__init__.py": "from langgraph.checkpoint.base import BaseCheckpointSaver\n"
        "class MyDB(BaseCheckpointSaver): pass\n",
        "checkpoint/mydb/aio.py": "from langgraph.checkpoint.mydb import MyDB\n",
        "checkpoint/leftover/readme.txt": "",
        "store/mydb.py": "where = __file__\n",
        "pregel/_loop.py": "raise SystemExit('loaded')\n",
        "types.py": "raise SystemExit('loaded')\n",
    }.items():
        (tmp_path / "langgraph" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "langgraph" / file).write_text(text)
    return tmp_path


def test_parts_by_other_makers(others: Path) -> None:
    run(
        """
        from langgraph.checkpoint import mydb
        import langgraph.checkpoint.mydb.aio as aio, langgraph.checkpoint as port, langgraph.checkpoint.mydb as again
        import surestep.checkpoint.mydb.aio as ours
        from langgraph.store import mydb as store
        from surestep.checkpoint.base import BaseCheckpointSaver
        assert again is mydb is port.mydb and aio.MyDB is mydb.MyDB and ours is aio
        assert mydb.__name__ == "langgraph.checkpoint.mydb" and store.where.endswith("mydb.py")
        assert issubclass(mydb.MyDB, BaseCheckpointSaver)
        """,
        path=others,
    )


@pytest.mark.parametrize("module", ["checkpoint.leftover", "pregel._loop"])
def test_an_engine_is_never_loaded(others: Path, module: str) -> None:
    done = run(
        f"import langgraph.types\ntry: import langgraph.{module}\nexcept ImportError as e: print(e)", path=others
    )
    assert f"neither surestep nor an installed package has 'langgraph.{module}'" in done


PROGRAM = """
from __future__ import annotations
import sys, typing
from langgraph.graph import StateGraph, START
class State(typing.TypedDict):
    text: Kind
Kind = str
graph = StateGraph(State).add_node("shout", lambda s: {"text": s["text"].upper()}).add_edge(START, "shout").compile()
print(type(graph).__module__, graph.invoke({"text": sys.argv[1]}), sys.argv[1:], __name__)
import beside
print(beside.word, sys.modules["__main__"].State is State)
sys.exit(3)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "beside.py").write_text("word = 'neighbour'")
    (tmp_path / "app" / "main.py").write_text(PROGRAM)
    (tmp_path / "app" / "__main__.py").write_text(PROGRAM)
    return tmp_path


SAID = ["surestep.graph.state {'text': 'HI'} ['hi', '--loud'] __main__", "neighbour True"]


@pytest.mark.parametrize("how", [["app/main.py"], ["app"]])
def test_a_program_as_it_is(program: Path, how: list[str]) -> None:
    done = python("-m", "surestep.compat", *how, "hi", "--loud", cwd=program)
    assert (done.returncode, done.stdout.splitlines()) == (3, SAID), done.stderr


def test_a_module_as_it_is(program: Path) -> None:
    done = python("-m", "surestep.compat", "-m", "main", "hi", "--loud", path=program / "app", cwd=program)
    assert (done.returncode, done.stdout.splitlines()) == (3, SAID), done.stderr


def test_code_as_it_is() -> None:
    code = "import sys, langgraph.types as t; print(t.__name__, sys.argv, sys.modules['__main__'].t is t)"
    done = python("-m", "surestep.compat", "-c", code, "x")
    assert done.stdout.strip() == "surestep.types ['-c', 'x'] True"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "python -m surestep.compat script.py"),
        (["--help"], 0, "python -m surestep.compat script.py"),
        (["nowhere.py"], 1, "no file nowhere.py"),
        (["-m"], 1, "-m needs an argument"),
        (["-x"], 1, "unknown option -x"),
    ],
)
def test_what_it_cannot_run(arguments: list[str], code: int, said: str) -> None:
    done = python("-m", "surestep.compat", *arguments)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
