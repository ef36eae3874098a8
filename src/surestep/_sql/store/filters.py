"""A filter as far as a database can be asked: what it leaves out does not match, what it finds may not.

`surestep.store.base._match` decides. A database compares text and numbers in its own way, and reads JSON in
its own way; so it is asked only for what is sure to contain everything that matches.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite
from typing import Any

from surestep._sql.store.dialect import Condition, Fields, Path, can_ask_for, sql_of
from surestep.store.base._match import is_comparison

# Numbers this near to each other may be the same to a database.
SLOP = 1e-9


def narrowed(fields: Fields, filter: Mapping[str, Any] | None, above: Path = ()) -> list[Condition]:
    """Conditions that every item meets that `filter` matches."""
    found = []
    for field, expected in (filter or {}).items():
        paths = [(*above, field)]
        if "." in field:
            paths.append((*above, *field.split(".")))
        either = [_condition(fields, path, expected) for path in paths]
        known = [condition for condition in either if condition is not None]
        if len(known) == len(either):
            sql = " OR ".join(sql for sql, _ in known)
            found.append((f"({sql})", [param for _, params in known for param in params]))
    return found


def _condition(fields: Fields, path: Path, expected: Any) -> Condition | None:
    if not isinstance(expected, dict):
        return _equal(fields, path, expected)
    if is_comparison(expected):
        parts = [_compared(fields, path, name, operand) for name, operand in expected.items()]
        known = [part for part in parts if part is not None]
    else:
        known = narrowed(fields, expected, path)
    return sql_of(known) if known else None


def _equal(fields: Fields, path: Path, expected: Any) -> Condition | None:
    if expected is None:
        return fields.missing(path)
    if _is_text(expected):
        return fields.is_text(path, "=", str.__str__(expected))
    low, high = _about(expected)
    bounds = (fields.is_number(path, ">=", low), fields.is_number(path, "<=", high)) if isfinite(low) else ()
    known = [bound for bound in bounds if bound is not None]
    return sql_of(known) if known else None


def _compared(fields: Fields, path: Path, name: str, operand: Any) -> Condition | None:
    if name == "$eq":
        return None if isinstance(operand, dict) else _equal(fields, path, operand)
    if name == "$ne":
        if operand is None:
            return fields.present(path)
        return fields.is_other_than(path, str.__str__(operand)) if _is_text(operand) else None
    sign = ">=" if name in ("$gt", "$gte") else "<="
    if _is_text(operand):
        return fields.is_text(path, sign, str.__str__(operand))
    low, high = _about(operand)
    return fields.is_number(path, sign, low if sign == ">=" else high) if isfinite(low) else None


def _is_text(operand: Any) -> bool:
    return isinstance(operand, str) and can_ask_for(operand)


def _about(number: Any) -> tuple[float, float]:
    """The numbers between which lies what may equal `number`; infinite where that is no use."""
    try:
        exact = float(number) if isinstance(number, (int, float)) else inf
    except OverflowError:
        exact = inf
    low, high = exact - abs(exact) * SLOP, exact + abs(exact) * SLOP
    return (low, high) if isfinite(low) and isfinite(high) else (inf, inf)
