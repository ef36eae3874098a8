"""The two engines, for the tests that hold one against the other."""

from __future__ import annotations

from typing import Any

import pytest
from unit.builder.engines import ours, theirs


@pytest.fixture(params=[ours, theirs], ids=["surestep", "langgraph"])
def engine(request: pytest.FixtureRequest) -> Any:
    """A test with this fixture states what both engines do."""
    return request.param
