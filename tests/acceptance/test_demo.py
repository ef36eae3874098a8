"""`surestep demo` keeps its promises, and says so with its exit code; the examples run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=100, cwd=cwd)


def test_the_demo_keeps_every_promise(tmp_path: Path) -> None:
    # From another folder: the command finds its files by itself.
    demo = run("-m", "surestep.cli", "demo", cwd=tmp_path)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "Every promise was kept." in demo.stdout
    assert "✘" not in demo.stdout
    for shown in (
        "no voucher is out, both are held",
        "it was not paid a second time",
        "approved twice, the refund was paid once",
    ):
        assert f"✔ {shown}" in demo.stdout
    for shown in ("dead: signal 9", "drained at a step's boundary, reason: SIGTERM", "flowchart TD"):
        assert shown in demo.stdout


def test_a_broken_promise_is_an_exit_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "bank"))
    import demo

    def broken(play: demo.Play) -> None:
        play.stage.promise("the moon is made of cheese", False)

    parts = ("antifraud_times_out", "killed_in_the_middle", "operator_answers", "drained", "killed_while_paying")
    for part in (*parts, "changed_his_mind"):
        monkeypatch.setattr(demo.Play, part, lambda play: None)
    monkeypatch.setattr(demo.Play, "looked_at_afterwards", broken)
    assert demo.main() == 1


def test_the_smallest_graph() -> None:
    minimal = run(str(EXAMPLES / "minimal.py"))
    assert minimal.stdout.splitlines() == [
        """{'recipient': 'Ada Lovelace', 'street': "12 St James's Square"}""",
        "-1 input ('__start__',) {}",
        "0 loop ('read_label',) {}",
        """1 loop () {'recipient': 'Ada Lovelace', 'street': "12 St James's Square"}""",
    ], minimal.stderr
