"""The size report finds what is too long, and finds nothing here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SIZE = Path(__file__).resolve().parent.parent / "scripts" / "size"


def size(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SIZE), *arguments], capture_output=True, text=True)


def test_nothing_here_is_over_its_limit() -> None:
    report = size()
    assert [line for line in report.stdout.splitlines() if "over the limit" in line] == []
    assert report.returncode == 0


def test_long_modules_and_functions_are_reported(tmp_path: Path) -> None:
    body = "\n".join(f"    x = {n}" for n in range(61))
    (tmp_path / "long.py").write_text(f"def f():\n{body}\n" + "y = 1\n" * 500)
    report = size(str(tmp_path))
    assert report.returncode == 1
    assert "long.py   over the limit of 520" in report.stdout
    assert "long.py:f   over the limit of 60" in report.stdout


def test_a_docstring_does_not_count(tmp_path: Path) -> None:
    words = "\n".join("    word" for _ in range(100))
    (tmp_path / "told.py").write_text(f'def f():\n    """\n{words}\n    """\n    return 1\n')
    assert size(str(tmp_path)).returncode == 0
