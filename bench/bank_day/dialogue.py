"""The bank's support bot on either engine: a turn asks three systems at once and answers; one turn of a
dialogue wants money, and waits for an operator.

    START ─┬─ limits ────┐
           ├─ history ───┼─ decide ─┬─ reply ─ END
           └─ antifraud ─┘          └─ approval ─ reply
"""

from __future__ import annotations

import operator
import time
from importlib import import_module
from typing import Annotated, Any, TypedDict

TURNS = 15
MONEY_TURN = 7  # counted from 0: the turn that asks for a refund
QUESTION = "I was charged twice for order {number}, please look into it. " * 6  # about 400 bytes
ANSWER = "Thank you for your patience. We have looked at limits, history and fraud signals of order {number}. " * 8


def merged(old: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    return {**old, **new}


class Dialogue(TypedDict, total=False):
    messages: Annotated[list[dict[str, str]], operator.add]
    findings: Annotated[dict[str, str], merged]
    wants_money: bool
    approved: bool


def question(number: int) -> dict[str, Any]:
    """What the client says in turn `number`: a graph's input."""
    text = QUESTION.format(number=number)
    return {"messages": [{"role": "user", "content": text}], "wants_money": number == MONEY_TURN}


def build(engine: str, work: float) -> Any:
    """The graph, not compiled yet. `work`: seconds that each of the three systems takes to answer."""
    graph, types = import_module(f"{engine}.graph"), import_module(f"{engine}.types")

    def system(name: str) -> Any:
        def ask(state: Dialogue) -> dict[str, Any]:
            time.sleep(work)
            return {"findings": {name: f"{name} of turn {len(state['messages']) // 2}: nothing unusual"}}

        return ask

    def decide(state: Dialogue) -> None:
        """The place where the findings meet."""

    def approval(state: Dialogue) -> dict[str, Any]:
        return {"approved": types.interrupt({"findings": state["findings"]})}

    def reply(state: Dialogue) -> dict[str, Any]:
        text = ANSWER.format(number=len(state["messages"]) // 2)
        return {"messages": [{"role": "assistant", "content": text}]}

    builder = graph.StateGraph(Dialogue)
    for node in (decide, approval, reply):
        builder.add_node(node)
    for name in ("limits", "history", "antifraud"):
        builder.add_node(name, system(name))
        builder.add_edge(graph.START, name)
        builder.add_edge(name, "decide")
    builder.add_conditional_edges("decide", lambda state: "approval" if state["wants_money"] else "reply")
    builder.add_edge("approval", "reply")
    builder.add_edge("reply", graph.END)
    return builder
