"""With each rule taken away at least one test fails: the rules are held by tests, not by luck."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mutation.table import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.rule for mutant in MUTANTS])
def test_the_source_has_the_rule_once(mutant: Mutant) -> None:
    assert (ROOT / "src" / mutant.file).read_text().count(mutant.old) == 1
    path, _, name = mutant.test.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text()
    assert f"| {mutant.rule} | `{mutant.test}` |" in (ROOT / "INVARIANTS.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.rule for mutant in MUTANTS])
def test_without_the_rule_its_test_fails(mutant: Mutant, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src")
    edited = tmp_path / "src" / mutant.file
    edited.write_text(edited.read_text().replace(mutant.old, mutant.new))
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-k",
            "not postgres",
            "-o",
            "faulthandler_timeout=20",
            mutant.test,
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 1 or "Timeout (" in run.stdout + run.stderr, run.stdout[-2000:]
