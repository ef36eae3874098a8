"""Values that LangGraph wrote as JSON before its version 1.0. Only read, never written."""

from __future__ import annotations

import json
from typing import Any, Literal

from surestep.checkpoint.serde.base import CorruptValueError, SerializationError
from surestep.checkpoint.serde.types_ext import SAFE_TYPES


def loads_json(payload: bytes, allowed: set[tuple[str, ...]] | Literal[True] | None) -> Any:
    """The value; objects in it only of safe or allowed types. Raises a SerializationError otherwise."""
    try:
        return json.loads(payload, object_hook=lambda found: revive(found, allowed))
    except ValueError as error:
        if isinstance(error, SerializationError):
            raise
        raise CorruptValueError(f"The stored JSON is damaged or cut off: {error}") from None


def revive(found: dict[str, Any], allowed: set[tuple[str, ...]] | Literal[True] | None) -> Any:
    """The object that a JSON object stands for, or the dict itself when it is just a dict."""
    if found.get("type") != "constructor" or not isinstance(found.get("id"), list):
        return found
    if found.get("lc") == 2:
        return _construct(found, allowed)
    if found.get("lc") == 1:
        from langchain_core.load.load import Reviver

        return Reviver(allowed_objects="core")(found)
    return found


def _construct(found: dict[str, Any], allowed: set[tuple[str, ...]] | Literal[True] | None) -> Any:
    from surestep.checkpoint.serde._revive import build
    from surestep.checkpoint.serde.jsonplus import InvalidModuleError, _import, _safe_target

    *modules, name = found["id"]
    module = ".".join(modules)
    if (module, name) in SAFE_TYPES:
        target = _safe_target(module, name)
    elif allowed is True or (allowed and (tuple(found["id"]) in allowed or (module, name) in allowed)):
        target = _import(module, name)
    else:
        raise InvalidModuleError(
            f"A stored JSON value is of type {module}.{name}, which is not allowed to be revived. If it is "
            f"yours, allow it: JsonPlusSerializer(allowed_json_modules=[{tuple(found['id'])!r}]).",
            module=module,
            name=name,
        )
    if isinstance(target, type) and issubclass(target, BaseException):
        return None  # LangGraph never revived exceptions from JSON
    # `method` is left alone: a stored value may make an object, not call what it likes.
    args, kwargs = found.get("args") or [], found.get("kwargs") or {}
    return build(lambda _: target(*args, **kwargs), 0, None, (module, name))
