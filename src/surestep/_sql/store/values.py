"""Values of items as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time
from enum import Enum
from typing import Any
from uuid import UUID


def dumps(value: Mapping[str, Any], *, in_jsonb: bool) -> str:
    """`value` as JSON. Tuples become lists; times, UUIDs, enums and dataclasses what they say as text or
    values.

    Raises TypeError for anything else that JSON has no form for, with the place it stands at, and ValueError
    for numbers that are none, and for the character NUL where the database can't keep it.
    """
    text = json.dumps(_plain(value, "value", in_jsonb), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _EXPONENT.sub(_written_out, text) if in_jsonb and "e+" in text else text


# A number with an exponent; text is stepped over.
_EXPONENT = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9.]+e\+[0-9]+')


def _written_out(found: re.Match[str]) -> str:
    """The number without exponent, with a point: PostgreSQL would give 1e22 back as a whole number."""
    return found[0] if found[0].startswith('"') else f"{int(float(found[0]))}.0"


def _plain(value: Any, at: str, in_jsonb: bool) -> Any:
    kind = type(value)
    if kind is str:
        if "\0" in value and in_jsonb:
            raise ValueError(
                f"{at} has the character NUL in it, which PostgreSQL can't keep in JSON. Take it out first."
            )
        return value
    if value is None or kind is bool or kind is int or kind is float:
        return value
    if isinstance(value, Mapping):
        return {_key(key, at): _plain(part, f"{at}[{key!r}]", in_jsonb) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part, f"{at}[{i}]", in_jsonb) for i, part in enumerate(value)]
    return _plain(_said(value, at), at, in_jsonb)


def _key(key: Any, at: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{at} has the key {key!r} of type {type(key).__name__}; keys of stored values must be text.")
    return key


def _said(value: Any, at: str) -> Any:
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    for kind in (str, int, float):  # a subclass
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(
        f"{at} is a {type(value).__name__}, and items of this store are JSON. Store what it was made from instead: "
        "text, numbers, lists and dicts."
    )


def moment(value: datetime | str) -> datetime:
    """A stored time, in UTC."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
