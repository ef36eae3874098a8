"""The smallest graph worth looking at: one node, three checkpoints. Run `python examples/minimal.py`."""

from __future__ import annotations

from typing import Literal, TypedDict

from surestep.checkpoint.memory import InMemorySaver
from surestep.graph import END, START, StateGraph
from surestep.types import Command, RunnableConfig


class Parcel(TypedDict):
    recipient: str
    street: str


def read_label(parcel: Parcel) -> Command[Literal["__end__"]]:
    """A node: it gets the state and says what changes in it."""
    return Command(update={"recipient": "Ada Lovelace", "street": "12 St James's Square"})


builder = StateGraph(Parcel)
builder.add_node("read_label", read_label)
builder.add_edge(START, "read_label")
builder.add_edge("read_label", END)
graph = builder.compile(checkpointer=InMemorySaver())

if __name__ == "__main__":
    thread: RunnableConfig = {"configurable": {"thread_id": "parcel-1"}}
    print(graph.invoke({}, thread))
    for snapshot in reversed(list(graph.get_state_history(thread))):
        assert snapshot.metadata is not None
        print(snapshot.metadata["step"], snapshot.metadata["source"], snapshot.next, snapshot.values)
