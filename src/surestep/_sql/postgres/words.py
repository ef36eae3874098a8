"""Statements as PostgreSQL and psycopg want them.

They are written with `?` for a parameter and with plain names of tables (see queries). Here they get psycopg's `%s`,
the schema where one is asked for, and the tenant in the key that an INSERT may meet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from surestep._sql.statement import Each, Many, Statement

ITSELF = "surestep_itself"
"""The schema, in statements that are about it."""

_OURS = re.compile(r"\bsurestep_\w+")


class Words(NamedTuple):
    """How one saver or store speaks: where its tables are, for which tenant, and whether rows come in binary."""

    schema: str | None = None
    tenant: str | None = None
    binary: bool = False

    def phrase(self, statement: Statement) -> Phrase:
        """The statement as it is sent."""
        sql, has_rows = psycopgs(statement[0], self.schema)
        if isinstance(statement, Each | Many):
            return Phrase(sql, statement.params, isinstance(statement, Each))
        return Phrase(sql, (statement[1],), has_rows)


class Phrase(NamedTuple):
    """A statement as it is sent, once for each list of parameters; `has_rows`: they are wanted. `prepare`: False if it
    is not worth it."""

    sql: str
    params: Sequence[Sequence[Any]]
    has_rows: bool
    prepare: bool | None = None


@lru_cache(1024)
def psycopgs(sql: str, schema: str | None = None) -> tuple[str, bool]:
    """The statement as psycopg writes it, and whether it has rows: in a pipeline a cursor can't tell yet."""
    has_rows = sql.lstrip().startswith(("SELECT", "WITH")) or "RETURNING" in sql
    sql = sql.replace("%", "%%").replace("?", "%s")
    if "surestep_" in sql:
        sql = sql.replace("ON CONFLICT (", "ON CONFLICT (tenant, ")
        sql = in_schema(sql, schema and schema.replace("%", "%%"))
    return sql, has_rows


def in_schema(sql: str, schema: str | None) -> str:
    """The statement with all names of ours in that schema."""
    if schema is None:
        return sql
    prefix = quoted(schema)
    return _OURS.sub(lambda found: prefix if found[0] == ITSELF else f"{prefix}.{found[0]}", sql)


def quoted(*names: str) -> str:
    """An identifier as it stands in a statement, whatever characters it has."""
    from psycopg.sql import Identifier

    return Identifier(*names).as_string()
