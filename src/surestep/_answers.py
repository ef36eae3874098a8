"""Schemas of answers: what the caller of `interrupt(value, response_schema=...)` asks for, and holding an
answer to it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from surestep.errors import mark_invalid_resume

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def json_schema_of(schema: dict[str, Any] | type | None) -> dict[str, Any] | None:
    """The JSON schema that a question carries: a dict as it is, that of a pydantic model, TypedDict or
    dataclass."""
    if schema is None or isinstance(schema, dict):
        return schema
    return _adapter(schema).json_schema()


def parse_answer(schema: dict[str, Any] | type | None, value: Any) -> Any:
    """The answer as an instance of `schema`; as it is when there is none, or only a JSON schema.

    Raises pydantic.ValidationError, which `errors.is_invalid_resume` knows.
    """
    if schema is None or isinstance(schema, dict):
        return value
    from pydantic import ValidationError

    try:
        return _adapter(schema).validate_python(value)
    except ValidationError as error:
        mark_invalid_resume(error)
        raise


@lru_cache(maxsize=256)
def _adapter(schema: Any) -> TypeAdapter[Any]:
    try:
        from pydantic import TypeAdapter
    except ImportError as error:
        raise ImportError(
            f"interrupt(response_schema={getattr(schema, '__name__', schema)}) needs pydantic to check the "
            "answer: pip install pydantic, or give a JSON schema as a dict, which is passed on unchecked."
        ) from error
    return TypeAdapter(schema)
