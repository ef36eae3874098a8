"""Tools may return a Command, whichever of the two packages is loaded first."""

from __future__ import annotations

import subprocess
import sys

import pytest

TOOL = """
from langchain_core.tools import tool

@tool
def move(where: str):
    "Go."
    return early if where == "early" else Command(goto=where)

def called(where):
    return move.invoke({"type": "tool_call", "id": "1", "name": "move", "args": {"where": where}})
"""
USE = """
import copy, pickle
late = called("b")
assert type(late) is Command and late == Command(goto="b") and late is not Command(goto="b")
assert called("early") is early and type(called("child")) is Command
for command in (early, late, Child(goto="x")):
    assert pickle.loads(pickle.dumps(command)) == command == copy.deepcopy(command)
assert Command[str] and Command.PARENT == "__parent__"
from langchain_core.messages.tool import ToolOutputMixin
assert isinstance(early, ToolOutputMixin) and isinstance(Child(), ToolOutputMixin)
print("fine")
"""
OURS = "from surestep.types import Command\nclass Child(Command): pass\nearly = Command(goto='early')\n"


@pytest.mark.parametrize("program", [OURS + TOOL + USE, TOOL + OURS + USE], ids=["ours first", "LangChain first"])
def test_tools_return_commands(program: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr
