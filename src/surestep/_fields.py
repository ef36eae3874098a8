"""Reading the declared attributes of an object that a node returned as its update."""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache
from typing import Any

_ABSENT: Any = object()


@lru_cache(maxsize=1024)
def annotated_keys(cls: Any) -> tuple[str, ...]:
    """Names annotated in the bodies of `cls` and its bases, each once, bases first."""
    found: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        annotations = vars(base).get("__annotations__")
        if isinstance(annotations, dict):  # of `type` itself it is a descriptor
            found.update(dict.fromkeys(annotations))
    return tuple(found)


def attribute_updates(update: Any, keys: Container[str] | None = None) -> list[tuple[str, Any]] | None:
    """(name, value) for each annotated attribute that `update` has, restricted to `keys` when given; None
    when its class annotates nothing.

    Of a pydantic model a field that is None counts only when it was set, or when its default is something
    else: an unset optional field must not wipe the state.
    """
    cls: Any = type(update)
    names = annotated_keys(cls)
    if not names:
        return None
    fields = getattr(cls, "__pydantic_fields__", None)
    fields_set = getattr(update, "model_fields_set", ()) if fields is not None else ()
    writes = []
    for name in names:
        if keys is not None and name not in keys:
            continue
        value = getattr(update, name, _ABSENT)
        if value is _ABSENT:
            continue
        if value is None and fields is not None and name not in fields_set:
            field = fields.get(name)
            if field is not None and field.default is None:
                continue
        writes.append((name, value))
    return writes
