"""What savers need in PostgreSQL: numbered migrations, run by `setup()` or printed for somebody to run.

Rules
1. Two who set up at once do it one after the other, in one transaction each; the second finds nothing to do.
2. A migration that touches a table in use waits for its lock only a moment: it fails rather than stop those who come
   behind it. `setup()` can be called again.
3. NNN.sql is never changed once it was released; what is new comes with a number of its own.
"""

from __future__ import annotations

from pathlib import Path

from surestep._sql.dialect import statements
from surestep._sql.migrate import Schema
from surestep._sql.postgres.words import ITSELF, in_schema, quoted
from surestep._sql.statement import Steps

VERSION = 1

TABLES = ("checkpoints", "pages", "writes", "pins", "first_seen", "effects", "decisions", "leases", "queue")

# The number is "surestep" in ASCII.
LOCK = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'surestep') >> 1})"

# Not by to_regclass: what that has not found it goes on not finding in this transaction, whoever makes it meanwhile.
_HAS_RECORD = """
SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = ? AND (n.nspname = ?::text OR ?::text IS NULL AND n.nspname = ANY (current_schemas(false)))"""

_SHORT_WAITS = "SET LOCAL lock_timeout = '3s'"

_RECORD = """CREATE TABLE surestep_migrations (
    number      integer PRIMARY KEY,
    applied_at  timestamptz NOT NULL DEFAULT now()
)"""


def migration(number: int) -> list[str]:
    """The statements of a migration, with plain names."""
    own = statements((Path(__file__).parent / f"{number:03}.sql").read_text())
    return [*([_RECORD] if number == 1 else []), *own, f"INSERT INTO surestep_migrations (number) VALUES ({number})"]


def of_savers(schema: str | None) -> Schema:
    """The schema of the savers, in that schema of the database or in the first of the search path."""

    def version() -> Steps[int]:
        if not (yield (_HAS_RECORD, ("surestep_migrations", schema, schema))):
            return 0
        ((number,),) = yield ("SELECT max(number) FROM surestep_migrations", ())
        return int(number)

    def is_current() -> Steps[bool]:
        return (yield from version()) == VERSION

    def update() -> Steps[None]:
        yield (LOCK, ())
        there = yield from version()
        if there > VERSION:
            raise RuntimeError(
                f"The database has surestep's schema of version {there}; this release knows version {VERSION}. Use the "
                "release that wrote it, or a later one."
            )
        if there:
            yield (_SHORT_WAITS, ())
        elif schema is not None and not (yield ("SELECT 1 FROM pg_namespace WHERE nspname = ?", (schema,))):
            yield (f"CREATE SCHEMA {ITSELF}", ())
        for number in range(there + 1, VERSION + 1):
            for statement in migration(number):
                yield (statement, ())

    return Schema(is_current, update)


def script(schema: str | None, since: int) -> str:
    """What `setup()` would do to a database of version `since`, as SQL to be read and run by somebody."""
    parts = ["BEGIN", LOCK]
    if since:
        parts.append(_SHORT_WAITS)
    elif schema is not None:
        parts.append(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
    for number in range(since + 1, VERSION + 1):
        parts += [in_schema(statement, schema) for statement in migration(number)]
    return "".join(f"{part};\n\n" for part in [*parts, "COMMIT"])


def grants(role: str, schema: str | None, tenant: str | None) -> str:
    """What a role needs to use the tables and, with a tenant, what keeps it to that one."""
    who = quoted(role)
    parts = [f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {who}"] if schema is not None else []
    parts.append(f"GRANT SELECT ON {_named('migrations', schema)} TO {who}")
    for table in TABLES:
        for name in (table, f"all_{table}"):
            parts.append(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {_named(name, schema)} TO {who}")
    if tenant is not None:
        parts += _bound(role, schema, tenant)
    return "".join(f"{part};\n" for part in parts)


def _bound(role: str, schema: str | None, tenant: str) -> list[str]:
    """Policies that come on top of the others: whatever the role says, it sees this tenant only."""
    from psycopg.sql import Literal

    who, which, name = quoted(role), Literal(tenant).as_string(), quoted(f"only {role}")
    tables = [_named(f"all_{table}", schema) for table in TABLES]
    policies = [f"CREATE POLICY {name} ON {table} AS RESTRICTIVE TO {who} USING (tenant = {which})" for table in tables]
    return [*policies, f"ALTER ROLE {who} SET surestep.tenant = {which}"]


def _named(table: str, schema: str | None) -> str:
    name = f"surestep_{table}"
    return name if schema is None else quoted(schema, name)
