"""Structural types of the classes a state may be. For type checkers; nothing is checked against them at run
time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, TypeAlias


class TypedDictLikeV1(Protocol):
    """A TypedDict as classes define it (keys are class variables)."""

    __required_keys__: ClassVar[frozenset[str]]
    __optional_keys__: ClassVar[frozenset[str]]


class TypedDictLikeV2(Protocol):
    """A TypedDict as some type checkers see it (keys are instance variables)."""

    __required_keys__: frozenset[str]
    __optional_keys__: frozenset[str]


class DataclassLike(Protocol):
    """Anything made by @dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


TypedDictLike: TypeAlias = TypedDictLikeV1 | TypedDictLikeV2 | Mapping[str, Any]
