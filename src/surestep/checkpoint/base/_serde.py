"""`saver.serde`: an attribute that views of one saver see differently."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, overload

from surestep.checkpoint.serde.base import (
    SerializerProtocol,
    UntypedSerializerProtocol,
    maybe_add_typed_methods,
)

if TYPE_CHECKING:
    from surestep.checkpoint.base import BaseCheckpointSaver

Allowlist = Collection[tuple[str, ...] | type]


def _with_msgpack_allowlist(serde: SerializerProtocol, extra: Allowlist) -> SerializerProtocol:
    """The serializer extended by these types; itself when it has no such setting."""
    extend = getattr(serde, "with_msgpack_allowlist", None)
    if extend is None:
        import logging

        logging.getLogger("surestep.checkpoint.base").warning(
            "Serializer %s does not support msgpack allowlists: it decides by itself what it revives.",
            type(serde).__name__,
        )
        return serde
    extended: SerializerProtocol = extend(extra)
    return extended


class SerdeAttribute:
    """The serializer of a saver: what was assigned, else the default of all savers, plus the view's
    allowlist.

    A view (`with_allowlist`) is a second object over the very same attributes, so it sees what the original
    stores, and what is assigned to it later. Only this attribute differs.
    """

    def __init__(self) -> None:
        self._made: SerializerProtocol | None = None

    @property
    def _default(self) -> SerializerProtocol:
        # Made when first asked for: msgpack is a third of what importing a graph would cost.
        if self._made is None:
            from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer

            self._made = JsonPlusSerializer()
        return self._made

    @overload
    def __get__(self, saver: None, owner: type) -> SerializerProtocol: ...
    @overload
    def __get__(self, saver: BaseCheckpointSaver[Any], owner: type) -> SerializerProtocol: ...
    def __get__(self, saver: BaseCheckpointSaver[Any] | None, owner: type) -> SerializerProtocol:
        if saver is None:
            return self._default
        base: SerializerProtocol = saver.__dict__.get("serde") or self._default
        try:
            view = saver._view
        except AttributeError:  # a saver that does not call our __init__
            return base
        if view is None:
            return base
        if view.base is not base:
            view.serde = _with_msgpack_allowlist(base, view.allowlist)
            view.base = base  # last: another thread takes it as the sign that the serializer is there
        return view.serde

    def __set__(self, saver: BaseCheckpointSaver[Any], value: SerializerProtocol | UntypedSerializerProtocol) -> None:
        saver.__dict__["serde"] = maybe_add_typed_methods(value)


class View:
    """What a view adds to its saver: an allowlist, and the serializer that it makes of the saver's."""

    __slots__ = ("allowlist", "base", "serde")

    def __init__(self, allowlist: Allowlist, base: SerializerProtocol, serde: SerializerProtocol) -> None:
        self.allowlist = allowlist
        self.base = base
        self.serde = serde
