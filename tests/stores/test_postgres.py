"""Stores in PostgreSQL: LangGraph's tables, several threads and processes, connections of the caller's."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import cos, sin
from typing import Any

import langgraph.store.postgres as theirs
import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool
from stores import writer

from surestep._sql.store.dialect import POSTGRES
from surestep._sql.store.vectors import Pgvector
from surestep.store.base import GetOp, PutOp
from surestep.store.postgres import AsyncPostgresStore, PostgresStore

VALUE = {"text": "é", "n": 1.5, "list": [1, {"a": None}]}
INDEX: Any = {"dims": 2, "embed": lambda texts: [[float(text.count("a")), 1.0] for text in texts], "fields": ["text"]}


# LangGraph's tables


def test_what_langgraph_stored(postgres: str) -> None:
    with theirs.PostgresStore.from_conn_string(postgres, index=INDEX, ttl={"default_ttl": 10}) as their:
        their.setup()
        their.put(("u", "é"), "lives", VALUE)
        their.put(("u",), "ever", {"n": 2, "text": "aa"}, ttl=None)
        item = their.get(("u", "é"), "lives")
        assert item is not None
    with PostgresStore.from_conn_string(postgres, index=INDEX, ttl={"default_ttl": 0.5}) as store:
        read = store.get(("u", "é"), "lives", refresh_ttl=False)  # without setup()
        store.setup()
        assert read is not None and read.value == VALUE and read.created_at == item.created_at
        assert [found.key for found in store.search((), filter={"n": {"$lt": 2}})] == ["lives"]
        assert [found.key for found in store.search((), query="aaa")] == ["ever", "lives"]
        assert store.list_namespaces() == [("u",), ("u", "é")]
        store.put(("u",), "half", VALUE)
        store.get(("u",), "half")
        assert store.get(("u",), "half") is not None, "half a minute, not none"


def test_what_langgraph_reads(postgres: str) -> None:
    with PostgresStore.from_conn_string(postgres, index=INDEX) as store:
        store.setup()
        store.put(("u", "é"), "k", VALUE)
        store.put(("u", "é"), "gone", VALUE, ttl=0)
    with theirs.PostgresStore.from_conn_string(postgres, index=INDEX) as their:
        their.setup()
        item = their.get(("u", "é"), "k")
        assert item is not None and item.value == VALUE
        assert their.sweep_ttl() == 1
        assert [found.key for found in their.search((), query="a", filter={"text": "é"})] == ["k"]
        their.put(("u", "é"), "k2", VALUE, ttl=3)


# Several at once

WRITERS, ITEMS = 4, 15


def test_processes(postgres: str) -> None:
    outputs = writer.in_processes("postgres", postgres, WRITERS, ITEMS)
    assert outputs == [(str(ITEMS), "")] * WRITERS


@pytest.mark.parametrize("pool", [None, {"max_size": WRITERS}], ids=["connection", "pool"])
def test_threads(postgres: str, pool: Any) -> None:
    start = threading.Barrier(WRITERS)

    def run(number: int) -> int:
        start.wait()
        return writer.work(shared, f"w{number}", ITEMS)

    with (
        PostgresStore.from_conn_string(postgres, pool_config=pool) as shared,
        ThreadPoolExecutor(WRITERS) as threads,
    ):
        assert list(threads.map(run, range(WRITERS))) == [ITEMS] * WRITERS


# Connections


def test_a_connection_of_the_callers(postgres: str) -> None:
    with psycopg.connect(postgres, row_factory=dict_row) as conn:
        store = PostgresStore(conn)  # type: ignore[arg-type]
        store.setup()
        conn.execute("CREATE TABLE mine (n int)")
        store.put(("u",), "k", VALUE)
        conn.rollback()
        assert store.get(("u",), "k") is None, "it was part of the caller's transaction"
        conn.commit()
        store.put(("u",), "k", VALUE)
        conn.rollback()
        assert store.get(("u",), "k") is not None


def test_a_pool_of_the_callers(postgres: str) -> None:
    with ConnectionPool(postgres, min_size=1, max_size=2, open=True) as pool:
        store = PostgresStore(pool)
        store.setup()
        store.put(("u",), "k", VALUE)
    with PostgresStore.from_conn_string(postgres) as other:
        assert other.get(("u",), "k") is not None


def test_a_pipeline(postgres: str) -> None:
    with PostgresStore.from_conn_string(postgres, pipeline=True) as store:
        store.setup()
        store.batch([PutOp(("u",), str(n), {"n": n}) for n in range(10)])
        results = store.batch([GetOp(("u",), str(n)) for n in range(10)])
        assert [item.value["n"] for item in results] == [*range(10)]  # type: ignore[union-attr]


def test_a_connection_of_a_pool_that_died(postgres: str) -> None:
    with PostgresStore.from_conn_string(postgres, pool_config={"max_size": 1}) as store:
        store.setup()
        with psycopg.connect(postgres, autocommit=True) as conn:
            conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        store.put(("u",), "k", VALUE)
        assert store.get(("u",), "k") is not None


def test_no_prepared_statements_unless_asked_for(postgres: str) -> None:
    with PostgresStore.from_conn_string(postgres) as store:
        store.setup()
        for number in range(10):
            store.batch([PutOp(("u",), str(number), VALUE), GetOp(("u",), "0")])
        assert store.conn.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


def test_a_database_that_was_not_set_up(postgres: str) -> None:
    with PostgresStore.from_conn_string(postgres) as store:
        with pytest.raises(psycopg.errors.UndefinedTable) as raised:
            store.put(("u",), "k", VALUE)
        assert any("setup()" in note for note in raised.value.__notes__)
        store.setup()
        store.put(("u",), "k", VALUE)


async def test_an_async_database_that_was_not_set_up(postgres: str) -> None:
    async with AsyncPostgresStore.from_conn_string(postgres, pipeline=True) as store:
        with pytest.raises(psycopg.errors.UndefinedTable) as raised:
            await store.aput(("u",), "k", VALUE)
        assert any("setup()" in note for note in raised.value.__notes__)
        await store.setup()
        await asyncio.gather(*[store.aput(("u",), str(n), VALUE) for n in range(10)])
        assert len(await store.asearch((), limit=100)) == 10


async def test_a_cancelled_call_leaves_the_store_usable(postgres: str) -> None:
    async with AsyncPostgresStore.from_conn_string(postgres) as store:
        await store.setup()
        for number in range(5):
            calls = [store.aput(("u",), "k", {"n": number}), store.asearch(())]
            tasks = [asyncio.ensure_future(call) for call in calls]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        await store.aput(("u",), "k", {"n": 5})
        assert (await store.aget(("u",), "k")).value == {"n": 5}  # type: ignore[union-attr]


def test_two_batches_that_overlap_the_other_way_round(postgres: str) -> None:
    def put(keys: list[str]) -> None:
        with PostgresStore.from_conn_string(postgres, ttl={"default_ttl": 5}) as store:
            start.wait()
            for _ in range(20):
                store.batch([GetOp(("u",), keys[-1]), *[PutOp(("u",), key, VALUE, ttl=5) for key in keys]])
                store.search(("u",))

    start = threading.Barrier(2)
    keys = [str(number) for number in range(20)]
    with PostgresStore.from_conn_string(postgres) as store:
        store.setup()
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(put, keys), threads.submit(put, keys[::-1])]:
            done.result()


# Vectors


@pytest.mark.parametrize("vector_type", ["vector", "halfvec"])
@pytest.mark.parametrize(
    "ann",
    [{}, {"kind": "hnsw", "m": 8, "ef_construction": 32}, {"kind": "ivfflat", "nlist": 2}, {"kind": "flat"}],
    ids=["default", "hnsw", "ivfflat", "flat"],
)
def test_how_vectors_are_kept(postgres: str, vector_type: str, ann: Any) -> None:
    index = {**INDEX, "ann_index_config": {**ann, "vector_type": vector_type}}
    with PostgresStore.from_conn_string(postgres, index=index) as store:
        store.setup()
        store.setup()
        for text in ("", "a", "aaaa"):
            store.put(("u",), text, {"text": text})
        assert [found.key for found in store.search((), query="aaaaaa")] == ["aaaa", "a", ""]


@pytest.mark.parametrize("kind", ["hnsw", "ivfflat"])
@pytest.mark.parametrize("distance", ["cosine", "l2", "inner_product"])
def test_a_search_follows_the_index(postgres: str, kind: str, distance: str) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[cos(float(text)), sin(float(text))] for text in texts]

    index: Any = {"dims": 2, "embed": embed, "fields": ["at"], "distance_type": distance}
    angles = [f"{number / 100:.2f}" for number in range(300)]
    with PostgresStore.from_conn_string(postgres, index={**index, "ann_index_config": {"kind": kind}}) as store:
        store.setup()
        store.batch([PutOp(("far",), at, {"at": at}) for at in angles])
        store.batch([PutOp(("near",), at, {"at": at}) for at in angles[::10]])
        store.put(("near",), "bare", {"at": "1.57"}, index=False)
        plans = []
        with psycopg.connect(postgres, autocommit=True) as conn:
            conn.execute("SET enable_seqscan = off; SET enable_sort = off")
            for sql, params in asked(Pgvector(POSTGRES, store.index_config), "near", [1.0, 0.0]):
                plans += [row[0] for row in conn.execute("EXPLAIN " + sql.replace("?", "%s"), params)]
        assert any("store_vectors_embedding_idx" in line for line in plans)
        found = store.search(("near",), query="1.00", limit=3)
        assert found[0].key == "1.00" and len(found) == 3
        assert {item.key for item in found[1:]} == {"0.90", "1.10"}
        exact = store.search(("near",), query="1.00", limit=3, filter={"at": {"$ne": "none"}})
        assert [item.score for item in found] == pytest.approx([item.score for item in exact])
        assert len(store.search(("near",), query="1.00", limit=100)) == 31, "what has no vector comes last"


def asked(ranking: Pgvector, prefix: str, query: list[float]) -> list[tuple[str, Any]]:
    """The statements by which the nearest are found."""
    steps = ranking.nearest(prefix, query, 7)
    statements = []
    with suppress(StopIteration):
        statement = next(steps)
        while True:
            statements.append(statement)
            statement = steps.send(())
    return statements[1:]


def test_an_index_that_there_is_not(postgres: str) -> None:
    for config, message in (({"kind": "tree"}, "kind of index 'tree'"), ({"vector_type": "bit"}, "vector_type 'bit'")):
        with (
            pytest.raises(ValueError, match=message),
            PostgresStore.from_conn_string(postgres, index={**INDEX, "ann_index_config": config}),
        ):
            pass


def test_a_server_without_pgvector(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute("CREATE VIEW pg_available_extensions AS SELECT 'other' AS name")
    catalog_last = postgres.replace(",public", ",public,pg_catalog")
    with (
        PostgresStore.from_conn_string(catalog_last, index=INDEX) as store,
        pytest.raises(RuntimeError, match="does not have the extension pgvector"),
    ):
        store.setup()
    with PostgresStore.from_conn_string(catalog_last) as store:
        with pytest.raises(psycopg.errors.UndefinedTable):
            store.get(("u",), "k")
        store.setup()
        store.put(("u",), "k", VALUE)
