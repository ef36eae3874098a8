"""Encryption in databases: nothing readable, nothing wrong, keys that change, and costs that follow the change."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from savers.history import LARGE, TASK, Thread, at, everything
from savers.kinds import ring
from savers.walk import check_pages

from surestep.checkpoint.base import TaskWrites
from surestep.checkpoint.postgres import PostgresSaver
from surestep.checkpoint.serde.base import CorruptValueError, SerializationError
from surestep.checkpoint.serde.encrypted import EncryptedSerializer, KeyRing
from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer
from surestep.checkpoint.sqlite import SqliteSaver, connect
from surestep.checkpoint.sqlite.aio import AsyncSqliteSaver

COLUMNS = {
    "surestep_checkpoints": ("state", "metadata", "led_here"),
    "surestep_pages": ("data",),
    "surestep_writes": ("value",),
}
OLD = b"o" * 16


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


def opened(path: Path, serde: Any) -> Any:
    return SqliteSaver(connect(str(path)), serde=serde)


def fill(saver: Any, id: str = "t") -> Thread:
    """A thread with everything: short and long values, lists that grow, an input, writes in rows and in their own."""
    thread = Thread(saver, id)
    asked: dict[str, Any] = {"inkey": "INVAL", "list": ["INVAL " * 20] * 10}
    thread.put({"inchannel": asked, "list": ["VAL-0 " * 20]}, metadata={"who": "METAVAL"})
    for number in range(1, 5):
        list = [f"VAL-{n} " * 20 for n in range(number + 1)]
        writes = [TaskWrites(TASK, "~p", [("list", list[-1:]), ("short", f"VAL-{number}")])]
        thread.put(
            {"list": list, "short": f"VAL-{number}", "large": "VAL " + LARGE}, writes=writes, metadata={"METAKEY": 1}
        )
    config = at(id, thread.head)
    saver.put_writes(config, [("large", "WRITEVAL " + LARGE), ("__interrupt__", ["WRITEVAL"])], TASK)
    saver.put_writes(config, [("__error__", "WRITEVAL")], "other")
    saver.pin(config, "seen")
    return thread


def columns(path: Path) -> Iterator[tuple[str, str, int, bytes]]:
    """Every column that is sealed: table, name, row, what lies there."""
    conn = sqlite3.connect(path)
    for table, names in COLUMNS.items():
        for name in names:
            for row, data in conn.execute(f"SELECT rowid, {name} FROM {table} WHERE {name} IS NOT NULL").fetchall():
                yield table, name, row, data
    conn.close()


def test_nothing_readable_is_in_the_file(path: Path) -> None:
    words = (b"VAL", b"large", b"METAKEY", b"inkey", b"inchannel", b"short", b"who", b"source", b"updated")
    for serde, found in ((JsonPlusSerializer(), True), (ring(), False)):
        saver = opened(path.with_name(f"db{found}"), serde)
        fill(saver)
        raw = b"".join(file.read_bytes() for file in path.parent.glob(f"db{found}*"))
        # The channel of a write that waits for its step is a column of its own.
        shown = [word for word in words if word in raw and word != b"large"]
        assert bool(shown) is found, shown
        saver.conn.close()


def test_the_whole_life_of_a_thread_under_a_cipher(path: Path) -> None:
    saver = opened(path, ring())
    plain = SqliteSaver(connect(":memory:"))
    for one in (saver, plain):
        thread = fill(one)
        one.copy_thread("t", "copy")
        thread.put({"list": ["other"]}, parent=None)
        one.prune(["copy"])
    check_pages(saver)
    shape = [Counter(channel for _, channel, _ in found.pending_writes) for found in saver.list(None)]
    assert shape == [Counter(channel for _, channel, _ in found.pending_writes) for found in plain.list(None)]
    assert [found.metadata for found in saver.list(None)] == [found.metadata for found in plain.list(None)]
    for thread_id in ("t", "copy"):
        saver.delete_thread(thread_id)
    assert not list(columns(path))


def test_what_is_equal_is_not_stored_alike_and_lies_there_once(path: Path) -> None:
    sizes = []
    for serde in (JsonPlusSerializer(), ring()):
        file = path.with_name(type(serde).__name__)
        for turn in range(40):  # each in a process of its own, as far as the saver can tell
            saver = opened(file, serde)
            thread = Thread(saver)
            found = saver.get_tuple(at("t"))
            if found:
                thread.head, thread.step, thread.counter = found.checkpoint["id"], turn, turn + 1
                thread.versions[thread.head] = dict(found.checkpoint["channel_versions"])
            items = [{"text": f"{n} {LARGE}"} for n in range(turn + 1)]  # equal, and no object of what was read
            thread.put({"list": items, "same": LARGE})
            saver.conn.close()
        stored = list(columns(file))
        sizes.append(sum(len(data) for *_, data in stored))
        if isinstance(serde, EncryptedSerializer):
            assert len({data for *_, data in stored}) == len(stored)
    assert sizes[1] < 1.5 * sizes[0]


def damaged(data: bytes) -> Iterator[bytes]:
    """The column with a bit flipped at each byte, and cut off."""
    every = max(1, len(data) // 40)
    for position in {*range(16), *range(0, len(data), every), len(data) - 1}:
        for bit in (1, 128):
            yield data[:position] + bytes([data[position] ^ bit]) + data[position + 1 :]
        yield data[:position]


def test_a_flipped_bit_or_a_cut_is_an_error(path: Path) -> None:
    saver = opened(path, ring())
    fill(saver)
    before = everything(saver)
    saver.conn.close()
    conn = connect(str(path))
    seen = set()
    for table, name, row, data in columns(path):
        if (table, name, len(data) // 100) in seen:
            continue
        seen.add((table, name, len(data) // 100))
        for wrong in damaged(data):
            conn.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = ?", (wrong, row))
            with pytest.raises(SerializationError) as raised:
                everything(SqliteSaver(conn, serde=ring()))
            assert isinstance(raised.value, CorruptValueError) and "thread 't'" in str(raised.value), (name, wrong)
        conn.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = ?", (data, row))
    assert everything(SqliteSaver(conn, serde=ring())) == before
    conn.close()


@pytest.mark.parametrize(
    ("serde", "says"),
    [
        (EncryptedSerializer(KeyRing({"now": b"x" * 32})), "another key"),
        (EncryptedSerializer(KeyRing({"next": b"k" * 32})), "'aes-gcm:now', which the key ring lacks"),
        (EncryptedSerializer.from_pycryptodome_aes(key=b"k" * 32), "aes-gcm:now"),
        (JsonPlusSerializer(), r"is encrypted \(aes-gcm:now\), and the saver has no key"),
    ],
    ids=["another", "not there", "LangGraph's", "none"],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda saver: saver.get_tuple(at("t")),
        lambda saver: list(saver.list(None, filter={"who": "x"})),
        lambda saver: saver.delete_for_runs(["r"]),
        lambda saver: saver.prune(["t"]),
        lambda saver: saver.copy_thread("t", "u"),
        lambda saver: Thread(saver).put({"list": [1]}, parent=next(iter(saver.conn.execute(NEWEST)))[0]),
    ],
)
def test_without_the_key_nothing_is_read_and_nothing_changed(
    path: Path, serde: Any, says: str, call: Callable[[Any], Any]
) -> None:
    saver = opened(path, ring())
    fill(saver)
    before = sorted(columns(path))
    saver.serde, saver._recall = serde, type(saver._recall)()
    with pytest.raises(CorruptValueError, match=says):
        call(saver)
    assert sorted(columns(path)) == before
    saver.conn.close()


@pytest.mark.parametrize("serde", [ring(), JsonPlusSerializer()], ids=["ring", "none"])
def test_encrypting_again_needs_the_older_key(path: Path, serde: Any) -> None:
    saver = opened(path, EncryptedSerializer(KeyRing({"old": OLD})))
    fill(saver)
    before, saver.serde = sorted(columns(path)), serde
    with pytest.raises(CorruptValueError, match="aes-gcm:old"):
        saver.reencrypt()
    assert sorted(columns(path)) == before
    saver.conn.close()


NEWEST = "SELECT max(checkpoint_id) FROM surestep_checkpoints"


@pytest.mark.parametrize(
    "before", [JsonPlusSerializer(), EncryptedSerializer(KeyRing({"old": OLD}))], ids=["clear", "old"]
)
def test_keys_change_while_the_database_is_in_use(path: Path, before: Any) -> None:
    saver = opened(path, before)
    fill(saver)
    kept = everything(saver)
    saver.serde = ring(old=OLD)
    assert everything(saver) == kept
    fill(saver, "new")
    both = everything(saver)
    assert saver.reencrypt() > 0 and saver.reencrypt() == 0
    check_pages(saver)
    saver.serde = ring()
    assert everything(saver) == both
    assert {data.partition(b"\0")[0] for *_, data in columns(path)} == {b"\x01\xc1aes-gcm:now"}
    saver.conn.close()


async def test_encrypting_again_awaited(path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        saver.serde = ring()
        for number in range(130):  # more than are read at a time
            await saver.aput_writes(at(f"t{number}", "1"), [("a", 1)], TASK)
            await saver.aput(at(f"t{number}"), {"v": 4, "id": "1", "channel_values": {}}, {}, {})  # type: ignore[typeddict-item]
        saver.serde = EncryptedSerializer(KeyRing({"then": OLD, "now": b"k" * 32}, current="then"))
        assert await saver.areencrypt() == 260 and await saver.areencrypt() == 0


def test_a_cipher_of_ones_own_and_a_serializer_that_does_it_all_itself(path: Path) -> None:
    class Turned:
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "turned", bytes(byte ^ 90 for byte in plaintext)

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            return bytes(byte ^ 90 for byte in ciphertext)

    class Counting(EncryptedSerializer):
        dumped = 0

        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            type(self).dumped += 1
            return super().dumps_typed(obj)

    for serde in (EncryptedSerializer(Turned()), Counting(Turned())):
        saver = opened(path.with_name(type(serde).__name__), serde)
        fill(saver)
        raw = b"".join(file.read_bytes() for file in path.parent.glob(f"{type(serde).__name__}*"))
        assert b"VAL" not in raw and b"METAKEY" not in raw and everything(saver)
        saver.conn.close()
    assert Counting.dumped


def test_nothing_readable_is_in_postgresql(postgres: str) -> None:
    import psycopg

    words = (b"VAL", b"METAKEY", b"inkey", b"inchannel", b"who", b"source")
    for serde, readable in ((JsonPlusSerializer(), True), (ring(), False)):
        with PostgresSaver.from_conn_string(postgres, serde=serde) as saver:
            saver.setup()
            fill(saver)
            with psycopg.connect(postgres) as conn:
                names = [
                    name
                    for (name,) in conn.execute(
                        "SELECT relname FROM pg_class WHERE relname LIKE 'surestep_%' "
                        "AND relkind = 'r' AND relnamespace = current_schema()::regnamespace"
                    )
                ]
                rows = [row for name in names for row in conn.execute(f"SELECT * FROM {name}")]
            raw = b" ".join(cell if isinstance(cell, bytes) else str(cell).encode() for row in rows for cell in row)
            assert len(rows) > 10 and any(word in raw for word in words) is readable
            assert saver.reencrypt() == 0
            saver.delete_thread("t")
