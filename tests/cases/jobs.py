"""What child processes do in the tests of storage and of one writer."""

from __future__ import annotations

import os
import signal
from typing import Any

from cases.shared import Bodies, Log, ids, say
from harness.engine import Engine

CONFIG = {"configurable": {"thread_id": "t"}}


def engine(driver: str, db: str) -> tuple[Engine, Any]:
    """surestep under a driver, with a saver on the file."""
    E = Engine("surestep", driver, "sqlite")
    if driver == "sync":
        return E, E._stack.enter_context(E.SqliteSaver.from_conn_string(db))
    return E, E.wait(E._astack.enter_async_context(E.AsyncSqliteSaver.from_conn_string(db)))


def die_in_the_first_node(db: str, driver: str, durability: str, inside: bool) -> None:
    def die(state: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    E, saver = engine(driver, db)
    g = E.graph(Log, {"die": die}, "START > die")
    if inside:
        g = E.graph(Log, {"sub": g.compile()}, "START > sub")
    E.invoke(g.compile(checkpointer=saver), {"log": ["order"]}, CONFIG, durability=durability)


def many_threads(db: str, driver: str, who: str, count: int) -> int:
    E, saver = engine(driver, db)
    with E:
        app = E.graph(Log, {"n": say("y" * 3000)}, "START > n").compile(checkpointer=saver)
        for n in range(count):
            E.invoke(app, {"log": ["x" * 3000]}, E.config(f"{who}{n}"))
    return count


def _asking(E: Engine, saver: Any) -> Any:
    bodies = Bodies(E)
    inner = E.graph(Log, {"b": bodies.ask("b")}, "START > b").compile()
    return E.graph(Log, {"a": bodies.ask("a"), "sub": inner}, "START > a", "START > sub").compile(checkpointer=saver)


def ask(db: str) -> list[str]:
    E, saver = engine("sync", db)
    with E:
        found = ids(E.invoke(_asking(E, saver), {"log": []}, CONFIG))
        return [found["a?"], found["b?"]]


def answer(db: str, answers: dict[str, str]) -> Any:
    E, saver = engine("async", db)
    with E:
        app = _asking(E, saver)
        E.invoke(app, E.Command(resume=answers), CONFIG)
        state = E.state(app, CONFIG)
        done = not state.next
        return {"waiting": [i.id for i in state.interrupts], "log": state.values["log"] if done else []}


def turn(db: str, driver: str, word: str, gate: str) -> str:
    """One turn of the thread, started as soon as the file `gate` is there. How it ended."""
    E, saver = engine(driver, db)

    async def work(state: Any) -> Any:
        await E.sleep(0.05)
        return {"log": [f"did {word}"]}

    with E:
        app = E.graph(Log, {"work": work}, "START > work").compile(checkpointer=saver)
        wait_for(gate)
        result = E.attempt(E.invoke, app, {"log": [word]}, CONFIG)
        return type(result).__name__


def approve(db: str, driver: str, effects: str, gate: str, by_id: str | None) -> str:
    """One approval of the question that waits; the effect is a line in a file."""
    E, saver = engine(driver, db)

    async def pay(state: Any) -> Any:
        answer = E.interrupt("pay?")
        await E.sleep(0.05)
        with open(effects, "a") as file:
            file.write(answer + "\n")
        return {"log": [answer]}

    with E:
        app = E.graph(Log, {"pay": pay}, "START > pay").compile(checkpointer=saver)
        if not gate:
            return ids(E.invoke(app, {"log": []}, CONFIG))["pay?"]
        wait_for(gate)
        given = {by_id: "yes"} if by_id else "yes"
        return type(E.attempt(E.invoke, app, E.Command(resume=given), CONFIG)).__name__


def wait_for(path: str) -> None:
    """Spins until the file is there: the processes go at once, not one poll after the other."""
    while not os.path.exists(path):
        pass
