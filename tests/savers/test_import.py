"""Databases that LangGraph wrote, taken over: what was there is there, and what waited goes on."""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import langgraph.checkpoint.sqlite
import pytest
from harness.engine import Boom, Engine
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.base import BaseCheckpointSaver as TheirSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer as TheirEncrypted
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer as TheirSerializer
from savers.walk import check_pages
from unit.serde.shapes import Order, Phase

from surestep._import.command import Report, run
from surestep._import.raw import Raw
from surestep.checkpoint.postgres import PostgresSaver
from surestep.checkpoint.serde.encrypted import EncryptedSerializer, KeyRing
from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer
from surestep.checkpoint.sqlite import SqliteSaver
from surestep.cli import main

State = TypedDict("State", {"log": Annotated[list, operator.add], "note": Annotated[Any, lambda _, new: new]})


@dataclass
class Kept:
    """A class of the application, which an import doesn't need."""

    n: int


def say(text: str) -> Callable[[Any], Any]:
    return lambda state: {"log": [text], "note": {"at": text, "kept": [Kept(1), (1, 2)]}}


def asking(E: Engine, question: str) -> Callable[[Any], Any]:
    return lambda state: {"log": [f"{question}={E.interrupt(question)}"]}


# ---- programs that pause, and how they go on ----


def line(E: Engine, broken: Any) -> Any:
    return E.graph(State, {"a": say("a"), "b": asking(E, "b"), "c": say("c")}, "START > a > b > c"), ["one"]


def siblings(E: Engine, broken: Any) -> Any:
    nodes = {"a": asking(E, "a"), "b": say("b"), "c": say("c"), "z": say("z")}
    return E.graph(State, nodes, "START > a", "START > b", "START > c", "a, b, c > z"), ["one"]


def packets(E: Engine, broken: Any) -> Any:
    def w(packet: Any) -> Any:
        return {"log": [(packet["n"], E.interrupt(f"q{packet['n']}") if packet["n"] == 1 else "-")]}

    def route(state: Any) -> Any:
        return [E.Send("w", {"n": n}) for n in range(3)]

    nodes = {"r": say("r"), "w": w, "end": say("end")}
    return E.graph(State, nodes, "START > r", ("r", route, ["w"]), "w > end"), ["x"]


def inside(E: Engine, broken: Any) -> Any:
    low = E.graph(State, {"l1": say("l1"), "l2": asking(E, "low"), "l3": say("l3")}, "START > l1 > l2 > l3").compile()
    mid = E.graph(State, {"m1": say("m1"), "m2": low, "m3": asking(E, "mid")}, "START > m1 > m2 > m3").compile()
    return E.graph(State, {"t1": say("t1"), "t2": mid, "t3": say("t3")}, "START > t1 > t2 > t3"), ["deep", "less deep"]


def remembering(E: Engine, broken: Any) -> Any:
    sub = E.graph(State, {"x": say("x"), "y": asking(E, "y")}, "START > x > y").compile(checkpointer=True)
    return E.graph(State, {"sub": sub, "z": say("z")}, "START > sub > z"), ["one"]


def failed(E: Engine, broken: Any) -> Any:
    def fails(state: Any) -> Any:
        if broken[0]:
            raise Boom("not yet")
        return {"log": ["mended"]}

    return E.graph(State, {"a": say("a"), "f": fails, "z": say("z")}, "START > a", "START > f", "a, f > z"), [None]


PROGRAMS = [line, siblings, packets, inside, remembering, failed]


@contextmanager
def in_sqlite(folder: Path, serde: Any = None) -> Iterator[tuple[Any, str]]:
    """A saver of LangGraph's on a file, and the file."""
    path = str(folder / "theirs.db")
    with langgraph.checkpoint.sqlite.SqliteSaver.from_conn_string(path) as saver:
        saver.serde = serde or saver.serde
        yield saver, path


@contextmanager
def in_postgres(conn_string: str) -> Iterator[tuple[Any, str]]:
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(conn_string) as saver:
        saver.setup()
        yield saver, conn_string


@pytest.fixture(params=["sqlite", "postgres"])
def theirs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    if request.param == "sqlite":
        with in_sqlite(tmp_path) as made:
            yield made
    else:
        with in_postgres(request.getfixturevalue("postgres")) as made:
            yield made


def quietly(url: str, into: Path, told: Callable[[], None] = lambda: None) -> Report:
    return run(url, str(into), lambda total: told)


