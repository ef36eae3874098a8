"""What is stored does not depend on the process that stores it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import operator
from typing import Annotated, TypedDict
from surestep.checkpoint.memory import InMemorySaver
from surestep.graph import START, StateGraph

class State(TypedDict):
    seen: Annotated[list, operator.add]
    red: int
    green: int
    blue: int

graph = StateGraph(State)
for name in ("left", "middle", "right"):
    graph.add_node(name, lambda state, name=name: {"seen": [name]})
    graph.add_edge(START, name)
graph.add_node("last", lambda state: {"red": 1, "green": 2, "blue": 3})
graph.add_edge(["left", "middle", "right"], "last")
saver = InMemorySaver()
app = graph.compile(checkpointer=saver)
config = {"configurable": {"thread_id": "1"}}
app.invoke({"seen": [], "red": 0, "green": 0, "blue": 0}, config)
for saved in saver.list(config):
    kept = saved.checkpoint
    print(list(kept["channel_versions"]), list(kept["channel_values"]), kept["updated_channels"])
print([key[2] for key in saver.blobs])
"""


def test_the_order_of_what_is_stored_is_the_same_in_every_process() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert len(outputs) == 1
    assert "join:left+middle+right:last" in outputs.pop()
