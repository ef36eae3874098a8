"""Serializer protocols, the adapter for serializers without type tags, and the errors of this package."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = (
    "CipherProtocol",
    "CorruptValueError",
    "MissingTypeError",
    "SerializationError",
    "SerializerCompat",
    "SerializerProtocol",
    "TypeNotAllowedError",
    "UnsavableTypeError",
    "UntypedSerializerProtocol",
    "maybe_add_typed_methods",
)


class SerializationError(Exception):
    """A value could not be saved or loaded. The subclasses say why and carry the type as `module` and
    `name`."""

    def __init__(self, message: str, *, module: str = "", name: str = "") -> None:
        super().__init__(message)
        self.module = module
        self.name = name

    def within(self, place: str) -> SerializationError:
        """The same error, saying also where the value belongs."""
        return type(self)(f"{place}: {self}", module=self.module, name=self.name)


class UnsavableTypeError(SerializationError, TypeError):
    """The value, or something inside it, has no stored form. Nothing was saved."""


class TypeNotAllowedError(SerializationError):
    """A stored object is of a type that this serializer may not revive."""


class MissingTypeError(SerializationError):
    """The class or module of a stored object doesn't exist any more: moved, renamed, or not installed."""


class CorruptValueError(SerializationError):
    """The stored bytes can't be read: cut off, damaged, encrypted with another key, or of an unknown
    format."""


class UntypedSerializerProtocol(Protocol):
    """A serializer that turns an object into bytes and back, with no tag that says how."""

    def dumps(self, obj: Any) -> bytes: ...

    def loads(self, data: bytes) -> Any: ...


@runtime_checkable
class SerializerProtocol(Protocol):
    """A serializer whose output says how to read it: `(tag, bytes)`. Savers store both."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]: ...

    def loads_typed(self, data: tuple[str, bytes]) -> Any: ...


class CipherProtocol(Protocol):
    """Encrypts bytes; names the cipher so that the right one can be picked when reading."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]: ...

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes: ...


class SerializerCompat(SerializerProtocol):
    """An untyped serializer in the typed shape: the tag is the name of the value's class and is ignored on
    load."""

    def __init__(self, serde: UntypedSerializerProtocol) -> None:
        self.serde = serde

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return type(obj).__name__, self.serde.dumps(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self.serde.loads(data[1])


def maybe_add_typed_methods(serde: SerializerProtocol | UntypedSerializerProtocol) -> SerializerProtocol:
    """The serializer itself when it is typed, else a typed wrapper around it."""
    if isinstance(serde, SerializerProtocol):
        return serde
    return SerializerCompat(serde)
