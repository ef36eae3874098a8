"""The support bot of a bank as a graph: it hears a complaint, checks three systems at once, and refunds.

    intake ─┬─ limits ────┐
            ├─ history ───┼─ decide ─┬──────────── refund ─ reply
            └─ antifraud ─┘          └─ approval ──┘

A small refund is paid at once. A large one waits for an operator: the run ends there, the process may end
too, and days later any process may answer.
"""

from __future__ import annotations

import operator
from typing import Annotated, Any, Literal, TypedDict

from bank import Bank
from model import read_amount, write_reply
from surestep.errors import NodeError
from surestep.graph import END, START, StateGraph
from surestep.runtime import Runtime
from surestep.types import Command, RetryPolicy, TimeoutPolicy, interrupt

PAID_WITHOUT_ASKING = 1000


class Case(TypedDict, total=False):
    """All that is known about one complaint."""

    client: str
    complaint: str
    amount: int
    findings: Annotated[dict[str, str], operator.or_]  # three nodes write it in one step: it needs a reducer
    outcome: dict[str, str]
    reply: str


def intake(case: Case) -> dict[str, Any]:
    return {"amount": read_amount(case["complaint"])}


def limits(case: Case, runtime: Runtime[Bank]) -> dict[str, Any]:
    return {"findings": {"limits": runtime.context.limits(case["client"])}}


def history(case: Case, runtime: Runtime[Bank]) -> dict[str, Any]:
    return {"findings": {"history": runtime.context.history(case["client"])}}


async def antifraud(case: Case, runtime: Runtime[Bank]) -> dict[str, Any]:
    return {"findings": {"antifraud": await runtime.context.antifraud(case["client"])}}


def without_antifraud(case: Case, error: NodeError) -> Command[Literal["decide"]]:
    """Takes antifraud's place once its attempts are used up. A handler has no edges: it says where to go."""
    finding = f"no verdict ({type(error.error).__name__}): to be reviewed by hand"
    return Command(update={"findings": {"antifraud": finding}}, goto="decide")


def decide(case: Case) -> None:
    """The place where the three findings meet; `who_decides` chooses the way on."""


def who_decides(case: Case) -> Literal["refund", "approval"]:
    return "refund" if case["amount"] <= PAID_WITHOUT_ASKING else "approval"


def approval(case: Case) -> Command[Literal["refund", "reply"]]:
    """Asks the operator. When the answer comes the node starts again from its first line: ask first."""
    answer = interrupt({"refund": case["amount"], "to": case["client"], "findings": case["findings"]})
    if answer["approved"]:
        return Command(goto="refund")
    return Command(update={"outcome": {"declined": answer["reason"]}}, goto="reply")


def refund(case: Case, runtime: Runtime[Bank]) -> dict[str, Any]:
    """Pays, in a node of its own behind the question, never in the node that asks or beside it.

    If the process dies after the payment and before its record, the node runs again. The key is the same
    then, and by it the bank knows that it has paid.
    """
    assert runtime.execution_info is not None and runtime.execution_info.thread_id is not None
    receipt = runtime.context.refund(case["client"], case["amount"], key=runtime.execution_info.thread_id)
    return {"outcome": {"receipt": receipt}}


def reply(case: Case) -> dict[str, Any]:
    return {"reply": write_reply(case["client"], case["amount"], case["outcome"])}


def build() -> StateGraph[Case, Bank]:
    """The graph, ready to be compiled with a saver."""
    builder = StateGraph(Case, context_schema=Bank)
    builder.add_node(intake)
    builder.add_node(limits)
    builder.add_node(history)
    builder.add_node(
        antifraud,
        timeout=TimeoutPolicy(run_timeout=1.0),
        retry_policy=RetryPolicy(max_attempts=2, initial_interval=0.1, jitter=False),
        error_handler=without_antifraud,
    )
    builder.add_node(decide)
    builder.add_node(approval)
    builder.add_node(refund)
    builder.add_node(reply)

    builder.add_edge(START, "intake")
    for system in ("limits", "history", "antifraud"):
        builder.add_edge("intake", system)
        builder.add_edge(system, "decide")
    builder.add_conditional_edges("decide", who_decides)
    builder.add_edge("refund", "reply")
    builder.add_edge("reply", END)
    return builder
