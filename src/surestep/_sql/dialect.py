"""What differs between databases, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from surestep._sql import queries

HERE = Path(__file__).parent


class Dialect(NamedTuple):
    """A database's way to say things. SQL is written with `?` for a parameter; the runner turns that into
    its own.

    `read`, `pages`: queries.read and queries.pages, told how to read ranges of pages in JSON.
    """

    name: str
    begin_read: str
    begin_write: str
    schema: Callable[[], list[str]]
    has_schema: str
    read: str
    pages: str


def statements(script: str) -> list[str]:
    """The statements of a schema file, without its comments."""
    code = "\n".join(line.partition("--")[0] for line in script.splitlines())
    return [statement.strip() for statement in code.split(";") if statement.strip()]


_RANGES = "SELECT value ->> 0 AS log, value ->> 1 AS first, value ->> 2 AS beyond FROM json_each(?)"

SQLITE = Dialect(
    name="sqlite",
    begin_read="BEGIN",
    # IMMEDIATE takes the write lock now: a transaction that has read can't be told later to start again.
    begin_write="BEGIN IMMEDIATE",
    schema=lambda: statements((HERE / "sqlite" / "schema.sql").read_text()),
    has_schema="SELECT 1 FROM sqlite_master WHERE name = 'surestep_schema'",
    read=queries.read(_RANGES),
    pages=queries.pages(_RANGES),
)
