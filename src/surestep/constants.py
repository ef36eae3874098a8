"""Names that graphs are built with: START, END and the tags that change how a task is shown."""

from __future__ import annotations

from typing import Any

from surestep._constants import CONF, CONFIG_KEY_CHECKPOINTER, TASKS

__all__ = (
    "CONF",
    "CONFIG_KEY_CHECKPOINTER",
    "END",
    "START",
    "TAG_HIDDEN",
    "TAG_NOSTREAM",
    "TASKS",
)

START = "__start__"
"""The virtual node that every graph starts from, and the input channel of a state graph."""

END = "__end__"
"""The virtual node that ends a branch."""

TAG_HIDDEN = "langsmith:hidden"
"""A task with this tag is left out of streamed updates and tasks and is not matched by
interrupt_before="*"."""

TAG_NOSTREAM = "nostream"
"""A chat model run with this tag is not streamed token by token."""


def __getattr__(name: str) -> Any:
    # Old import paths keep working, with a warning that says where to go.
    from warnings import warn

    from surestep import _constants
    from surestep.warnings import LangGraphDeprecatedSinceV10

    if name in ("Send", "Interrupt"):
        from surestep import types

        warn(
            f"Importing {name} from {__name__} is deprecated. "
            f"Please use 'from {types.__name__} import {name}' instead.",
            LangGraphDeprecatedSinceV10,
            stacklevel=2,
        )
        return getattr(types, name)
    if name.isupper() and hasattr(_constants, name):
        warn(
            f"Importing {name} from {__name__} is deprecated. "
            "This constant is now private and should not be used directly.",
            LangGraphDeprecatedSinceV10,
            stacklevel=2,
        )
        return getattr(_constants, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
