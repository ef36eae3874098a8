"""Making an object from its stored parts, or saying why that is impossible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surestep.checkpoint.serde.base import SerializationError
from surestep.checkpoint.serde.types_ext import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
    TypeName,
)

_HASHED = (set, frozenset)
_MISSING = object()
_SEND = ("langgraph.types", "Send")  # the one class that is stored by position and takes a keyword


def build(target: Any, code: int, argument: Any, name: TypeName) -> Any:
    """The object that `target` makes of what was stored. Raises SerializationError naming the type."""
    try:
        if target is type and code != EXT_CONSTRUCTOR_SINGLE_ARG:
            raise TypeError("type() tells the type of a value here and makes no new ones")
        if code == EXT_CONSTRUCTOR_KW_ARGS:
            return _from_fields(target, argument)
        if code == EXT_PYDANTIC_V2:
            return _from_model(target, argument)
        if code == EXT_PYDANTIC_V1:
            return _from_model_v1(target, argument)
        if code == EXT_CONSTRUCTOR_POS_ARGS:
            if name == _SEND and len(argument) == 3:
                return target(argument[0], argument[1], timeout=argument[2])
            return target(*argument)
        if isinstance(target, type) and issubclass(target, _HASHED):
            return _from_elements(target, argument)
        return target(argument)
    except SerializationError:
        raise
    except Exception as error:
        module, cls = name
        raise SerializationError(
            f"A stored {module}.{cls} can't be rebuilt from what was saved: {type(error).__name__}: "
            f"{error}. Have its fields changed since? Give new fields a default and keep removed ones, or "
            "edit the state (update_state).",
            module=module,
            name=cls,
        ) from error


def _from_fields(cls: Any, fields: dict[str, Any]) -> Any:
    """A dataclass (or named tuple, or anything with such a constructor). A dataclass gets the very values that were
    saved, whatever it made of them in `__post_init__`."""
    known: Mapping[str, Any] = getattr(cls, "__dataclass_fields__", {})
    obj = cls(**{name: value for name, value in fields.items() if name not in known or known[name].init})
    for name in known.keys() & fields.keys():
        if getattr(obj, name, _MISSING) is not fields[name]:
            object.__setattr__(obj, name, fields[name])
    return obj


def _from_model(cls: Any, fields: Any) -> Any:
    """A pydantic v2 model. Saved without aliases, so read without them when the constructor wants them."""
    if not isinstance(fields, dict):
        return cls.model_validate(fields)  # a RootModel
    try:
        return cls(**fields)
    except Exception as error:
        refused = error
    try:
        return cls.model_validate(fields, by_alias=False, by_name=True)
    except Exception:
        # An object that was never valid (model_construct, changed in place) was saved as it was and comes
        # back as it was; one whose class has other fields by now is an error.
        known: Mapping[str, Any] = getattr(cls, "model_fields", {})
        required = {name for name, field in known.items() if field.is_required()}
        if not required <= fields.keys() or not (fields.keys() <= known.keys()):
            raise refused from None
        import logging

        logging.getLogger(__name__).warning("A stored %s.%s isn't valid: %s", cls.__module__, cls.__qualname__, refused)
        return cls.model_construct(**fields)


def restore(model: Any, fields: Any, private: dict[str, Any], exact: list[str]) -> None:
    """Give a model what its class didn't: private attributes, and fields as they were saved."""
    if private and model.__pydantic_private__ is not None:
        model.__pydantic_private__.update(private)
    if getattr(type(model), "__pydantic_root_model__", False):
        fields = {"root": fields}
    for name in exact:
        if name in model.__dict__:
            model.__dict__[name] = fields[name]


def _from_model_v1(cls: Any, fields: dict[str, Any]) -> Any:
    try:
        return cls(**fields)
    except Exception:
        known: Mapping[str, Any] = getattr(cls, "__fields__", {})
        if known.keys() != fields.keys() or not hasattr(cls, "construct"):
            raise
        return cls.construct(**fields)


def _from_elements(cls: Any, elements: list[Any]) -> Any:
    """A set. LangGraph writes tuples as lists, so a list in a set was a tuple."""
    try:
        return cls(elements)
    except TypeError:
        return cls([_hashable(element) for element in elements])


def _hashable(value: Any) -> Any:
    return tuple(_hashable(item) for item in value) if isinstance(value, list) else value
