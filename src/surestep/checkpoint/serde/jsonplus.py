"""The default serializer: msgpack with LangGraph's extension types, and an allowlist of what may be revived.

Rules
1. What comes back equals what was saved; a value that has no stored form is refused with its type and place.
2. Loading makes objects of known-safe types and of those the caller allowed, nothing else.
3. A stored object that can't be made (not allowed, class gone, fields changed, bytes damaged) is an error
   that says which class it is and what to do. Never None, never a dict in its place.
"""

from __future__ import annotations

import copy
import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NoReturn, TypeVar

import ormsgpack

from surestep.checkpoint.serde._hints import classes_in
from surestep.checkpoint.serde._objects import Extended, Model
from surestep.checkpoint.serde._revive import build, restore
from surestep.checkpoint.serde.base import (
    CorruptValueError,
    MissingTypeError,
    SerializationError,
    SerializerProtocol,
    TypeNotAllowedError,
    UnsavableTypeError,
)
from surestep.checkpoint.serde.event_hooks import emit_serde_event
from surestep.checkpoint.serde.types import _DeltaSnapshot
from surestep.checkpoint.serde.types_ext import (
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_DELTA_SNAPSHOT,
    EXT_METHOD_SINGLE_ARG,
    EXT_NUMPY_ARRAY,
    EXT_PYDANTIC_V2,
    OWN_MODULES,
    PLAIN,
    SAFE_TYPES,
    Pairs,
    TypeName,
    encoder_for,
    is_secret,
    type_names,
    wire_name,
)

__all__ = ("InvalidModuleError", "JsonPlusSerializer")

Self = TypeVar("Self", bound="JsonPlusSerializer")

AllowedMsgpackModules = Iterable[tuple[str, ...] | type]
AllowedJsonModules = Iterable[tuple[str, ...]]
_UNSET: Final[Any] = object()

_WRITE: Final = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_BIG_INT
)
_PACKED: Final = frozenset({dict, list, str, int, float, bool})  # what most values are
_TEXT_KEYS: Final = _WRITE & ~ormsgpack.OPT_NON_STR_KEYS
"""Other keys than texts are looked at first: see `_prepared`."""
_READ: Final = ormsgpack.OPT_NON_STR_KEYS
_KNOWN_CODES: Final = frozenset(range(EXT_DELTA_SNAPSHOT + 1))
_MAX_WARNED: Final = 1000
_BOUND: Final = ("_failure", "_default", "_default_inside", "_unpack_ext_hook")

_warned_unregistered_types: set[TypeName] = set()


class InvalidModuleError(TypeNotAllowedError):
    """An old JSON value names a class that `allowed_json_modules` doesn't list."""


def _default_allowlist() -> Literal[True] | None:
    """LANGGRAPH_STRICT_MSGPACK: unset or true is strict; 0, false, no revives every type, as LangGraph does
    by default."""
    return True if os.getenv("LANGGRAPH_STRICT_MSGPACK", "").lower() in ("0", "false", "no") else None


