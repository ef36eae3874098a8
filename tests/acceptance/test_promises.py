"""Promises that are seen best from outside: a clock that is wrong, an attempt that comes back too late."""

from __future__ import annotations

import asyncio
import operator
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from surestep.checkpoint.memory import InMemorySaver
from surestep.checkpoint.sqlite import SqliteSaver
from surestep.config import get_stream_writer
from surestep.graph import START, StateGraph
from surestep.types import RetryPolicy, RunnableConfig, Send, TimeoutPolicy

THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


TURN = """
import sys, time
shift, file, word = int(sys.argv[1]), sys.argv[2], sys.argv[3]
real = time.time_ns
time.time_ns = lambda: 0 if shift == -1 else real() + shift * 10**9  # -1: a clock that stands still

from acceptance.test_promises import THREAD, graph
from surestep.checkpoint.sqlite import SqliteSaver
with SqliteSaver.from_conn_string(file) as saver:
    graph(saver).invoke({"log": [word]}, THREAD)
"""


def graph(saver: Any) -> Any:
    builder = StateGraph(Log).add_node("one", lambda state: {"log": ["one"]}).add_edge(START, "one")
    return builder.compile(checkpointer=saver)


def test_wrong_clocks_do_not_change_the_order(tmp_path: Path) -> None:
    """Four machines take turns: right, an hour behind, an hour ahead, and one whose clock stands still."""
    file = str(tmp_path / "db")
    for shift, word in ((0, "a"), (-3600, "b"), (3600, "c"), (-1, "d")):
        path = str(Path(__file__).parent.parent)
        command = [sys.executable, "-c", TURN, str(shift), file, word]
        subprocess.run(command, check=True, env={"PYTHONPATH": path}, capture_output=True)
    with SqliteSaver.from_conn_string(file) as saver:
        history = list(graph(saver).get_state_history(THREAD))
    assert history[0].values["log"] == ["a", "one", "b", "one", "c", "one", "d", "one"]
    ids = [snapshot.config["configurable"]["checkpoint_id"] for snapshot in reversed(history)]
    parents = [snapshot.parent_config for snapshot in reversed(history)]
    assert ids == sorted(ids)
    assert [parent and parent["configurable"]["checkpoint_id"] for parent in parents] == [None, *ids[:-1]]


@pytest.mark.parametrize("packets", [False, True])
async def test_an_attempt_that_comes_back_too_late_counts_for_nothing(packets: bool) -> None:
    """The first attempt runs into its limit, does not let itself be cancelled, and writes after all."""
    attempts: list[int] = []
    late = asyncio.Event()

    async def stubborn(state: Log) -> Log:
        attempts.append(1)
        if len(attempts) > 1:
            await late.wait()
            return {"log": ["second"]}
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            get_stream_writer()("late")
        late.set()
        return {"log": ["first"]}

    builder = StateGraph(Log)
    builder.add_node(
        "stubborn",
        stubborn,
        timeout=TimeoutPolicy(run_timeout=0.05),
        retry_policy=RetryPolicy(initial_interval=0.001, jitter=False),
    )
    if packets:
        builder.add_conditional_edges(START, lambda state: [Send("stubborn", {"log": []})])
    else:
        builder.add_edge(START, "stubborn")
    saver = InMemorySaver()
    app = builder.compile(checkpointer=saver)
    seen = [part async for part in app.astream({"log": []}, THREAD, stream_mode=["custom", "values"])]
    assert seen == [("values", {"log": []}), ("values", {"log": ["second"]})]
    rows = [(channel, value) for saved in saver.list(THREAD) for _, channel, value in saved.pending_writes or ()]
    assert [value for channel, value in rows if channel == "log"] == [["second"], []]
