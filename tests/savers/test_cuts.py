"""The connection to PostgreSQL is cut at everything that a saver says to the server, before and after the server heard
it: a clear error or none, all or nothing is stored, and the saver works again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from harness.proxy import Proxy, proxy
from savers.history import LARGE, TASK, at, everything
from savers.kinds import Awaited, fresh_tenant
from savers.walk import check_pages

from surestep.checkpoint.base import CLAIM_KEY, HEAD_KEY, TaskWrites
from surestep.checkpoint.memory import InMemorySaver
from surestep.checkpoint.postgres import PostgresSaver
from surestep.checkpoint.postgres.aio import AsyncPostgresSaver
from surestep.errors import AlreadyAnswered

KINDS = ("postgres", "postgres-pool", "postgres-async", "postgres-async-pool")


@contextmanager
def opened(kind: str, conn_string: str, tenant: str) -> Iterator[Any]:
    pool: Any = {"min_size": 1, "max_size": 2} if kind.endswith("pool") else None
    if "async" not in kind:
        with PostgresSaver.from_conn_string(conn_string, tenant=tenant, pool_config=pool) as saver:
            yield saver
        return
    with asyncio.Runner() as runner:
        context = AsyncPostgresSaver.from_conn_string(conn_string, tenant=tenant, pool_config=pool)
        saver = runner.run(context.__aenter__())
        try:
            yield Awaited(saver, runner)
        finally:
            runner.run(context.__aexit__(None, None, None))


# ---- what is done ----


def step(number: int, parent: int | None, *, guard: bool = True, run: str = "r1") -> Callable[[Any], Any]:
    """A checkpoint after another one, with the writes that led to it."""

    def commit(saver: Any) -> Any:
        id, versions = f"{number:03}", {"log": f"{number:032}.0.{number:016}", "n": f"{number:032}.0.{number:016}"}
        checkpoint: Any = {
            "v": 4,
            "id": id,
            "ts": "",
            "channel_values": {"log": [LARGE + str(n) for n in range(number)], "n": number},
            "channel_versions": versions,
            "versions_seen": {},
            "updated_channels": ["log", "n"],
        }
        head = None if parent is None else f"{parent:03}"
        config = at("t", head, **({HEAD_KEY: head} if guard else {}))
        writes = [TaskWrites(TASK, "~p", [("n", number), ("log", [LARGE + str(number - 1)])])] if head else []
        return saver.commit(config, checkpoint, {"run_id": run}, versions, writes)

    return commit


def claim(saver: Any) -> Any:
    return saver.put_writes(at("t", "003", **{CLAIM_KEY: True}), [("__resume__", "yes")], "asked")


SCRIPT: list[Callable[[Any], Any]] = [
    step(1, None),
    step(2, 1),
    step(3, 2, run="r2"),
    lambda saver: saver.put_writes(at("t", "003"), [("x", LARGE)], "one"),
    lambda saver: saver.put_writes(at("t", "003"), [("x", 1), ("y", LARGE), ("__interrupt__", ["?"])], "asked"),
    claim,
    lambda saver: saver.get_tuple(at("t")),
    step(5, 3),
    step(4, 3, guard=False),
    lambda saver: list(saver.list(at("t"), limit=3)),
    lambda saver: saver.pin(at("t", "002"), "keep"),
    lambda saver: saver.copy_thread("t", "u"),
    lambda saver: saver.prune(["t"]),
    lambda saver: saver.delete_for_runs(["r2"]),
    lambda saver: saver.delete_thread("u"),
]


@pytest.mark.parametrize("heard", [False, True], ids=["unheard", "heard"])
@pytest.mark.parametrize("kind", ["postgres", "postgres-async-pool"])
def test_the_connection_is_cut(kind: str, heard: bool, place: Callable[[str], Any]) -> None:
    cut_at_every(4, kind, heard, place("postgres-tenant"))


@pytest.mark.slow
@pytest.mark.parametrize("heard", [False, True], ids=["unheard", "heard"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_connection_is_cut_everywhere(kind: str, heard: bool, place: Callable[[str], Any]) -> None:
    cut_at_every(1, kind, heard, place("postgres-tenant"))


def cut_at_every(nth: int, kind: str, heard: bool, direct: str) -> None:
    """Cut at every nth piece of each operation, the first one of which is another for each."""
    with proxy(direct) as (cutter, through):
        for index in range(len(SCRIPT)):
            piece = 1 + index % nth
            while cut(kind, cutter, direct, through, index, piece, heard):
                piece += nth


def cut(kind: str, cutter: Proxy, direct: str, through: str, index: int, piece: int, heard: bool) -> bool:
    """One trial: whether something was cut, or the operation says less than that."""
    tenant, model, operation = fresh_tenant(), InMemorySaver(), SCRIPT[index]
    with opened("postgres", direct, tenant) as witness, opened(kind, through, tenant) as saver:
        for earlier in SCRIPT[:index]:
            assert earlier(saver) == earlier(model)
        before = everything(model)
        expected = operation(model)
        after = everything(model)
        cutter.arm(piece, heard=heard)
        try:
            result = operation(saver)
        except psycopg.OperationalError as error:
            assert cutter.disarm()
            stored = everything(witness)
            assert stored in (before, after), "half of it is stored"
            notes = " ".join(error.__notes__)
            said = ("it is not" in notes and stored == before) or "nobody knows" in notes
            assert said or ("begun again" in notes and before == after)
            again(operation, saver, stored == after)
            was_cut = True
        else:
            was_cut = cutter.disarm()
            assert result == expected
        assert everything(witness) == after == everything(saver)
        check_pages(witness)
    return was_cut


def again(operation: Callable[[Any], Any], saver: Any, done: bool) -> None:
    """The saver works; what was stored in spite of the error is refused where it can be done once only."""
    if operation is claim and done:
        with pytest.raises(AlreadyAnswered):
            operation(saver)
    elif not done or operation not in SCRIPT[:9]:
        operation(saver)
