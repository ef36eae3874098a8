"""What a caller keeps to himself is not stored: entries of `configurable`, and with a cipher everything."""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from cases.shared import Bodies, Log
from harness.engine import Boom, Engine

from surestep.checkpoint.serde.encrypted import EncryptedSerializer, KeyRing

SECRETS = {"api_key": "sk-KEPT-1", "user": "KEPT-2", "pin": 471147114711, "headers": {"auth": "KEPT-3"}}


@pytest.fixture(params=["sync", "async"])
def E(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with Engine("surestep", request.param) as engine:
        yield engine


@pytest.fixture
def kept(tmp_path: Path, E: Engine) -> Iterator[Any]:
    """A saver on a file, and what reads the file."""
    path = tmp_path / "db"
    if E.is_async:
        context = E.AsyncSqliteSaver.from_conn_string(str(path))
        saver = E.wait(context.__aenter__())
    else:
        context = E.SqliteSaver.from_conn_string(str(path))
        saver = context.__enter__()
    yield saver, lambda: b"".join(file.read_bytes() for file in tmp_path.iterdir())
    if E.is_async:
        E.wait(context.__aexit__(None, None, None))
    else:
        context.__exit__(None, None, None)


def conversation(E: Engine, saver: Any, **configurable: Any) -> Any:
    """A run with a graph inside, a question, an answer, an edit and a fork; all with these in `configurable`."""
    bodies = Bodies(E)
    inner = E.graph(Log, {"x": bodies.say("x"), "a": bodies.ask("a")}, "START > x > a").compile()
    app = E.graph(Log, {"sub": inner, "z": bodies.say("z")}, "START > sub > z").compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "1", **configurable}, "metadata": {"tenant": "shown"}}
    E.invoke(app, {"log": []}, config)
    E.invoke(app, E.Command(resume="y"), config)
    E.update(app, config, {"log": ["edit"]}, as_node="z")
    E.invoke(app, {"log": ["more"]}, config, durability="exit")
    return app


def test_what_stands_in_configurable_is_not_stored(E: Engine, kept: Any) -> None:
    saver, raw = kept
    app = conversation(E, saver, **SECRETS)
    for secret in (b"KEPT-1", b"KEPT-2", b"KEPT-3", b"471147114711", (471147114711).to_bytes(8, "big")):
        assert secret not in raw()
    rows = E.rows(app.checkpointer, {"configurable": {"thread_id": "1"}})
    assert rows and all(row.metadata["tenant"] == "shown" and not SECRETS.keys() & row.metadata for row in rows)


def test_what_is_listed_is_stored(E: Engine, kept: Any) -> None:
    saver, raw = kept
    saver.metadata_keys = {"user"}
    app = conversation(E, saver, **SECRETS)
    assert b"KEPT-2" in raw() and b"KEPT-1" not in raw()
    assert all(
        row.metadata["user"] == "KEPT-2" for row in E.rows(app.checkpointer, {"configurable": {"thread_id": "1"}})
    )


def test_what_is_listed_reaches_a_saver_that_overrides_put(E: Engine) -> None:
    seen = []

    class Other(E.InMemorySaver):  # type: ignore[misc]
        metadata_keys = ("user",)

        def put(self, config: Any, checkpoint: Any, metadata: Any, new: Any) -> Any:
            seen.append(metadata)
            return super().put(config, checkpoint, metadata, new)

        async def aput(self, config: Any, checkpoint: Any, metadata: Any, new: Any) -> Any:
            return self.put(config, checkpoint, metadata, new)

    app = conversation(E, Other(), **SECRETS)
    rows = E.rows(app.checkpointer, {"configurable": {"thread_id": "1"}})
    assert seen and all(metadata["user"] == "KEPT-2" and "api_key" not in metadata for metadata in seen)
    assert rows and all(row.metadata["tenant"] == "shown" and "pin" not in row.metadata for row in rows)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_with_a_cipher_nothing_of_the_state_is_readable(E: Engine, kept: Any, durability: str) -> None:
    """... in a thread that waits, with writes of finished siblings, a failure, an input and a graph inside."""
    saver, raw = kept
    saver.serde = EncryptedSerializer(KeyRing({"k": b"k" * 32}))
    state = TypedDict("S", {"iban": str, "doc": dict, "log": Annotated[list, operator.add], "n": int})

    def work(s: Any) -> Any:
        return {"iban": "READABLE-1", "doc": {"key": "READABLE-2"}, "log": ["READABLE-3 " * 60], "n": 471147114711}

    def ask(s: Any) -> Any:
        return {"log": [E.interrupt("READABLE-4") + "READABLE-5"]}

    def fail(s: Any) -> Any:
        if broken[0]:
            raise Boom("READABLE-6")
        return {}

    broken = [True]
    inner = E.graph(state, {"work": work, "ask": ask}, "START > work > ask").compile()
    app = E.graph(state, {"sub": inner, "work": work, "fail": fail}, "START > work > sub", "work > fail")
    app = app.compile(checkpointer=saver)
    config = {**E.config(), "metadata": {"readable": "READABLE-7"}}
    given = {"iban": "", "doc": {"READABLE-8": "READABLE-9 " * 60}, "log": ["READABLE-10"] * 9}
    E.attempt(E.invoke, app, given, config, durability=durability)
    shown = [word for word in (b"READABLE", b"readable", b"471147", (471147114711).to_bytes(8, "big")) if word in raw()]
    assert not shown
    broken[0] = False
    E.invoke(app, None, config, durability=durability)
    end = E.invoke(app, E.Command(resume="yes"), config, durability=durability)
    assert end["log"][-1] == "yesREADABLE-5" and end["iban"] == "READABLE-1" and b"READABLE" not in raw()
    rows = E.rows(saver, E.config(), filter={"readable": "READABLE-7"})
    assert rows and rows == E.rows(saver, E.config())


def test_what_an_earlier_langchain_copied_into_metadata_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to some version, a runnable's children got the scalars of `configurable` as metadata too."""
    from surestep.checkpoint.base import get_checkpoint_metadata

    def copying(config: Any) -> Any:
        return {"metadata": {**config["configurable"]}}

    config = {"configurable": {"user": "u", "graph_id": "g"}, "metadata": {"user": "u", "graph_id": "g", "own": "o"}}
    module = types.SimpleNamespace(ensure_config=copying)
    monkeypatch.setitem(sys.modules, "langchain_core.runnables.config", module)  # type: ignore[arg-type]
    assert get_checkpoint_metadata(config, {}) == {"own": "o", "graph_id": "g"}
    assert get_checkpoint_metadata(config, {}, listed=["user"]) == {"own": "o", "graph_id": "g", "user": "u"}
    module.ensure_config = lambda config: {"metadata": {}}
    assert get_checkpoint_metadata(config, {}) == {"own": "o", "graph_id": "g", "user": "u"}
