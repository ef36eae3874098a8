"""Every fault is tried under both drivers and with both savers of our own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from harness.engine import Engine


@pytest.fixture(params=["sync-memory", "sync-sqlite", "async-memory", "async-sqlite", "mixed-memory"])
def E(request: Any) -> Iterator[Engine]:
    """surestep under each driver and saver. `E.saver()` is a new saver of the kind."""
    driver, savers = request.param.split("-")
    with Engine("surestep", driver, savers) as engine:
        yield engine