class JsonPlusSerializer(SerializerProtocol):
    """`(tag, bytes)` for nearly any Python value, and the value again. Reads and writes LangGraph's format.

    `allowed_msgpack_modules`: which types beyond the safe ones may be revived: `[(module, class), ...]` or
    classes; True for everything (then whoever can write to the database can have any class called); None
    for the safe ones. A graph adds the types of its own state schema when it is compiled.
    `allowed_json_modules`: the same for values written as JSON by LangGraph before 1.0, as `[("package",
    "module", "Class"), ...]`. `pickle_fallback`: pickle what msgpack can't take, and load pickles. Only for
    databases that nobody else writes to.
    """

    def __init__(
        self,
        *,
        pickle_fallback: bool = False,
        allowed_json_modules: AllowedJsonModules | Literal[True] | None = None,
        allowed_msgpack_modules: AllowedMsgpackModules | Literal[True] | None = _UNSET,
        __unpack_ext_hook__: Callable[[int, bytes], Any] | None = None,
    ) -> None:
        if allowed_msgpack_modules is _UNSET:
            allowed_msgpack_modules = _default_allowlist()
        self.pickle_fallback = pickle_fallback
        self._allowed_json_modules: set[tuple[str, ...]] | Literal[True] | None = (
            allowed_json_modules
            if allowed_json_modules is None or allowed_json_modules is True
            else {tuple(module) for module in allowed_json_modules}
        )
        self._classes: dict[TypeName, type | None] = {}
        self._allowed_msgpack_modules: set[TypeName] | Literal[True] | None = None
        if allowed_msgpack_modules is True:
            self._allowed_msgpack_modules = True
        elif allowed_msgpack_modules is not None:
            self._classes = type_names(allowed_msgpack_modules)
            self._allowed_msgpack_modules = set(self._classes)
        self._secrets: set[TypeName] | Literal[True] = self._allowed_msgpack_modules or set()
        self._custom_hook = __unpack_ext_hook__
        self._bind()

    def _bind(self) -> None:
        # Bound methods kept as attributes: they are made once and not per value, and belong to this copy.
        self._failure = threading.local()
        self._default: Callable[[Any], Any] = self._encode
        self._default_inside: Callable[[Any], Any] = self._encode_inside
        self._unpack_ext_hook: Callable[[int, bytes], Any] = self._custom_hook or self._decode

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in _BOUND}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind()

    def with_msgpack_allowlist(self: Self, extra_allowlist: AllowedMsgpackModules) -> Self:
        """A copy that revives these types too; the serializer itself when that changes nothing."""
        extra = type_names(extra_allowlist)
        if self._allowed_msgpack_modules is True or extra.items() <= self._classes.items():
            return self
        clone = copy.copy(self)
        clone._classes = {**self._classes, **extra}
        clone._allowed_msgpack_modules = set(clone._classes)
        return clone

    def with_secrets_allowed(self: Self) -> Self:
        """A copy that saves SecretStr and its like. For a serializer whose output is encrypted."""
        clone = copy.copy(self)
        clone._secrets = True
        return clone

    # ---- saving ----

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """How to store it: a tag (null, bytes, bytearray, msgpack, pickle) and bytes.

        Raises UnsavableTypeError, naming the type and where in the value it stands.
        """
        if obj is None:
            return "null", b""
        if type(obj) not in _PACKED:
            if isinstance(obj, bytes):
                return "bytes", obj
            if isinstance(obj, bytearray):
                return "bytearray", bytes(obj)
        try:
            return "msgpack", ormsgpack.packb(obj, self._default, _TEXT_KEYS)
        except (TypeError, ValueError, RecursionError) as error:
            return self._dumps_otherwise(obj, self._cause(error))

    def _dumps_otherwise(self, obj: Any, cause: BaseException) -> tuple[str, bytes]:
        if _can_be_prepared(cause):
            try:
                return "msgpack", self._pack(obj)
            except (TypeError, ValueError, RecursionError) as error:
                cause = self._cause(error)
        if self.pickle_fallback:
            import pickle

            return "pickle", pickle.dumps(obj)
        raise self._unsavable(obj, cause) from None

    def _pack(self, obj: Any, default: Callable[[Any], Any] | None = None) -> bytes:
        default = default or self._default
        try:
            return ormsgpack.packb(obj, default, _TEXT_KEYS)
        except TypeError as error:
            if not _can_be_prepared(error):
                raise
            return ormsgpack.packb(_prepared(obj), default, _WRITE)

    def _encode(self, obj: Any) -> Any:
        """What ormsgpack is to write for an object it doesn't know."""
        return self._encoded(obj, self._default)

    def _encode_inside(self, obj: Any) -> Any:
        """The same inside of a model."""
        return self._encoded(obj, self._default_inside)

    def _encoded(self, obj: Any, default: Callable[[Any], Any]) -> Any:
        try:
            cls = type(obj)
            encode: Any = encoder_for(cls)
            if encode is None:
                raise TypeError(cls)
            if is_secret(cls):
                self._check_secret(cls)
            kind = type(encode)
            if kind is Model:
                encode, default = encode.encode, self._default_inside
            elif kind is Extended:
                encode = self._choose(cls, encode, default is self._default_inside)
            code, payload = encode(obj)
            return payload if code == PLAIN else ormsgpack.Ext(code, self._pack(payload, default))
        except BaseException as error:
            self._remember(error)
            raise

    def _choose(self, cls: type, encoders: Extended, inside: bool) -> Any:
        """How to write an object of a class that extends a basic type."""
        module, name = key = wire_name(cls)
        allowed = self._allowed_msgpack_modules
        if key in SAFE_TYPES or allowed is True or (allowed and key in allowed) or self._stands_for(cls):
            return encoders.encode
        if inside:
            return encoders.flat
        raise UnsavableTypeError(
            f"A {module}.{name} would come back as a plain {encoders.base}. If that will do, put "
            f"{encoders.base}(value) into the state; to keep the class, name it in the state schema, or allow it: "
            f"JsonPlusSerializer(allowed_msgpack_modules=[({module!r}, {name!r})]).",
            module=module,
            name=name,
        )

    def _stands_for(self, cls: type) -> bool:
        """Whether one that is allowed as a class is a base of this one."""
        return issubclass(cls, tuple(filter(None, self._classes.values())))

    def _remember(self, error: BaseException) -> None:
        # ormsgpack replaces what a callback raises by an error of its own; the first one is the cause.
        if getattr(self._failure, "error", None) is None:
            self._failure.error = error

    def _cause(self, error: BaseException) -> BaseException:
        cause: BaseException | None = getattr(self._failure, "error", None)
        self._failure.error = None
        if cause is not None and not isinstance(cause, Exception):
            raise cause  # KeyboardInterrupt and its like
        return cause or error

    def _check_secret(self, cls: type) -> None:
        module, name = wire_name(cls)
        if self._secrets is True or (module, name) in self._secrets:
            return
        raise UnsavableTypeError(
            f"A {name} would be stored in clear text. Keep secrets out of the state (pass them in "
            "`context`), encrypt the checkpoints (EncryptedSerializer), or allow it in so many words: "
            f"JsonPlusSerializer(allowed_msgpack_modules=[({module!r}, {name!r})]).",
            module=module,
            name=name,
        )

    def _unsavable(self, obj: Any, cause: BaseException) -> SerializationError:
        path, culprit = self._find(obj, "value", 0)
        self._failure.error = None
        cls = type(culprit)
        module, name = cls.__module__, cls.__qualname__
        if isinstance(cause, UnsavableTypeError):
            return UnsavableTypeError(f"{cause} (at {path})", module=cause.module, name=cause.name)
        why = "" if type(cause) is TypeError and cause.args == (cls,) else f": {type(cause).__name__}: {cause}"
        return UnsavableTypeError(
            f"A value of type {module}.{name} (at {path}) can't be saved{why}. Put plain data into the "
            "state instead: basic types, dataclasses, pydantic models, enums, messages.",
            module=module,
            name=name,
        )

    def _find(self, obj: Any, path: str, depth: int) -> tuple[str, Any]:
        """The innermost part of a value that can't be packed, and the way to it."""
        children: Iterable[tuple[str, Any]] = ()
        if isinstance(obj, dict):
            children = ((f"{path}[{key!r}]", child) for key, child in obj.items())
        elif isinstance(obj, list | tuple | set | frozenset):
            children = ((f"{path}[{i}]", child) for i, child in enumerate(obj))
        else:
            names: Iterable[str] = getattr(type(obj), "__dataclass_fields__", ())
            names = names or getattr(type(obj), "model_fields", ())
            children = ((f"{path}.{name}", getattr(obj, name, None)) for name in names)
        if depth < 100:
            for place, child in children:
                try:
                    self._pack(child)
                except Exception:
                    return self._find(child, place, depth + 1)
        return path, obj

    # ---- loading ----

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value behind what `dumps_typed` gave.

        Raises TypeNotAllowedError, MissingTypeError or CorruptValueError (all SerializationError), and
        NotImplementedError for a tag it doesn't know.
        """
        tag, payload = data
        if tag == "msgpack":
            try:
                return ormsgpack.unpackb(payload, ext_hook=self._unpack_ext_hook, option=_READ)
            except ValueError as error:
                self._raise_load_error(error)
        if tag == "null":
            return None
        if tag == "bytes":
            return payload
        if tag == "bytearray":
            return bytearray(payload)
        if tag == "json":
            from surestep.checkpoint.serde._json import loads_json

            return loads_json(payload, self._allowed_json_modules)
        if tag == "pickle" and self.pickle_fallback:
            import pickle

            return pickle.loads(payload)
        hint = " Load it with JsonPlusSerializer(pickle_fallback=True)." if tag == "pickle" else ""
        raise NotImplementedError(f"Unknown serialization type: {tag}.{hint}")

    def _raise_load_error(self, error: ValueError) -> NoReturn:
        cause = self._cause(error)
        if isinstance(cause, SerializationError):
            raise cause from cause.__cause__
        if cause is error:
            raise CorruptValueError(f"The stored bytes are damaged or cut off: {error}") from None
        raise CorruptValueError(f"A stored object can't be read: {type(cause).__name__}: {cause}") from cause

    def _decode(self, code: int, data: bytes) -> Any:
        """The object behind an extension."""
        try:
            if code not in _KNOWN_CODES:
                raise CorruptValueError(f"Unknown extension code {code}: written by a newer version, or damaged bytes.")
            payload = ormsgpack.unpackb(data, ext_hook=self._decode, option=_READ)
            if code == EXT_DELTA_SNAPSHOT:
                return _DeltaSnapshot(payload)
            if code == EXT_NUMPY_ARRAY:
                return _array(payload)
            module, name, argument = payload[0], payload[1], payload[2]
            method = payload[3] if code == EXT_METHOD_SINGLE_ARG else None
            target = self._target(module, name, method)
            made = build(target, code, argument, (module, name))
            if len(payload) > 4 and code == EXT_PYDANTIC_V2:
                restore(made, argument, *payload[4:])
            return made
        except BaseException as error:
            self._remember(error)
            raise

    def _target(self, module: str, name: str, method: str | None) -> Any:
        """The class (or its method) that a stored object is made with."""
        key = (module, name)
        if key in SAFE_TYPES:
            target = _safe_target(module, name)
        else:
            target = self._classes.get(key) or self._allowed_target(module, name)
        if method is None:
            return target
        if method != "fromisoformat" or not issubclass(target, _safe_target("datetime", "datetime")):
            emit_serde_event({"kind": "msgpack_method_blocked", "module": module, "name": name, "method": method})
            raise TypeNotAllowedError(
                f"A stored value asks to call {module}.{name}.{method}. Stored values may only make "
                "objects, so this is refused whatever is allowed: somebody else wrote this database.",
                module=module,
                name=name,
            )
        return target.fromisoformat

    def _held_class(self, key: TypeName, loaded: type | None) -> type | None:
        """The class, if one that is allowed names it in its fields: worked out when somebody asks."""
        held = self.__dict__.get("_held")
        if held is None or held[0] is not self._classes:
            named = {cls or _loaded(*name) for name, cls in self._classes.items()}
            held = self._held = self._classes, type_names(classes_in(named) - named)
        found: type | None = held[1].get(key)
        return found or (loaded if loaded and issubclass(loaded, tuple(filter(None, held[1].values()))) else None)

    def _allowed_target(self, module: str, name: str) -> Any:
        allowed = self._allowed_msgpack_modules
        if allowed is True:
            emit_serde_event({"kind": "msgpack_unregistered_allowed", "module": module, "name": name})
            _warn_once(module, name)
        elif not allowed or (module, name) not in allowed:
            # A class that is allowed as a class stands for its subclasses, as in a type hint.
            loaded = _loaded(module, name)
            if loaded is not None and self._stands_for(loaded):
                return loaded
            held = self._held_class((module, name), loaded)
            if held is not None:
                return held
            emit_serde_event({"kind": "msgpack_blocked", "module": module, "name": name})
            raise TypeNotAllowedError(
                f"A stored value is of type {module}.{name}, which is not allowed to be revived. If it is "
                "yours, name it in the state schema of the graph, or allow it: "
                f"JsonPlusSerializer(allowed_msgpack_modules=[({module!r}, {name!r})]).",
                module=module,
                name=name,
            )
        return _import(module, name)


def _warn_once(module: str, name: str) -> None:
    if (module, name) in _warned_unregistered_types or len(_warned_unregistered_types) >= _MAX_WARNED:
        return
    _warned_unregistered_types.add((module, name))
    import logging

    logging.getLogger(__name__).warning(
        "Reviving the unregistered type %s.%s only because everything is allowed. Register it: "
        "allowed_msgpack_modules=[(%r, %r)]",
        *(module, name, module, name),
    )


_safe_targets: dict[TypeName, Any] = {}


def _safe_target(module: str, name: str) -> Any:
    target = _safe_targets.get((module, name))
    if target is None:
        # "pathlib._local" is where Python 3.13 puts the path classes.
        home = OWN_MODULES.get(module, "pathlib" if module == "pathlib._local" else module)
        target = _safe_targets[module, name] = _import(home, name)
    return target


def _loaded(module: str, name: str) -> type | None:
    """The class of that name if its module has been imported. Looks, and runs nothing of the module."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found if isinstance(found, type) else None


