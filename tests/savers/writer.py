"""A process that adds steps to a thread, for tests with several writers: `python writer.py KIND PLACE NAME STEPS`."""

from __future__ import annotations

import sys
from typing import Any

from surestep.checkpoint.base import CLAIM_KEY, HEAD_KEY, TaskWrites
from surestep.checkpoint.base.id import next_checkpoint_id
from surestep.checkpoint.postgres import PostgresSaver
from surestep.checkpoint.sqlite import SqliteSaver
from surestep.errors import AlreadyAnswered, ThreadConflict


def at(thread: str, id: str | None = None, **more: Any) -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **({"checkpoint_id": id} if id else {}), **more}}


def add_step(saver: Any, name: str, number: int) -> bool:
    """Add one step after the latest checkpoint of thread "shared"; False when somebody else was first."""
    latest = saver.get_tuple(at("shared"))
    head, log = (latest.checkpoint["id"], latest.checkpoint["channel_values"]["log"]) if latest else (None, [])
    version = saver.get_next_version(latest.checkpoint["channel_versions"]["log"] if latest else None, None)
    entry = f"{name}{number}"
    checkpoint: Any = {
        "v": 4,
        "ts": "",
        "id": next_checkpoint_id(len(log), head),
        "channel_values": {"log": [*log, entry]},
        "channel_versions": {"log": version},
        "versions_seen": {},
        "updated_channels": ["log"],
    }
    writes = [TaskWrites(entry, "~", [("log", entry)])] if head else []
    try:
        saver.commit(at("shared", head, **{HEAD_KEY: head}), checkpoint, {"step": len(log)}, {"log": version}, writes)
    except ThreadConflict:
        return False
    return True


def work(saver: Any, name: str, steps: int) -> tuple[int, int]:
    """Add steps until that many succeeded, claim answers and store writes on the way; (conflicts, claims won)."""
    conflicts = claims = 0
    for number in range(steps):
        while not add_step(saver, name, number):
            conflicts += 1
        saver.put_writes(at("writes", "1"), [("x", number)], f"{name}{number}")
        try:
            saver.put_writes(at("claims", "1", **{CLAIM_KEY: True}), [("__resume__", name)], f"task{number}")
            claims += 1
        except AlreadyAnswered:
            pass
    return conflicts, claims


if __name__ == "__main__":
    kind, place, name, steps = sys.argv[1:]
    sys.stdin.readline()  # all begin together
    kinds: dict[str, Any] = {"sqlite": SqliteSaver, "postgres": PostgresSaver}
    with kinds[kind].from_conn_string(place) as saver:
        saver.setup()
        print(*work(saver, name, int(steps)))
