"""The extension types of the wire format: one table for writing, one for what may be read.

A value that msgpack has no form for becomes an extension: a code and a payload that is msgpack again. The
codes and payloads are LangGraph's, so each engine reads what the other wrote; our own types go by
LangGraph's module names.

| code | payload |
| --- | --- |
| 0 | module, name, the one argument |
| 1 | module, name, positional arguments |
| 2 | module, name, keyword arguments |
| 3 | module, name, the one argument, method |
| 4, 5 | module, name, fields (a pydantic model of v1, v2) |
| 6 | dtype, shape, order, bytes (a numpy array) |
| 7 | the value of a delta channel |

LangGraph turns tuples into lists, and flattens or refuses a few others. We write those as constructor calls
it knows how to make: what comes back here is equal to what was saved and of the same type.
"""

from __future__ import annotations

import builtins
import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from surestep.checkpoint.serde.base import UnsavableTypeError
from surestep.checkpoint.serde.types import _DeltaSnapshot

__all__ = ("OWN_MODULES", "SAFE_TYPES", "encoder_for", "is_secret", "type_names", "wire_name")

EXT_CONSTRUCTOR_SINGLE_ARG: Final = 0
EXT_CONSTRUCTOR_POS_ARGS: Final = 1
EXT_CONSTRUCTOR_KW_ARGS: Final = 2
EXT_METHOD_SINGLE_ARG: Final = 3
EXT_PYDANTIC_V1: Final = 4
EXT_PYDANTIC_V2: Final = 5
EXT_NUMPY_ARRAY: Final = 6
EXT_DELTA_SNAPSHOT: Final = 7
PLAIN: Final = -1  # not an extension: the payload itself is written

TypeName = tuple[str, str]
Encoded = tuple[int, Any]
Encoder = Callable[[Any], Encoded]

# Stored module name → where the class lives here.
OWN_MODULES: Final = {"langgraph.types": "surestep.types", "langgraph.store.base": "surestep.store.base"}
_STORED_MODULES: Final = {ours: stored for stored, ours in OWN_MODULES.items()}

