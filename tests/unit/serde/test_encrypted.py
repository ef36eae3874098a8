"""Encryption at rest: nothing readable is stored, and nothing wrong comes out."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest
from unit.serde.shapes import Order

from surestep.checkpoint.serde.base import CorruptValueError, TypeNotAllowedError
from surestep.checkpoint.serde.encrypted import EncryptedSerializer
from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer

KEY = b"0123456789abcdef"


def aes(**kwargs: Any) -> EncryptedSerializer:
    return EncryptedSerializer.from_pycryptodome_aes(JsonPlusSerializer(allowed_msgpack_modules=None), **kwargs)


@pytest.mark.parametrize("value", [None, b"raw", "IBAN 77", {"deep": ["IBAN 77", (1, 2)]}])
def test_values_come_back_and_are_not_readable(value: Any) -> None:
    serde = aes(key=KEY)
    tag, data = serde.dumps_typed(value)
    assert tag.endswith("+aes") and b"IBAN" not in data
    assert serde.loads_typed((tag, data)) == value


def test_the_same_value_is_never_stored_alike() -> None:
    serde = aes(key=KEY)
    assert serde.dumps_typed("x") != serde.dumps_typed("x")


def test_a_wrong_key_a_cut_and_a_flipped_bit_are_errors() -> None:
    tag, data = aes(key=KEY).dumps_typed({"a": 1})
    with pytest.raises(CorruptValueError, match="another key"):
        aes(key=KEY[::-1]).loads_typed((tag, data))
    for position in range(len(data)):
        flipped = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        with pytest.raises(CorruptValueError):
            aes(key=KEY).loads_typed((tag, flipped))
        with pytest.raises(CorruptValueError):
            aes(key=KEY).loads_typed((tag, data[:position]))
    with pytest.raises(CorruptValueError, match="rot13"):
        aes(key=KEY).loads_typed(("msgpack+rot13", data))


def test_values_from_before_encryption_stay_readable() -> None:
    plain = JsonPlusSerializer(allowed_msgpack_modules=None)
    assert aes(key=KEY).loads_typed(plain.dumps_typed({"a": (1,)})) == {"a": (1,)}


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_AES_KEY", KEY.decode())
    assert aes(key=KEY).loads_typed(aes().dumps_typed([1])) == [1]
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "short")
    with pytest.raises(ValueError, match="16, 24 or 32"):
        aes()
    monkeypatch.delenv("LANGGRAPH_AES_KEY")
    with pytest.raises(ValueError, match="No key"):
        aes()


def test_other_modes() -> None:
    from Crypto.Cipher import AES

    serde = aes(key=KEY, mode=AES.MODE_GCM)
    assert serde.loads_typed(serde.dumps_typed("x")) == "x"


def test_the_allowlist_reaches_the_inner_serializer() -> None:
    serde = aes(key=KEY)
    saved = serde.dumps_typed(Order(1))
    with pytest.raises(TypeNotAllowedError):
        serde.loads_typed(saved)
    extended = serde.with_msgpack_allowlist([Order])
    assert extended.loads_typed(saved) == Order(1) and extended.cipher is serde.cipher
    assert serde.with_msgpack_allowlist(()) is serde


def test_secrets_may_be_saved_when_nobody_can_read_them() -> None:
    serde = aes(key=KEY)
    tag, data = serde.dumps_typed(pydantic.SecretStr("hunter2"))
    assert b"hunter2" not in data
    with pytest.raises(TypeNotAllowedError):
        serde.loads_typed((tag, data))
    assert serde.with_msgpack_allowlist([pydantic.SecretStr]).loads_typed((tag, data)).get_secret_value() == "hunter2"


def test_langgraph_reads_what_we_encrypted_and_the_other_way_round() -> None:
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer as Theirs

    theirs, ours = Theirs.from_pycryptodome_aes(key=KEY), aes(key=KEY)
    value = {"a": [1, "two", None], "b": b"3"}
    assert theirs.loads_typed(ours.dumps_typed(value)) == value
    assert ours.loads_typed(theirs.dumps_typed(value)) == value
