"""What a child process does: a graph whose effects a server outside counts, killed on the way or not."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from crash.jobs import CONFIG, _now, saver_on
from crash.points import Points, watch_conversations, watch_statements

from surestep.effects import Approve, Completed, Retry, current_effect, effect, gate
from surestep.graph import START, StateGraph
from surestep.testing import call_effect
from surestep.types import Command


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def graph(url: str, points: Points, driver: str) -> Any:
    """Two effects beside a gate, and after them one with a business key, behind another in the same node."""

    def told(name: str) -> str:
        points.pass_by("body", f"before {name}")
        call_effect(url, f"{name} {current_effect().idempotency_key}")
        points.pass_by("body", f"after {name}")
        return name

    async def atold(name: str) -> str:
        points.pass_by("body", f"before {name}")
        await asyncio.to_thread(call_effect, url, f"{name} {current_effect().idempotency_key}")
        points.pass_by("body", f"after {name}")
        return name

    body: Any = atold if driver == "async" else told
    plain, keyed = effect(name="act")(body), effect(name="keyed", key=lambda name: name)(body)

    def node(*calls: tuple[Any, str]) -> Any:
        async def run(state: Any) -> Any:
            points.pass_by("body", "start")
            log = []
            for call, name in calls:
                found = call(name)
                log.append(await found if driver == "async" else found)
            points.pass_by("body", "end")
            return {"log": log}

        return run if driver == "async" else lambda state: _now(run(state))

    def ask(state: Any) -> Any:
        return {"log": [type(gate("pay?")).__name__]}

    builder = StateGraph(Log)
    builder.add_node("a", node((plain, "a")))
    builder.add_node("b", node((plain, "b")))
    builder.add_node("ask", ask)
    builder.add_node("last", node((plain, "c"), (keyed, "d")))
    for name in ("a", "b", "ask"):
        builder.add_edge(START, name)
    builder.add_edge(["a", "b", "ask"], "last")
    return builder


ANSWERS = {"approve": Approve, "completed": Completed, "retry": Retry}


def act(
    db: str, url: str, driver: str, durability: str, kind: str = "none", deadly: int = 0, answers: Any = None
) -> Any:
    """Goes on with the thread: with these answers {question: [kind, ...]}; or it says what is asked; or it runs.

    Returns the questions that wait then, the log, and how many points of `kind` were passed.
    """
    points = Points(kind, deadly)
    if kind == "statement":
        watch_statements(points)
        watch_conversations(points)
    resume = {id: ANSWERS[given](*more) for id, (given, *more) in (answers or {}).items()}
    work = _act(db, points, url, driver, durability, resume)
    return {**(asyncio.run(work) if driver == "async" else _now(work)), "points": points.passed}


async def _act(db: str, points: Points, url: str, driver: str, durability: str, resume: Any) -> Any:
    async with saver_on(db, points, lambda *_: None, driver) as saver:
        app = graph(url, points, driver).compile(checkpointer=saver)
        state = await app.aget_state(CONFIG) if driver == "async" else app.get_state(CONFIG)
        if state.interrupts and not resume:
            return {"questions": {one.id: one.value for one in state.interrupts}, "log": None}
        given: Any = Command(resume=resume) if resume else None if state.created_at else {"log": []}
        if driver == "async":
            result = await app.ainvoke(given, CONFIG, durability=durability)
        else:
            result = app.invoke(given, CONFIG, durability=durability)
        questions = {one.id: one.value for one in result.get("__interrupt__", ())}
        return {"questions": questions, "log": None if questions else sorted(result["log"])}
