"""Another tenant in the same tables, with threads of the names that the tests use."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from savers.history import LARGE, TASK, Thread, at, everything

from surestep.checkpoint.base import TaskWrites
from surestep.checkpoint.postgres import PostgresSaver, grant_sql

TENANT = "neighbour"
THREADS = ("t", "a", "b", "other", "copy", "u", "shared", "writes", "claims")
PASSWORD = "neighbourly"


@contextmanager
def neighbour(owner: str) -> Iterator[str]:
    """The conn string of a role of its own, which owns nothing. In the end the neighbour has what it had."""
    role = f"surestep_{uuid.uuid4().hex[:12]}"
    with PostgresSaver.from_conn_string(owner, tenant=TENANT) as saver:
        saver.setup()
        fill(saver)
        before = theirs(saver)
    with granted(owner, role):  # without a connection that stays: some tests cut all of the server's
        yield make_conninfo(**{**conninfo_to_dict(owner), "user": role, "password": PASSWORD})
    with PostgresSaver.from_conn_string(owner, tenant=TENANT) as saver:
        assert theirs(saver) == before


def theirs(saver: PostgresSaver) -> list[Any]:
    """All that the neighbour has."""
    return [everything(saver), *(saver.pins(thread) for thread in THREADS)]


def fill(saver: PostgresSaver) -> None:
    """Threads with everything in them."""
    for name in THREADS:
        for ns in ("", "inner"):
            thread = Thread(saver, name, ns)
            thread.put({"n": 1, "log": [LARGE]}, metadata={"run_id": "r1", "source": "loop"})
            writes = [TaskWrites(TASK, "~p", [("log", [LARGE])])]
            thread.put({"n": 2, "log": [LARGE, LARGE]}, metadata={"run_id": "r2"}, writes=writes)
            saver.put_writes(at(name, thread.head, ns), [("__interrupt__", ["theirs"]), ("x", LARGE)], TASK)
            saver.pin(at(name, thread.head, ns), "theirs")


@contextmanager
def granted(owner: str, role: str, tenant: str | None = None) -> Iterator[None]:
    """A role that may use the tables; with a tenant, those rows only."""
    (schema,) = run(owner, "SELECT current_schema()")
    run(owner, f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    try:
        run(owner, grant_sql(role, schema=schema, tenant=tenant))
        yield
    finally:
        run(owner, f"DROP OWNED BY {role} CASCADE")
        run(owner, f"DROP ROLE {role}")


def run(conn_string: str, sql: str) -> Any:
    """The first row of a statement, run past all savers."""
    with psycopg.connect(conn_string, autocommit=True) as conn:
        cursor = conn.execute(sql)
        return cursor.fetchone() if cursor.description else None
