"""Who may import whom, read from the source: the rules of ARCHITECTURE.md.

The core decides and must not be able to wait, to ask the time or to touch a database; the drivers do what
it asks and know no SQL; nobody but the integration knows LangChain.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"
PACKAGE = SOURCE / "surestep"

# What only a driver or a saver needs. The core may import the rest of the standard library.
WAITING = {"asyncio", "concurrent", "multiprocessing", "sched", "selectors", "signal", "socket", "subprocess"}
WAITING |= {"threading", "time", "queue", "sqlite3", "datetime"}

# Third-party packages that any module may import at its top, and those that few may import, lazily.
EVERYWHERE = {"ormsgpack", "xxhash"}
_STREAMS = {"stream/transformers.py", "pregel/remote.py"}
LAZY = {
    "langchain_core": {"integrations", "graph/message.py", "graph/ui.py", "checkpoint/serde", *_STREAMS},
    "langgraph_sdk": {"pregel/remote.py", "pregel/_remote_run_stream.py"},
    "langsmith": {"pregel/remote.py"},
    "pydantic": {""},
    "typing_extensions": {""},
    "rich": {"cli.py"},
    "Crypto": {"checkpoint/serde/_aes.py"},
    "cryptography": {"checkpoint/serde/_aes.py"},
    "numpy": {"checkpoint/serde"},
    "aiosqlite": {"checkpoint/sqlite"},
    "mermaidx": {"pregel/draw.py"},
    "termaid": {"pregel/draw.py"},
    "psycopg": {"_sql/postgres", "_import/sources.py", "cli.py", "store/postgres"},
    "psycopg_pool": {"_sql/postgres"},
}


def modules(folder: str = "") -> list[Path]:
    return sorted((PACKAGE / folder).rglob("*.py"))


def imports(path: Path, *, top_level_only: bool = False) -> Iterator[tuple[str, int]]:
    """Every module that `path` imports, in full, with its line. `if TYPE_CHECKING:` does not count."""

    later = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

    def walk(node: ast.AST) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, child.lineno) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield resolve(child, path), child.lineno
                # `from surestep import errors` names a module too
                if child.module == "surestep":
                    yield from ((f"surestep.{alias.name}", child.lineno) for alias in child.names)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                yield from (found for part in child.orelse for found in walk(part))
            elif not (top_level_only and isinstance(child, later)):
                yield from walk(child)

    yield from walk(ast.parse(path.read_text(), str(path)))


def resolve(node: ast.ImportFrom, path: Path) -> str:
    if not node.level:
        return node.module or ""
    package = path.relative_to(SOURCE).with_suffix("").parts[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


# What the core may import of ours; the names with an underscore are what `types` is made of.
OURS = "_core types errors channels _constants _fields _policies _records _stream_types _typing".split()


def test_the_core_decides_and_cannot_do() -> None:
    wrong = []
    for path in modules("_core"):
        for module, line in imports(path):
            top = module.partition(".")[0]
            if top == "surestep":
                allowed = module == top or module.split(".")[1] in OURS
            else:
                allowed = (top in sys.stdlib_module_names and top not in WAITING) or top in EVERYWHERE
            if not allowed:
                wrong.append(f"{name(path)}:{line} imports {module}")
    assert not wrong


def test_no_driver_in_the_core() -> None:
    for path in modules("_core"):
        nodes = ast.walk(ast.parse(path.read_text()))
        found = [node.lineno for node in nodes if isinstance(node, ast.AsyncFunctionDef | ast.Await)]
        assert not found, f"{name(path)} awaits in lines {found}: the core yields commands instead"


def test_the_drivers_know_no_storage() -> None:
    wrong = [
        f"{name(path)}:{line} imports {module}"
        for path in modules("_drive")
        for module, line in imports(path)
        if module.startswith(("surestep._sql", "surestep.checkpoint.sqlite", "surestep.graph", "sqlite3"))
    ]
    assert not wrong


def test_the_savers_know_no_engine() -> None:
    engine = ("surestep._core", "surestep._drive", "surestep.pregel", "surestep.graph", "surestep.func")
    wrong = [
        f"{name(path)}:{line} imports {module}"
        for folder in ("_sql", "checkpoint", "store", "channels")
        for path in modules(folder)
        for module, line in imports(path)
        if module.startswith(engine)
    ]
    assert not wrong


def test_nobody_imports_langgraph() -> None:
    wrong = [
        f"{name(path)}:{line} imports {module}"
        for path in modules()
        for module, line in imports(path)
        # the client of LangGraph servers is a package of its own, and may be there without LangGraph
        if (top := module.partition(".")[0]).startswith("langgraph") and top != "langgraph_sdk"
    ]
    assert not wrong


def test_third_party_packages_stay_in_their_rooms() -> None:
    wrong = []
    for path in modules():
        at_the_top = set(imports(path, top_level_only=True))
        for module, line in imports(path):
            top = module.partition(".")[0]
            if top in sys.stdlib_module_names or top in EVERYWHERE or top in ("surestep", "__future__"):
                continue
            rooms = LAZY.get(top, set())
            if not any(name(path).startswith(room) for room in rooms):
                wrong.append(f"{name(path)}:{line} imports {module}")
            elif (module, line) in at_the_top and not name(path).startswith("integrations"):
                wrong.append(f"{name(path)}:{line} imports {module} when it is loaded; do it in the function")
    assert not wrong


HEAVY = {"langchain_core", "pydantic", "typing_extensions", "asyncio", "sqlite3", "rich", "langgraph"}


@pytest.mark.parametrize("module", ["", ".graph", ".types", ".pregel", ".checkpoint.memory"])
def test_an_import_loads_only_what_it_needs(module: str) -> None:
    code = f"import sys; old = {{*sys.modules}}; import surestep{module}; print(*{{*sys.modules}} - old)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert not HEAVY & {loaded.partition(".")[0] for loaded in run.stdout.split()}