def at(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def shown(saver: Any, thread: str) -> list[Any]:
    """All that a saver has of a thread, by namespace."""
    found = sorted(saver.list(at(thread)), key=lambda row: row.config["configurable"]["checkpoint_ns"])
    return [(*row[:4], sorted(map(repr, row.pending_writes))) for row in found]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_thread_that_waits_there_goes_on_here(program: Any, theirs: Any, tmp_path: Path) -> None:
    saver, url = theirs
    with Engine("langgraph") as E:
        broken = [True]
        graph, answers = program(E, broken)
        app = graph.compile(checkpointer=saver)
        for thread in ("to here", "stays"):
            E.attempt(E.invoke, app, {"log": ["in"], "note": None}, at(thread))
        broken[0] = False
        for answer in answers:
            expected = E.invoke(app, None if answer is None else E.Command(resume=answer), at("stays"))
        waiting = E.state(app, at("to here"), subgraphs=True)
    report = quietly(url, tmp_path / "ours.db")
    assert report.threads == {"imported": 2} and not report.failed
    with Engine() as E, SqliteSaver.from_conn_string(str(tmp_path / "ours.db")) as ours:
        ours.serde = JsonPlusSerializer(allowed_msgpack_modules=[Kept])
        check_pages(ours)
        graph, answers = program(E, [False])
        app = graph.compile(checkpointer=ours)
        found = E.state(app, at("to here"), subgraphs=True)
        assert [(q.id, q.value) for q in found.interrupts] == [(q.id, q.value) for q in waiting.interrupts]
        assert found.next == waiting.next and found.values["log"] == plain(waiting.values["log"])
        for answer in answers:
            end = E.invoke(app, None if answer is None else E.Command(resume=answer), at("to here"))
        assert plain(end["log"]) == plain(expected["log"])
        other = E.state(app, at("stays"))
        assert other.next == () and plain(other.values["log"]) == plain(expected["log"])
        check_pages(ours)


def plain(value: Any) -> Any:
    """Without the tuples that LangGraph takes for lists."""
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def test_into_postgresql(theirs: Any, postgres: str) -> None:
    saver, url = theirs
    many(saver, "t", 12)
    many(saver, "t", 3, ns="inner")
    assert quietly(url, Path(postgres)).threads == {"imported": 1}
    assert quietly(url, Path(postgres)).threads == {"there already": 1}
    with PostgresSaver.from_conn_string(postgres) as ours:
        assert shown(ours, "t") == shown(saver, "t")


def test_everything_is_there(theirs: Any, tmp_path: Path) -> None:
    """Forks, several runs, namespaces, metadata: as LangGraph's saver reads them with our serializer."""
    saver, url = theirs
    with Engine("langgraph") as E:
        app = inside(E, [])[0].compile(checkpointer=saver)
        config = {**at("t"), "metadata": {"who": "ada", "n": 3}}
        E.invoke(app, {"log": ["in"], "note": None}, config)
        first = E.state(app, at("t")).config
        E.invoke(app, E.Command(resume="x"), config)
        E.invoke(app, E.Command(resume="y"), config)
        E.update(app, at("t"), {"log": ["edit"]}, as_node="t3")
        E.update(app, first, {"log": ["fork"]}, as_node="t1")
        E.invoke(app, {"log": ["again"], "note": None}, config)
    assert quietly(url, tmp_path / "ours.db").threads == {"imported": 1}
    saver.serde = serde = JsonPlusSerializer(allowed_msgpack_modules=[Kept])
    with SqliteSaver.from_conn_string(str(tmp_path / "ours.db")) as ours:
        ours.serde = serde
        assert shown(ours, "t") == shown(saver, "t") and len(shown(ours, "t")) > 15
        assert {row.metadata["who"] for row in ours.list(None, filter={"n": 3})} == {"ada"}
        check_pages(ours)


# ---- many, cut off, again ----


def many(saver: TheirSaver, thread: str, count: int, ns: str = "", start: int = 0) -> None:
    """A chain of checkpoints with writes, as a run would store it."""
    parent = f"{start - 1:06}" if start else None
    for number in range(start, start + count):
        id = f"{number:06}"
        config = {"configurable": {"thread_id": thread, "checkpoint_ns": ns}}
        if parent:
            config["configurable"]["checkpoint_id"] = parent
            saver.put_writes(config, [("n", number), ("list", [f"item {number} " * 9])], f"task{number}")
        values = {"n": number, "list": [f"item {n} " * 9 for n in range(max(0, number - 20), number + 1)]}
        version = f"{number:032}.0.5"
        checkpoint: Any = {"v": 4, "id": id, "ts": "", "channel_values": values, "versions_seen": {}}
        checkpoint |= {"channel_versions": dict.fromkeys(values, version), "updated_channels": ["list", "n"]}
        saver.put(config, checkpoint, {"step": number, "source": "loop"}, checkpoint["channel_versions"])  # type: ignore[arg-type]
        parent = id


@contextmanager
def thousands(folder: Path) -> Iterator[tuple[Any, str]]:
    with in_sqlite(folder) as (saver, path):
        saver.conn.execute("PRAGMA synchronous = OFF")
        for number in range(40):
            many(saver, f"t{number:02}", 40)
        many(saver, "t07", 30, ns="inner|deep")
        many(saver, "t33", 700)
        yield saver, path


class Cut(BaseException):
    """The import is killed."""


def test_an_import_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    with thousands(tmp_path) as (saver, path):
        before = Path(path).read_bytes()
        cuts = 0
        into = tmp_path / "ours.db"
        for after in (1, 250, 300, 400, 650):
            left = iter(range(after))

            def told(left: Any = left) -> None:
                if next(left, None) is None:
                    raise Cut

            try:
                quietly(path, into, told)
            except Cut:
                cuts += 1
            with SqliteSaver.from_conn_string(str(into)) as ours:  # what is there is whole
                there = {row.config["configurable"]["thread_id"] for row in ours.list(None)}
                assert all(len(list(ours.list(at(t)))) == len(list(saver.list(at(t)))) for t in there)
        report = quietly(path, into)
        assert cuts == 5 and report.threads["there already"] > 0 and report.threads["imported"] > 0
        assert sum(report.threads.values()) == 40
        assert quietly(path, into).threads == {"there already": 40}
        with SqliteSaver.from_conn_string(str(into)) as ours:
            for thread in ("t00", "t07", "t33"):
                assert shown(ours, thread) == shown(saver, thread)
            check_pages(ours)
        saver.conn.commit()
        assert Path(path).read_bytes() == before


def test_what_has_moved_on_there_is_added_and_what_has_here_stays(tmp_path: Path) -> None:
    into = tmp_path / "ours.db"
    with in_sqlite(tmp_path) as (saver, path):
        for thread in ("there", "here", "same"):
            many(saver, thread, 5)
        quietly(path, into)
        many(saver, "there", 5, start=5)
        head: Any = {"configurable": {"thread_id": "same", "checkpoint_ns": "", "checkpoint_id": "000004"}}
        saver.put_writes(head, [("n", 1)], "new")
        with SqliteSaver.from_conn_string(str(into)) as ours:
            many(ours, "here", 1, start=5)  # type: ignore[arg-type]
            kept = shown(ours, "here")
        report = quietly(path, into)
        assert report.threads == {"updated": 1, "moved on here": 1, "there already": 1}
        assert report.checkpoints == 5 and report.moved_on == ["here"]
        with SqliteSaver.from_conn_string(str(into)) as ours:
            assert shown(ours, "there") == shown(saver, "there") and shown(ours, "here") == kept
            assert shown(ours, "same") == shown(saver, "same")
            check_pages(ours)


def test_a_chain_whose_beginning_was_pruned(tmp_path: Path) -> None:
    with in_sqlite(tmp_path) as (saver, path):
        many(saver, "t", 6)
        saver.conn.execute("DELETE FROM checkpoints WHERE checkpoint_id IN ('000000', '000003')")
        saver.conn.commit()
        quietly(path, tmp_path / "ours.db")
        with SqliteSaver.from_conn_string(str(tmp_path / "ours.db")) as ours:
            assert shown(ours, "t") == shown(saver, "t")


def test_packets_of_the_format_before_4(tmp_path: Path) -> None:
    with in_sqlite(tmp_path) as (saver, path), Engine("langgraph") as E:
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        old: Any = {"v": 3, "ts": "", "channel_values": {}, "channel_versions": {}, "versions_seen": {}}
        config = saver.put(config, {**old, "id": "1"}, {"step": 0}, {})
        saver.put_writes(config, [("__pregel_tasks", E.Send("w", 1)), ("__pregel_tasks", E.Send("w", 2))], "task")
        saver.put(config, {**old, "id": "2"}, {"step": 1}, {})
        quietly(path, tmp_path / "ours.db")
        with SqliteSaver.from_conn_string(str(tmp_path / "ours.db")) as ours:
            found = ours.get_tuple(at("t"))
            assert found is not None
            sends: Any = found.checkpoint["pending_sends"]  # type: ignore[typeddict-item]
            assert [(send.node, send.arg) for send in sends] == [("w", 1), ("w", 2)]


# ---- values ----

texts = st.text(st.characters(exclude_categories=["Cs"]))
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | texts | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(texts | st.integers(0, 9), inner)
        | st.builds(Order, st.integers(0, 9), st.lists(st.just("x")))
        | st.tuples(inner)
    ),
    max_leaves=10,
)


