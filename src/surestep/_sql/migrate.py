"""Bringing a database to the schema of this version."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from surestep._sql.dialect import SQLITE, Dialect
from surestep._sql.statement import Steps

VERSION = 4


class Schema(NamedTuple):
    """What a database must have before it is used: whether it has it all, and how it gets the rest."""

    is_current: Callable[[], Steps[bool]]
    update: Callable[[], Steps[None]]


def version_of(dialect: Dialect) -> Steps[int]:
    """The version of the database's schema; 0 when it has none."""
    if not (yield (dialect.has_schema, ())):
        return 0
    ((version,),) = yield ("SELECT version FROM surestep_schema", ())
    return int(version)


def migrate(dialect: Dialect) -> Steps[None]:
    """Bring the schema up to date. Runs in a write transaction, so of two processes that start at once one
    does it all.

    Raises RuntimeError for a database that a later version of surestep wrote.
    """
    version = yield from version_of(dialect)
    if version > VERSION:
        raise RuntimeError(
            f"The database has surestep's schema of version {version}; this release knows version "
            f"{VERSION}. Use the release that wrote it, or a later one."
        )
    if version in (1, 2, 3):
        raise RuntimeError(
            "The database was written by a development version of surestep from before 0.1, whose tables this "
            "release does not read. Nothing was changed. Finish its threads with that version, or use another file."
        )
    if version == 0:
        for statement in dialect.schema():
            yield (statement, ())


def of_savers(dialect: Dialect) -> Schema:
    """The schema of the savers."""

    def is_current() -> Steps[bool]:
        return (yield from version_of(dialect)) == VERSION

    return Schema(is_current, lambda: migrate(dialect))


SQLITE_SAVER = of_savers(SQLITE)
