"""The protocols and adapters of serde.base."""

from __future__ import annotations

import json
from typing import Any

from surestep.checkpoint.serde.base import SerializerCompat, SerializerProtocol, maybe_add_typed_methods
from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer


class Untyped:
    def dumps(self, obj: Any) -> bytes:
        return json.dumps(obj).encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


def test_an_untyped_serializer_gets_tags() -> None:
    serde = maybe_add_typed_methods(Untyped())
    assert isinstance(serde, SerializerCompat)
    assert serde.dumps_typed({"a": 1}) == ("dict", b'{"a": 1}')
    assert serde.loads_typed(("whatever", b"[1]")) == [1]


def test_a_typed_serializer_stays_itself() -> None:
    serde = JsonPlusSerializer()
    assert isinstance(serde, SerializerProtocol)
    assert maybe_add_typed_methods(serde) is serde
