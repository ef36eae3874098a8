"""Every scenario is written once and runs under each driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from harness.engine import DRIVERS, Engine


@pytest.fixture(params=DRIVERS)
def E(request: Any) -> Iterator[Engine]:
    with Engine("surestep", request.param) as engine:
        yield engine
