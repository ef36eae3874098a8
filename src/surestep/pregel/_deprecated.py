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


def by_either_name(given: dict[str, Any], old: str, new: str, value: Any) -> Any:
    """The value of an argument that may have been given by its old name; that is taken out of `given`.

    `value` is what it was given by its new name, which counts if both were used.
    """
    if old not in given:
        return value
    warnings.warn(f"`{old}` is deprecated and will be removed. Please use `{new}` instead.", _SINCE[old], stacklevel=3)
    older = given.pop(old)
    return value or older
