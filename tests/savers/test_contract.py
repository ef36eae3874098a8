"""The contract of savers, on every saver of ours, sync and async."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from savers.history import LARGE, TASK, Thread, at, everything, ids

from surestep.checkpoint.base import CLAIM_KEY, HEAD_KEY, TaskWrites, has_unit_of_work
from surestep.checkpoint.serde.base import TypeNotAllowedError, UnsavableTypeError
from surestep.checkpoint.serde.encrypted import EncryptedSerializer
from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer
from surestep.errors import AlreadyAnswered, ThreadConflict

OTHER = "5de32b4d-bbd5-2d5d-9b7d-4d2b5d8f0c1e"


# ---- checkpoints ----


def test_nothing_is_found_before_something_is_put(saver: Any) -> None:
    assert saver.get_tuple(at("t")) is None
    assert saver.get_tuple(at("t", "1")) is None
    assert saver.get(at("t")) is None
    assert list(saver.list(at("t"))) == list(saver.list(None)) == []


def test_a_checkpoint_comes_back(thread: Thread) -> None:
    values = {"n": 1, "none": None, "t": (1, 2), "large": [LARGE], "when": datetime.date(2024, 1, 1)}
    first = thread.put(values)
    found = thread.get()
    assert found is not None and found == thread.get(first)
    assert found.config == at("t", first) and found.parent_config is None
    assert found.checkpoint["channel_values"] == values
    assert found.checkpoint["channel_versions"] == thread.versions[first]
    assert found.metadata == {"source": "loop", "step": -1, "parents": {}}
    assert found.pending_writes == []
    second = thread.put({"n": 2})
    assert thread.get() == thread.get(second)
    assert thread.get().parent_config == at("t", first)  # type: ignore[union-attr]
    assert thread.saver.get(at("t"))["id"] == second


def test_values_are_inherited_until_they_change(thread: Thread) -> None:
    thread.put({"a": 1, "b": LARGE, "c": None})
    second = thread.put({"a": 2})
    third = thread.put({"b": "small now", "d": LARGE})
    fourth = thread.put({"a": LARGE}, empty=("b",))
    for id in (second, third, fourth):
        assert thread.get(id).checkpoint["channel_values"] == thread.values[id]  # type: ignore[union-attr]
    assert "b" not in thread.values[fourth]


def test_many_channels(thread: Thread) -> None:
    thread.put({f"c{i}": "x" * (i % 700) for i in range(400)}, empty=tuple(f"e{i}" for i in range(300)))
    for i in range(3):
        id = thread.put({f"c{i}": i, "e1": i})
        assert thread.get(id).checkpoint["channel_values"] == thread.values[id]  # type: ignore[union-attr]


def test_branches_have_their_own_values(thread: Thread) -> None:
    root = thread.put({"a": 0, "b": LARGE})
    left = thread.put({"a": 1, "x": LARGE})
    right = thread.put({"a": 2, "b": "r"}, parent=root)
    tip = thread.put({"y": 1}, parent=left)
    for id in (root, left, right, tip):
        assert thread.get(id).checkpoint["channel_values"] == thread.values[id]  # type: ignore[union-attr]
    assert thread.get(tip).parent_config == at("t", left)  # type: ignore[union-attr]
    assert thread.get().checkpoint["id"] == tip  # type: ignore[union-attr]


def test_the_latest_is_the_greatest_id_not_the_last_put(thread: Thread) -> None:
    thread.put({"a": 1}, id="2")
    thread.put({"a": 2}, id="1", parent=None)
    assert thread.get().checkpoint["id"] == "2"  # type: ignore[union-attr]


def test_the_same_id_again_replaces(thread: Thread) -> None:
    root = thread.put({"a": 0})
    thread.put({"a": 1}, id="8")
    thread.put({"a": 2, "b": LARGE}, id="8", parent=root, metadata={"more": 1})
    found = thread.get("8")
    assert found is not None and found.checkpoint["channel_values"] == {"a": 2, "b": LARGE}
    assert found.metadata["more"] == 1  # type: ignore[typeddict-item]
    assert ids(thread.saver.list(at("t"))) == ["8", root]


def test_threads_and_namespaces_are_apart(saver: Any) -> None:
    pieces = [Thread(saver, id, ns) for id in ("a", "b") for ns in ("", "inner", "inner:1|deep")]
    for number, piece in enumerate(pieces):
        piece.put({"n": number})
        piece.put({"m": LARGE})
    for number, piece in enumerate(pieces):
        assert piece.get().checkpoint["channel_values"] == {"n": number, "m": LARGE}  # type: ignore[union-attr]
    assert len(list(saver.list({"configurable": {"thread_id": "a"}}))) == 6
    assert len(list(saver.list(at("a")))) == 2
    assert len(list(saver.list(None))) == 12


def test_metadata_takes_scalars_of_the_config_and_of_configurable_what_is_listed(thread: Thread) -> None:
    id = thread.put({}, metadata={"text": "a\0b", "list": [1], "tuple": (1,), "none": None, "x": 1.5})
    configurable = {"user": "u", "n": 1, "flag": True, "__private": "p", "langgraph_step": 3, "obj": object()}
    config = {
        **at("t", id, **configurable, graph_id="g", api_key="sk-1"),
        "metadata": {"run_id": "r", "thread_id": "wrong", "text": "not this", "list2": [1], "nul": "\0"},
    }
    checkpoint = thread.get(id).checkpoint  # type: ignore[union-attr]
    expected = {"text": "ab", "tuple": (1,), "none": None, "run_id": "r", "nul": "", "graph_id": "g"}
    thread.saver.put(config, {**checkpoint, "id": "f"}, {"text": "a\0b", "tuple": (1,), "none": None}, {})
    assert thread.get("f").metadata == expected  # type: ignore[union-attr]
    thread.saver.metadata_keys = configurable
    thread.saver.put(config, {**checkpoint, "id": "g"}, {"text": "a\0b", "tuple": (1,), "none": None}, {})
    assert thread.get("g").metadata == {**expected, "user": "u", "n": 1, "flag": True}  # type: ignore[union-attr]


def test_what_is_given_back_is_a_copy(thread: Thread) -> None:
    thread.put({"a": [1]})
    found = thread.get()
    assert found is not None
    found.checkpoint["channel_values"]["a"].append(2)
    found.checkpoint["channel_versions"].clear()
    found.metadata.clear()  # type: ignore[attr-defined]
    again = thread.get()
    assert again is not None and again.checkpoint["channel_values"] == {"a": [1]} and again.metadata


def test_what_was_given_may_be_changed_afterwards(thread: Thread) -> None:
    value = [1]
    id = thread.put({"a": value})
    thread.saver.put_writes(at("t", id), [("a", value)], TASK)
    value.append(2)
    assert thread.get().checkpoint["channel_values"] == {"a": [1]}  # type: ignore[union-attr]
    assert thread.writes(id) == [(TASK, "a", [1])]


# ---- listing ----


def test_listing_is_newest_first_with_before_limit_and_filter(thread: Thread) -> None:
    made = [thread.put({"n": i}, metadata={"even": i % 2 == 0, "deep": {"n": i}}) for i in range(40)]
    newest = made[::-1]
    saver = thread.saver
    assert ids(saver.list(at("t"))) == newest
    assert ids(saver.list(at("t"), limit=3)) == newest[:3]
    assert ids(saver.list(at("t"), limit=25)) == newest[:25]
    assert ids(saver.list(at("t"), limit=0)) == []
    assert ids(saver.list(at("t"), before=at("t", made[5]))) == made[4::-1]
    assert ids(saver.list(at("t"), before=at("t", made[5]), limit=2)) == [made[4], made[3]]
    assert ids(saver.list(at("t", made[7]))) == [made[7]]
    assert ids(saver.list(at("t"), filter={"even": True})) == newest[1::2]
    assert ids(saver.list(at("t"), filter={"even": True}, limit=2)) == [made[38], made[36]]
    assert ids(saver.list(at("t"), filter={"step": 3, "source": "loop"})) == [made[4]]
    assert ids(saver.list(at("t"), filter={"deep": {"n": 7}})) == [made[7]]
    assert ids(saver.list(at("t"), filter={"deep.n": 7})) == [made[7]]
    assert ids(saver.list(at("t"), filter={"step": 3, "source": "input"})) == []
    assert ids(saver.list(at("t"), filter={"absent": None, "step": 0})) == [made[1]]
    assert ids(saver.list(None, filter={})) == newest
    found = next(iter(saver.list(at("t"))))
    assert found == thread.get()


@pytest.mark.parametrize("limit", [-1, "1; DROP TABLE x", 1.5, True])
def test_a_limit_is_a_number_from_zero(thread: Thread, limit: Any) -> None:
    thread.put({})
    with pytest.raises(ValueError, match="limit"):
        list(thread.saver.list(at("t"), limit=limit))


def test_a_filter_key_is_a_key(thread: Thread) -> None:
    thread.put({}, metadata={"a:b-c/d 1": "x"})
    assert len(list(thread.saver.list(None, filter={"a:b-c/d 1": "x"}))) == 1
    for key in ("x') OR '1'='1", 'a"', "a;b"):
        with pytest.raises(ValueError, match="Invalid filter key"):
            list(thread.saver.list(None, filter={key: "x"}))


def test_listing_across_threads_is_in_the_order_of_ids(saver: Any) -> None:
    threads = [Thread(saver, id) for id in ("b", "a")]
    for number in range(50):
        threads[number % 2].put({}, id=f"{number // 4:03}")
    found = [(t.checkpoint["id"], t.config["configurable"]["thread_id"]) for t in saver.list(None)]
    assert found == sorted(found, reverse=True) and len(found) == 26


def test_a_listing_goes_on_while_others_write(thread: Thread) -> None:
    made = [thread.put({"n": i}) for i in range(60)]
    listing = thread.saver.list(at("t"))
    first = next(listing)
    thread.put({"n": 99})
    assert [first.checkpoint["id"], *ids(listing)] == made[::-1]


# ---- writes ----


def test_writes_come_back_in_replay_order(thread: Thread) -> None:
    id = thread.put({})
    for task, path in (("b", "~2"), ("a", "~2"), ("c", "~1")):
        thread.saver.put_writes(at("t", id), [("x", task), ("y", LARGE), ("__interrupt__", ("?",))], task, path)
    assert thread.writes(id) == [
        (task, channel, value)
        for task in ("c", "a", "b")
        for channel, value in (("__interrupt__", ("?",)), ("x", task), ("y", LARGE))
    ]


def test_special_writes_replace_and_others_stay(thread: Thread) -> None:
    id = thread.put({})
    put = thread.saver.put_writes
    put(at("t", id), [("x", 1), ("__error__", "first")], TASK)
    put(at("t", id), [("x", 2), ("y", 3), ("__error__", "second"), ("__resume__", [1])], TASK)
    put(at("t", id), [("__resume__", [1, 2])], TASK, "~path")
    assert sorted(thread.writes(id), key=str) == sorted(
        [(TASK, "x", 1), (TASK, "y", 3), (TASK, "__error__", "second"), (TASK, "__resume__", [1, 2])], key=str
    )


def test_writes_to_one_checkpoint_are_not_seen_at_another(thread: Thread) -> None:
    first = thread.put({})
    second = thread.put({})
    thread.saver.put_writes(at("t", first), [("x", 1)], TASK)
    assert thread.writes(second) == [] and thread.writes(first) == [(TASK, "x", 1)]
    assert [found.pending_writes for found in thread.saver.list(at("t"))] == [[], [(TASK, "x", 1)]]


def test_no_writes_are_nothing(thread: Thread) -> None:
    id = thread.put({})
    thread.saver.put_writes(at("t", id), [], TASK)
    assert thread.writes(id) == []


@pytest.mark.parametrize("missing", ["thread_id", "checkpoint_id"])
def test_writes_need_an_address(saver: Any, missing: str) -> None:
    config = at("t", "1")
    del config["configurable"][missing]
    with pytest.raises(ValueError, match=missing):
        saver.put_writes(config, [("x", 1)], TASK)


# ---- the unit of work ----


def step(*values: tuple[str, Any], task: str = TASK, path: str = "~p") -> TaskWrites:
    return TaskWrites(task, path, values)


def test_a_commit_stores_the_checkpoint_and_its_parents_writes(thread: Thread) -> None:
    first = thread.put({"n": 0})
    second = thread.put({"n": 1}, writes=[step(("n", 1), ("large", LARGE)), step(("m", 2), task=OTHER, path="~o")])
    third = thread.put({"n": 2}, writes=[step(("n", 2))])
    assert thread.writes(first) == [(OTHER, "m", 2), (TASK, "n", 1), (TASK, "large", LARGE)]
    assert thread.writes(second) == [(TASK, "n", 2)] and thread.writes(third) == []
    assert [len(found.pending_writes) for found in thread.saver.list(at("t"))] == [0, 1, 3]


def test_a_commit_goes_on_with_writes_that_are_there(thread: Thread) -> None:
    first = thread.put({})
    thread.saver.put_writes(at("t", first), [("x", "early"), ("__error__", "old")], TASK, "~p")
    thread.put({}, writes=[step(("x", "late"), ("y", 2), ("__error__", "new"))])
    assert sorted(thread.writes(first)) == [(TASK, "__error__", "new"), (TASK, "x", "early"), (TASK, "y", 2)]


def test_writes_after_a_commit_follow_the_same_rule(thread: Thread) -> None:
    first = thread.put({})
    thread.put({}, writes=[step(("x", "early"), ("__error__", "old"))])
    thread.saver.put_writes(at("t", first), [("x", "late"), ("__error__", "new"), ("y", 3)], TASK, "~p")
    assert sorted(thread.writes(first)) == [(TASK, "__error__", "new"), (TASK, "x", "early"), (TASK, "y", 3)]


def test_a_fork_commits_to_its_own_parent(thread: Thread) -> None:
    first = thread.put({})
    second = thread.put({}, writes=[step(("x", 1))])
    fork = thread.put({}, parent=first, writes=[step(("x", 2), task=OTHER)])
    last = thread.put({}, parent=second, writes=[step(("x", 3))])
    assert thread.writes(first) == [(TASK, "x", 1), (OTHER, "x", 2)]
    assert thread.writes(second) == [(TASK, "x", 3)]
    assert thread.writes(fork) == thread.writes(last) == []


def test_a_checkpoint_put_in_between_changes_no_writes(thread: Thread) -> None:
    thread.put({}, id="10")
    thread.put({}, id="30", writes=[step(("x", 1))])
    thread.put({}, id="20", parent="10")
    thread.put({}, id="05", parent=None)
    thread.put({}, id="30", parent="20")
    thread.saver.put_writes(at("t", "20"), [("y", 1)], TASK)
    assert [thread.writes(id) for id in ("05", "10", "20", "30")] == [[], [(TASK, "x", 1)], [(TASK, "y", 1)], []]


def test_a_commit_that_fails_stores_nothing(thread: Thread) -> None:
    first = thread.put({"a": 1})
    before = everything(thread.saver)
    with pytest.raises(UnsavableTypeError, match="'lock'"):
        thread.put({"a": 2, "lock": object()}, writes=[step(("a", 2))])
    with pytest.raises(UnsavableTypeError, match="'y'"):
        thread.put({"a": 2}, writes=[step(("x", 1)), step(("y", object()), task=OTHER)])
    with pytest.raises(UnsavableTypeError, match="'y'"):
        thread.saver.put_writes(at("t", first), [("x", 1), ("y", object())], TASK)
    assert everything(thread.saver) == before


def test_writes_of_a_commit_need_a_parent(saver: Any) -> None:
    with pytest.raises(ValueError, match="checkpoint_id"):
        Thread(saver).put({}, writes=[step(("x", 1))])


def test_the_savers_offer_a_unit_of_work(saver: Any) -> None:
    assert has_unit_of_work(getattr(saver, "saver", saver))


# ---- one writer ----


def test_the_head_is_compared_and_set(thread: Thread) -> None:
    first = thread.put({"a": 1}, guard=None)
    second = thread.put({"a": 2}, guard=first, writes=[step(("a", 2))])
    before = everything(thread.saver)
    for guard in (None, first, "no such id"):
        for writes in (None, [step(("a", 3), task=OTHER)]):
            with pytest.raises(ThreadConflict) as caught:
                thread.put({"a": 3}, guard=guard, writes=writes)
            error = caught.value
            assert (error.thread_id, error.checkpoint_ns, error.expected, error.found) == ("t", "", guard, second)
    assert everything(thread.saver) == before
    thread.put({"a": 3}, guard=second)
    thread.put({"a": 4}, parent=first)  # without the key nobody asks


def test_the_head_is_that_of_the_namespace(saver: Any) -> None:
    Thread(saver).put({})
    inner = Thread(saver, ns="inner")
    inner.put({}, guard=None)
    with pytest.raises(ThreadConflict, match="inner"):
        inner.put({}, guard=None)


def test_an_answer_is_claimed_once(thread: Thread) -> None:
    first = thread.put({})
    claim = at("t", first, **{CLAIM_KEY: True})
    put = thread.saver.put_writes
    put(claim, [("__resume__", "yes")], TASK)
    with pytest.raises(AlreadyAnswered):
        put(claim, [("x", 1), ("__resume__", "no")], TASK)
    put(claim, [("__resume__", "other task")], OTHER)
    assert sorted(thread.writes(first)) == [(TASK, "__resume__", "yes"), (OTHER, "__resume__", "other task")]
    thread.put({}, writes=[step(("y", 1), task="third")])
    for channel in ("y", "__resume__"):
        with pytest.raises(AlreadyAnswered):
            put(claim, [(channel, 2)], "third" if channel == "y" else TASK)
    put(at("t", first), [("__resume__", "changed")], TASK)
    assert (TASK, "__resume__", "changed") in thread.writes(first)


def test_a_claim_sees_what_came_with_a_commit(thread: Thread) -> None:
    first = thread.put({})
    thread.put({}, writes=[step(("y", 1))])
    with pytest.raises(AlreadyAnswered):
        thread.saver.put_writes(at("t", first, **{CLAIM_KEY: True}), [("y", 2)], TASK)
    assert thread.writes(first) == [(TASK, "y", 1)]


def test_the_keys_are_never_stored(thread: Thread) -> None:
    first = thread.put({}, guard=None)
    thread.saver.put_writes(at("t", first, **{CLAIM_KEY: True}), [("x", 1)], TASK)
    assert HEAD_KEY not in repr(everything(thread.saver)) and CLAIM_KEY not in repr(everything(thread.saver))


# ---- forgetting ----


def two_threads(saver: Any) -> tuple[Thread, Thread]:
    pair = (Thread(saver, "t"), Thread(saver, "other"))
    for thread in pair:
        thread.put({"a": 1, "large": LARGE}, metadata={"run_id": "r1"})
        thread.put({"a": 2}, writes=[step(("a", 2))], metadata={"run_id": "r1"})
        thread.put({"a": 3}, writes=[step(("a", 3))], metadata={"run_id": "r2"})
        thread.put({"large": LARGE * 2}, writes=[step(("large", LARGE * 2))], metadata={"run_id": "r2"})
        inner = Thread(saver, thread.id, "inner")
        inner.put({"deep": LARGE}, metadata={"run_id": "r1"})
        saver.put_writes(at(thread.id, thread.head), [("pending", 1)], OTHER)
    return pair


def of_thread(saver: Any, id: str) -> list[Any]:
    return [item for item in everything(saver) if item[0]["configurable"]["thread_id"] == id]


def test_deleting_a_thread_deletes_all_of_it_and_nothing_else(saver: Any) -> None:
    two_threads(saver)
    others = of_thread(saver, "other")
    saver.delete_thread("t")
    saver.delete_thread("no such thread")
    assert everything(saver) == others and len(others) == 5
    thread = Thread(saver)
    thread.put({"a": 9}, guard=None)  # and the thread can begin again
    assert thread.get().checkpoint["channel_values"] == {"a": 9}  # type: ignore[union-attr]


def test_deleting_runs(saver: Any) -> None:
    two_threads(saver)
    last, third = list(saver.list(at("t")))[:2]
    saver.delete_for_runs(["r1", "no such run"])
    assert list(saver.list(at("t"))) == [last, third]
    assert [found.config["configurable"]["checkpoint_ns"] for found in saver.list(None)] == [""] * 4
    saver.delete_for_runs(["r2"])
    assert everything(saver) == []


def test_deleting_a_run_keeps_what_others_wrote_to_its_parent(thread: Thread) -> None:
    first = thread.put({"a": 1})
    thread.put({"a": 2}, writes=[step(("a", 2))], metadata={"run_id": "r"})
    thread.saver.delete_for_runs(["r"])
    assert thread.writes(first) == [(TASK, "a", 2)]
    assert ids(thread.saver.list(at("t"))) == [first]


def test_copying_a_thread(saver: Any) -> None:
    two_threads(saver)

    def moved(found: list[Any]) -> str:
        return repr(found).replace("'copy'", "'t'")

    before = of_thread(saver, "t")
    saver.copy_thread("t", "copy")
    assert moved(of_thread(saver, "copy")) == repr(before) == repr(of_thread(saver, "t"))
    saver.copy_thread("t", "t")
    saver.copy_thread("no such thread", "copy")
    saver.delete_thread("t")
    assert moved(of_thread(saver, "copy")) == repr(before)


def test_copying_onto_a_thread_with_a_history_of_its_own(saver: Any) -> None:
    source, target = Thread(saver, "source"), Thread(saver, "target")
    for number in range(3):
        for thread in (source, target):
            thread.put({"n": number}, writes=[step(("n", number))] if number else None)
    target.saver.put_writes(at("target", target.head), [("x", 1)], TASK)
    kept = of_thread(saver, "target")
    saver.copy_thread("source", "target")
    assert [item for item in of_thread(saver, "target") if item in kept] == kept
    assert len(of_thread(saver, "target")) == 6


def test_pruning_keeps_the_latest_of_each_namespace(saver: Any) -> None:
    thread, _ = two_threads(saver)
    latest = [thread.get(), saver.get_tuple(at("t", ns="inner"))]
    others = of_thread(saver, "other")
    saver.prune(["t", "no such thread"])
    assert list(saver.list({"configurable": {"thread_id": "t"}})) == sorted(
        latest, key=lambda found: found.checkpoint["id"], reverse=True
    )
    assert of_thread(saver, "other") == others
    id = thread.put({"a": 4}, writes=[step(("a", 4))])
    assert thread.get(id).checkpoint["channel_values"] == thread.values[id]  # type: ignore[union-attr]
    saver.prune(["t", "other"], strategy="delete")
    assert everything(saver) == []


def test_pruning_takes_a_list_and_a_known_strategy(saver: Any) -> None:
    with pytest.raises(TypeError, match=r"prune\(\['t'\]\)"):
        saver.prune("t")
    with pytest.raises(ValueError, match="keep_latest"):
        saver.prune(["t"], strategy="keep_some")


# ---- delta channels ----


def test_the_history_of_delta_channels(thread: Thread) -> None:
    thread.put({"n": 0, "seeded": ["seed"]})
    for number in (1, 2):
        thread.put({"n": number}, empty=("seeded",), writes=[step(("d", number), ("n", 0), ("seeded", number))])
    thread.saver.put_writes(at("t", thread.head), [("d", "pending")], TASK)
    ask = thread.saver.get_delta_channel_history
    assert ask(config=at("t"), channels=["d", "seeded", "none"]) == {
        "d": {"writes": [(TASK, "d", 1), (TASK, "d", 2)]},
        "seeded": {"writes": [(TASK, "seeded", 1), (TASK, "seeded", 2)], "seed": ["seed"]},
        "none": {"writes": []},
    }
    assert ask(config=at("t"), channels=[]) == {}
    assert ask(config=at("nobody"), channels=["d"]) == {"d": {"writes": []}}


# ---- versions and serializers ----


def test_versions_grow(saver: Any) -> None:
    versions = [None]
    for _ in range(12):
        versions.append(saver.get_next_version(versions[-1], None))
    assert versions[1:] == sorted(set(versions[1:]))
    assert versions[12].startswith(f"{12:032}.")
    assert saver.get_next_version(41, None).startswith(f"{42:032}.")


class Note:
    pass


def test_what_may_not_be_loaded_is_named_with_its_channel(thread: Thread) -> None:
    from unit.serde.shapes import Order

    first = thread.put({"order": Order(1)})
    with pytest.raises(TypeNotAllowedError, match=r"Channel 'order' of thread 't'.*shapes\.Order"):
        thread.get()
    view = thread.saver.with_allowlist([Order])
    assert view.get_tuple(at("t")).checkpoint["channel_values"] == {"order": Order(1)}
    view.put_writes(at("t", first), [("w", Order(2))], TASK)
    assert view.get_tuple(at("t")).pending_writes == [(TASK, "w", Order(2))]
    with pytest.raises(TypeNotAllowedError):
        thread.get()


def test_the_serializer_can_be_replaced(thread: Thread) -> None:
    thread.saver.serde = JsonPlusSerializer()
    plain = thread.put({"a": "clear text"})
    thread.saver.serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    secret = thread.put({"b": "hidden text"}, writes=[step(("b", "hidden text"))], metadata={"who": "hidden name"})
    assert thread.get(secret).checkpoint["channel_values"] == {"a": "clear text", "b": "hidden text"}  # type: ignore[union-attr]
    assert thread.writes(plain) == [(TASK, "b", "hidden text")]
    assert ids(thread.saver.list(None, filter={"who": "hidden name"})) == [secret]


def test_a_failure_is_kept_as_text_and_an_exception_in_the_state_as_such(thread: Thread) -> None:
    error = ValueError("both", 1)
    first = thread.put({"a": 1})
    thread.put({"error": error}, writes=[step(("error", error), ("__error__", error))])
    thread.saver.put_writes(at("t", first), [("__error__", KeyError("k"))], "other")
    kept = thread.get().checkpoint["channel_values"]["error"]  # type: ignore[union-attr]
    assert type(kept) is ValueError and kept.args == ("both", 1)
    stored = {(task, channel): value for task, channel, value in thread.writes(first)}
    assert stored[TASK, "__error__"] == "ValueError('both', 1)" and stored["other", "__error__"] == "KeyError('k')"
    assert type(stored[TASK, "error"]) is ValueError
