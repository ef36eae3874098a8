"""The stores that the contract is tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from stores.kinds import KINDS, MEMORY, POSTGRES, Face, opened


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[kind for kind in KINDS if kind not in MEMORY])
def lasting(request: pytest.FixtureRequest) -> str:
    """A kind of store that keeps its items in a database."""
    return str(request.param)


@pytest.fixture
def open_store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Face]]:
    """Open a store of a kind; closed after the test."""

    def open_one(kind: str, **config: Any) -> Face:
        place = request.getfixturevalue("postgres") if kind in POSTGRES else tmp_path
        return stack.enter_context(opened(kind, place, **config))

    # Whatever the store needs is there for longer than the store.
    if {"kind", "lasting"} & {*request.fixturenames}:
        name = "kind" if "kind" in request.fixturenames else "lasting"
        if request.getfixturevalue(name) in POSTGRES:
            request.getfixturevalue("postgres")
    with ExitStack() as stack:
        yield open_one


@pytest.fixture
def store(kind: str, open_store: Callable[..., Face]) -> Face:
    """Each store in turn, behind a synchronous face."""
    return open_store(kind)
