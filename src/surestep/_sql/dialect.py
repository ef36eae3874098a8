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

    `values`: the query for channel values; parameters: JSON of [[version, channel], ...], thread, namespace.
    """

    name: str
    begin_read: str
    begin_write: str
    schema: Callable[[], list[str]]
    has_schema: str
    values: str


def statements(script: str) -> list[str]:
    """The statements of a schema file, without its comments."""
    code = "\n".join(line.partition("--")[0] for line in script.splitlines())
    return [statement.strip() for statement in code.split(";") if statement.strip()]


SQLITE = Dialect(
    name="sqlite",
    begin_read="BEGIN",
    # IMMEDIATE takes the write lock now: a transaction that has read can't be told later to start again.
    begin_write="BEGIN IMMEDIATE",
    schema=lambda: statements((HERE / "sqlite" / "schema.sql").read_text()),
    has_schema="SELECT 1 FROM sqlite_master WHERE name = 'surestep_schema'",
    values=queries.values("SELECT value ->> 0 AS first, value ->> 1 AS second FROM json_each(?)"),
)
