"""The ledger of effects, one contract for every saver."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from surestep._core.effects import MOVES, NEW, moved
from surestep._records import Decision, EffectRecord
from surestep.checkpoint.serde.encrypted import EncryptedSerializer, KeyRing
from surestep.checkpoint.sqlite import SqliteSaver, connect

STATES = ("held", "admitted", "done", "failed", "unknown", "cancelled", "fenced")


def record(state: str = "admitted", **changes: Any) -> EffectRecord:
    given = {
        "checkpoint_id": "c1",
        "task_id": "k1",
        "digest": "d",
        "attempt": 1,
        "arguments": {"amount": 4},
        "asked_at": "2026-01-01",
        "changed_at": "2026-01-02",
    }
    return EffectRecord("e1", "t1", "pay", state, **{**given, **changes})


@contextmanager
def encrypted(path: Path, *names: str) -> Iterator[SqliteSaver]:
    """A saver that encrypts with the first of these keys."""
    ring = KeyRing({name: name[0].encode() * 32 for name in names}, current=names[0])
    conn = connect(str(path))
    yield SqliteSaver(conn, serde=EncryptedSerializer(ring))
    conn.close()


def put(saver: Any, state: str) -> None:
    """A record in that state, by moves that lead there."""
    ways = {
        "held": ["hold"],
        "admitted": ["admit"],
        "done": ["admit", "land"],
        "failed": ["admit", "fail"],
        "unknown": ["admit", "doubt"],
        "fenced": ["fence"],
        "cancelled": ["hold", "cancel"],
    }
    for kind in ways.get(state, ()):
        assert saver.move_effects([moved(kind, record(MOVES[kind][1]))]) == [None]


@pytest.mark.parametrize("kind", MOVES)
@pytest.mark.parametrize("before", (NEW, *STATES))
def test_a_record_moves_as_the_table_says(saver: Any, kind: str, before: str) -> None:
    put(saver, before)
    starts, state = MOVES[kind]
    (there,) = saver.move_effects([moved(kind, record(state, attempt=7))])
    found = {one.id: one for one in saver.get_effects("t1")}
    if before in starts:
        assert there is None and (found["e1"].state, found["e1"].attempt) == (state, 7)
    elif before == NEW:
        assert there is not None and not found
    else:
        assert there is not None and there.state == found["e1"].state == before and found["e1"].attempt == 1


@pytest.mark.parametrize("other", [{"digest": "other"}, {"name": "other"}])
def test_another_intent_under_the_same_id_is_refused(saver: Any, other: dict[str, str]) -> None:
    put(saver, "held")
    (there,) = saver.move_effects([moved("admit", record()._replace(**other))])
    assert there.name == "pay" and there.digest == "d" and there.state == "held"


def test_values_come_back_and_errors_as_they_were(saver: Any) -> None:
    saver.move_effects([moved("admit", record())])
    saver.move_effects([moved("land", record("done", result={"receipt": (1, "x")}, late=True, reason="r", actor="a"))])
    (found,) = saver.get_effects("t1", task_id="k1")
    assert found == record("done", result={"receipt": (1, "x")}, late=True, reason="r", actor="a")
    saver.move_effects([moved("admit", record()._replace(id="e2"))])
    saver.move_effects([moved("fail", record("failed", result=ValueError("no", 7))._replace(id="e2"))])
    failed = next(one for one in saver.get_effects("t1") if one.id == "e2")
    assert type(failed.result) is ValueError and failed.result.args == ("no", 7)


def test_records_are_found_by_thread_by_task_and_by_id(saver: Any) -> None:
    rows = [("e1", "t1", "k1"), ("e2", "t1", "k2"), ("e3", "t2", "k3")]
    saver.move_effects([moved("admit", record()._replace(id=e, thread_id=t, task_id=k)) for e, t, k in rows])
    ids = lambda found: sorted(one.id for one in found)  # noqa: E731
    assert ids(saver.get_effects("t1")) == ["e1", "e2"]
    assert ids(saver.get_effects("t1", task_id="k2")) == ["e2"]
    assert ids(saver.get_effects("t1", task_id="k2", id="e3")) == ["e2", "e3"]


def test_a_decision_counts_once_and_cancels_what_is_held_at_its_checkpoint(saver: Any) -> None:
    held = [("e1", "t1", "c1"), ("e2", "t1", "c2"), ("e3", "t2", "c1")]
    saver.move_effects([moved("hold", record("held")._replace(id=e, thread_id=t, checkpoint_id=c)) for e, t, c in held])
    saver.move_effects([moved("admit", record()._replace(id="e4"))])
    decision = Decision("t1", "q1", "reject", "2026-01-03", "ann", "no", checkpoint_id="c1")
    saver.decide([decision], cancels=True)
    states = {one.id: (one.state, one.reason, one.actor) for one in saver.get_effects("t1")}
    assert states == {"e1": ("cancelled", "no", "ann"), "e2": ("held", None, None), "e4": ("admitted", None, None)}
    assert [one.state for one in saver.get_effects("t2")] == ["held"]
    saver.move_effects([moved("hold", record("held")._replace(id="e5"))])
    saver.decide([decision._replace(reason="again")], cancels=True)
    assert {one.id: one.state for one in saver.get_effects("t1")}["e5"] == "held"
    assert saver.get_decisions("t1") == [decision] and saver.get_decisions("t2") == []


def test_of_many_who_move_one_record_one_does(tmp_path: Path) -> None:
    """From threads with connections of their own, as processes have them."""
    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as first:
        first.get_effects("t1")
        results: list[Any] = []

        def race(number: int) -> None:
            with SqliteSaver.from_conn_string(str(tmp_path / "db")) as mine:
                results.append(mine.move_effects([moved("admit", record(attempt=number))])[0])

        threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len([one for one in results if one is None]) == 1
        winner = first.get_effects("t1")[0].attempt
        assert {one.attempt for one in results if one is not None} == {winner}


def test_with_a_cipher_nothing_of_it_is_readable_and_keys_change(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with encrypted(path, "old") as saver:
        saver.move_effects([moved("admit", record(arguments={"secret": "ARGVAL"}))])
        saver.move_effects([moved("land", record("done", arguments="ARGVAL", result="RESVAL", reason="WHYVAL"))])
        saver.decide([Decision("t1", "q", "reject", "2026", reason="WHYVAL")])
    conn = sqlite3.connect(path)
    stored = b"".join(
        bytes(str(row), "utf8")
        for table in ("effects", "decisions")
        for row in conn.execute(f"SELECT * FROM surestep_{table}")
    )
    assert b"VAL" not in stored
    conn.close()
    with encrypted(path, "new", "old") as saver:
        assert saver.reencrypt() >= 1
    with encrypted(path, "new") as saver:
        (found,) = saver.get_effects("t1")
        assert (found.arguments, found.result, found.reason) == ("ARGVAL", "RESVAL", "WHYVAL")
