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


def renamed(old: str, new: str, value: Any, stacklevel: int = 3) -> Any:
    """The value of an argument that was given by its old name."""
    message = f"`{old}` is deprecated and will be removed. Please use `{new}` instead."
    warnings.warn(message, _SINCE[old], stacklevel=stacklevel)
    return value


def by_either_name(given: dict[str, Any], old: str, new: str, value: Any) -> Any:
    """The value of an argument that may have been given by its old name; that is taken out of `given`."""
    if old not in given:
        return value
    older = renamed(old, new, given.pop(old), stacklevel=4)
    return value or older
