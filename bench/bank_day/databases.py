"""Fresh databases for a day, their savers on either engine, and how many bytes they hold afterwards."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

POOL = 10  # connections to PostgreSQL


class Database(NamedTuple):
    saver: Any
    stored: Callable[[], int]
    """Bytes of tables and indexes."""


@contextmanager
def opened(engine: str, kind: str) -> Iterator[Database]:
    """A saver of `engine` on a new database that is gone afterwards.

    kind: "sqlite", or "postgres" for a server of its own (or that of PGURL).
    """
    with {"sqlite": _sqlite, "postgres": _postgres}[kind](engine) as database:
        yield database


@contextmanager
def _sqlite(engine: str) -> Iterator[Database]:
    saver_class = import_module(f"{engine}.checkpoint.sqlite").SqliteSaver
    with tempfile.TemporaryDirectory(prefix="bank-day-") as folder:
        path = Path(folder) / "bank.db"

        def stored() -> int:
            with closing(sqlite3.connect(path)) as conn:
                conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return path.stat().st_size

        with saver_class.from_conn_string(str(path)) as saver:
            saver.setup()
            yield Database(saver, stored)


@contextmanager
def _postgres(engine: str) -> Iterator[Database]:
    import psycopg
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
    postgres = import_module("harness.postgres")
    saver_class = import_module(f"{engine}.checkpoint.postgres").PostgresSaver
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}  # what LangGraph's docs ask for
    with postgres.server() as server, postgres.database(server) as conninfo:

        def stored() -> int:
            every_table = (
                "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relkind = 'r' AND relnamespace"
            )
            with psycopg.connect(conninfo) as conn:
                row = conn.execute(every_table + " = 'public'::regnamespace").fetchone()
            assert row is not None
            return int(row[0])

        with ConnectionPool(conninfo, min_size=POOL, max_size=POOL, kwargs=options) as pool:
            saver = saver_class(pool)
            saver.setup()
            yield Database(saver, stored)
