"""Columns as they lie in the database. With a cipher each is sealed as a whole:

    a byte 1, a byte C1, the name of the cipher, a zero byte, what the cipher made of the column

Rules
1. Everything that says something of the state is in a column that is sealed: `state` (values, names and versions of
   channels), `metadata`, `led_here`, `data` of a page and `value` of a write. Where things stand is not: ids of
   threads, checkpoints and tasks, namespaces, the channel and the path of a write.
2. What is the same is decided before it is sealed (see pages), by digests that are kept in memory only. So pages are
   shared as they are without a cipher, and no digest, keyed or not, lies in the database: two equal columns are stored
   differently, and references to pages are inside of what is sealed.
3. A column that was stored in clear stays readable: encryption can be switched on for a database in use. None begins
   with 1 (see rows), and none has C1 in second place: that byte is neither msgpack nor text. So a damaged beginning is
   noticed, whichever of the two it hits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from surestep.checkpoint.serde.base import CipherProtocol, CorruptValueError, SerializerProtocol

_MARK = b"\x01\xc1"

Sealing = Callable[[bytes], bytes]


class Lock(NamedTuple):
    """How a saver's columns are made and read. `serde` makes values of no further protection."""

    serde: SerializerProtocol
    seal: Sealing
    open: Sealing


def lock_of(serde: SerializerProtocol) -> Lock:
    """For an EncryptedSerializer, its cipher on whole columns; any other serializer sees to its values itself."""
    within = getattr(serde, "within", None)
    parts = within() if callable(within) else None
    if parts is None:
        return Lock(serde, _as_it_is, _in_clear)
    inner, cipher = parts
    sealed = _Cipher(cipher)
    return Lock(inner, sealed.seal, sealed.open)


def _as_it_is(column: bytes) -> bytes:
    return column


def _in_clear(column: bytes) -> bytes:
    if is_sealed(column):
        name = label(column).decode("ascii", "replace")
        raise CorruptValueError(
            f"This is encrypted ({name}), and the saver has no key: give it the serializer that wrote it, "
            "EncryptedSerializer(...)."
        )
    return column


class _Cipher:
    """Seals columns with a cipher."""

    __slots__ = ("cipher",)

    def __init__(self, cipher: CipherProtocol) -> None:
        self.cipher = cipher

    def seal(self, column: bytes) -> bytes:
        name, data = self.cipher.encrypt(column)
        return _MARK + name.encode() + b"\0" + data

    def open(self, column: bytes) -> bytes:
        if not is_sealed(column):
            return column
        name, _, data = column[2:].partition(b"\0")
        return self.cipher.decrypt(name.decode("utf-8", "replace"), data)


def is_sealed(column: bytes) -> bool:
    """Whether a column is sealed. Raises CorruptValueError if that can't be told (rule 3)."""
    if not column or (column[0] == 1) is not (column[1:2] == b"\xc1"):
        raise CorruptValueError("A stored column is damaged: it begins like nothing that a saver writes.")
    return column[0] == 1


def label(column: bytes) -> bytes:
    """The name of the cipher that sealed a column; nothing for one in clear."""
    return column[2:].partition(b"\0")[0] if is_sealed(column) else b""