def _import(module: str, name: str) -> Any:
    import importlib

    try:
        target: Any = importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise MissingTypeError(
            f"A stored value is of type {module}.{name}, which doesn't exist here ({error}). Was it moved "
            "or renamed by a deploy, or defined inside a function? Keep the old name as an alias "
            f"({name.split('.')[-1]} = ...) in {module}, or name the class itself in the state schema.",
            module=module,
            name=name,
        ) from error
    return target


def _array(payload: list[Any]) -> Any:
    import numpy as np  # type: ignore[import-not-found, unused-ignore]

    dtype, shape, order, buffer = payload
    return np.frombuffer(buffer, dtype=np.dtype(dtype)).reshape(tuple(shape), order=order).copy(order="K")


def _can_be_prepared(error: BaseException) -> bool:
    """Whether ormsgpack stumbled over a text or over keys that `_prepared` makes another form of."""
    return "surrogates" in str(error) or "Dict key must be str" in str(error)


def _prepared(obj: Any) -> Any:
    """The same value, with something that encodes them in place of texts that hold lone surrogates and of dicts whose
    keys msgpack would take for others: an enum for its value, a date for its text."""
    if type(obj) is str:
        try:
            obj.encode()
        except UnicodeEncodeError:
            return ormsgpack.Ext(
                EXT_CONSTRUCTOR_POS_ARGS,
                ormsgpack.packb(["builtins", "str", [obj.encode("utf-8", "surrogatepass"), "utf-8", "surrogatepass"]]),
            )
        return obj
    if type(obj) is dict:
        if _are_plain_keys(obj):
            return {key: _prepared(value) for key, value in obj.items()}
        return Pairs([[_prepared(key), _prepared(value)] for key, value in obj.items()])
    if type(obj) is list:
        return [_prepared(value) for value in obj]
    return obj


def _are_plain_keys(keys: dict[Any, Any]) -> bool:
    kinds = set(map(type, keys))
    if kinds == {int} and -(1 << 63) <= min(keys) and max(keys) < 1 << 64:  # the usual ones
        return True
    return kinds <= _PLAIN_KEYS or all(map(_is_plain_key, keys))


def _is_plain_key(key: Any) -> bool:
    """Whether a key is in msgpack what it is in Python."""
    cls = type(key)
    if cls is str:
        return bool(key.isascii()) or not any("\ud800" <= char <= "\udfff" for char in key)
    if cls is int:
        return bool(-(1 << 63) <= key < 1 << 64)
    return cls in _PLAIN_KEYS or (cls is tuple and all(map(_is_plain_key, key)))


_PLAIN_KEYS: Final = frozenset({float, bool, type(None), bytes})
