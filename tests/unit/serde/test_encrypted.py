"""Encryption at rest: nothing readable is stored, and nothing wrong comes out."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest
from unit.serde.shapes import Order

from surestep.checkpoint.serde.base import CorruptValueError, TypeNotAllowedError
from surestep.checkpoint.serde.encrypted import EncryptedSerializer, KeyRing
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


# ---- keys that change ----

OLDER = b"fedcba9876543210"


def ring(keys: dict[str, bytes], current: str | None = None) -> EncryptedSerializer:
    return EncryptedSerializer(KeyRing(keys, current=current))


def test_a_value_names_its_key() -> None:
    first = ring({"2025": OLDER})
    both = ring({"2025": OLDER, "2026": KEY}, "2026")
    saved = first.dumps_typed({"a": 1})
    assert saved[0] == "msgpack+aes-gcm:2025" and both.dumps_typed({"a": 1})[0] == "msgpack+aes-gcm:2026"
    assert both.loads_typed(saved) == first.loads_typed(saved) == {"a": 1}
    with pytest.raises(CorruptValueError, match=r"'aes-gcm:2026'.*lacks: it has 'aes-gcm:2025'"):
        first.loads_typed(both.dumps_typed(1))


@pytest.mark.parametrize("value", ["", "x", ["text"] * 50])
def test_what_was_changed_is_not_read(value: Any) -> None:
    serde = ring({"a": KEY, "b": KEY}, "a")
    tag, data = serde.dumps_typed(value)
    for position in range(len(data)):
        for bit in (1, 16, 128):
            with pytest.raises(CorruptValueError):
                serde.loads_typed((tag, data[:position] + bytes([data[position] ^ bit]) + data[position + 1 :]))
        with pytest.raises(CorruptValueError):
            serde.loads_typed((tag, data[:position]))
    with pytest.raises(CorruptValueError, match="another key"):  # the same key by another name
        serde.loads_typed((tag.replace(":a", ":b"), data))
    with pytest.raises(CorruptValueError, match="another key"):
        ring({"a": OLDER}).loads_typed((tag, data))


def test_a_ring_reads_what_langgraph_encrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer as Theirs

    saved = Theirs.from_pycryptodome_aes(key=OLDER).dumps_typed(["two"])
    assert saved[0] == "msgpack+aes"
    assert ring({"new": KEY, "theirs": OLDER}, "new").loads_typed(saved) == ["two"]
    with pytest.raises(CorruptValueError, match="another key"):
        ring({"new": KEY}).loads_typed(saved)
    monkeypatch.setenv("LANGGRAPH_AES_KEY", OLDER.decode())
    assert ring({"new": KEY}).loads_typed(saved) == ["two"]
    env = EncryptedSerializer(KeyRing())
    assert env.loads_typed(saved) == ["two"]
    assert env.dumps_typed(1)[0] == "msgpack+aes-gcm:env" and env.loads_typed(env.dumps_typed(1)) == 1


def test_the_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_AES_KEY", KEY.decode())
    monkeypatch.setenv("SURESTEP_AES_KEYS", f"2026:{KEY.hex()}, 2025:{OLDER.hex()}")
    serde = EncryptedSerializer(KeyRing())
    assert serde.dumps_typed(1)[0] == "msgpack+aes-gcm:2026"
    assert serde.loads_typed(ring({"2025": OLDER}).dumps_typed([1])) == [1]
    for wrong in (KEY.hex(), f"2026:{KEY.hex()}g", f":{KEY.hex()}", f"2026:{KEY.hex()},"):
        monkeypatch.setenv("SURESTEP_AES_KEYS", wrong)
        with pytest.raises(ValueError, match="SURESTEP_AES_KEYS is a list like") as raised:
            KeyRing()
        assert KEY.hex() not in str(raised.value)


def test_what_a_ring_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGGRAPH_AES_KEY", raising=False)
    for keys, current, says in (
        (None, None, "No key"),
        ({}, None, "current"),
        ({"a": KEY, "b": OLDER}, None, "one of"),
        ({"a": KEY}, "b", "not 'b'"),
        ({"a": b"short"}, "a", "The key 'a' has 16, 24 or 32 bytes; this one has 5"),
        ({"a+b": KEY}, "a+b", "id of a key"),
    ):
        with pytest.raises(ValueError, match=says):
            KeyRing(keys, current=current)
    with pytest.raises(TypeError, match="is bytes, not str"):
        KeyRing({"a": "0123456789abcdef"})  # type: ignore[dict-item]
    assert "0123" not in repr(KeyRing({"a": KEY}))
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "short")
    with pytest.raises(ValueError, match="LANGGRAPH_AES_KEY has 16"):
        KeyRing({"a": KEY})
