"""Graphs are LangChain's Runnables, and it costs nothing while LangChain is not in the process."""

from __future__ import annotations

import subprocess
import sys
import textwrap

GRAPH = """
import sys
from typing import TypedDict
from surestep.graph import START, StateGraph

class State(TypedDict):
    n: int

app = StateGraph(State).add_node("a", lambda state: {"n": state["n"] + 1}).add_edge(START, "a").compile(name="app")
"""
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "langchain_core":
            raise ImportError("not installed")

sys.meta_path.insert(0, Blocked())
"""


def run(*code: str) -> str:
    source = "\n".join(textwrap.dedent(part) for part in code)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_runs_and_questions_do_not_import_it() -> None:
    code = """
    app.invoke({"n": 1}, {"tags": ["x"], "callbacks": []})
    hasattr(app, "tools_by_name"), hasattr(app, "lc_id"), isinstance(app, dict), repr(app)
    print("langchain_core" in sys.modules)
    """
    assert run(GRAPH, code) == "False"


def test_a_graph_made_before_langchain_came_is_a_runnable() -> None:
    code = """
    from langchain_core.runnables import Runnable, RunnableLambda
    print(isinstance(app, Runnable), (RunnableLambda(lambda n: {"n": n}) | app).invoke(1))
    """
    assert run(GRAPH, code) == "True {'n': 2}"


def test_handlers_are_heard_however_little_of_it_is_loaded() -> None:
    code = """
    from langchain_core.callbacks.base import BaseCallbackHandler

    class Handler(BaseCallbackHandler):
        def on_chain_start(self, *args, name=None, **kwargs): print(name)

    assert "langchain_core.callbacks.manager" not in sys.modules
    app.invoke({"n": 1}, {"callbacks": [Handler()]})
    """
    assert run(GRAPH, code) == "app\na"


def test_borrowed_methods_import_it() -> None:
    assert run(GRAPH, 'print((app | (lambda state: state["n"])).invoke({"n": 1}))') == "2"
    assert run(GRAPH, 'print(app.pick("n").invoke({"n": 1}))') == "2"


def test_where_it_is_not_installed() -> None:
    code = """
    print(app.invoke({"n": 1}))
    for attempt in (lambda: app.pipe, lambda: app | app, lambda: app.astream_events({"n": 1})):
        try:
            attempt()
        except Exception as error:
            print(type(error).__name__, "pip install langchain-core" in str(error))
    try:
        list(app.stream({"n": 1}, stream_mode="messages"))
    except Exception as error:
        print(type(error).__name__, "pip install langchain-core" in str(error))
    print(hasattr(app, "pipe"))
    """
    expected = "{'n': 2}\nAttributeError True\nImportError True\nImportError True\nImportError True\nFalse"
    assert run(BLOCKED, GRAPH, code) == expected


def test_life_cycle_callbacks_need_none_of_it() -> None:
    code = """
    from surestep.callbacks import GraphCallbackHandler
    from surestep.checkpoint.memory import InMemorySaver
    from surestep.types import Command, interrupt

    class Told(GraphCallbackHandler):
        def on_interrupt(self, event): print(event.status, event.interrupts[0].value, event.checkpoint_ns)
        def on_resume(self, event): print("resumed", event.checkpoint_ns)

    app = StateGraph(State).add_node("a", lambda state: {"n": interrupt("how many?")}).add_edge(START, "a")
    app = app.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}, "callbacks": [Told()]}
    app.invoke({"n": 1}, config)
    print(app.invoke(Command(resume=5), config))
    """
    assert run(BLOCKED, GRAPH, code) == "pending how many? ()\nresumed ()\n{'n': 5}"