@given(plain_values | st.sampled_from([Phase.OPEN, bytearray(b"x"), {1, 2}]))
def test_values_are_written_as_they_were_read(value: Any) -> None:
    for serde in (TheirSerializer(), JsonPlusSerializer()):
        stored = serde.dumps_typed(value)
        assert Raw().dumps_typed(Raw().loads_typed(stored)) == stored


def test_an_encrypted_source_and_an_encrypted_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = b"0123456789abcdef"
    monkeypatch.delenv("LANGGRAPH_AES_KEY", raising=False)
    with in_sqlite(tmp_path, TheirEncrypted.from_pycryptodome_aes(key=key)) as (saver, path):
        many(saver, "t", 5)
        report = quietly(path, tmp_path / "without.db")
        assert [thread for thread, _ in report.failed] == ["t"] and "set LANGGRAPH_AES_KEY" in report.failed[0][1]
        monkeypatch.setenv("LANGGRAPH_AES_KEY", key.decode())
        assert quietly(path, tmp_path / "ours.db").threads == {"imported": 1}
        with SqliteSaver.from_conn_string(str(tmp_path / "ours.db")) as ours:
            ours.serde = EncryptedSerializer(KeyRing())
            assert shown(ours, "t") == shown(saver, "t")
    assert b"item" not in (tmp_path / "ours.db").read_bytes()


