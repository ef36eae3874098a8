"""The savers that the contract is tested on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from savers.history import Thread
from savers.kinds import KINDS, opened


@pytest.fixture(params=KINDS)
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Each saver in turn, behind a synchronous face."""
    with opened(request.param, tmp_path / "checkpoints.sqlite") as made:
        yield made


@pytest.fixture
def thread(saver: Any) -> Thread:
    """A thread to write to, with the saver as `thread.saver`."""
    return Thread(saver)
