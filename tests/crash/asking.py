"""A graph with two questions, the second inside a graph; a child process answers them, and is killed meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

from crash.jobs import CONFIG, saver_on
from crash.plan import Calls, State
from crash.points import Points, watch_statements

from surestep.errors import UnknownInterruptError
from surestep.graph import START, StateGraph
from surestep.types import Command, interrupt

ORDER = "in pre ask1=A1 side x ask2=A2 y end".split()
ANSWERS = {"ask1?": "A1", "ask2?": "A2"}


def build(calls: Calls, points: Points, saver: Any, driver: str) -> Any:
    """The compiled graph; a body notes its start, and what it did after its question."""

    def node(key: str) -> Any:
        def body(state: Any) -> Any:
            calls("start", key)
            points.pass_by("body", f"{key} starts")
            said = key
            if key.startswith("ask"):
                said = f"{key}={interrupt(key + '?')}"
                calls("paid", key)
            points.pass_by("body", f"{key} ends")
            return {"log": [said]}

        async def abody(state: Any) -> Any:
            return body(state)

        return body if driver == "sync" else abody

    class Told(State):
        told: list

    inner = StateGraph(Told, input_schema=_only(Told, "told"), output_schema=State)
    for key in ("x", "ask2", "y"):
        inner.add_node(key, node(key))
    inner.add_edge(START, "x").add_edge("x", "ask2").add_edge("ask2", "y")
    g = StateGraph(State)
    for key in ("pre", "ask1", "side", "end"):
        g.add_node(key, node(key))
    g.add_node("sub", inner.compile()).add_edge(START, "pre").add_edge("pre", "ask1").add_edge("pre", "side")
    g.add_edge(["ask1", "side"], "sub").add_edge("sub", "end")
    return g.compile(checkpointer=saver)


def _only(schema: Any, key: str) -> Any:
    from typing import TypedDict

    return TypedDict("Only", {key: list})


def run(
    db: str, log: str, driver: str, known: str = "", kind: str = "none", deadly: int = 0, resend: bool = False
) -> Any:
    """Takes the thread to its next stop; or dies on the way.

    The question that waits is answered, if there is one. With `resend` the question of id `known` is, whether
    the thread waits for it or not, as an operator would do who saw no reply. Returns the questions that wait
    now with their ids, whether the thread is at its end, the log, and the points passed.
    """
    points, calls = Points(kind, deadly), Calls(log)
    if kind == "statement":
        watch_statements(points)
    return asyncio.run(_run(db, points, calls, driver, known if resend else ""))


async def _run(db: str, points: Points, calls: Calls, driver: str, resent: str) -> Any:
    async with saver_on(db, points, calls, driver) as saver:
        app = build(calls, points, saver, driver)

        async def invoke(given: Any) -> Any:
            return await app.ainvoke(given, CONFIG) if driver == "async" else app.invoke(given, CONFIG)

        async def state() -> Any:
            return await app.aget_state(CONFIG) if driver == "async" else app.get_state(CONFIG)

        now, refused = await state(), False
        waiting = {i.id: ANSWERS[i.value] for i in now.interrupts}
        if not now.created_at:
            await invoke({"log": ["in"]})
        elif resent and resent not in waiting:
            try:
                await invoke(Command(resume={resent: "once more"}))
            except UnknownInterruptError:
                refused = True
        elif now.tasks:  # they may all have ended, and only the step not be closed: `next` is empty then
            await invoke(Command(resume=waiting) if waiting else None)
        now = await state()
        return {
            "waiting": {i.value: i.id for i in now.interrupts},
            "over": not now.tasks,
            "log": now.values["log"],
            "refused": refused,
            "points": points.passed,
        }
