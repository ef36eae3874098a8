"""The stores that the contract is tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from stores.kinds import KINDS, MEMORY, Face, opened


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[kind for kind in KINDS if kind not in MEMORY])
def lasting(request: pytest.FixtureRequest) -> str:
    """A kind of store that keeps its items in a database."""
    return str(request.param)


@pytest.fixture
def place(tmp_path: Path) -> Any:
    """Where a store of a kind keeps its items."""
    return tmp_path


@pytest.fixture
def open_store(place: Any) -> Iterator[Callable[..., Face]]:
    """Open a store of a kind; closed after the test."""
    with ExitStack() as stack:
        yield lambda kind, **config: stack.enter_context(opened(kind, place, **config))


@pytest.fixture
def store(kind: str, open_store: Callable[..., Face]) -> Face:
    """Each store in turn, behind a synchronous face."""
    return open_store(kind)
