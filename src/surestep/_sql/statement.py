"""What savers say to databases: statements, and generators of them.

    Steps[R] = Generator[Statement, Rows, R]

A generator yields statements and is sent their rows; what it returns is the result of the operation. What
it does before its first statement happens in the caller's thread, before the transaction begins:
serializing belongs there, so that nobody changes the value meanwhile, the database is not held up, and a
value that can't be saved leaves no trace.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

R = TypeVar("R")


class Many(NamedTuple):
    """One statement with many parameter lists: it is run for each, and has no rows."""

    sql: str
    params: Sequence[Sequence[Any]]


class Each(NamedTuple):
    """One statement with many parameter lists: it is run for each, and the rows of all come together."""

    sql: str
    params: Sequence[Sequence[Any]]


class Last(NamedTuple):
    """A statement of a read after which, as a rule, no other one comes: a database far away is told so at once."""

    sql: str
    params: Sequence[Any]


class Whole(NamedTuple):
    """`SELECT f(...)` that is a transaction of its own, alone or with others of the kind, and that may be said twice:
    what comes after it begins another."""

    sql: str
    params: Sequence[Any]


Statement = tuple[str, Sequence[Any]] | Many | Each | Last | Whole
"""SQL with `?` for its parameters, and those. A plain tuple: every step of every run makes a few."""

Rows = Sequence[Sequence[Any]]
Steps = Generator[Statement, Rows, R]
