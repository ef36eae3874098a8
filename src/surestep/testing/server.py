"""A server on loopback that stands for the outside world: it counts what happened, is slow, and loses answers.

    with EffectServer() as server:
        server.lose_answers(1)
        ...                                  # a node calls call_effect(server.url, key, {"amount": 5})
        assert server.happened(key) == 1

It lives in the process of the test, so that a process under test may be killed while its count goes on.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from surestep.errors import EffectUnknown

__all__ = ("AnswerLost", "Call", "EffectServer", "call_effect", "effect_happened")


class AnswerLost(EffectUnknown):
    """The call got no answer: it may have happened, or not. In the body of an effect, it leaves that in doubt."""


class Call(NamedTuple):
    """A call that the server got. `happened`: whether it did what it was asked to."""

    key: str
    payload: Any
    happened: bool


class EffectServer:
    """A counting server; use it as a context manager.

    honours_keys: a key that was seen before is answered with the first result and happens no more, as a bank does that
    knows idempotency keys. Otherwise each call happens.
    """

    def __init__(self, *, honours_keys: bool = False) -> None:
        self.calls: list[Call] = []
        """All calls, in the order in which they came."""
        self._honours_keys = honours_keys
        self._results: dict[str, Any] = {}
        self._delay = 0.0
        self._to_lose = 0
        self._to_refuse = 0
        self._came_in = 0
        self._gate = threading.Event()
        self._gate.set()
        self._arrived = threading.Condition()
        self._http: ThreadingHTTPServer | None = None

    def __enter__(self) -> EffectServer:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, name="effect-server", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._gate.set()
        assert self._http is not None
        self._http.shutdown()
        self._http.server_close()

    @property
    def url(self) -> str:
        """Where it listens."""
        assert self._http is not None, "use the server in a with block"
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    # ---- how it behaves from now on ----

    def delay(self, seconds: float) -> None:
        """Take so long for a call before it happens."""
        self._delay = seconds

    def lose_answers(self, count: int) -> None:
        """Do what the next `count` calls ask for, and cut the line instead of answering."""
        with self._arrived:
            self._to_lose = count

    def refuse(self, count: int) -> None:
        """Answer the next `count` calls with status 503, and do nothing."""
        with self._arrived:
            self._to_refuse = count

    def hold(self) -> None:
        """Let calls come in and wait, before they happen, until `release`."""
        self._gate.clear()

    def release(self) -> None:
        """Let those that wait go on."""
        self._gate.set()

    # ---- what came in ----

    def happened(self, key: str | None = None) -> int:
        """How often something happened: under this key, or at all."""
        with self._arrived:
            return sum(call.happened for call in self.calls if key in (None, call.key))

    def wait_for(self, count: int, timeout: float = 60.0) -> None:
        """Return when `count` calls have come in, held ones included. Raises TimeoutError."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: self._came_in >= count, timeout):
                raise TimeoutError(f"{self._came_in} of {count} calls came in within {timeout} seconds")

    def _serve(self, key: str, payload: Any) -> tuple[int, Any] | None:
        """The status and body of the answer; None for a line that is cut."""
        with self._arrived:
            self._came_in += 1
            self._arrived.notify_all()
        self._gate.wait()
        if self._delay:
            threading.Event().wait(self._delay)
        with self._arrived:
            if self._to_refuse:
                self._to_refuse -= 1
                self.calls.append(Call(key, payload, happened=False))
                return 503, {"error": "refused"}
            known = self._honours_keys and key in self._results
            if not known:
                self._results[key] = {"receipt": len(self._results) + 1, "key": key}
            self.calls.append(Call(key, payload, happened=not known))
            if self._to_lose:
                self._to_lose -= 1
                return None
            return 200, self._results[key]

    def _result(self, key: str) -> tuple[int, Any]:
        with self._arrived:
            return (200, self._results[key]) if key in self._results else (404, None)


def _handler(server: EffectServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            payload = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
            self._answer(server._serve(unquote(self.path[1:]), payload))

        def do_GET(self) -> None:
            self._answer(server._result(unquote(self.path[1:])))

        def _answer(self, answer: tuple[int, Any] | None) -> None:
            if answer is None:
                self.close_connection = True
                return
            body = json.dumps(answer[1]).encode()
            try:
                self.send_response(answer[0])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # the caller was killed meanwhile

        def log_message(self, format: str, *args: Any) -> None:
            """Silence: a test looks at `calls`."""

    return Handler


# Whatever proxy this machine has for the world: loopback is not behind it.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call_effect(url: str, key: str, payload: Mapping[str, Any] | None = None, *, timeout: float = 60.0) -> Any:
    """Ask the server at `url` to act, under an idempotency key; its answer.

    Raises AnswerLost when the line was cut, RuntimeError when it refused.
    """
    request = urllib.request.Request(_at(url, key), json.dumps(payload).encode(), method="POST")
    return _sent(lambda: _direct.open(request, timeout=timeout), key)


def effect_happened(url: str, key: str, *, timeout: float = 60.0) -> Any:
    """What came of the call with this key; None when the server knows of none. For read-back."""
    try:
        return _sent(lambda: _direct.open(_at(url, key), timeout=timeout), key)
    except KeyError:
        return None


def _at(url: str, key: str) -> str:
    return f"{url}/{quote(key, safe='')}"


def _sent(send: Callable[[], Any], key: str) -> Any:
    try:
        with send() as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 404:
                raise KeyError(key) from None
        raise RuntimeError(f"The server refused the call with key {key!r}: {error.code}") from None
    except (urllib.error.URLError, OSError, HTTPException) as error:
        raise AnswerLost(f"No answer to the call with key {key!r}: {error}") from error
