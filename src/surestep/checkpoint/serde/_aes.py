"""AES in modes that notice another key and changed bytes.

GCM by way of cryptography; EAX and others by way of pycryptodome, as LangGraph uses them. A saver opens every page by
itself, and for that pycryptodome takes a hundred times as long.
"""

from __future__ import annotations

import os
from typing import Any, Final

from surestep.checkpoint.serde.base import CorruptValueError

ENVIRONMENT: Final = "LANGGRAPH_AES_KEY"
RING: Final = "SURESTEP_AES_KEYS"
_SIZES: Final = (16, 24, 32)
_MAC: Final = 16
_NONCE: Final = 12
_LONG_NONCE: Final = 16


def modes() -> Any:
    """The module with the cipher and the names of its modes."""
    try:
        from Crypto.Cipher import AES
    except ImportError as error:
        raise ImportError("AES needs pycryptodome: pip install surestep[crypto]") from error
    return AES


def key_of_the_environment() -> bytes:
    """The key in LANGGRAPH_AES_KEY, empty if there is none."""
    return os.getenv(ENVIRONMENT, "").encode()


def keys_of_the_environment() -> dict[str, bytes]:
    """The keys in SURESTEP_AES_KEYS, "id:hex digits,id:hex digits", the current one first; else the one in
    LANGGRAPH_AES_KEY by the id "env"; nothing if neither is set."""
    text = os.getenv(RING, "")
    if not text:
        shared = key_of_the_environment()
        return {"env": shared} if shared else {}
    found = {}
    for entry in text.split(","):
        id, colon, digits = entry.strip().partition(":")
        try:
            found[id] = bytes.fromhex(digits)
        except ValueError:
            colon = ""
        if not colon or not id:  # without the entry itself: it may be a key
            raise ValueError(f"{RING} is a list like 2026:<hex digits of the key>,2025:<hex digits>; this one is not.")
    return found


def checked_key(key: bytes, name: str = "An AES key") -> bytes:
    """The key, if it has a length that AES knows."""
    if not isinstance(key, bytes):
        raise TypeError(f"{name} is bytes, not {type(key).__name__}.")
    if len(key) not in _SIZES:
        raise ValueError(f"{name} has 16, 24 or 32 bytes; this one has {len(key)}.")
    return key


class Gcm:
    """AES-GCM with one key. Stored: nonce, ciphertext, MAC."""

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise ImportError("AES-GCM needs cryptography: pip install surestep[crypto]") from error
        self._aes = AESGCM(key)

    def encrypt(self, plaintext: bytes, label: bytes) -> bytes:
        """`label`: what must be the same for `decrypt`, and isn't stored."""
        nonce = os.urandom(_NONCE)
        return nonce + self._aes.encrypt(nonce, plaintext, label)

    def decrypt(self, data: bytes, label: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        if len(data) < _NONCE + _MAC:
            raise cut_off()
        try:
            return self._aes.decrypt(data[:_NONCE], data[_NONCE:], label)
        except InvalidTag as error:
            raise not_opened() from error


class Aes:
    """One key and mode of pycryptodome. Stored, as by LangGraph: nonce, MAC, ciphertext."""

    def __init__(self, key: bytes, mode: int, options: dict[str, Any]) -> None:
        self._aes = modes()
        self._key, self._mode, self._options = key, mode, options

    def encrypt(self, plaintext: bytes) -> bytes:
        # A nonce of our own length: the modes' defaults differ, and the stored layout must not.
        cipher = self._new(os.urandom(_LONG_NONCE))
        ciphertext, mac = cipher.encrypt_and_digest(plaintext)
        return bytes(cipher.nonce + mac + ciphertext)

    def decrypt(self, data: bytes) -> bytes:
        size = _LONG_NONCE
        if len(data) < size + _MAC:
            raise cut_off()
        nonce, mac, ciphertext = data[:size], data[size : size + _MAC], data[size + _MAC :]
        try:
            return bytes(self._new(nonce).decrypt_and_verify(ciphertext, mac))
        except ValueError as error:
            raise not_opened() from error

    def _new(self, nonce: bytes) -> Any:
        return self._aes.new(self._key, self._mode, nonce=nonce, **self._options)


def cut_off() -> CorruptValueError:
    return CorruptValueError("An encrypted value is cut off: it is shorter than its nonce and MAC.")


def not_opened() -> CorruptValueError:
    return CorruptValueError(
        "An encrypted value can't be opened: it was written with another key, or its bytes are damaged."
    )
