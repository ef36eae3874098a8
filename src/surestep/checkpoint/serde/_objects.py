"""How objects are written that more than one form could stand for.

Rules
1. A model is written by its fields as they are, never by its own `model_dump`, which changes values, leaves some out
   and turns what it holds into dicts. What its class makes of a field when it is made again (an int where a float was
   declared, the result of a validator) is not what was saved: the names of such fields are written too, and they get
   the values that were saved.
2. An exception is written as its class and arguments, and refused if that doesn't make an equal one. Its traceback, its
   cause and its notes are not part of it.
3. An object of a class that extends a basic type keeps its class if that class is allowed. Else it is refused; but
   inside of a model it becomes the basic type, for the model's own types decide what it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from surestep.checkpoint.serde._revive import build
from surestep.checkpoint.serde.base import UnsavableTypeError
from surestep.checkpoint.serde.types_ext import (
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_PYDANTIC_V2,
    SAFE_TYPES,
    Encoded,
    Encoder,
    TypeName,
    encoder_for,
    wire_name,
)


class Model(NamedTuple):
    """An encoder of models: what they hold is written by the rules for the inside of models."""

    encode: Encoder


class Extended(NamedTuple):
    """Two encoders for a class that extends a basic type: with its class, and as the basic type."""

    encode: Encoder
    flat: Encoder
    base: str


# ---- models ----


def model(cls: type) -> Model:
    """Of a pydantic v2 model, or of something else with a `model_dump`."""
    module, name = wire_name(cls)
    declared: Any = getattr(cls, "model_fields", None)
    if declared is None or not hasattr(cls, "__pydantic_private__"):
        return Model(lambda obj: (EXT_PYDANTIC_V2, [module, name, obj.model_dump(), "model_validate_json"]))
    names = tuple(declared)
    root = getattr(cls, "__pydantic_root_model__", False)
    trusted = (module, name) in SAFE_TYPES

    def encode(obj: Any) -> Encoded:
        held = obj.__dict__
        fields: Any = {key: held[key] for key in names if key in held}
        if obj.__pydantic_extra__:
            fields.update(obj.__pydantic_extra__)
        if root:
            fields = fields["root"]
        payload = [module, name, fields, "model_validate_json"]
        if not trusted:
            private, exact = _not_made_again(cls, obj, fields, (module, name))
            if private or exact:
                payload += private, exact
        return EXT_PYDANTIC_V2, payload

    return Model(encode)


def _not_made_again(cls: Any, obj: Any, fields: Any, name: TypeName) -> tuple[dict[str, Any], list[str]]:
    """The private attributes, and the names of the fields, that a new object made of these fields doesn't have as they
    are. Refuses what can't be made of them at all."""
    try:
        again = build(cls, EXT_PYDANTIC_V2, fields, name)
    except Exception as error:
        module, cls_name = name
        raise UnsavableTypeError(
            f"A {module}.{cls_name} is saved as its fields, and its class doesn't accept them "
            f"({type(error).__name__}: {error}). Put plain data into the state instead.",
            module=module,
            name=cls_name,
        ) from error
    held, made = obj.__dict__, again.__dict__
    exact = [key for key in cls.model_fields if key in held and not _same(held[key], made.get(key, _MISSING))]
    mine, fresh = obj.__pydantic_private__ or {}, again.__pydantic_private__ or {}
    private = {
        key: value
        for key, value in mine.items()
        if key not in fresh or not (_same(value, fresh[key]) or _makes_its_own(value, fresh[key]))
    }
    return private, exact


_MISSING: Final = object()


def _makes_its_own(value: Any, fresh: Any) -> bool:
    """Whether a private attribute is something like a lock or a client, which each new object makes for itself."""
    return type(value) is type(fresh) and type(value) not in _NATIVE and encoder_for(type(value)) is None


_HOLDERS: Final = frozenset({list, dict, tuple, set, frozenset})
_NATIVE: Final = frozenset({str, bytes, int, float, bool, list, dict, type(None)})


def _same(left: Any, right: Any) -> bool:
    if left is right:
        return True
    try:
        if type(left) is not type(right) or not bool(left == right or (left != left and right != right)):
            return False
        return type(left) not in _HOLDERS or repr(left) == repr(right)  # for [1] equals [1.0]
    except Exception:  # arrays, for example
        return False


# ---- exceptions ----


def exception(cls: type) -> Encoder:
    """Of an exception: rule 2."""
    module, name = wire_name(cls)

    def encode(obj: BaseException) -> Encoded:
        args = _arguments(obj)
        try:
            again: Any = cls(*args)
            equal = again.args == obj.args and _attributes(again) == _attributes(obj)
        except Exception:
            equal = False
        if not equal:
            raise UnsavableTypeError(
                f"A {module}.{name} can't be saved: an exception is stored as its class and arguments, and "
                f"{name}(*args) doesn't make an equal one. Put str(error), or what you need of it, into the state.",
                module=module,
                name=name,
            )
        return EXT_CONSTRUCTOR_POS_ARGS, [module, name, list(args)]

    return encode


def _arguments(obj: BaseException) -> tuple[Any, ...]:
    made: Any = obj.__reduce__()
    return made[1] if isinstance(made, tuple) and made[0] is type(obj) else obj.args


def _attributes(obj: BaseException) -> dict[str, Any]:
    return {key: value for key, value in vars(obj).items() if key != "__notes__"}


# ---- numbers of numpy ----


def numpy_scalar(cls: type) -> Encoder | None:
    """Of a single number, text or time of numpy; None for others."""
    name = {"bool": "bool_"}.get(cls.__name__, cls.__name__)  # what both numpy 1 and 2 call it
    if ("numpy", name) not in SAFE_TYPES:
        return None
    if name in ("datetime64", "timedelta64"):
        return lambda obj: (EXT_CONSTRUCTOR_POS_ARGS, ["numpy", name, _time(obj)])
    return lambda obj: (EXT_CONSTRUCTOR_SINGLE_ARG, ["numpy", name, obj.item()])


def _time(obj: Any) -> list[Any]:
    import numpy as np  # type: ignore[import-not-found, unused-ignore]

    unit, count = np.datetime_data(obj.dtype)
    value = "NaT" if np.isnat(obj) else int(obj.astype("int64"))
    return [value, unit if count == 1 else f"{count}{unit}"]


# ---- what extends a basic type ----


def extended(cls: type, base: str, flat: Encoder, whole: Callable[[Any], Any]) -> Encoder | Extended:
    """Of a class that extends `base`, by its stored class: rule 3."""
    module, name = wire_name(cls)
    if (module, name) == ("builtins", base):
        return flat
    return Extended(lambda obj: (EXT_CONSTRUCTOR_SINGLE_ARG, [module, name, whole(obj)]), flat, base)
