"""Old names of arguments, still understood."""

from __future__ import annotations

import warnings
from typing import Any

from surestep.warnings import LangGraphDeprecatedSinceV05, LangGraphDeprecatedSinceV10

_SINCE: dict[str, type[Warning]] = {
    "config_schema": LangGraphDeprecatedSinceV10,
    "config_type": LangGraphDeprecatedSinceV10,
    "retry": LangGraphDeprecatedSinceV05,
    "input": LangGraphDeprecatedSinceV05,
    "output": LangGraphDeprecatedSinceV05,
}


def renamed(old: str, new: str, value: Any) -> Any:
    """The value of an argument that was given by its old name."""
    warnings.warn(f"`{old}` is deprecated and will be removed. Please use `{new}` instead.", _SINCE[old], stacklevel=3)
    return value
