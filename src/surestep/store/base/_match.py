"""Filters and namespace patterns: what they mean, once for every store.

A database may be asked to leave out what can't match; what it finds is decided on here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from surestep.store.base._ops import MatchCondition

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}

OPERATORS = ("$eq", "$ne", *_ORDER)


def matches_filter(value: Mapping[str, Any], filter: Mapping[str, Any] | None) -> bool:
    """Whether `value` meets every condition. Raises ValueError for an unknown operator."""
    return not filter or all(_holds(_field(value, field), expected) for field, expected in filter.items())


def _field(value: Mapping[str, Any], field: str) -> Any:
    """What `value` has at `field`: a key as it stands, or else a path with dots between its keys."""
    if field in value or "." not in field:
        return value.get(field)
    found: Any = value
    for key in field.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def is_comparison(expected: Any) -> bool:
    """Whether that is {"$gt": ...} and its like, not a value."""
    return isinstance(expected, dict) and any(isinstance(key, str) and key.startswith("$") for key in expected)


def check_filter(filter: Mapping[str, Any] | None) -> None:
    """Raise ValueError when `filter` has an operator that there isn't."""
    for expected in (filter or {}).values():
        if is_comparison(expected):
            for name in expected:
                if name not in OPERATORS:
                    raise _unknown(name)
        elif isinstance(expected, dict):
            check_filter(expected)


def _holds(actual: Any, expected: Any) -> bool:
    if not isinstance(expected, dict):
        return _equal(actual, expected)
    if is_comparison(expected):
        return all(_compare(actual, name, operand) for name, operand in expected.items())
    return isinstance(actual, dict) and all(_holds(_field(actual, field), part) for field, part in expected.items())


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
        raise _unknown(name)
    for kind in ((int, float), str):
        if isinstance(actual, kind) and isinstance(operand, kind):
            return compare(actual, operand)
    return False


def _unknown(name: str) -> ValueError:
    return ValueError(f"Unsupported operator: {name}. A filter knows $eq, $ne, $gt, $gte, $lt and $lte.")


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


def page_of_namespaces(
    namespaces: Iterable[tuple[str, ...]],
    conditions: Sequence[MatchCondition] | None,
    max_depth: int | None,
    limit: int,
    offset: int,
) -> list[tuple[str, ...]]:
    """Those namespaces that meet every condition, cut to `max_depth` labels, sorted, each once; of them a
    page."""
    found = (namespace for namespace in namespaces if matches_namespace(namespace, conditions or ()))
    cut = {namespace if max_depth is None else namespace[:max_depth] for namespace in found}
    return sorted(cut)[offset : offset + limit]
