"""The support bot of a bank as a graph: it hears a complaint, checks three systems at once, and refunds.

    intake ─┬─ limits ────┐
            ├─ history ───┼─ decide ─┬──────────────── refund ─ reply
            └─ antifraud ─┘          ├─ approval ──────┘
                                     └─ apology

A small refund is paid at once. A large one waits for an operator: the run ends there, the process may end
too, and days later any process may answer. What moves money is declared as an effect: it happens once, it
waits beside an open question, and after a rejection it never happens.
"""

from __future__ import annotations

import operator
from typing import Annotated, Any, Literal, TypedDict

from bank import Bank
from model import read_amount, write_reply
from surestep.effects import Reject, current_effect, effect, gate
from surestep.errors import EffectCancelled, NodeError
from surestep.graph import END, START, StateGraph
from surestep.runtime import Runtime, get_runtime
from surestep.types import Command, RetryPolicy, TimeoutPolicy

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


def who_decides(case: Case) -> list[Literal["refund", "approval", "apology"]]:
    return ["refund"] if case["amount"] <= PAID_WITHOUT_ASKING else ["approval", "apology"]


def approval(case: Case) -> Command[Literal["refund", "reply"]]:
    """Asks the operator. The decision is about this amount: for another one it would be asked for again."""
    shown = {"refund": case["amount"], "to": case["client"], "findings": case["findings"]}
    decision = gate(shown, binds=(case["client"], case["amount"]))
    if isinstance(decision, Reject):
        return Command(update={"outcome": {"declined": decision.reason or "no reason given"}}, goto="reply")
    return Command(goto="refund")


def take_back(client: str, amount: int, runtime: Runtime[Bank]) -> None:
    """How a refund is undone when its run is rolled back."""
    runtime.context.take_back(client, current_effect().idempotency_key)


@effect(compensate=take_back)
def pay_back(client: str, amount: int) -> str:
    """Moves money. If the process dies before the bank's receipt is on record, somebody is asked what happened."""
    return get_runtime(Bank).context.refund(client, amount, key=current_effect().idempotency_key)


@effect
def send_voucher(client: str) -> None:
    get_runtime(Bank).context.voucher(client)


def refund(case: Case) -> dict[str, Any]:
    return {"outcome": {"receipt": pay_back(case["client"], case["amount"])}}


def apology(case: Case) -> None:
    """Runs beside the question. The voucher waits for the decision, and is cancelled with a rejection."""
    try:
        send_voucher(case["client"])
    except EffectCancelled:
        pass  # no refund, no voucher


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
    builder.add_node(apology)
    builder.add_node(refund)
    builder.add_node(reply)

    builder.add_edge(START, "intake")
    for system in ("limits", "history", "antifraud"):
        builder.add_edge("intake", system)
        builder.add_edge(system, "decide")
    builder.add_conditional_edges("decide", who_decides, ["refund", "approval", "apology"])
    builder.add_edge("refund", "reply")
    builder.add_edge("reply", END)
    return builder
