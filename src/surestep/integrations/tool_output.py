"""What tools may return as it is: LangChain's tools make a message of everything that is not a `ToolOutputMixin`.

LangChain may come into the process after us, or never. So our classes derive from a stand-in, and change over to the
mixin itself once it is there. Both are empty, so instances that exist take part.
"""

from __future__ import annotations

import sys
from typing import Any, Final

_HOME: Final = "langchain_core.messages.tool"


class ToolOutput:
    """Stands for LangChain's `ToolOutputMixin` until that is there."""


def join_tool_outputs(kind: type[Any]) -> None:
    """Let LangChain's tools return instances of `kind`, a direct subclass of ToolOutput, if LangChain is loaded."""
    if _HOME in sys.modules and ToolOutput in kind.__bases__:
        mixin = getattr(sys.modules[_HOME], "ToolOutputMixin", None)  # None while LangChain is being imported
        if mixin is not None:
            kind.__bases__ = tuple(mixin if base is ToolOutput else base for base in kind.__bases__)
