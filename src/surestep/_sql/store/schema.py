"""The tables of a store. They are LangGraph's, so that each finds what the other has stored.

`store_migrations` is LangGraph's record of what it did to them; it is kept, so that LangGraph goes on from
there.
"""

from __future__ import annotations

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
