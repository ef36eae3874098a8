"""What differs between databases, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from surestep._sql import queries

HERE = Path(__file__).parent


class AtOnce(NamedTuple):
    """What takes one statement, which has one row: whether it was done.

    `step`: a checkpoint behind the one that is known, with `pages` and `writes` (log, number, data of each page; task,
    index, channel, value, path of each write) where there are some, then `end`. `write`: writes alone.
    """

    step: str
    pages: str
    writes: str
    end: str
    write: str


class Dialect(NamedTuple):
    """A database's way to say things. SQL is written with `?` for a parameter; the runner turns that into
    its own.

    `read`, `pages`: queries.read and queries.pages, told how to read ranges of pages in JSON.
    `turn`: waits until nobody else writes to a thread (the parameter), for the rest of the transaction; None where
    transactions that write wait for each other anyway.
    `share`: after a SELECT, keeps what it read from being changed until the transaction ends.
    `at_once`: steps and writes in one statement; None where more statements cost no more.
    """

    name: str
    begin_read: str
    begin_write: str
    schema: Callable[[], list[str]]
    has_schema: str
    read: str
    pages: str
    turn: str | None = None
    share: str = ""
    at_once: AtOnce | None = None


def statements(script: str) -> list[str]:
    """The statements of a schema file, without its comments."""
    code = "\n".join(line.partition("--")[0] for line in script.splitlines())
    found = [""]
    for index, part in enumerate(code.split("$$")):
        if index % 2:  # the body of a function
            found[-1] += f"$${part}$$"
        else:
            first, *more = part.split(";")
            found[-1] += first
            found += more
    return [statement.strip() for statement in found if statement.strip()]


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

_RANGES_OF_POSTGRES = """
SELECT (value ->> 0)::int AS log, (value ->> 1)::int AS first, (value ->> 2)::int AS beyond
FROM json_array_elements(?::json) AS value"""

POSTGRES = Dialect(
    name="postgres",
    begin_read="BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    # After waiting for its turn a transaction has to see what the others did.
    begin_write="BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    schema=lambda: statements((HERE / "postgres" / "001.sql").read_text()),
    has_schema="SELECT 1 WHERE to_regclass(?) IS NOT NULL",
    read=queries.read(_RANGES_OF_POSTGRES),
    pages=queries.pages(_RANGES_OF_POSTGRES),
    turn="SELECT surestep_turn(?)",
    share=" FOR SHARE",
    at_once=AtOnce(
        step="SELECT surestep_append(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?",
        pages=", logs => ?::int[], numbers => ?::int[], datas => ?::bytea[]",
        writes=", tasks => ?::text[], idxs => ?::int[], channels => ?::text[], written => ?::bytea[], "
        "paths => ?::text[]",
        end=")",
        write="SELECT surestep_write(?, ?, ?, ?::text[], ?::int[], ?::text[], ?::bytea[], ?::text[], ?)",
    ),
)
