"""The savers that the contract is tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import postgres as harness
from savers.history import Thread
from savers.kinds import KINDS, POSTGRES, TENANTS, opened
from savers.neighbour import neighbour


@pytest.fixture(scope="session")
def shared_tables(postgres_database: str) -> Iterator[str]:
    """The conn string of a role that may use tables in which another tenant has its threads, and sees no rows but those
    of the tenant that it says it is. In the end nothing of the neighbour's has changed."""
    with harness.schema(postgres_database) as owner, neighbour(owner) as conn_string:
        yield conn_string


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Any]:
    """Where a saver of a kind keeps what it is given."""

    def of_kind(kind: str) -> Any:
        if kind in POSTGRES:
            return request.getfixturevalue("postgres")
        return request.getfixturevalue("shared_tables") if kind in TENANTS else tmp_path / "checkpoints.sqlite"

    return of_kind


@pytest.fixture(params=KINDS)
def saver(request: pytest.FixtureRequest, place: Callable[[str], Any]) -> Iterator[Any]:
    """Each saver in turn, behind a synchronous face."""
    with opened(request.param, place(request.param)) as made:
        yield made


@pytest.fixture
def thread(saver: Any) -> Thread:
    """A thread to write to, with the saver as `thread.saver`."""
    return Thread(saver)
