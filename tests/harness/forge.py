"""Real processes, cheaply: a server that imports the engine once and forks a child for every job.

A test process has threads, so it must not fork; the server has none. A job is the name of a function,
`"crash.jobs:run"`, and its arguments; the child calls it, reports what it returned as JSON, and leaves without
any clean-up. A child that dies on the way reports nothing but its exit status: `-9` after a SIGKILL.
"""

from __future__ import annotations

import importlib
import json
import os
import selectors
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, NamedTuple

TESTS = Path(__file__).resolve().parent.parent


class Outcome(NamedTuple):
    """What became of a job. `status`: 0, an exit code, or minus a signal. `value`: what it returned."""

    status: int
    value: Any

    @property
    def killed(self) -> bool:
        return self.status == -9


class Forge:
    """The client: starts the server on entry, and jobs on it."""

    def __init__(self, *imports: str) -> None:
        self._imports = imports
        self._done: dict[int, Outcome] = {}
        self._last = 0

    def __enter__(self) -> Forge:
        path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
        self._server = subprocess.Popen(
            [sys.executable, "-m", "harness.forge", *self._imports],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._server.stdin and self._server.stdout
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait()

    def start(self, target: str, **arguments: Any) -> int:
        """Starts a job, and says its number."""
        assert self._server.stdin
        self._last += 1
        self._server.stdin.write(json.dumps([self._last, target, arguments]) + "\n")
        self._server.stdin.flush()
        return self._last

    def wait(self, job: int) -> Outcome:
        assert self._server.stdout
        while job not in self._done:
            line = self._server.stdout.readline()
            assert line, "the server that forks has died"
            number, status, value = json.loads(line)
            self._done[number] = Outcome(status, value)
        return self._done.pop(job)

    def run(self, target: str, **arguments: Any) -> Outcome:
        """Runs one job to its end, whatever the end is."""
        return self.wait(self.start(target, **arguments))

    def result(self, target: str, **arguments: Any) -> Any:
        """What a job returns that is expected to end well."""
        outcome = self.run(target, **arguments)
        assert outcome.status == 0, f"{target} ended with {outcome.status}:\n{outcome.value}"
        return outcome.value


def _serve() -> None:
    selector, waiting = selectors.DefaultSelector(), b""
    selector.register(0, selectors.EVENT_READ)
    jobs: dict[int, tuple[int, int, list[bytes]]] = {}
    while selector.get_map():
        for key, _ in selector.select():
            data = os.read(key.fd, 65536)
            if key.fd:
                _progress(selector, jobs, key.fd, data)
            elif data:
                *lines, waiting = (waiting + data).split(b"\n")
                for line in lines:
                    _fork(selector, jobs, *json.loads(line))
            else:
                selector.unregister(0)


def _fork(selector: Any, jobs: dict[int, Any], number: int, target: str, arguments: dict[str, Any]) -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        status, value = _call(target, arguments)
        with os.fdopen(writing, "w") as pipe:
            json.dump(value, pipe)
        os._exit(status)
    os.close(writing)
    selector.register(reading, selectors.EVENT_READ)
    jobs[reading] = number, pid, []


def _call(target: str, arguments: dict[str, Any]) -> tuple[int, Any]:
    module, name = target.split(":")
    try:
        return 0, getattr(importlib.import_module(module), name)(**arguments)
    except BaseException:
        return 1, traceback.format_exc()


def _progress(selector: Any, jobs: dict[int, Any], fd: int, data: bytes) -> None:
    number, pid, parts = jobs[fd]
    if data:
        parts.append(data)
        return
    selector.unregister(fd)
    os.close(fd)
    del jobs[fd]
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    value = json.loads(b"".join(parts)) if status in (0, 1) else None
    print(json.dumps([number, status, value]), flush=True)


if __name__ == "__main__":
    for module in sys.argv[1:]:
        importlib.import_module(module)
    _serve()
