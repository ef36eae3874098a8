"""What differs between databases for a store, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

Condition = tuple[str, list[Any]]
"""A condition of a WHERE clause, with `?` for its parameters, and those."""

Path = tuple[str, ...]
"""The keys from an item's value down to a field."""


class Fields(Protocol):
    """How to say what a field of a stored value is like. A condition may hold for too many items, never for
    too few; None where the database can't be asked."""

    def missing(self, path: Path) -> Condition | None: ...

    def present(self, path: Path) -> Condition | None: ...

    def is_text(self, path: Path, sign: str, text: str) -> Condition | None: ...

    def is_other_than(self, path: Path, text: str) -> Condition | None: ...

    def is_number(self, path: Path, sign: str, number: float) -> Condition | None: ...


class StoreDialect(NamedTuple):
    """A database's way to say things.

    `stamp` is the time of a write, with the parameters that `stamp_params` gives; `now` is the time by which
    things expire; `expiry` makes of an expression for minutes the time that lies as much ahead, NULL for NULL.
    """

    json: str
    value: str
    collate: str
    now: str
    stamp: str
    stamp_params: Callable[[], tuple[Any, ...]]
    expiry: Callable[[str], str]
    below: Callable[[str], Condition]
    fields: Fields
    has_vectors: str


def can_ask_for(text: str) -> bool:
    """Whether a database can be given the text: without NUL, and without half a surrogate pair."""
    return "\0" not in text and (text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text))


# ---- SQLite ----

# Labels that look in JSON as they do in a path.
_PLAIN_LABEL = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]+')


class SqliteFields:
    """Fields in SQLite: by JSON path, of a value that may be stored as bytes."""

    _JSON = "CAST(value AS TEXT)"

    def missing(self, path: Path) -> Condition | None:
        return self._said(path, f"json_extract({self._JSON}, ?) IS NULL")

    def present(self, path: Path) -> Condition | None:
        return self._said(path, f"json_extract({self._JSON}, ?) IS NOT NULL")

    def is_text(self, path: Path, sign: str, text: str) -> Condition | None:
        return self._said(path, f"json_extract({self._JSON}, ?) {sign} ?", text)

    def is_other_than(self, path: Path, text: str) -> Condition | None:
        # As JSON: an old SQLite takes a text to end where a NUL is.
        return self._said(path, f"({self._JSON} -> ?) IS NOT ?", json.dumps(text, ensure_ascii=False))

    def is_number(self, path: Path, sign: str, number: float) -> Condition | None:
        return self._said(path, f"json_extract({self._JSON}, ?) {sign} ?", number)

    def _said(self, path: Path, sql: str, *params: Any) -> Condition | None:
        if not all(_PLAIN_LABEL.fullmatch(label) for label in path):
            return None
        return sql, ["$" + "".join(f'."{label}"' for label in path), *params]


def _sqlite_below(prefix: str) -> Condition:
    # "/" is what comes after ".".
    return "(prefix = ? OR (prefix >= ? AND prefix < ?))", [prefix, f"{prefix}.", f"{prefix}/"]


def _sqlite_expiry(minutes: str) -> str:
    ahead = f"printf('%+.3f seconds', {minutes} * 60)"
    return f"CASE WHEN {minutes} IS NOT NULL THEN strftime('%Y-%m-%d %H:%M:%f', 'now', {ahead}) END"


SQLITE = StoreDialect(
    json="text",
    value="value",
    collate="",
    now="strftime('%Y-%m-%d %H:%M:%f', 'now')",
    # SQLite's own clock counts milliseconds, too few to tell what was written last.
    stamp="?",
    stamp_params=lambda: (datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),),
    expiry=_sqlite_expiry,
    below=_sqlite_below,
    fields=SqliteFields(),
    has_vectors="SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'store_vectors'",
)


# ---- PostgreSQL ----


class PostgresFields:
    """Fields in PostgreSQL: by path in a jsonb value."""

    def missing(self, path: Path) -> Condition | None:
        return self._said(path, "coalesce(value #> {path}, 'null') = 'null'")

    def present(self, path: Path) -> Condition | None:
        return self._said(path, "coalesce(value #> {path}, 'null') <> 'null'")

    def is_text(self, path: Path, sign: str, text: str) -> Condition | None:
        return self._said(path, f'(value #>> {{path}}) COLLATE "C" {sign} ?', text)

    def is_other_than(self, path: Path, text: str) -> Condition | None:
        return self._said(path, "(value #> {path}) IS DISTINCT FROM to_jsonb(?::text)", text)

    def is_number(self, path: Path, sign: str, number: float) -> Condition | None:
        # True and False are 1 and 0 to Python.
        sql = f"(value #>> {{path}})::numeric {sign} ?::float8::numeric"
        sql = f"CASE jsonb_typeof(value #> {{path}}) WHEN 'number' THEN {sql} WHEN 'boolean' THEN true END"
        return self._said(path, sql, number)

    def _said(self, path: Path, sql: str, *params: Any) -> Condition | None:
        if not all(map(can_ask_for, path)):
            return None
        return sql.format(path="?::text[]"), [[*path]] * sql.count("{path}") + [*params]


def _postgres_below(prefix: str) -> Condition:
    # These operators compare bytes in any collation, and use the index that LangGraph makes.
    return "(prefix = ? OR (prefix ~>=~ ? AND prefix ~<~ ?))", [prefix, f"{prefix}.", f"{prefix}/"]


POSTGRES = StoreDialect(
    json="jsonb",
    value="value::text",
    collate=' COLLATE "C"',
    now="statement_timestamp()",
    stamp="statement_timestamp()",
    stamp_params=tuple,
    # A thousand years are for ever; more would be no time that PostgreSQL knows.
    expiry=lambda minutes: f"statement_timestamp() + least({minutes}, 5e8) * interval '1 minute'",
    below=_postgres_below,
    fields=PostgresFields(),
    has_vectors="SELECT 1 WHERE to_regclass('store_vectors') IS NOT NULL",
)


def sql_of(parts: Sequence[Condition]) -> Condition:
    """All of the conditions."""
    return " AND ".join(sql for sql, _ in parts), [param for _, params in parts for param in params]
