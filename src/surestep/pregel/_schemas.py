"""What a graph takes and gives, as pydantic models and JSON schemas. Pydantic is imported when one is asked for."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

    from surestep.channels.base import BaseChannel
    from surestep.types import RunnableConfig

    Channels = Mapping[str, BaseChannel[Any, Any, Any]]


class SchemaMethods:
    """The methods of a graph that say what it takes and gives. A graph of hand-made channels says it of those."""

    channels: dict[str, Any]
    context_schema: Any
    input_channels: str | Sequence[str]
    output_channels: str | Sequence[str]

    if TYPE_CHECKING:

        def get_name(self, suffix: str | None = None, *, name: str | None = None) -> str: ...

    @property
    def InputType(self) -> Any:
        """The type of what the graph takes; None where that is a dict of channels."""
        keys = self.input_channels
        return self.channels[keys].UpdateType if isinstance(keys, str) else None

    @property
    def OutputType(self) -> Any:
        """The type of what the graph gives; None where that is a dict of channels."""
        keys = self.output_channels
        return self.channels[keys].ValueType if isinstance(keys, str) else None

    @property
    def input_schema(self) -> type[BaseModel]:
        """A pydantic model of what the graph takes."""
        return self.get_input_schema()

    @property
    def output_schema(self) -> type[BaseModel]:
        """A pydantic model of what the graph gives."""
        return self.get_output_schema()

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """A pydantic model of what the graph takes; every key of a dict is optional."""
        if isinstance(self.input_channels, str):
            return root_model(self.get_name("Input"), self.InputType)
        named = _only(self.channels, self.input_channels)
        return model_of(self.get_name("Input"), {key: (ch.UpdateType, None) for key, ch in named.items()})

    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """A pydantic model of what the graph gives; every key of a dict is optional."""
        if isinstance(self.output_channels, str):
            return root_model(self.get_name("Output"), self.OutputType)
        named = _only(self.channels, self.output_channels)
        return model_of(self.get_name("Output"), {key: (ch.ValueType, None) for key, ch in named.items()})

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """The JSON schema of what the graph takes. Needs pydantic."""
        return self.get_input_schema(config).model_json_schema()

    def get_output_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """The JSON schema of what the graph gives. Needs pydantic."""
        return self.get_output_schema(config).model_json_schema()

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """The JSON schema of the context; None without a context schema.

        ValueError unless it is a pydantic model, a TypedDict or a dataclass.
        """
        schema = self.context_schema
        if schema is None:
            return None
        if not is_pydantic(schema) and not is_typed_dict(schema) and not dataclasses.is_dataclass(schema):
            raise ValueError(f"Invalid context schema type: {schema}. Must be a BaseModel, TypedDict or dataclass.")
        return schema_of_class(schema)

    def config_schema(self, *, include: Sequence[str] | None = None) -> type[BaseModel]:
        """Deprecated: `get_context_jsonschema` says what a caller may set.

        A pydantic model of the config: the context under `configurable`, and the settings named in `include`.
        """
        _warn_of_config_schema("config_schema", "for the relevant schema instead")
        return self._config_model(include or ())

    def get_config_jsonschema(self, *, include: Sequence[str] | None = None) -> dict[str, Any]:
        """Deprecated: the JSON schema of what `config_schema` returns."""
        _warn_of_config_schema("get_config_jsonschema", "instead")
        return self._config_model(include or ()).model_json_schema()

    def _config_model(self, include: Sequence[str]) -> type[BaseModel]:
        from uuid import UUID

        from surestep.types import RunnableConfig

        hints = typing.get_type_hints(RunnableConfig, localns={"UUID": UUID})
        fields: dict[str, tuple[Any, Any]] = {}
        if self.context_schema is not None:
            fields["configurable"] = self.context_schema, None
        fields |= {key: (hints[key], None) for key in hints if key in include and key != "configurable"}
        return model_of(self.get_name("Config"), fields)


def _warn_of_config_schema(method: str, what_for: str) -> None:
    from surestep.warnings import LangGraphDeprecatedSinceV10

    warnings.warn(
        f"`{method}` is deprecated. Use `get_context_jsonschema` {what_for}.", LangGraphDeprecatedSinceV10, stacklevel=3
    )


def keyed_json_schema(schema: Any, channels: Channels, name: str) -> dict[str, Any]:
    """The JSON schema of a state: as it is for pydantic models and TypedDicts, else made of its channels.

    `name`: the title of a schema that is made.
    """
    if is_pydantic(schema) or is_typed_dict(schema):
        return schema_of_class(schema)
    fields = {key: (ch.UpdateType, _default(schema, key, ch.UpdateType)) for key, ch in channels.items()}
    return model_of(name, fields).model_json_schema()


def schema_of_class(schema: Any) -> dict[str, Any]:
    """The JSON schema of a pydantic model, a TypedDict or a dataclass."""
    if is_pydantic(schema):
        return typing.cast("dict[str, Any]", schema.model_json_schema())
    from pydantic import TypeAdapter

    return TypeAdapter(readable(schema)).json_schema()


def readable(schema: Any) -> Any:
    """A schema as pydantic reads it: before Python 3.12 it wants the TypedDict of typing_extensions. Messages are
    spelled out, so that a reader of the JSON schema sees that they are some."""
    if not is_typed_dict(schema):
        return schema
    hints = typing.get_type_hints(schema, include_extras=True)
    spelled = {key: _spelled_out(hint) for key, hint in hints.items()}
    if spelled == hints and not (sys.version_info < (3, 12) and typing.is_typeddict(schema)):
        return schema
    from typing_extensions import TypedDict

    make: Any = TypedDict
    twin = make(schema.__name__, spelled, total=schema.__total__)
    twin.__doc__, twin.__module__ = schema.__doc__, schema.__module__
    return twin


def _spelled_out(hint: Any) -> Any:
    messages = sys.modules.get("surestep.graph.message")  # who has not loaded it has no messages
    return hint if messages is None else messages.spelled_out(hint)


def model_of(name: str, fields: Mapping[str, tuple[Any, Any]]) -> type[BaseModel]:
    """A pydantic model of fields: key -> (type, default), the default `...` where there is none."""
    import pydantic

    make: Any = pydantic.create_model
    return make(name, **{key: (_spelled_out(hint), value) for key, (hint, value) in fields.items()})  # type: ignore[no-any-return]


def root_model(name: str, hint: Any) -> type[BaseModel]:
    """A pydantic model of one value of the type `hint`."""
    import pydantic

    make, base = typing.cast(Any, pydantic.create_model), typing.cast(Any, pydantic.RootModel)
    return make(name, __base__=base[readable(hint)])  # type: ignore[no-any-return]


def is_pydantic(schema: Any) -> bool:
    """Whether `schema` is a pydantic model class, of v2 or v1. Pydantic is not imported to find out."""
    if not isinstance(schema, type):
        return False
    return hasattr(schema, "model_fields") or (hasattr(schema, "__fields__") and hasattr(schema, "parse_obj"))


def is_typed_dict(schema: Any) -> bool:
    """Whether `schema` is a TypedDict, of typing or of typing_extensions."""
    return typing.is_typeddict(schema) or (
        isinstance(schema, type) and issubclass(schema, dict) and hasattr(schema, "__total__")
    )


def _only(channels: Channels, keys: Iterable[str]) -> Channels:
    return {key: channels[key] for key in keys}


def _default(schema: Any, key: str, hint: Any) -> Any:
    """The default of a dataclass field, None where the type allows it; else `...`."""
    fields = getattr(schema, "__dataclass_fields__", None)
    if fields is not None and key in fields:
        field = fields[key]
        if field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
        if field.default is not dataclasses.MISSING:
            return field.default
    return None if _is_optional(hint) else ...


def _is_optional(hint: Any) -> bool:
    if typing.get_origin(hint) is typing.Annotated:
        hint = hint.__origin__
    return typing.get_origin(hint) in (typing.Union, types.UnionType) and type(None) in typing.get_args(hint)
