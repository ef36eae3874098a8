"""LangGraph's tables, read only. Both kinds of database give the same records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote

from surestep._constants import TASKS
from surestep._find import CommandError, is_postgres

if TYPE_CHECKING:
    from surestep.checkpoint.serde.base import SerializerProtocol


class Size(NamedTuple):
    """A thread, and how many checkpoints it has."""

    thread_id: str
    checkpoints: int


class Found(NamedTuple):
    """A checkpoint: with its values, and its writes as (task id, task path, [(channel, value)])."""

    ns: str
    id: str
    parent: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    writes: list[tuple[str, str, list[tuple[str, Any]]]]


class Source(Protocol):
    """A database of one of LangGraph's savers."""

    def snapshot(self) -> AbstractContextManager[Any]:
        """Inside of it, everything is read as it was at one moment."""
        ...

    def threads(self) -> list[Size]:
        """All threads in order."""
        ...

    def ids(self, thread_id: str) -> list[tuple[str, str]]:
        """(namespace, id) of all checkpoints of a thread, in order."""
        ...

    def read(self, thread_id: str, ns: str, id: str) -> Found:
        """A checkpoint."""
        ...


@contextmanager
def opened(url: str, serde: SerializerProtocol) -> Iterator[Source]:
    """The source behind a URL or a path. Raises CommandError if it isn't there or has no tables of LangGraph's."""
    if is_postgres(url):
        with _postgres(url) as conn:
            yield PostgresSource(conn, serde)
    else:
        with closing(_sqlite(Path(url.removeprefix("sqlite:///")))) as conn:
            yield SqliteSource(conn, serde)


def _grouped(serde: SerializerProtocol, rows: Sequence[Sequence[Any]]) -> list[tuple[str, str, list[tuple[str, Any]]]]:
    """Rows (task id, path, channel, tag, bytes) in replay order, by task."""
    tasks: dict[str, tuple[str, str, list[tuple[str, Any]]]] = {}
    for task_id, path, channel, tag, data in rows:
        _, _, writes = tasks.setdefault(task_id, (task_id, path or "", []))
        writes.append((channel, serde.loads_typed((tag, data if data is not None else b""))))
    return list(tasks.values())


def _with_sends(found: Found, parent: Found | None) -> Found:
    """In formats before 4 the packets of a step lay in the parent's writes, and nowhere else."""
    if found.checkpoint.get("v", 1) >= 4 or "pending_sends" in found.checkpoint or parent is None:
        return found
    sends = [value for _, _, writes in parent.writes for channel, value in writes if channel == TASKS]
    return found._replace(checkpoint={**found.checkpoint, "pending_sends": sends}) if sends else found


# ---- SQLite ----