def test_a_thread_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    with in_sqlite(tmp_path) as (saver, path):
        for thread in ("a", "b", "c"):
            many(saver, thread, 3)
        where = "thread_id = 'b' AND checkpoint_id = '000001'"
        saver.conn.execute(f"UPDATE checkpoints SET checkpoint = x'93' WHERE {where}")
        saver.conn.commit()
        report = quietly(path, tmp_path / "ours.db")
        assert report.threads == {"imported": 2} and [thread for thread, _ in report.failed] == ["b"]
        assert main(["import-langgraph", path]) == 1
    with SqliteSaver.from_conn_string(str(tmp_path / "theirs.surestep.db")) as ours:
        assert {row.config["configurable"]["thread_id"] for row in ours.list(None)} == {"a", "c"}


# ---- the command ----


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with in_sqlite(tmp_path) as (saver, path):
        many(saver, "t", 3)
    assert main(["import-langgraph", path]) == 0
    assert "3/3" in (printed := capsys.readouterr().out) and "3 checkpoints written" in printed
    assert main(["import-langgraph", f"sqlite:///{path}", "--into", f"sqlite:///{tmp_path}/theirs.surestep.db"]) == 0
    assert "there already" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("url", "into", "says"),
    [
        ("nowhere.db", None, "no file"),
        ("text.db", None, "can't be read as an SQLite database"),
        ("empty.db", None, "no tables of LangGraph's SqliteSaver"),
        ("theirs.db", "theirs.db", "the source itself"),
        ("theirs.db", "no/such/folder.db", "no folder"),
        ("theirs.db", "text.db", "is no SQLite database"),
        ("postgresql://localhost:1/x", None, "say where to"),
        ("postgresql://localhost:1/x", "new.db", "no connection to the source"),
    ],
)
def test_what_the_command_refuses(
    url: str, into: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with in_sqlite(tmp_path) as (saver, _):
        many(saver, "t", 1)
    Path("text.db").write_text("no database, but long enough for a header of one " * 3)
    sqlite3.connect("empty.db").close()
    before = {path.name for path in tmp_path.iterdir()}
    assert main(["import-langgraph", url, *(["--into", into] if into else [])]) == 2
    assert says in capsys.readouterr().err
    # SQLite makes these two for whoever reads a database with a write-ahead log, and leaves them.
    assert {path.name for path in tmp_path.iterdir()} - before <= {"theirs.db-shm", "theirs.db-wal"}
