"""The tables of a store. They are LangGraph's, so that each finds what the other has stored.

`store_migrations` is LangGraph's record of what it did to them; it is kept, so that LangGraph goes on from
there.
"""

from __future__ import annotations

from collections.abc import Sequence

from surestep._sql.migrate import Schema
from surestep._sql.statement import Steps

_SQLITE_TABLES = (
    """CREATE TABLE IF NOT EXISTS store (
    prefix       text NOT NULL,  -- the namespace's labels with dots between them
    key          text NOT NULL,
    value        text NOT NULL,  -- JSON; LangGraph stores it as bytes
    created_at   TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at   TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    expires_at   TIMESTAMP,      -- NULL: never
    ttl_minutes  REAL,
    PRIMARY KEY (prefix, key)
)""",
    "CREATE TABLE IF NOT EXISTS store_migrations (v INTEGER PRIMARY KEY)",
)

_SQLITE_INDEXES = (
    "CREATE INDEX IF NOT EXISTS store_prefix_idx ON store (prefix)",
    "CREATE INDEX IF NOT EXISTS idx_store_expires_at ON store (expires_at) WHERE expires_at IS NOT NULL",
    "INSERT OR IGNORE INTO store_migrations (v) VALUES (0), (1), (2), (3), (4)",
)

SQLITE_STATEMENTS = (*_SQLITE_TABLES, *_SQLITE_INDEXES)

_SQLITE_VECTORS = """CREATE TABLE IF NOT EXISTS store_vectors (
    prefix      text NOT NULL,
    key         text NOT NULL,
    field_name  text NOT NULL,  -- the path of the text in the item
    embedding   BLOB,           -- 32-bit floats
    created_at  TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at  TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (prefix, key, field_name),
    FOREIGN KEY (prefix, key) REFERENCES store (prefix, key) ON DELETE CASCADE
)"""

_SQLITE_LATER = {"expires_at": "TIMESTAMP", "ttl_minutes": "REAL"}
"""Columns that an older LangGraph's table has not."""


def sqlite(*, with_vectors: bool) -> Schema:
    """The tables in SQLite."""

    def columns() -> Steps[set[str]]:
        return {name for (name,) in (yield ("SELECT name FROM pragma_table_info('store')", ()))}

    def is_current() -> Steps[bool]:
        if not (yield from columns()) >= {*_SQLITE_LATER}:
            return False
        names = {"store_prefix_idx", "idx_store_expires_at"} | ({"store_vectors"} if with_vectors else set())
        there = yield ("SELECT name FROM sqlite_master WHERE name LIKE '%store%'", ())
        return names <= {name for (name,) in there}

    def update() -> Steps[None]:
        for statement in _SQLITE_TABLES:
            yield (statement, ())
        there = yield from columns()
        for name, kind in _SQLITE_LATER.items():
            if name not in there:
                yield (f"ALTER TABLE store ADD COLUMN {name} {kind}", ())
        for statement in (*_SQLITE_INDEXES, *([_SQLITE_VECTORS] if with_vectors else ())):
            yield (statement, ())

    return Schema(is_current, update)


# ---- PostgreSQL ----

# Two deployments that start at once set up one after the other. The number is "surestep" in ASCII.
_LOCK = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'surestep') >> 1})"

POSTGRES_STATEMENTS = (
    """CREATE TABLE IF NOT EXISTS store (
    prefix       text NOT NULL,  -- the namespace's labels with dots between them
    key          text NOT NULL,
    value        jsonb NOT NULL,
    created_at   timestamptz DEFAULT CURRENT_TIMESTAMP,
    updated_at   timestamptz DEFAULT CURRENT_TIMESTAMP,
    expires_at   timestamptz,    -- NULL: never
    ttl_minutes  double precision,
    PRIMARY KEY (prefix, key)
)""",
    "CREATE TABLE IF NOT EXISTS store_migrations (v INTEGER PRIMARY KEY)",
    "ALTER TABLE store ADD COLUMN IF NOT EXISTS expires_at timestamptz",
    "ALTER TABLE store ADD COLUMN IF NOT EXISTS ttl_minutes double precision",
    "CREATE INDEX IF NOT EXISTS store_prefix_idx ON store USING btree (prefix text_pattern_ops)",
    "CREATE INDEX IF NOT EXISTS idx_store_expires_at ON store (expires_at) WHERE expires_at IS NOT NULL",
    "INSERT INTO store_migrations (v) VALUES (0), (1), (2), (3) ON CONFLICT DO NOTHING",
)

# LangGraph's column holds whole minutes, and half a minute would be none.
_WHOLE_MINUTES = "ALTER TABLE store ALTER COLUMN ttl_minutes TYPE double precision"

_POSTGRES_COLUMNS = """
SELECT attname, atttypid::regtype::text FROM pg_attribute
WHERE attrelid = to_regclass('store') AND attnum > 0 AND NOT attisdropped"""

_POSTGRES_THERE = """
SELECT name FROM unnest(ARRAY['store_prefix_idx', 'idx_store_expires_at', 'store_vectors']) AS name
WHERE to_regclass(name) IS NOT NULL"""


def postgres(vectors: Sequence[str] | None) -> Schema:
    """The tables in PostgreSQL; `vectors` are the statements that make the one for vectors."""

    def columns() -> Steps[dict[str, str]]:
        return {name: kind for name, kind in (yield (_POSTGRES_COLUMNS, ()))}

    def is_current() -> Steps[bool]:
        there = yield from columns()
        if there.get("ttl_minutes") != "double precision" or "expires_at" not in there:
            return False
        names = {"store_prefix_idx", "idx_store_expires_at"} | ({"store_vectors"} if vectors else set())
        return names <= {name for (name,) in (yield (_POSTGRES_THERE, ()))}

    def update() -> Steps[None]:
        yield (_LOCK, ())
        for statement in POSTGRES_STATEMENTS:
            yield (statement, ())
        if (yield from columns()).get("ttl_minutes") != "double precision":
            yield (_WHOLE_MINUTES, ())
        if vectors:
            yield from _make_vectors(vectors)

    return Schema(is_current, update)


def _make_vectors(statements: Sequence[str]) -> Steps[None]:
    if not (yield ("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'", ())):
        raise RuntimeError(
            "This PostgreSQL server does not have the extension pgvector, which a store with an index needs. Install "
            "it on the server (the package is often called postgresql-NN-pgvector), or make the store without `index`."
        )
    for statement in statements:
        yield (statement, ())