def _sqlite(path: Path) -> Any:
    import sqlite3

    if not path.is_file():
        raise CommandError(f"no file {path}")
    place = f"file:{quote(str(path.resolve()))}?mode=ro"
    conn = sqlite3.connect(place, uri=True, isolation_level=None)
    try:
        tables = {name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as error:
        conn.close()
        raise CommandError(f"{path} can't be read as an SQLite database: {error}") from None
    if not {"checkpoints", "writes"} <= tables:
        conn.close()
        raise CommandError(f"{path} has no tables of LangGraph's SqliteSaver (checkpoints, writes)")
    conn.execute("PRAGMA query_only = 1")
    return conn


class SqliteSource:
    """What SqliteSaver and AsyncSqliteSaver write: a checkpoint and its values are one value."""

    def __init__(self, conn: Any, serde: SerializerProtocol) -> None:
        self.conn, self.serde = conn, serde
        columns = {row[1] for row in conn.execute("PRAGMA table_info(writes)")}
        path = "task_path" if "task_path" in columns else "''"  # older databases
        self._writes = f"""SELECT task_id, {path}, channel, type, value FROM writes
            WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY {path}, task_id, idx"""

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Inside of it, everything is read as it was at one moment."""
        self.conn.execute("BEGIN")
        try:
            yield
        finally:
            self.conn.execute("ROLLBACK")

    def threads(self) -> list[Size]:
        """All threads in order."""
        sql = "SELECT thread_id, count(*) FROM checkpoints GROUP BY thread_id ORDER BY thread_id"
        return [Size(*row) for row in self.conn.execute(sql)]

    def ids(self, thread_id: str) -> list[tuple[str, str]]:
        """(namespace, id) of all checkpoints of a thread, in order."""
        sql = "SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = ? ORDER BY 1, 2"
        return self.conn.execute(sql, (thread_id,)).fetchall()  # type: ignore[no-any-return]

    def read(self, thread_id: str, ns: str, id: str) -> Found:
        """A checkpoint."""
        found = self._read(thread_id, ns, id)
        assert found is not None
        old = found.parent is not None and found.checkpoint.get("v", 1) < 4
        return _with_sends(found, self._read(thread_id, ns, found.parent) if old and found.parent else None)

    def _read(self, thread_id: str, ns: str, id: str) -> Found | None:
        key = (thread_id, ns, id)
        sql = """SELECT parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
            WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"""
        row = self.conn.execute(sql, key).fetchone()
        if row is None:
            return None
        parent, tag, data, metadata = row
        checkpoint = self.serde.loads_typed((tag, data))
        if not isinstance(checkpoint, dict):
            raise CommandError(f"checkpoint {id} of thread {thread_id!r} is stored as {tag!r}, which can't be imported")
        writes = _grouped(self.serde, self.conn.execute(self._writes, key).fetchall())
        return Found(ns, id, parent, checkpoint, json.loads(metadata) if metadata else {}, writes)


# ---- PostgreSQL ----


@contextmanager
def _postgres(url: str) -> Iterator[Any]:
    try:
        import psycopg
    except ModuleNotFoundError:
        raise CommandError("this needs psycopg: pip install 'surestep[postgres]'") from None
    try:
        conn = psycopg.connect(url, autocommit=True, prepare_threshold=None)
    except psycopg.OperationalError as error:
        raise CommandError(f"no connection to the source: {error}") from None
    with closing(conn):
        conn.read_only, conn.isolation_level = True, psycopg.IsolationLevel.REPEATABLE_READ
        conn.execute("SET default_transaction_read_only = on")
        tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        missing = [t for t in tables if conn.execute("SELECT to_regclass(%s)", (t,)).fetchone() == (None,)]
        if missing:
            raise CommandError(f"the database has no tables of LangGraph's PostgresSaver: {', '.join(missing)} missing")
        yield conn


class PostgresSource:
    """What PostgresSaver and AsyncPostgresSaver write: simple values in the checkpoint, others in rows of their own."""

    def __init__(self, conn: Any, serde: SerializerProtocol) -> None:
        self.conn, self.serde = conn, serde
        sql = """SELECT 1 FROM pg_attribute
            WHERE attrelid = 'checkpoint_writes'::regclass AND attname = 'task_path' AND NOT attisdropped"""
        path = "task_path" if conn.execute(sql).fetchone() else "''"
        self._writes = f"""SELECT task_id, {path}, channel, type, blob FROM checkpoint_writes
            WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s
            ORDER BY {path} COLLATE "C", task_id COLLATE "C", idx"""

    def snapshot(self) -> AbstractContextManager[Any]:
        """Inside of it, everything is read as it was at one moment."""
        return self.conn.transaction()  # type: ignore[no-any-return]

    def threads(self) -> list[Size]:
        """All threads in order."""
        sql = 'SELECT thread_id, count(*) FROM checkpoints GROUP BY thread_id ORDER BY thread_id COLLATE "C"'
        return [Size(*row) for row in self.conn.execute(sql)]

    def ids(self, thread_id: str) -> list[tuple[str, str]]:
        """(namespace, id) of all checkpoints of a thread, in order."""
        sql = """SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = %s
            ORDER BY checkpoint_ns COLLATE "C", checkpoint_id COLLATE "C" """
        return self.conn.execute(sql, (thread_id,)).fetchall()  # type: ignore[no-any-return]

    def read(self, thread_id: str, ns: str, id: str) -> Found:
        """A checkpoint."""
        found = self._read(thread_id, ns, id)
        assert found is not None
        old = found.parent is not None and found.checkpoint.get("v", 1) < 4
        return _with_sends(found, self._read(thread_id, ns, found.parent) if old and found.parent else None)

    def _read(self, thread_id: str, ns: str, id: str) -> Found | None:
        key = (thread_id, ns, id)
        sql = """SELECT parent_checkpoint_id, checkpoint, metadata FROM checkpoints
            WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"""
        row = self.conn.execute(sql, key).fetchone()
        if row is None:
            return None
        parent, checkpoint, metadata = row
        sql = """SELECT b.channel, b.type, b.blob
            FROM checkpoints c CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') v
            JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns
                AND b.channel = v.key AND b.version = v.value
            WHERE c.thread_id = %s AND c.checkpoint_ns = %s AND c.checkpoint_id = %s AND b.type <> 'empty'"""
        values = checkpoint.setdefault("channel_values", {}) or {}
        for channel, tag, data in self.conn.execute(sql, key).fetchall():
            values[channel] = self.serde.loads_typed((tag, data))
        checkpoint["channel_values"] = values
        writes = _grouped(self.serde, self.conn.execute(self._writes, key).fetchall())
        return Found(ns, id, parent, checkpoint, metadata or {}, writes)