_SAFE_BY_MODULE: Final[dict[str, tuple[str, ...]]] = {
    "builtins": (
        *("set", "frozenset", "tuple", "complex", "range", "int", "str", "type", "dict"),
        *(name for name, cls in vars(builtins).items() if isinstance(cls, type) and issubclass(cls, BaseException)),
    ),
    "collections": ("deque", "OrderedDict", "Counter", "defaultdict"),
    "datetime": ("datetime", "date", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "ipaddress": (
        *("IPv4Address", "IPv4Interface", "IPv4Network"),
        *("IPv6Address", "IPv6Interface", "IPv6Network"),
    ),
    "numpy": (
        *("bool_", "int8", "int16", "int32", "int64", "longlong", "intc"),
        *("uint8", "uint16", "uint32", "uint64", "ulonglong", "uintc"),
        *("float16", "float32", "float64", "complex64", "complex128", "str_", "bytes_", "datetime64", "timedelta64"),
    ),
    "pathlib": ("Path", "PosixPath", "WindowsPath", "PurePath", "PurePosixPath", "PureWindowsPath"),
    "pathlib._local": ("Path", "PosixPath", "WindowsPath"),
    "pydantic.networks": (
        *("AnyUrl", "AnyHttpUrl", "HttpUrl", "FileUrl", "FtpUrl", "AnyWebsocketUrl", "WebsocketUrl"),
        *("PostgresDsn", "RedisDsn", "MongoDsn", "MySQLDsn", "AmqpDsn", "KafkaDsn", "NatsDsn"),
    ),
    "re": ("compile",),
    "uuid": ("UUID",),
    "surestep.effects": ("Abort", "Approve", "Completed", "Reject", "Retry"),
    "zoneinfo": ("ZoneInfo",),
    "langchain_core.messages.base": ("BaseMessage", "BaseMessageChunk", "TextAccessor"),
    "langchain_core.runnables.utils": ("AddableDict",),
    "langchain_core.messages.human": ("HumanMessage", "HumanMessageChunk"),
    "langchain_core.messages.ai": ("AIMessage", "AIMessageChunk"),
    "langchain_core.messages.system": ("SystemMessage", "SystemMessageChunk"),
    "langchain_core.messages.chat": ("ChatMessage", "ChatMessageChunk"),
    "langchain_core.messages.tool": ("ToolMessage", "ToolMessageChunk"),
    "langchain_core.messages.function": ("FunctionMessage", "FunctionMessageChunk"),
    "langchain_core.messages.modifier": ("RemoveMessage",),
    "langchain_core.documents.base": ("Document",),
    "langgraph.types": (
        *("Send", "Command", "Interrupt", "Overwrite", "TimeoutPolicy", "RetryPolicy"),
        *("StateSnapshot", "StateUpdate", "PregelTask", "GraphOutput"),
    ),
    "langgraph.store.base": (
        *("Item", "SearchItem", "GetOp", "PutOp", "SearchOp", "ListNamespacesOp", "MatchCondition"),
    ),
}

SAFE_TYPES: Final[frozenset[TypeName]] = frozenset(
    (module, name) for module, names in _SAFE_BY_MODULE.items() for name in names
)
"""What every serializer revives: plain data, messages and our own types. Nothing here acts when it is made.
"""


def wire_name(cls: type) -> TypeName:
    """The (module, name) that a class is stored under. A class inside a class keeps its dotted name."""
    module, name = cls.__module__, cls.__qualname__
    if "<locals>" in name:
        name = cls.__name__
    return _STORED_MODULES.get(module, module), name


def type_names(extra: Iterable[tuple[str, ...] | type]) -> dict[TypeName, type | None]:
    """An allowlist as stored names. Given as a class (not as a name), a type need not be importable."""
    found: dict[TypeName, type | None] = {}
    for item in extra:
        if isinstance(item, type):
            found[item.__module__, item.__name__] = item
            found[wire_name(item)] = item
        else:
            *modules, name = item
            found.setdefault((_STORED_MODULES.get(".".join(modules), ".".join(modules)), name), None)
    return found


# ---- writing: one small function per kind of object ----


def _single(cls: type, convert: Callable[[Any], Any]) -> Encoder:
    module, name = wire_name(cls)
    return lambda obj: (EXT_CONSTRUCTOR_SINGLE_ARG, [module, name, convert(obj)])


def _positional(cls: type, convert: Callable[[Any], Iterable[Any]]) -> Encoder:
    module, name = wire_name(cls)
    return lambda obj: (EXT_CONSTRUCTOR_POS_ARGS, [module, name, list(convert(obj))])


def _keywords(cls: type, convert: Callable[[Any], dict[str, Any]]) -> Encoder:
    module, name = wire_name(cls)
    return lambda obj: (EXT_CONSTRUCTOR_KW_ARGS, [module, name, convert(obj)])


def _plain(convert: Callable[[Any], Any]) -> Encoder:
    return lambda obj: (PLAIN, convert(obj))


def _delta(_: type) -> Encoder:
    return lambda obj: (EXT_DELTA_SNAPSHOT, obj.value)


def _deque(cls: type) -> Encoder:
    module, name = wire_name(cls)

    def encode(obj: Any) -> Encoded:
        if obj.maxlen is None:
            return EXT_CONSTRUCTOR_SINGLE_ARG, [module, name, list(obj)]
        return EXT_CONSTRUCTOR_POS_ARGS, [module, name, [list(obj), obj.maxlen]]

    return encode


def _datetime(cls: type) -> Encoder:
    module, name = wire_name(cls)
    return lambda obj: (EXT_METHOD_SINGLE_ARG, [module, name, obj.isoformat(), "fromisoformat"])


def _time(cls: type) -> Encoder:
    fields = ("hour", "minute", "second", "microsecond", "tzinfo", "fold")
    return _keywords(cls, lambda obj: {field: getattr(obj, field) for field in fields})


def _timezone(cls: type) -> Encoder:
    return _positional(cls, lambda obj: obj.__getinitargs__())


def _send(cls: type) -> Encoder:
    def args(obj: Any) -> list[Any]:
        timeout = getattr(obj, "timeout", None)
        return [obj.node, obj.arg] if timeout is None else [obj.node, obj.arg, timeout]

    return _positional(cls, args)


_FACTORIES: Final[frozenset[type]] = frozenset({list, dict, set, tuple, int, float, str, bool, bytes})


def _defaultdict(cls: type) -> Encoder:
    """The default factory is written as `type(<its empty value>)`, a call that every reader can make."""
    module, name = wire_name(cls)

    def encode(obj: Any) -> Encoded:
        factory = obj.default_factory
        if factory is not None and factory not in _FACTORIES:
            raise UnsavableTypeError(
                f"A defaultdict whose default factory is {factory!r} can't be saved: a function has no "
                "stored form. Put dict(value) into the state, or use a builtin type as the factory.",
                module=module,
                name=name,
            )
        return EXT_CONSTRUCTOR_POS_ARGS, [module, name, [factory and _TypeOf(factory), dict(obj)]]

    return encode


class _TypeOf:
    """A builtin type on its way into a payload."""

    __slots__ = ("cls",)

    def __init__(self, cls: type) -> None:
        self.cls = cls


def _array(cls: type) -> Encoder:
    def encode(obj: Any) -> Encoded:
        if obj.dtype.hasobject or obj.dtype.names or hasattr(obj, "mask"):
            raise UnsavableTypeError(
                "A numpy array of Python objects, with named fields or with a mask can't be saved. Use "
                "plain numeric arrays or lists.",
                module="numpy",
                name="ndarray",
            )
        flags = obj.flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
        return EXT_NUMPY_ARRAY, [obj.dtype.str, list(obj.shape), order, obj.tobytes(order=order)]

    return encode


def _tuple(obj: Any) -> Encoded:
    return EXT_CONSTRUCTOR_SINGLE_ARG, ["builtins", "tuple", list(obj)]


def _pattern(_: type) -> Encoder:
    return lambda obj: (EXT_CONSTRUCTOR_POS_ARGS, ["re", "compile", [obj.pattern, obj.flags]])


# The first class of an object's MRO that stands here decides. Names, so that nothing has to be imported.
_BY_BASE: Final[dict[TypeName, Callable[[type], Encoder]]] = {
    ("surestep.checkpoint.serde.types", "_DeltaSnapshot"): _delta,
    ("langgraph.checkpoint.serde.types", "_DeltaSnapshot"): _delta,
    ("surestep.types", "Send"): _send,
    ("langgraph.types", "Send"): _send,
    ("pathlib", "PurePath"): lambda cls: _positional(cls, lambda obj: obj.parts),
    ("pathlib._local", "PurePath"): lambda cls: _positional(cls, lambda obj: obj.parts),
    ("re", "Pattern"): _pattern,
    ("pydantic.networks", "_BaseUrl"): lambda cls: _single(cls, str),
    ("pydantic.networks", "_BaseMultiHostUrl"): lambda cls: _single(cls, str),
    ("uuid", "UUID"): lambda cls: _single(cls, lambda obj: obj.hex),
    ("decimal", "Decimal"): lambda cls: _single(cls, str),
    ("fractions", "Fraction"): lambda cls: _positional(cls, lambda obj: (obj.numerator, obj.denominator)),
    ("builtins", "set"): lambda cls: _single(cls, list),
    ("builtins", "frozenset"): lambda cls: _single(cls, list),
    ("collections", "deque"): _deque,
    **{("ipaddress", name): lambda cls: _single(cls, str) for name in _SAFE_BY_MODULE["ipaddress"]},
    ("datetime", "datetime"): _datetime,
    ("datetime", "timedelta"): lambda cls: _positional(cls, lambda d: (d.days, d.seconds, d.microseconds)),
    ("datetime", "date"): lambda cls: _positional(cls, lambda d: (d.year, d.month, d.day)),
    ("datetime", "time"): _time,
    ("datetime", "timezone"): _timezone,
    ("zoneinfo", "ZoneInfo"): lambda cls: _single(cls, lambda obj: obj.key),
    ("numpy", "ndarray"): _array,
    ("numpy", "generic"): lambda cls: _objects().numpy_scalar(cls),
    ("numpy", "str_"): lambda cls: _objects().numpy_scalar(cls),
    ("numpy", "bytes_"): lambda cls: _objects().numpy_scalar(cls),
    (__name__, "Pairs"): lambda _: lambda obj: (EXT_CONSTRUCTOR_SINGLE_ARG, ["builtins", "dict", obj.pairs]),
    (__name__, "_TypeOf"): lambda _: lambda obj: (EXT_CONSTRUCTOR_SINGLE_ARG, ["builtins", "type", obj.cls()]),
    # What LangGraph loses:
    ("builtins", "tuple"): lambda cls: _objects().extended(cls, "tuple", _tuple, list),
    ("builtins", "complex"): lambda _: _positional(complex, lambda obj: (obj.real, obj.imag)),
    ("builtins", "range"): lambda _: _positional(range, lambda obj: (obj.start, obj.stop, obj.step)),
    ("collections", "OrderedDict"): lambda cls: _single(cls, dict),
    ("collections", "Counter"): lambda cls: _single(cls, dict),
    ("collections", "defaultdict"): _defaultdict,
    # What extends a basic type:
    ("builtins", "str"): lambda cls: _extended(cls, "str", str.__str__),
    ("builtins", "float"): lambda cls: _extended(cls, "float", float.__float__),
    ("builtins", "dict"): lambda cls: _extended(cls, "dict", lambda obj: dict(obj.items())),
    ("builtins", "list"): lambda cls: _extended(cls, "list", lambda obj: list(obj)),
    ("builtins", "BaseException"): lambda cls: _objects().exception(cls),
}


def _objects() -> Any:
    from surestep.checkpoint.serde import _objects

    return _objects


def _extended(cls: type, base: str, plain: Callable[[Any], Any]) -> Any:
    return _objects().extended(cls, base, _plain(plain), plain)


class Pairs:
    """A dict on its way into a payload whose keys msgpack would take for others."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[list[Any]]) -> None:
        self.pairs = pairs


def _int(obj: Any) -> Encoded:
    """An int beyond 64 bits, or of a subclass."""
    if -(1 << 63) <= obj < 1 << 64:
        return PLAIN, int(obj)
    return EXT_CONSTRUCTOR_SINGLE_ARG, ["builtins", "int", _decimal_digits(int(obj))]


def _decimal_digits(value: int) -> str:
    if value.bit_length() > 14_000 and sys.get_int_max_str_digits():
        raise UnsavableTypeError("An int of more than 4,200 digits can't be saved.", module="builtins", name="int")
    return str(value)


def _fields(cls: type) -> Encoder:
    names = tuple(field.name for field in dataclasses.fields(cls))
    declared: dict[str, Any] = cls.__dataclass_fields__  # type: ignore[attr-defined]
    for name, field in declared.items():
        if field._field_type is dataclasses._FIELD_INITVAR and not _has_default(field):  # type: ignore[attr-defined]
            return _refuse_initvar(cls, name)
    return _keywords(cls, lambda obj: {name: getattr(obj, name) for name in names if hasattr(obj, name)})


def _has_default(field: Any) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _refuse_initvar(cls: type, field: str) -> Encoder:
    module, name = wire_name(cls)

    def refuse(obj: Any) -> Encoded:
        raise UnsavableTypeError(
            f"A {module}.{name} can't be saved: to make one takes {field!r} (an InitVar), which isn't kept in it. Give "
            "it a default.",
            module=module,
            name=name,
        )

    return refuse


def _model(code: int, method: str) -> Callable[[type], Encoder]:
    def of(cls: type) -> Encoder:
        module, name = wire_name(cls)
        return lambda obj: (code, [module, name, getattr(obj, method)()])

    return of


def is_secret(cls: type) -> bool:
    """Is it a class made to keep its value out of sight, such as pydantic's SecretStr?"""
    return callable(getattr(cls, "get_secret_value", None))


_encoders: dict[type, Any] = {}


def encoder_for(cls: type) -> Any:
    """The function that turns an instance into (code, payload), a Model or Extended (see _objects) with such functions,
    or None when the type has no stored form."""
    try:
        return _encoders[cls]
    except KeyError:
        if len(_encoders) > 2000:  # programs that make classes as they go
            _encoders.clear()
        encoder = _encoders[cls] = _find_encoder(cls)
        return encoder


def _find_encoder(cls: type) -> Any:
    bases = [(base.__module__, base.__qualname__) for base in cls.__mro__]
    if issubclass(cls, _DeltaSnapshot):
        return _delta(cls)
    if callable(getattr(cls, "model_dump", None)):
        return _objects().model(cls)
    if is_secret(cls):
        return _single(cls, lambda obj: obj.get_secret_value())
    if callable(getattr(cls, "dict", None)):
        return _model(EXT_PYDANTIC_V1, "dict")(cls)
    if callable(getattr(cls, "_asdict", None)):
        return _keywords(cls, lambda obj: obj._asdict())
    if ("enum", "Enum") in bases:
        return _single(cls, lambda obj: obj.value)
    if hasattr(cls, "__dataclass_fields__") and cls.__name__ != "Send":
        return _fields(cls)
    for base in bases:
        if base == ("builtins", "int"):
            return _int if cls is int else _objects().extended(cls, "int", _int, int.__int__)
        if base in _BY_BASE:
            return _BY_BASE[base](cls)
    return None
