"""What all tests share: the profiles of hypothesis, a database server. Fixtures of one area live in that area's
folder."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest
from harness import postgres as postgres_harness
from harness import redis as redis_harness
from hypothesis import HealthCheck, settings

# No deadline: a busy machine must not turn a right answer into a failure. In CI the examples are derived
# from the test's name alone, so that a red run is red again on anybody's machine.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", **_common)
settings.register_profile("ci", derandomize=True, **_common)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# pytest-asyncio asks for the loop that was set before its own. Where none ever was, Python 3.11 makes one, which
# nobody closes; having set none is an answer.
asyncio.set_event_loop(None)


@pytest.fixture(scope="session")
def postgres_database() -> Iterator[str]:
    """The connection string of the session's database in PostgreSQL."""
    with postgres_harness.server() as server, postgres_harness.database(server) as database:
        yield database


@pytest.fixture
def postgres(postgres_database: str) -> Iterator[str]:
    """The connection string of a schema of the test's own in PostgreSQL."""
    with postgres_harness.schema(postgres_database) as conn_string:
        yield conn_string


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The URL of the session's Redis server."""
    with redis_harness.server() as url:
        yield url


@pytest.fixture
def redis_url(redis_server: str) -> Iterator[str]:
    """The URL of a Redis server with nothing on it."""
    with redis_harness.database(redis_server) as url:
        yield url
