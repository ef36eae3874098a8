"""One turn of the bot in a process of its own: `python turn.py FOLDER CASE [CLIENT COMPLAINT [STRATEGY]]`.

With a client and a complaint a new case begins. Without them the case goes on from where its last process
left it, however that process ended. STRATEGY says what to do if another process is at it. SIGTERM stops the
turn at the next boundary between two steps.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

from bank import Bank
from bot import Case, build
from surestep.checkpoint.sqlite.aio import AsyncSqliteSaver
from surestep.errors import GraphDrained, RunFenced, ThreadBusy
from surestep.runtime import RunControl


async def turn(folder: Path, case: str, payload: Case | None, strategy: str | None) -> None:
    """Run the case until it ends, waits for an answer, or is drained."""
    control = RunControl()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, control.request_drain, "SIGTERM")
    async with AsyncSqliteSaver.from_conn_string(str(folder / "cases.sqlite")) as saver:
        graph = build().compile(checkpointer=saver)
        updates = graph.astream(
            payload,
            {"configurable": {"thread_id": case}},
            context=Bank(folder / "calls.log"),
            stream_mode="updates",
            durability="sync",  # money is moved here: no step is begun before the last one is on disk
            control=control,
            multitask_strategy=strategy,
        )
        try:
            async for update in updates:
                report(update)
        except GraphDrained as drained:
            print(f"drained at a step's boundary, reason: {drained.reason}", flush=True)
        except (ThreadBusy, RunFenced) as refused:
            print(f"{type(refused).__name__}: {refused}", flush=True)


def report(update: dict[str, Any]) -> None:
    """Print what one node wrote; a node whose result an earlier process had left is told apart."""
    recorded = " (on record, not run again)" if update.pop("__metadata__", None) else ""
    for node, wrote in update.items():
        if node == "__interrupt__":
            for question in wrote:
                print(f"waits for an answer to {question.id}", flush=True)
        else:
            print(f"{node}{recorded}: {wrote or 'nothing to write'}", flush=True)


if __name__ == "__main__":
    folder, case, *rest = sys.argv[1:]
    said = Case(client=rest[0], complaint=rest[1]) if rest else None
    asyncio.run(turn(Path(folder), case, said, rest[2] if len(rest) > 2 else None))
