"""What packages use in the signatures of functions around a graph."""

from __future__ import annotations

from typing import TypedDict

from surestep._typing import DataclassLike, TypedDictLikeV1, TypedDictLikeV2
from surestep.channels.base import MISSING

__all__ = ("MISSING", "DataclassLike", "DeprecatedKwargs", "TypedDictLikeV1", "TypedDictLikeV2")


class DeprecatedKwargs(TypedDict):
    """The type of `**kwargs` that a function takes for the sake of old callers: no key is known."""
