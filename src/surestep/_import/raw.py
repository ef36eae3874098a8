"""Values as LangGraph stored them, down to where they become lists, dicts and basic values, and no further."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import ormsgpack

from surestep.checkpoint.serde.base import CorruptValueError, SerializerProtocol
from surestep.checkpoint.serde.types import _DeltaSnapshot
from surestep.checkpoint.serde.types_ext import EXT_DELTA_SNAPSHOT

_OPTIONS: Final = ormsgpack.OPT_NON_STR_KEYS | ormsgpack.OPT_PASSTHROUGH_DATACLASS | ormsgpack.OPT_PASSTHROUGH_SUBCLASS


@dataclass(frozen=True, slots=True)
class Object:
    """An object that a class would have to be called for: its extension code and what that holds."""

    code: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Stored:
    """A value that was stored in another way than as msgpack."""

    tag: str
    data: bytes


class Raw(SerializerProtocol):
    """Writes what it reads."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value. Raises CorruptValueError."""
        tag, payload = data
        if tag == "null":
            return None
        if "+" in tag:
            raise CorruptValueError(
                f"This is encrypted ({tag.partition('+')[2]}): set LANGGRAPH_AES_KEY to the key it was written with."
            )
        if tag != "msgpack":
            return Stored(tag, bytes(payload))
        try:
            return ormsgpack.unpackb(payload, ext_hook=_hook, option=ormsgpack.OPT_NON_STR_KEYS)
        except ValueError as error:
            raise CorruptValueError(f"The stored bytes are damaged or cut off: {error}") from None

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """How it was stored."""
        if obj is None:
            return "null", b""
        if type(obj) is Stored:
            return obj.tag, obj.data
        return "msgpack", ormsgpack.packb(obj, _default, _OPTIONS)


def _hook(code: int, data: bytes) -> Any:
    if code == EXT_DELTA_SNAPSHOT:  # which our savers know how to share
        return _DeltaSnapshot(ormsgpack.unpackb(data, ext_hook=_hook, option=ormsgpack.OPT_NON_STR_KEYS))
    return Object(code, data)


def _default(obj: Any) -> Any:
    if type(obj) is Object:
        return ormsgpack.Ext(obj.code, obj.data)
    if type(obj) is _DeltaSnapshot:
        return ormsgpack.Ext(EXT_DELTA_SNAPSHOT, ormsgpack.packb(obj.value, _default, _OPTIONS))
    raise TypeError(type(obj))
