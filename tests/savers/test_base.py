"""The base class of savers, ids, and the functions that make checkpoints."""

from __future__ import annotations

import copy
import re
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.serde.shapes import Order

from surestep.channels import LastValue
from surestep.checkpoint import base
from surestep.checkpoint.base import (
    BaseCheckpointSaver,
    CheckpointTuple,
    copy_checkpoint,
    create_checkpoint,
    empty_checkpoint,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
    has_unit_of_work,
    saver_writes_inline,
    writes_sort_key,
)
from surestep.checkpoint.base import id as ids
from surestep.checkpoint.base.id import next_checkpoint_id, uuid6
from surestep.checkpoint.memory import InMemorySaver
from surestep.checkpoint.serde.base import SerializerCompat
from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer
from surestep.checkpoint.sqlite import SqliteSaver
from surestep.errors import EmptyChannelError

# ---- ids ----


def test_an_id_is_a_uuid_of_version_6_that_carries_the_step() -> None:
    for step, sequence in ((-2, "bffe"), (-1, "bfff"), (0, "8000"), (7, "8007")):
        id = next_checkpoint_id(step, None)
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-6[0-9a-f]{3}-" + sequence + r"-[0-9a-f]{12}", id)
    made = uuid6(node=5, clock_seq=3)
    assert (made.version, made.node, made.clock_seq) == (6, 5, 3)
    assert uuid6() < uuid6()
    assert ids.UUID is type(made)


