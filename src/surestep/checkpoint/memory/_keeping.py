"""Keeping and forgetting in the saver in memory; the rules are those of all savers."""

from __future__ import annotations

import time
from threading import RLock
from typing import TYPE_CHECKING, Any

from surestep._constants import INTERRUPT
from surestep.checkpoint.base import BaseCheckpointSaver, SerializerProtocol
from surestep.checkpoint.base._retention import (
    Pin,
    Place,
    Retention,
    Swept,
    is_due,
    is_open,
    kept,
    no_such_checkpoint,
)
from surestep.checkpoint.base._shared import address_of

if TYPE_CHECKING:
    from surestep.types import RunnableConfig


class Keeping(BaseCheckpointSaver[str]):
    """The part of an InMemorySaver that pins and sweeps."""

    __slots__ = ("_first_seen", "_pins")

    storage: dict[str, dict[str, dict[str, Any]]]
    writes: dict[tuple[str, str, str], dict[tuple[str, int], Any]]
    _lock: RLock

    def __init__(self, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._first_seen: dict[str, float] = {}
        self._pins: dict[str, dict[Pin, None]] = {}

    if TYPE_CHECKING:  # of the saver

        def _drop(self, thread_id: str, ns: str, doomed: set[str]) -> None: ...

    def pin(self, config: RunnableConfig, label: str) -> None:
        """Keep the addressed checkpoint (the latest by default) until it is unpinned or its thread is deleted.

        Raises ValueError for a checkpoint that isn't there.
        """
        thread_id, ns, id = address_of(config)
        with self._lock:
            checkpoints = self.storage.get(thread_id, {}).get(ns, {})
            wanted = id or max(checkpoints, default=None)
            if wanted is None or wanted not in checkpoints:
                raise no_such_checkpoint(config)
            self._pins.setdefault(thread_id, {})[Pin(ns, wanted, label)] = None

    def unpin(self, config: RunnableConfig, label: str | None = None) -> None:
        """Take the pins with this label (None: all) from the addressed checkpoint, or from all of the thread."""
        thread_id, ns, id = address_of(config)
        with self._lock:
            pins = self._pins.get(thread_id, {})
            for pin in [*pins]:
                if label in (None, pin.label) and (id is None or (ns, id) == pin[:2]):
                    del pins[pin]

    def pins(self, thread_id: str) -> list[Pin]:
        """The pins of a thread."""
        with self._lock:
            return [*self._pins.get(thread_id, ())]

    def sweep(
        self, retention: Retention, *, now: float | None = None, after: str | None = None, dry_run: bool = False
    ) -> Swept:
        """Delete what the retention doesn't keep; see `Retention`.

        now: seconds since 1970, by default the time. after: go on behind this thread. dry_run: only count.
        """
        now = time.time() if now is None else now
        with self._lock:
            ids = sorted(id for id, namespaces in self.storage.items() if any(namespaces.values()))
            ids = [id for id in ids if after is None or id > after]
            page = ids[: retention.limit]
            counts = [self._sweep_thread(id, retention, now, dry_run) for id in page]
        threads, checkpoints = (sum(count) for count in zip(*counts, strict=True)) if counts else (0, 0)
        return Swept(len(page), threads, checkpoints, page[-1] if len(ids) > len(page) else None)

    def _sweep_thread(self, thread_id: str, retention: Retention, now: float, dry_run: bool) -> tuple[int, int]:
        """How many threads (0 or 1) and checkpoints go. The caller holds the lock."""
        namespaces = {ns: checkpoints for ns, checkpoints in self.storage[thread_id].items() if checkpoints}
        heads = [(ns, max(checkpoints)) for ns, checkpoints in namespaces.items()]
        first_seen = self._first_seen.get(thread_id) if dry_run else self._first_seen.setdefault(thread_id, now)
        if not is_due(retention, now, first_seen, max(id for _, id in heads)):
            return 0, 0
        if not retention.open_threads and is_open(self.get_tuple({"configurable": {"thread_id": thread_id}})):
            return 0, 0
        pins = {(pin.checkpoint_ns, pin.checkpoint_id) for pin in self.pins(thread_id)}
        stays = kept(retention, now, heads, pins, self._decided(thread_id))
        gone = 0
        for ns, checkpoints in namespaces.items():
            doomed = {id for id in checkpoints if (ns, id) not in stays}
            gone += len(doomed)
            if doomed and stays and not dry_run:
                self._drop(thread_id, ns, doomed)
        if not stays and not dry_run:
            self.delete_thread(thread_id)
        return int(not stays), gone

    def _decided(self, thread_id: str) -> list[Place]:
        """The checkpoints of a thread at which a run waited for a decision."""
        return [
            (ns, id)
            for (thread, ns, id), rows in self.writes.items()
            if thread == thread_id and any(row[1] == INTERRUPT for row in rows.values())
        ]

    def _pinned(self, thread_id: str, ns: str) -> set[str]:
        return {pin.checkpoint_id for pin in self._pins.get(thread_id, ()) if pin.checkpoint_ns == ns}

    def _copy_pins(self, source: str, target: str) -> None:
        if source in self._pins:
            self._pins.setdefault(target, {}).update(self._pins[source])

    def _forget_pins(self, thread_id: str, ns: str, doomed: set[str]) -> None:
        """Those of checkpoints that are deleted."""
        pins = self._pins.get(thread_id, {})
        for pin in [pin for pin in pins if pin.checkpoint_ns == ns and pin.checkpoint_id in doomed]:
            del pins[pin]

    def _forget_keeping(self, thread_id: str) -> None:
        self._first_seen.pop(thread_id, None)
        self._pins.pop(thread_id, None)

    # ---- the same, awaited: nothing here waits ----

    async def apin(self, config: RunnableConfig, label: str) -> None:
        """`pin`, awaited."""
        self.pin(config, label)

    async def aunpin(self, config: RunnableConfig, label: str | None = None) -> None:
        """`unpin`, awaited."""
        self.unpin(config, label)

    async def apins(self, thread_id: str) -> list[Pin]:
        """`pins`, awaited."""
        return self.pins(thread_id)

    async def asweep(
        self, retention: Retention, *, now: float | None = None, after: str | None = None, dry_run: bool = False
    ) -> Swept:
        """`sweep`, awaited."""
        return self.sweep(retention, now=now, after=after, dry_run=dry_run)
