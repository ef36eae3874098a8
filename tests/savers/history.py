"""Writing checkpoints as an engine does: each from its parent, with the versions that changed."""

from __future__ import annotations

from typing import Any

from surestep.checkpoint.base import HEAD_KEY, CheckpointTuple, TaskWrites
from surestep.checkpoint.base.id import next_checkpoint_id

TASK = "4de32b4d-bbd5-2d5d-9b7d-4d2b5d8f0c1e"
LARGE = "large " * 200


def at(thread: str, id: str | None = None, ns: str = "", **more: Any) -> dict[str, Any]:
    """The config that addresses a checkpoint, or the latest."""
    address = {"checkpoint_id": id} if id else {}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, **address, **more}}


class Thread:
    """One namespace of a thread, written step by step."""

    def __init__(self, saver: Any, id: str = "t", ns: str = "") -> None:
        self.saver, self.id, self.ns = saver, id, ns
        self.step = -1
        self.head: str | None = None
        self.versions: dict[str, dict[str, Any]] = {}
        self.values: dict[str, dict[str, Any]] = {}
        self.counter = 0

    def put(
        self,
        values: dict[str, Any],
        *,
        parent: str | None = "",
        id: str | None = None,
        empty: tuple[str, ...] = (),
        writes: list[TaskWrites] | None = None,
        metadata: dict[str, Any] | None = None,
        guard: Any = ...,
        private: dict[str, Any] | None = None,
    ) -> str:
        """A checkpoint after `parent` (the head unless given) in which these channels changed; its id."""
        parent = self.head if parent == "" else parent
        self.counter += 1
        new = {name: f"{self.counter:032}.{self.id}" for name in (*values, *empty)}
        versions = {**self.versions.get(parent or "", {}), **new}
        id = id or next_checkpoint_id(self.step, max(parent or "", self.head or ""))
        kept = {k: v for k, v in {**self.values.get(parent or "", {}), **values}.items() if k not in empty}
        checkpoint = {
            "v": 4,
            "id": id,
            "ts": "2026-01-01T00:00:00+00:00",
            "channel_values": kept,
            "channel_versions": versions,
            "versions_seen": {"node": dict(new)},
            "updated_channels": sorted(new),
        }
        config = at(self.id, parent, self.ns, **({} if guard is ... else {HEAD_KEY: guard}), **(private or {}))
        given = {"source": "loop", "step": self.step, "parents": {}, **(metadata or {})}
        if writes is None:
            back = self.saver.put(config, checkpoint, given, new)
        else:
            back = self.saver.commit(config, checkpoint, given, new, writes)
        assert back == at(self.id, id, self.ns)
        self.versions[id], self.values[id] = versions, kept
        self.head = max(self.head or "", id)
        self.step += 1
        return id

    def get(self, id: str | None = None) -> CheckpointTuple | None:
        return self.saver.get_tuple(at(self.id, id, self.ns))

    def writes(self, id: str) -> list[tuple[str, str, Any]]:
        found = self.get(id)
        assert found is not None
        return found.pending_writes or []


def ids(found: Any) -> list[str]:
    """The checkpoint ids of a listing."""
    return [item.checkpoint["id"] for item in found]


def everything(saver: Any) -> list[Any]:
    """All that a saver gives back, for comparing two of them."""
    return [
        (found.config, found.checkpoint, found.metadata, found.parent_config, found.pending_writes)
        for found in saver.list(None)
    ]
