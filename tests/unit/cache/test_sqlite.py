"""The cache in an SQLite file."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from surestep.cache.sqlite import SqliteCache

NS, OTHER = ("writes", "node"), ("writes", "other")


@pytest.fixture
def cache(tmp_path: Path) -> SqliteCache[Any]:
    return SqliteCache(path=str(tmp_path / "cache.db"))


def test_what_was_stored_is_found(cache: SqliteCache[Any]) -> None:
    cache.set({(NS, "a"): ([("k", [1])], None), (NS, "b"): ("text", None)})
    assert cache.get([(NS, "b"), (NS, "c"), (OTHER, "b")]) == {(NS, "b"): "text"}
    assert [tuple(pair) for pair in cache.get([(NS, "a")])[NS, "a"]] == [("k", [1])]
    assert cache.get([]) == {}
    cache.set({(NS, "b"): ("newer", None)})
    assert cache.get([(NS, "b")]) == {(NS, "b"): "newer"}


def test_a_value_lives_for_its_time(cache: SqliteCache[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    every = [(NS, key) for key in ("short", "long", "ever", "never")]
    cache.set({every[0]: (1, 10), every[1]: (2, 20), every[2]: (3, None), every[3]: (4, 0)})
    assert set(cache.get(every).values()) == {1, 2, 3}
    now[0] += 10
    assert set(cache.get(every).values()) == {2, 3}
    now[0] += 1000
    cache.set({(OTHER, "x"): (5, None)})
    assert cache._file.connection.execute("SELECT count(*) FROM cache").fetchone() == (2,), "what expired is deleted"


def test_clearing(cache: SqliteCache[Any]) -> None:
    cache.set({(NS, "a"): (1, None), (OTHER, "a"): (2, None)})
    cache.clear([NS, ("unknown",)])
    assert cache.get([(NS, "a"), (OTHER, "a")]) == {(OTHER, "a"): 2}
    cache.clear([])
    assert cache.get([(OTHER, "a")]) == {(OTHER, "a"): 2}
    cache.clear()
    assert cache.get([(OTHER, "a")]) == {}


async def test_the_async_methods_do_the_same(cache: SqliteCache[Any]) -> None:
    await cache.aset({(NS, "a"): (1, None)})
    assert await cache.aget([(NS, "a")]) == {(NS, "a"): 1} == cache.get([(NS, "a")])
    await cache.aclear([NS])
    assert await cache.aget([(NS, "a")]) == {}


def test_a_value_that_cannot_be_saved_changes_nothing(cache: SqliteCache[Any]) -> None:
    cache.set({(NS, "a"): (1, None)})
    with pytest.raises(TypeError, match="can't be saved"):
        cache.set({(NS, "a"): (2, None), (NS, "b"): (lambda: 1, None)})
    assert cache.get([(NS, "a"), (NS, "b")]) == {(NS, "a"): 1}


def test_it_outlives_its_process(tmp_path: Path) -> None:
    path = str(tmp_path / "cache.db")
    code = f"""
from surestep.cache.sqlite import SqliteCache
SqliteCache(path={path!r}).set({{(("writes", "node"), "a"): ([1, 2], None)}})
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    cache: SqliteCache[Any] = SqliteCache(path=path)
    assert cache.get([(NS, "a")]) == {(NS, "a"): [1, 2]}


def test_a_view_with_more_classes_uses_the_same_file(cache: SqliteCache[Any]) -> None:
    view = cache.with_allowlist([("somewhere", "Class")])
    assert view is not cache and view.with_allowlist([("somewhere", "Class")]) is view
    view.set({(NS, "a"): (1, None)})
    del view
    assert cache.get([(NS, "a")]) == {(NS, "a"): 1}


def test_threads_may_use_it_at_once(cache: SqliteCache[Any]) -> None:
    def work(number: int) -> None:
        for k in range(20):
            cache.set({(NS, f"{number}-{k}"): (k, None)})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache.get([(NS, f"{number}-{k}") for number in range(4) for k in range(20)])) == 80
