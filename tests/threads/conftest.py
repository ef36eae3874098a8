"""Every scenario runs under each driver, on the memory and the SQLite saver."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from harness.engine import DRIVERS, Engine


@pytest.fixture(params=list(itertools.product(DRIVERS, ("memory", "sqlite"))), ids="-".join)
def E(request: Any) -> Iterator[Engine]:
    driver, savers = request.param
    with Engine("surestep", driver, savers) as engine:
        yield engine
