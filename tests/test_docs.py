"""Every Python block of the README and of docs/ runs, and what a page says it prints is what it prints.

The blocks of a page share one namespace, from top to bottom. A block marked `text` right after a Python block
is what that block prints; `...` in it stands for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


@dataclass
class Block:
    """A Python block, the line it begins in, and what it should print (None: the page does not say)."""

    code: str
    line: int
    prints: str | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found: list[Block] = []
    end_of_last = -1
    for fence in FENCE.finditer(text):
        language, body = fence.groups()
        if language == "python":
            found.append(Block(body, text.count("\n", 0, fence.start()) + 2, None))
            end_of_last = fence.end()
        elif language == "text" and not text[end_of_last : fence.start()].strip():
            found[-1].prints = body
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    same = doctest.OutputChecker()
    for block in blocks(page):
        printed = io.StringIO()
        # The line numbers of the page, so that a traceback leads there
        code = compile("\n" * (block.line - 1) + block.code, str(page), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if block.prints is not None:
            example = doctest.Example(block.code, block.prints)
            got = printed.getvalue()
            options = doctest.ELLIPSIS
            where = f"{page.name}:{block.line}"
            assert same.check_output(block.prints, got, options), (
                f"{where}\n{same.output_difference(example, got, options)}"
            )


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("[A-Z]*.md"))], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(page.read_text()):
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            broken.append(target)
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            broken.append(f"{target}#{anchor}")
    assert not broken


def anchors(page: Path) -> set[str]:
    """The places of a page that a link can name: explicit ids and headings as GitHub spells them."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    spelled = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return spelled | set(re.findall(r'<a id="([^"]+)">', text))


def test_every_error_has_its_section() -> None:
    from surestep import errors

    told = anchors(ROOT / "docs" / "errors.md")
    codes = {code.value for code in errors.ErrorCode}
    classes = {name for name in errors.__all__ if isinstance(getattr(errors, name), type)} - {"ErrorCode"}
    assert codes <= told
    assert {name.lower() for name in classes} <= told


def test_the_first_graph_is_short() -> None:
    first = blocks(ROOT / "README.md")[0].code
    assert len([line for line in first.splitlines() if line.strip()]) <= 20


def test_the_tests_that_documents_name_exist() -> None:
    missing = []
    for page in [*PAGES, *sorted(ROOT.glob("[A-Z]*.md"))]:
        for file, name in re.findall(r"`(tests/[\w/.]+\.py)(?:::(\w+))?`", page.read_text()):
            path = ROOT / file
            if not path.exists():
                missing.append(f"{page.name}: {file}")
            elif name and not re.search(rf"^\s*(async )?def {name}\(", path.read_text(), re.MULTILINE):
                missing.append(f"{page.name}: {file}::{name}")
    assert not missing


def test_every_invariant_names_its_tests() -> None:
    rules = re.split(r"^\d+\. ", (ROOT / "INVARIANTS.md").read_text(), flags=re.MULTILINE)[1:]
    unproven = [rule.splitlines()[0] for rule in rules if "`tests/" not in rule]
    assert not unproven


def test_every_difference_is_on_its_page() -> None:
    from compat.registry import DIFFERENCES, load_all

    load_all()
    shown = set(re.findall(r"`([a-z]+-\w+)`", (ROOT / "docs" / "moving-from-langgraph.md").read_text()))
    assert shown == {difference.name for difference in DIFFERENCES}
