"""Encryption at rest: a serializer around another one. Values that were stored in clear stay readable."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from surestep.checkpoint.serde.base import CipherProtocol, CorruptValueError, SerializerProtocol
from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer

__all__ = ("EncryptedSerializer",)

_NONCE = 16
_MAC = 16


class EncryptedSerializer(SerializerProtocol):
    """What `serde` makes, encrypted by `cipher`; the tag becomes "<tag>+<cipher name>".

    Values without a "+" in their tag are loaded as they are, so encryption can be switched on for a
    database in use.
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

    @classmethod
    def from_pycryptodome_aes(cls, serde: SerializerProtocol | None = None, **kwargs: Any) -> EncryptedSerializer:
        """A serializer that encrypts with AES; readable by LangGraph with the same key.

        `key`: 16, 24 or 32 bytes; without it, the environment variable LANGGRAPH_AES_KEY (as UTF-8).
        `mode`: EAX by default; other keywords go to `Crypto.Cipher.AES.new`. Needs pycryptodome (`pip
        install surestep[crypto]`).
        """
        try:
            from Crypto.Cipher import AES
        except ImportError as error:
            raise ImportError("AES needs pycryptodome: pip install surestep[crypto]") from error
        key = kwargs.pop("key", None)
        if key is None:
            key = os.getenv("LANGGRAPH_AES_KEY", "").encode()
            if not key:
                raise ValueError("No key: pass key=... (16, 24 or 32 bytes) or set LANGGRAPH_AES_KEY.")
        if len(key) not in (16, 24, 32):
            raise ValueError(f"An AES key has 16, 24 or 32 bytes; this one has {len(key)}.")
        mode = kwargs.pop("mode", AES.MODE_EAX)
        return cls(_Aes(key, mode, kwargs), serde)


class _Aes(CipherProtocol):
    """AES in an authenticated mode. Stored: nonce, MAC, ciphertext."""

    def __init__(self, key: bytes, mode: int, options: dict[str, Any]) -> None:
        self._key, self._mode, self._options = key, mode, options

    def _new(self, **more: Any) -> Any:
        from Crypto.Cipher import AES

        new: Any = AES.new
        return new(self._key, self._mode, **self._options, **more)

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        # A nonce of our own length: the modes' defaults differ, and the stored layout must not.
        cipher = self._new(nonce=os.urandom(_NONCE))
        ciphertext, mac = cipher.encrypt_and_digest(plaintext)
        return "aes", cipher.nonce + mac + ciphertext

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        if ciphername != "aes":
            raise CorruptValueError(f"This value was encrypted with {ciphername!r}; the serializer only has 'aes'.")
        if len(ciphertext) < _NONCE + _MAC:
            raise CorruptValueError("An encrypted value is cut off: it is shorter than its nonce and MAC.")
        nonce, mac = ciphertext[:_NONCE], ciphertext[_NONCE : _NONCE + _MAC]
        try:
            plaintext: bytes = self._new(nonce=nonce).decrypt_and_verify(ciphertext[_NONCE + _MAC :], mac)
        except ValueError as error:
            raise CorruptValueError(
                "An encrypted value can't be opened: it was written with another key, or its bytes are damaged."
            ) from error
        return plaintext
