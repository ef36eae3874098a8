"""What the sync and the async store on SQLite share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from surestep._sql.run import AiosqliteRunner, SqliteRunner
from surestep._sql.store.dialect import SQLITE
from surestep._sql.store.face import SqlStore
from surestep._sql.store.schema import SQLITE_STATEMENTS, sqlite
from surestep._sql.store.vectors import InProcess
from surestep.store.base import IndexConfig, TTLConfig
from surestep.store.base._plan import Index

if TYPE_CHECKING:
    import sqlite3

__all__ = ("BaseSqliteStore", "SqliteIndexConfig")


class SqliteIndexConfig(IndexConfig, total=False):
    """As IndexConfig. `distance_type` says how vectors are compared ("cosine" by default); `text_fields` is
    another name for `fields`."""

    distance_type: Literal["cosine", "l2", "inner_product"]
    text_fields: list[str] | None


class BaseSqliteStore(SqlStore):
    """A store on SQLite, made of its connection and its config."""

    conn: Any

    MIGRATIONS: ClassVar[Sequence[str]] = SQLITE_STATEMENTS
    """The statements that make the tables of a new database."""

    def _on(
        self,
        conn: sqlite3.Connection | Any,
        deserializer: Callable[[bytes | str], dict[str, Any]] | None,
        index: SqliteIndexConfig | None,
        ttl: TTLConfig | None,
    ) -> None:
        import sqlite3

        schema = sqlite(with_vectors=index is not None)
        own = isinstance(conn, sqlite3.Connection)
        runner = SqliteRunner(conn, schema) if own else AiosqliteRunner(conn, schema)
        self.conn = conn
        parts = None
        if index is not None:
            parts = (index, Index(index), InProcess(SQLITE, index.get("distance_type") or "cosine"))
        self._set_up(runner, SQLITE, deserializer, parts, ttl)

    def _refresh(self, refresh_ttl: bool | None) -> bool:
        # As in LangGraph's SQLite store: who does not ask for it, in the call or the config, gets no refresh.
        if refresh_ttl is not None:
            return refresh_ttl
        return bool((self.ttl_config or {}).get("refresh_on_read"))
