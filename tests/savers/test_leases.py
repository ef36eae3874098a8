"""Leases: one contract for every saver."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from savers.history import TASK, Thread, at
from savers.kinds import KINDS

from surestep._core.effects import moved
from surestep._records import EffectRecord
from surestep.checkpoint.base._leases import HOLD_KEY, RELEASE_KEY, Hold
from surestep.errors import RunCancelled, RunFenced

LOOPS = ("async", "awaited", "aiosqlite", "async-pool")  # one loop drives these, one call after the other


def hold(name: str, thread: str = "t") -> Hold:
    return Hold(thread, name, 10.0)


def write(saver: Any, thread: Thread, mine: Hold, **more: Any) -> None:
    config = at(thread.id, thread.head)
    config["configurable"] |= {HOLD_KEY: mine, **more}
    saver.put_writes(config, [("x", 1)], f"{TASK}{mine.holder}")


@pytest.fixture
def t(saver: Any) -> Thread:
    thread = Thread(saver, "t")
    thread.put({"x": 0})
    return thread


def test_the_first_write_takes_the_thread_and_makes_another_ones_fail(saver: Any, t: Thread) -> None:
    one, two = hold("one"), hold("two")
    write(saver, t, one)
    write(saver, t, one)
    assert saver.get_lease("t")[1:3] == (1, "one") and saver.get_lease("t").base_id == t.head
    write(saver, t, two)
    assert saver.get_lease("t")[1:3] == (2, "two")
    with pytest.raises(RunFenced):
        write(saver, t, one)
    record = EffectRecord("e", "t", "pay", "admitted", digest="d")
    with pytest.raises(RunFenced):
        saver.move_effects([moved("admit", record)], one)
    assert list(saver.get_effects("t")) == []
    saver.move_effects([moved("admit", record)], two)


def test_a_commit_needs_the_thread_and_may_let_it_go(saver: Any, t: Thread) -> None:
    one, two = hold("one"), hold("two")
    write(saver, t, one)
    write(saver, t, two)
    with pytest.raises(RunFenced):
        t.put({"x": 1}, private={HOLD_KEY: one})
    assert saver.get_tuple(at("t")).checkpoint["channel_values"] == {"x": 0}
    t.put({"x": 2}, private={HOLD_KEY: two, RELEASE_KEY: True})
    assert saver.get_lease("t").holder is None and two.released
    assert saver.get_tuple(at("t")).checkpoint["channel_values"] == {"x": 2}


def test_commits_alone_take_the_thread_and_need_it(saver: Any) -> None:
    one, two, thread = hold("one"), hold("two"), Thread(saver, "t")
    first = thread.put({"x": 0}, private={HOLD_KEY: one})
    assert saver.get_lease("t")[1:3] == (1, "one") and saver.get_lease("t").base_id is None
    thread.put({"x": 1}, private={HOLD_KEY: one})
    thread.put({"x": 2}, private={HOLD_KEY: two})
    lease = saver.get_lease("t")
    assert lease[1:3] == (2, "two") and lease.base_id > first and lease.expires_at == lease.taken_at + 10
    with pytest.raises(RunFenced):
        thread.put({"x": 3}, private={HOLD_KEY: one})
    inner = Thread(saver, "t", "inner")
    inner.put({"y": 0}, private={HOLD_KEY: two})
    with pytest.raises(RunFenced):
        inner.put({"y": 1}, private={HOLD_KEY: one})
    newest = thread.put({"x": 3}, private={HOLD_KEY: two, RELEASE_KEY: True})
    assert saver.get_lease("t").holder is None and two.released
    three = hold("three")
    inner.put({"y": 1}, private={HOLD_KEY: three, RELEASE_KEY: True})
    assert saver.get_lease("t")[1:3] == (3, None) and saver.get_lease("t").base_id == newest


def test_a_held_thread_is_had_by_who_takes_it_or_when_the_lease_has_ended(saver: Any) -> None:
    one, two = hold("one"), hold("two")
    assert saver.acquire(one, "free", 100.0) == (True, None)
    ok, before = saver.acquire(two, "free", 105.0)
    assert not ok and before.holder == "one" and before.expires_at == 110.0
    assert saver.renew(one, 108.0) and saver.get_lease("t").expires_at == 118.0
    assert not saver.acquire(two, "free", 117.0)[0]
    ok, before = saver.acquire(two, "free", 119.0)
    assert ok and before.holder == "one" and saver.get_lease("t").epoch == 2
    assert not saver.renew(one, 119.0)
    saver.release(one)
    assert saver.get_lease("t").holder == "two"
    assert saver.acquire(one, "take", 120.0)[0] and saver.get_lease("t")[1:3] == (3, "one")
    saver.release(one)
    assert saver.get_lease("t").holder is None


def test_who_waits_gets_it_in_order_and_the_dead_are_passed_over(saver: Any) -> None:
    one, two, three = hold("one"), hold("two"), hold("three")
    saver.acquire(one, "free", 100.0)
    second, third = saver.queue(two, 100.0), saver.queue(three, 101.0)
    assert not saver.acquire(two, "turn", 101.0, second)[0]
    saver.release(one)
    assert not saver.acquire(three, "turn", 102.0, third)[0]
    assert saver.queue(three, 105.0, third) == third
    assert saver.acquire(three, "turn", 111.0, third)[0]  # the other one's ticket has ended at 110
    saver.release(three)
    assert saver.queue(two, 112.0, second) == second
    assert saver.acquire(two, "turn", 112.0, second)[0]
    fourth = saver.queue(one, 113.0)
    saver.leave_queue(one)
    saver.release(two)
    assert not saver.acquire(one, "turn", 113.0, fourth)[0]


def test_a_stop_says_who_and_why(saver: Any, t: Thread) -> None:
    assert saver.stop("t", 1.0) is None
    one = hold("one")
    write(saver, t, one)
    assert saver.stop("t", 2.0, "enough", "ann").holder == "one"
    with pytest.raises(RunCancelled) as told:
        write(saver, t, one)
    assert (told.value.reason, told.value.actor) == ("enough", "ann")
    assert saver.stop("t", 3.0) is None
    write(saver, t, hold("two"))


def test_deleting_a_thread_forgets_its_lease(saver: Any, t: Thread) -> None:
    write(saver, t, hold("one"))
    saver.queue(hold("two"), 1.0)
    saver.delete_thread("t")
    assert saver.get_lease("t") is None


@pytest.mark.parametrize("saver", [kind for kind in KINDS if not kind.endswith(LOOPS)], indirect=True)
def test_of_many_who_want_a_free_thread_one_gets_it(saver: Any) -> None:
    got: list[bool] = []

    def race(number: int) -> None:
        got.append(saver.acquire(hold(str(number)), "free", 100.0)[0])

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]
