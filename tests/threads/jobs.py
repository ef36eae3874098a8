"""What child processes do in the tests of one run per thread."""

from __future__ import annotations

import time
from typing import Any

from cases.jobs import CONFIG, engine, wait_for
from cases.shared import Log


def turns(db: str, driver: str, who: str, count: int, strategy: str, gate: str) -> list[str]:
    """Turns of one thread, as fast as they go; those that reported success."""
    E, saver = engine(driver, db)

    async def work(state: Any) -> Any:
        await E.sleep(0.001)
        return {"log": [f"did {state['log'][-1]}"]}

    succeeded = []
    with E:
        app = E.graph(Log, {"work": work}, "START > work").compile(checkpointer=saver)
        wait_for(gate)
        for number in range(count):
            word = f"{who}{number}"
            result = E.attempt(E.invoke, app, {"log": [word]}, CONFIG, multitask_strategy=strategy)
            if isinstance(result, dict):
                succeeded.append(word)
            else:
                assert type(result).__name__ in ("ThreadBusy", "RunFenced", "ThreadConflict"), repr(result)
    return succeeded


def hold_for_ever(db: str, driver: str, entered: str) -> None:
    """A run that never ends; the process is to be killed."""
    E, saver = engine(driver, db)

    async def hangs(state: Any) -> Any:
        open(entered, "w").close()
        await E.sleep(1000)

    app = E.graph(Log, {"hangs": hangs}, "START > hangs").compile(checkpointer=saver)
    E.invoke(app, {"log": ["held"]}, CONFIG)


def wait_to_be_cancelled(db: str, driver: str, entered: str) -> list[Any]:
    """A run that another process cancels; how it ended."""
    E, saver = engine(driver, db)

    async def hangs(state: Any) -> Any:
        open(entered, "w").close()
        for _ in range(1000 if driver == "async" else 150):
            await E.sleep(0.02)

    with E:
        app = E.graph(Log, {"hangs": E.node(hangs)}, "START > hangs").compile(checkpointer=saver)
        began = time.monotonic()
        error: Any = E.attempt(E.invoke, app, {"log": ["held"]}, CONFIG)
        return [type(error).__name__, getattr(error, "reason", None), time.monotonic() - began < 15]
