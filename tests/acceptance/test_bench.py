"""The benchmark that comes with the project: a bank's day is played to its end on both engines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BANK_DAY = Path(__file__).resolve().parents[2] / "bench" / "bank_day"


@pytest.mark.parametrize("engine", ["surestep", "langgraph"])
@pytest.mark.parametrize("saver", ["sqlite"])
def test_a_day_at_the_bank(engine: str, saver: str) -> None:
    command = [sys.executable, str(BANK_DAY), "--fraction", "0.00025", "--workers", "2"]
    done = subprocess.run([*command, "--engine", engine, "--saver", saver], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["engine"] == engine and figures["dialogues"] == 2
    assert 0 < figures["median_turn"] <= figures["p95_turn"]
    assert figures["bytes_a_dialogue"] > 15 * 1000, "what was said is stored"


def test_both_side_by_side() -> None:
    command = [sys.executable, str(BANK_DAY), "--fraction", "0.0001", "--workers", "1", "--saver", "sqlite"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [word for word in ("surestep", "langgraph", "ratio") if word in done.stdout] == [
        "surestep",
        "langgraph",
        "ratio",
    ]
