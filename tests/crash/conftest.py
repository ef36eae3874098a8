"""The databases that processes are killed at."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash.places import Place
from harness import postgres as harness
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from surestep.checkpoint.postgres import PostgresSaver


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """In PostgreSQL each trial is a tenant of its own, by a setting of its connections."""
    if request.param == "sqlite":
        yield lambda folder: str(folder / "db")
        return
    with harness.schema(request.getfixturevalue("postgres_database")) as conn_string:
        with PostgresSaver.from_conn_string(conn_string) as saver:
            saver.setup()
        known = conninfo_to_dict(conn_string)

        def tenant(folder: Path) -> str:
            options = f"{known['options']} -csurestep.tenant={uuid.uuid4().hex}"
            return make_conninfo(**{**known, "options": options})

        yield tenant
