"""Keeping and forgetting: how long threads are kept, and who sees to it.

with SqliteSaver.from_conn_string("bank.db") as saver:
    with Sweeper(saver, Retention(strategy="keep_latest", ttl=timedelta(days=30))):
        serve()
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from surestep.checkpoint.base._retention import Pin, Retention, Swept

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from surestep.types import RunnableConfig

__all__ = ("Pin", "Retention", "Sweeper", "Sweeps", "Swept")

log = logging.getLogger(__name__)


@runtime_checkable
class Sweeps(Protocol):
    """A saver that can keep and forget by a `Retention`: all of ours; each method has an awaited form as well."""

    def pin(self, config: RunnableConfig, label: str) -> None: ...

    def unpin(self, config: RunnableConfig, label: str | None = None) -> None: ...

    def pins(self, thread_id: str) -> Sequence[Pin]: ...

    def sweep(
        self, retention: Retention, *, now: float | None = None, after: str | None = None, dry_run: bool = False
    ) -> Swept: ...


class Sweeper:
    """Sweeps a saver's threads from time to time, in a thread, until it is closed.

    saver: any saver of surestep. retention: says what, and how often. Several processes may sweep one database. A sweep
    that fails is logged and tried again. Raises TypeError for a saver that can't be swept.
    """

    def __init__(self, saver: object, retention: Retention) -> None:
        if not isinstance(saver, Sweeps):
            raise TypeError(
                f"{type(saver).__name__} can't be swept: it has no `sweep`. The savers of surestep can; delete the "
                "threads of others with delete_thread()."
            )
        self._saver = saver
        self._retention = retention
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Sweeper:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Begin, with a first sweep at once. Does nothing when it has begun."""
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="surestep-sweeper", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End; returns when nothing is swept any more."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        after: str | None = None
        while True:
            try:
                after = self._saver.sweep(self._retention, now=time.time(), after=after).after
            except Exception:
                after = None
                log.exception("Threads whose time is up could not be swept; the next sweep tries again.")
            # A sweep that has not come to the end goes on at once with the next threads.
            if self._stop.wait(0 if after else self._retention.sweep_interval.total_seconds()):
                return
