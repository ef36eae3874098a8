"""Filters and namespace patterns: what they mean, once for every store that decides in Python."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from surestep.store.base._ops import MatchCondition

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def matches_filter(value: dict[str, Any], filter: dict[str, Any] | None) -> bool:
    """Whether `value` meets every condition. Raises ValueError for an unknown operator."""
    return not filter or all(_holds(value.get(field), expected) for field, expected in filter.items())


def _holds(actual: Any, expected: Any) -> bool:
    if not isinstance(expected, dict):
        return _equal(actual, expected)
    if any(isinstance(key, str) and key.startswith("$") for key in expected):
        return all(_compare(actual, name, operand) for name, operand in expected.items())
    return isinstance(actual, dict) and all(_holds(actual.get(field), part) for field, part in expected.items())


def _equal(actual: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(expected)
            and all(_holds(a, e) for a, e in zip(actual, expected, strict=True))
        )
    return bool(actual == expected)


def _compare(actual: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(actual == operand)
    if name == "$ne":
        return bool(actual != operand)
    compare = _ORDER.get(name)
    if compare is None:
        raise ValueError(f"Unsupported operator: {name}. A filter knows $eq, $ne, $gt, $gte, $lt and $lte.")
    for kind in ((int, float), str):
        if isinstance(actual, kind) and isinstance(operand, kind):
            return compare(actual, operand)
    return False


def matches_namespace(namespace: tuple[str, ...], conditions: Iterable[MatchCondition]) -> bool:
    """Whether `namespace` meets every condition. Raises ValueError for an unknown kind of condition."""
    return all(_fits(namespace, condition) for condition in conditions)


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type!r}. Use 'prefix' or 'suffix'.")
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(pattern in ("*", label) for pattern, label in zip(path, part, strict=True))