def test_ids_grow_in_one_process_from_many_threads() -> None:
    made: list[list[str]] = [[] for _ in range(4)]

    def make(mine: list[str]) -> None:
        for step in range(500):
            mine.append(next_checkpoint_id(step, mine[-1] if mine else None))

    threads = [threading.Thread(target=make, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == sorted(mine) for mine in made)
    assert len({id for mine in made for id in mine}) == 2000


def test_an_id_follows_its_parent_whatever_the_clock_says(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_800_000_000_000_000_000
    monkeypatch.setattr(ids, "_last", 0)
    monkeypatch.setattr(ids, "_last_id", "")
    for behind in (0, 3600, 86_400 * 365):  # seconds that this machine's clock is behind the last one's
        monkeypatch.setattr(ids, "time_ns", lambda behind=behind: now - behind * 10**9)
        id = next_checkpoint_id(0, None)
        for step in range(3):
            after, id = id, next_checkpoint_id(step, id)
            assert id > after


@given(st.uuids().map(str) | st.just("1f1ed0b5-cc67-6464-bffe-58c70ad6a065"), st.integers(-2, 2**13))
def test_an_id_follows_ids_of_other_makes(after: str, step: int) -> None:
    last = ids._last, ids._last_id
    try:
        if after < "e":  # beyond that, 60 bits of time have no room for a later id
            assert next_checkpoint_id(step, after) > after
    finally:
        ids._last, ids._last_id = last


def test_ids_that_are_no_uuids_are_let_be() -> None:
    assert next_checkpoint_id(0, "zzz") and next_checkpoint_id(0, "z" * 36)


# ---- checkpoints ----


def test_creating_the_next_checkpoint_from_channels() -> None:
    full, empty, unversioned = LastValue(int), LastValue(int), LastValue(int)
    full.update([3])
    unversioned.update([4])
    before = {**empty_checkpoint(), "channel_versions": {"full": 1, "empty": 1}, "channel_values": {"full": 1}}
    made = create_checkpoint(before, {"full": full, "empty": empty, "unversioned": unversioned}, 5)
    assert made["channel_values"] == {"full": 3} and made["channel_versions"] == {"full": 1, "empty": 1}
    assert made["id"] > before["id"] and made["v"] == 4 and made["updated_channels"] is None
    assert create_checkpoint(before, None, 5, id="given")["id"] == "given"
    assert create_checkpoint(before, None, 5)["channel_values"] == {"full": 1}


def test_a_copy_can_be_changed() -> None:
    made = {**empty_checkpoint(), "versions_seen": {"n": {"a": 1}}, "pending_sends": [1]}
    clone = copy_checkpoint(made)
    assert clone == made
    clone["versions_seen"]["n"]["a"] = 2
    clone["channel_values"]["x"] = 1
    clone["pending_sends"].append(2)
    assert made["versions_seen"] == {"n": {"a": 1}} and not made["channel_values"] and made["pending_sends"] == [1]


def test_small_helpers() -> None:
    assert get_checkpoint_id({"configurable": {}}) is None
    assert get_checkpoint_id({"configurable": {"checkpoint_id": "1"}}) == "1"
    assert writes_sort_key("~a") == ("~a", "", 0)
    metadata: Any = {"source": "loop", "writes": 1}
    assert get_serializable_checkpoint_metadata({"metadata": {"a": 1}}, metadata) == {"source": "loop", "a": 1}
    assert base.EmptyChannelError is EmptyChannelError


# ---- the base class ----


class Bare(BaseCheckpointSaver[int]):
    """A saver of somebody else's, as little as possible."""

    found: dict[str, CheckpointTuple]

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        return self.found.get(config["configurable"]["checkpoint_id"])

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        return self.get_tuple(config)


async def test_what_a_saver_lacks_is_not_implemented() -> None:
    saver: Any = BaseCheckpointSaver()
    config: Any = {"configurable": {"thread_id": "t"}}
    calls = {
        "get_tuple": (config,),
        "list": (config,),
        "put": (config, {}, {}, {}),
        "put_writes": (config, [], "t"),
        "delete_thread": ("t",),
        "delete_for_runs": ([],),
        "copy_thread": ("a", "b"),
        "prune": ([],),
    }
    for name, arguments in calls.items():
        with pytest.raises(NotImplementedError):
            getattr(saver, name)(*arguments)
        with pytest.raises(NotImplementedError):
            if name == "list":
                [found async for found in saver.alist(config)]
            else:
                await getattr(saver, f"a{name}")(*arguments)
    assert saver.config_specs == []


def test_versions_are_numbers_by_default() -> None:
    saver: Any = BaseCheckpointSaver()
    assert [saver.get_next_version(current, None) for current in (None, 1, 2.5)] == [1, 2, 3.5]
    with pytest.raises(NotImplementedError):
        saver.get_next_version("1", None)


async def test_the_history_of_a_delta_channel_walks_the_parents() -> None:
    def at(id: str) -> Any:
        return {"configurable": {"checkpoint_id": id}}

    def saved(id: str, parent: str | None, value: Any, *writes: Any) -> CheckpointTuple:
        checkpoint: Any = {"id": id, "channel_values": {} if value is None else {"d": value}}
        return CheckpointTuple(at(id), checkpoint, {}, at(parent) if parent else None, list(writes))

    saver = Bare()
    saver.found = {
        "1": saved("1", "0", None, ("t", "d", "before the seed")),
        "2": saved("2", "1", "seed", ("t", "d", "first"), ("t", "x", "other")),
        "3": saved("3", "2", None, ("t", "d", "second")),
        "4": saved("4", "3", None, ("t", "d", "pending")),
    }
    expected = {
        "d": {"writes": [("t", "d", "first"), ("t", "d", "second")], "seed": "seed"},
        "x": {"writes": [("t", "x", "other")]},
    }
    assert saver.get_delta_channel_history(config=at("4"), channels=["d", "x"]) == expected
    assert await saver.aget_delta_channel_history(config=at("4"), channels=["d", "x"]) == expected
    assert saver.get(at("4")) == saver.found["4"].checkpoint
    assert (await saver.aget(at("9"))) is None


# ---- serializers and views ----


def test_an_untyped_serializer_is_wrapped() -> None:
    class Untyped:
        def dumps(self, obj: Any) -> bytes:
            return b""

        def loads(self, data: bytes) -> Any:
            return None

    assert isinstance(BaseCheckpointSaver(serde=Untyped()).serde, SerializerCompat)
    assert isinstance(BaseCheckpointSaver.serde, JsonPlusSerializer)
    assert BaseCheckpointSaver().serde is BaseCheckpointSaver.serde


def test_a_view_is_the_same_saver_with_more_types() -> None:
    class Mine(InMemorySaver):
        calls = 0

    saver = Mine()
    view = saver.with_allowlist([Order])
    assert type(view) is Mine and view is not saver and view.storage is saver.storage
    saver.calls = 5
    assert view.calls == 5
    saved = saver.serde.dumps_typed(Order(1))
    assert view.serde.loads_typed(saved) == Order(1)
    twice = view.with_allowlist([("some.module", "Name")])
    assert twice.serde.loads_typed(saved) == Order(1)
    # what is assigned to the saver later is seen by the view, with the view's types
    saver.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    assert view.serde is not saver.serde and view.serde.loads_typed(saved) == Order(1)
    assert saver.with_allowlist([]) is saver
    saver.serde = JsonPlusSerializer(allowed_msgpack_modules=True)
    assert saver.with_allowlist([Order]) is saver and view.serde is saver.serde


def test_savers_with_their_own_ways_are_copied() -> None:
    class Copies(BaseCheckpointSaver[int]):
        def __copy__(self) -> Any:
            clone = object.__new__(type(self))
            clone.__dict__ = {**self.__dict__, "copied": True}
            return clone

    class Fixed(BaseCheckpointSaver[int]):
        serde = JsonPlusSerializer(allowed_msgpack_modules=None)

    for saver in (Copies(serde=JsonPlusSerializer(allowed_msgpack_modules=None)), Fixed()):
        view = saver.with_allowlist([Order])
        assert view.serde.loads_typed(view.serde.dumps_typed(Order(1))) == Order(1)
        assert view is not saver
    assert copy.copy(Fixed()).serde is Fixed.serde


def test_a_serializer_without_allowlists_decides_itself(caplog: pytest.LogCaptureFixture) -> None:
    class Own:
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            return "own", b""

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            return None

    saver = InMemorySaver(serde=Own())
    assert saver.with_allowlist([Order]) is saver
    assert "does not support msgpack allowlists" in caplog.text


# ---- what a saver offers beyond the contract ----


def test_who_overrides_a_writing_method_sees_every_call() -> None:
    class Reads(InMemorySaver):
        def get_tuple(self, config: Any) -> Any:
            return super().get_tuple(config)

    class Logs(InMemorySaver):
        def put(self, *args: Any, **kwargs: Any) -> Any:
            return super().put(*args, **kwargs)

    class Grandchild(Logs):
        pass

    class LogsAsync(SqliteSaver):
        async def aput_writes(self, *args: Any, **kwargs: Any) -> Any: ...

    class CommitsItself(Logs):
        def commit(self, *args: Any, **kwargs: Any) -> Any: ...

    assert has_unit_of_work(InMemorySaver()) and saver_writes_inline(InMemorySaver())
    assert has_unit_of_work(Reads()) and saver_writes_inline(Reads())
    assert has_unit_of_work(CommitsItself()) and not saver_writes_inline(CommitsItself())
    for saver in (Logs(), Grandchild(), Bare(), object()):
        assert not has_unit_of_work(saver) and not saver_writes_inline(saver)
    patched = InMemorySaver()
    patched.put = lambda *args: {}  # type: ignore[method-assign]
    assert not has_unit_of_work(patched) and not saver_writes_inline(patched)
    with SqliteSaver.from_conn_string(":memory:") as saver:
        assert has_unit_of_work(saver) and not saver_writes_inline(saver)
    assert not has_unit_of_work(LogsAsync.__new__(LogsAsync))
