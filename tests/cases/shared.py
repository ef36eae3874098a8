"""Small states and bodies that the cases share."""

from __future__ import annotations

import operator
from collections import Counter
from typing import Annotated, Any, TypedDict

from harness.engine import Boom, Engine


class Log(TypedDict):
    log: Annotated[list, operator.add]


def say(*words: Any) -> Any:
    return lambda state: {"log": list(words)}


def ids(result: Any) -> dict[Any, str]:
    """Question -> id, of what a run returned."""
    return {i.value: i.id for i in result.get("__interrupt__", ())}


class Bodies:
    """Node bodies that count their starts, by name; `fails` says which of them raise, for how long yet."""

    def __init__(self, E: Engine) -> None:
        self.E, self.runs = E, Counter[str]()
        self.fails: Counter[str] = Counter()

    def start(self, name: str) -> None:
        self.runs[name] += 1
        if self.fails[name] > 0:
            self.fails[name] -= 1
            raise Boom(name)

    def say(self, name: str) -> Any:
        def body(state: Any) -> Any:
            self.start(name)
            return {"log": [name]}

        return body

    def ask(self, name: str, *questions: str) -> Any:
        def body(state: Any) -> Any:
            self.start(name)
            return {"log": [name + "=" + "".join(self.E.interrupt(q) for q in questions or (name + "?",))]}

        return body

    def late(self, name: str, seconds: float = 0.05) -> Any:
        async def body(state: Any) -> Any:
            await self.E.sleep(seconds)
            self.start(name)
            return {"log": [name]}

        return body

    def handler(self, name: str = "handler") -> Any:
        return self.E.node(self.say(name))
