"""No twins: a pair `x`/`ax` may share five statements, no more. What is more belongs into one generator.

The reader of a twin has to compare two functions line by line for ever; style.md of the reference's faults
begins with them. `await`, `async` and the letter `a` in front of a called name are taken away first, so that
`await self.aput(...)` and `self.put(...)` count as the same statement.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "surestep"
SHARED_STATEMENTS = 5

Function = ast.FunctionDef | ast.AsyncFunctionDef

# Pairs that may share a statement more, by their sync name. The numbers are no licence to grow.
ACCEPTED = {
    # the call of every node: a generator between would cost more than the call
    "Call.invoke": 6,
    # a loop of six lines around a walk that is written once
    "BaseCheckpointSaver.get_delta_channel_history": 6,
}


class _Sync(ast.NodeTransformer):
    """Rewrites an async function as the sync one it might be the twin of."""

    def visit_Await(self, node: ast.Await) -> ast.AST:
        return self.visit(node.value)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        return ast.For(**self._fields(node))

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        return ast.With(**self._fields(node))

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return ast.FunctionDef(**self._fields(node))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return ast.Attribute(node.value, _plain(node.attr), node.ctx)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(_plain(node.id), node.ctx)

    def _fields(self, node: ast.AST) -> dict[str, object]:
        self.generic_visit(node)
        return {field: getattr(node, field, None) for field in node._fields}


def _plain(name: str) -> str:
    """The name without the marks of its async form: aput, _aput, Async..., ..._async."""
    for mark, plain in (("__a", "__"), ("_a", "_"), ("a", ""), ("Async", "")):
        if name.startswith(mark) and len(name) > len(mark) + 2:
            name = plain + name[len(mark) :]
            break
    return name.removesuffix("_async")


def statements(function: Function) -> Counter[str]:
    """Every simple statement and every head of a compound one, in the sync form, as text."""
    found: Counter[str] = Counter()
    body = [_Sync().visit(part) for part in function.body]
    for part in body:
        for node in ast.walk(part):
            if not isinstance(node, ast.stmt) or _says_nothing(node):
                continue
            for field in ("body", "orelse", "finalbody", "handlers"):
                if getattr(node, field, None):
                    setattr(node, field, [])
            found[ast.dump(node)] += 1
    return found


def _says_nothing(node: ast.stmt) -> bool:
    """A docstring, or the return of a plain name: no logic that could be wrong in one of two places."""
    if isinstance(node, ast.Return):
        return isinstance(node.value, ast.Name | ast.Constant | None)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def functions(tree: ast.AST, where: str = "") -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, Function):
            yield where + child.name, child
            yield from functions(child, f"{where}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from functions(child, f"{where}{child.name}.")
        else:
            yield from functions(child, where)


def twins(source: str) -> dict[tuple[str, str], int]:
    """Pairs of a sync and an async function with the same name but for its marks, and what they share."""
    parsed = ast.parse(source)
    everything = list(functions(parsed))
    pairs = {}
    for name, function in everything:
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        plain = ".".join(_plain(part) for part in name.split("."))
        for other, candidate in everything:
            same = ".".join(_plain(part) for part in other.split(".")) == plain
            if same and isinstance(candidate, ast.FunctionDef):
                pairs[other, name] = (statements(function) & statements(candidate)).total()
    return pairs


def test_no_pair_shares_more_than_five_statements() -> None:
    wrong = []
    for folder in {path.parent for path in PACKAGE.rglob("*.py")}:
        # A folder at a time: an async class often lives beside its sync one, in `aio.py` or `async_.py`.
        texts = (path.read_text() for path in sorted(folder.glob("*.py")))
        source = "\n".join(text.replace("from __future__ import annotations", "") for text in texts)
        wrong += [
            f"{folder.relative_to(PACKAGE)}: {one} and {two} share {shared} statements"
            for (one, two), shared in twins(source).items()
            if shared > ACCEPTED.get(one, SHARED_STATEMENTS)
        ]
    assert not wrong


TWINS = """
class Saver:
    def put(self, row):
        key = self.key(row)
        with self.lock:
            if key in self.rows:
                raise KeyError(key)
            self.rows[key] = row
            self.write(row)
        return key

class AsyncSaver:
    async def aput(self, row):
        key = await self.akey(row)
        async with self.lock:
            if key in self.rows:
                raise KeyError(key)
            self.rows[key] = row
            await self.awrite(row)
        return key
"""


def test_twins_are_found() -> None:
    assert twins(TWINS) == {("Saver.put", "AsyncSaver.aput"): 6}


def test_skins_of_one_generator_are_no_twins() -> None:
    skins = """
def put(self, row):
    return run(self._put(row))

async def aput(self, row):
    return await arun(self._put(row))
"""
    assert list(twins(skins).values()) == [1]
