"""A proxy before a PostgreSQL server that cuts a connection where it is told to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class Proxy:
    """Counts what clients send, piece by piece as it comes, and cuts at the piece that `arm` names."""

    def __init__(self, target: tuple[int, object]) -> None:
        self._family, self._address = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._lock = threading.Lock()
        self._left = 0
        self._heard = False
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, piece: int, *, heard: bool) -> None:
        """Cut at this piece, counted from 1. `heard`: the server gets it, and does what it says; the answer is lost."""
        with self._lock:
            self._left, self._heard = piece, heard

    def disarm(self) -> bool:
        """Cut nothing any more; whether something was cut since it was armed."""
        with self._lock:
            cut, self._left = self._left == 0, 0
            return cut

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(self._family, socket.SOCK_STREAM)
                server.connect(self._address)
                cut = threading.Event()
                for work in (self._up, self._down):
                    threading.Thread(target=work, args=(client, server, cut), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 20):
                if self._falls_due():
                    cut.set()
                    if self._heard:
                        server.sendall(data)
                    break
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _falls_due(self) -> bool:
        with self._lock:
            if self._left == 0:
                return False
            self._left -= 1
            return self._left == 0

    def _down(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        """Until the server has closed. By then it has done what it was sent: only then does the client notice."""
        with suppress(OSError):
            while data := server.recv(1 << 20):
                if not cut.is_set():
                    with suppress(OSError):  # a client that has gone
                        client.sendall(data)
        client.close()
        server.close()


@contextmanager
def proxy(conn_string: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy before the server, and the conn string that leads through it."""
    known = conninfo_to_dict(conn_string)
    host, port = str(known.get("host") or "localhost"), int(str(known.get("port") or 5432))
    unix = host.startswith("/")
    target = (socket.AF_UNIX, str(Path(host) / f".s.PGSQL.{port}")) if unix else (socket.AF_INET, (host, port))
    made = Proxy(target)
    through = {**known, "host": "127.0.0.1", "port": made.port, "sslmode": "disable", "gssencmode": "disable"}
    try:
        yield made, make_conninfo(**through)
    finally:
        made.close()
