"""Encryption at rest: a serializer around another one. Values that were stored in clear stay readable.

Savers of ours on databases don't encrypt value by value: they seal whole columns with the serializer's cipher, metadata
and the names of channels included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from surestep.checkpoint.serde._aes import (
    ENVIRONMENT,
    RING,
    Aes,
    Gcm,
    checked_key,
    key_of_the_environment,
    keys_of_the_environment,
    modes,
)
from surestep.checkpoint.serde.base import CipherProtocol, CorruptValueError, SerializerProtocol
from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer

__all__ = ("EncryptedSerializer", "KeyRing")

_KEY_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class EncryptedSerializer(SerializerProtocol):
    """What `serde` makes, encrypted by `cipher`; the tag becomes "<tag>+<cipher name>".

    Values without a "+" in their tag are loaded as they are, so encryption can be switched on for a
    database in use. `cipher`: a `KeyRing`, or one of your own.
    """

    def __init__(self, cipher: CipherProtocol, serde: SerializerProtocol | None = None) -> None:
        serde = JsonPlusSerializer() if serde is None else serde
        self.cipher = cipher
        self.serde = serde
        # The point of refusing secrets is that they'd be readable on disk; here they aren't.
        self._writer = serde.with_secrets_allowed() if isinstance(serde, JsonPlusSerializer) else serde

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[tuple[str, ...] | type]) -> EncryptedSerializer:
        """A copy whose inner serializer revives these types too; itself when that changes nothing or isn't
        possible."""
        extend = getattr(self.serde, "with_msgpack_allowlist", None)
        inner = self.serde if extend is None else extend(extra_allowlist)
        return self if inner is self.serde else type(self)(self.cipher, inner)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """The encrypted value with both names in the tag."""
        tag, data = self._writer.dumps_typed(obj)
        name, ciphertext = self.cipher.encrypt(data)
        return f"{tag}+{name}", ciphertext

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value. Raises CorruptValueError for another key's, damaged or cut-off bytes, if the cipher
        notices."""
        tag, payload = data
        if "+" not in tag:
            return self.serde.loads_typed(data)
        inner, name = tag.split("+", 1)
        return self.serde.loads_typed((inner, self.cipher.decrypt(name, payload)))

    def within(self) -> tuple[SerializerProtocol, CipherProtocol] | None:
        """The serializer and the cipher, for savers that encrypt more than a value at a time: the serializer writes in
        clear and reads both. None for a subclass that does one of those in another way."""
        made = EncryptedSerializer
        if type(self).dumps_typed is not made.dumps_typed or type(self).loads_typed is not made.loads_typed:
            return None
        return _Within(self), self.cipher

    @classmethod
    def from_pycryptodome_aes(cls, serde: SerializerProtocol | None = None, **kwargs: Any) -> EncryptedSerializer:
        """A serializer that encrypts with AES; readable by LangGraph with the same key.

        `key`: 16, 24 or 32 bytes; without it, the environment variable LANGGRAPH_AES_KEY (as UTF-8).
        `mode`: EAX by default; other keywords go to `Crypto.Cipher.AES.new`. Needs pycryptodome (`pip
        install surestep[crypto]`). For keys that change, use a `KeyRing`.
        """
        default = modes().MODE_EAX
        key = kwargs.pop("key", None)
        if key is None:
            key = key_of_the_environment()
            if not key:
                raise ValueError(f"No key: pass key=... (16, 24 or 32 bytes) or set {ENVIRONMENT}.")
        return cls(_OneKey(checked_key(key), kwargs.pop("mode", default), kwargs), serde)


class _Within(SerializerProtocol):
    """What an EncryptedSerializer encrypts, in clear."""

    def __init__(self, outer: EncryptedSerializer) -> None:
        self._outer = outer

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return self._outer._writer.dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self._outer.loads_typed(data)


class _OneKey(CipherProtocol):
    """LangGraph's cipher: its name says nothing of the key."""

    def __init__(self, key: bytes, mode: int, options: dict[str, Any]) -> None:
        self._aes = Aes(key, mode, options)

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "aes", self._aes.encrypt(plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        if ciphername != "aes":
            raise CorruptValueError(f"This value was encrypted with {ciphername!r}; the serializer only has 'aes'.")
        return self._aes.decrypt(ciphertext)


class KeyRing(CipherProtocol):
    """AES-GCM with keys that change. What was encrypted names its key: "aes-gcm:<id of the key>".

    keys: id → 16, 24 or 32 bytes. Left out: those in the environment variable SURESTEP_AES_KEYS ("2026:<hex
        digits>,2025:<hex digits>", the current one first), else the one in LANGGRAPH_AES_KEY, by the id "env".
    current: the id of the key that encrypts; the others only decrypt. May be left out if there is one.

    Reads what LangGraph encrypted (AES-EAX) too, with whichever of the keys, or of LANGGRAPH_AES_KEY, fits. Needs
    `pip install surestep[crypto]`. Encrypt at most 4,000,000,000 values with one key.
    """

    def __init__(self, keys: Mapping[str, bytes] | None = None, *, current: str | None = None) -> None:
        shared = key_of_the_environment()
        if keys is None:
            keys = keys_of_the_environment()
            if not keys:
                raise ValueError(f"No key: pass keys={{id: key}} (16, 24 or 32 bytes), or set {RING} or {ENVIRONMENT}.")
            current = current or next(iter(keys))
        if current is None and len(keys) == 1:
            (current,) = keys
        if current is None or current not in keys:
            raise ValueError(f"current is the id of the key that encrypts, one of {sorted(keys)}; not {current!r}.")
        for id, key in keys.items():
            if not _KEY_ID.fullmatch(id):
                raise ValueError(f"The id of a key has up to 64 letters, digits and . _ -; not {id!r}.")
            checked_key(key, f"The key {id!r}")
        self.current = current
        self._keys = {f"aes-gcm:{id}": Gcm(key) for id, key in keys.items()}
        self._older = [*dict.fromkeys([*keys.values(), *([checked_key(shared, ENVIRONMENT)] if shared else [])])]

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self._keys)}; current={self.current!r})"

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        """The name of the cipher and the current key, and the ciphertext."""
        name = f"aes-gcm:{self.current}"
        return name, self._keys[name].encrypt(plaintext, name.encode())

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        """The plaintext. Raises CorruptValueError for a key that isn't here and for changed bytes."""
        if ciphername == "aes":
            return self._decrypt_langgraphs(ciphertext)
        key = self._keys.get(ciphername)
        if key is None:
            raise CorruptValueError(
                f"This value was encrypted with {ciphername!r}, which the key ring lacks: it has "
                f"{', '.join(map(repr, self._keys))}. Keep old keys in it until nothing is encrypted with them."
            )
        return key.decrypt(ciphertext, ciphername.encode())

    def _decrypt_langgraphs(self, ciphertext: bytes) -> bytes:
        eax = modes().MODE_EAX
        for key in self._older[:-1]:
            try:
                return Aes(key, eax, {}).decrypt(ciphertext)
            except CorruptValueError:
                continue
        return Aes(self._older[-1], eax, {}).decrypt(ciphertext)
