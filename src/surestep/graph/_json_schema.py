"""JSON schemas of what a graph takes and gives. Pydantic makes them, imported when one is asked for."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from surestep.channels.base import BaseChannel
from surestep.graph._schema import ROOT, is_pydantic

if TYPE_CHECKING:
    from pydantic import BaseModel


def json_schema(schema: Any, channels: Mapping[str, BaseChannel[Any, Any, Any]], name: str) -> dict[str, Any]:
    """The JSON schema of `schema`: as it is for pydantic models and TypedDicts, else of its keys.

    `channels`: those that the schema declares. `name`: the title of a schema that is made of keys.
    """
    if is_pydantic(schema):
        return typing.cast("dict[str, Any]", schema.model_json_schema())
    if typing.is_typeddict(schema) or _is_extended_typeddict(schema):
        from pydantic import TypeAdapter

        return TypeAdapter(schema).json_schema()
    if set(channels) == {ROOT}:
        made = model_of(name, {ROOT: (channels[ROOT].UpdateType, None)}).model_json_schema()
        return {**made, "default": None}
    fields = {key: (channel.UpdateType, _default(schema, key, channel.UpdateType)) for key, channel in channels.items()}
    return model_of(name, fields).model_json_schema()


def context_json_schema(schema: Any) -> dict[str, Any] | None:
    """The JSON schema of a context; None without one. ValueError for what is not a class with keys."""
    if schema is None:
        return None
    if is_pydantic(schema):
        return typing.cast("dict[str, Any]", schema.model_json_schema())
    if dataclasses.is_dataclass(schema) or typing.is_typeddict(schema) or _is_extended_typeddict(schema):
        from pydantic import TypeAdapter

        return TypeAdapter(schema).json_schema()
    raise ValueError(f"Invalid context schema type: {schema}. Must be a BaseModel, TypedDict or dataclass.")


def model_of(name: str, fields: Mapping[str, tuple[Any, Any]]) -> type[BaseModel]:
    """A pydantic model of fields (type, default or `...`); a root model if the only one is "__root__"."""
    import pydantic

    make: Any = pydantic.create_model
    base: Any = pydantic.RootModel
    if fields.keys() == {ROOT}:
        return make(name, __base__=base[fields[ROOT][0]])  # type: ignore[no-any-return]
    return make(name, **fields)  # type: ignore[no-any-return]


def _is_extended_typeddict(schema: Any) -> bool:
    """Whether it is a TypedDict of typing_extensions, which is a class of its own on some Python versions."""
    return isinstance(schema, type) and hasattr(schema, "__total__") and issubclass(schema, dict)


def _default(schema: Any, key: str, hint: Any) -> Any:
    """The default of a dataclass field or an annotated class attribute, None for an optional one; else `...`."""
    fields = getattr(schema, "__dataclass_fields__", None)
    if fields is not None and key in fields:
        field = fields[key]
        if field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
        if field.default is not dataclasses.MISSING:
            return field.default
    elif isinstance(schema, type) and hasattr(schema, key):
        return getattr(schema, key)
    return None if _is_optional(hint) else ...


def _is_optional(hint: Any) -> bool:
    if typing.get_origin(hint) is typing.Annotated:
        hint = hint.__origin__
    return typing.get_origin(hint) in (typing.Union, types.UnionType) and type(None) in typing.get_args(hint)
