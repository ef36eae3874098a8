"""The commands `surestep threads` and `surestep history`, seen from outside."""

from __future__ import annotations

import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pytest

from surestep.checkpoint.serde.encrypted import EncryptedSerializer, KeyRing
from surestep.checkpoint.sqlite import SqliteSaver
from surestep.cli import main
from surestep.graph import START, StateGraph
from surestep.types import Send, interrupt


class State(TypedDict, total=False):
    amount: int
    other: Any


def graph(saver: SqliteSaver) -> Any:
    builder = StateGraph(State)
    builder.add_node("weigh", lambda state: {"amount": state["amount"] + 1})
    builder.add_node("ask", lambda state: {"amount": interrupt("how [red]much[/]?")} if state["amount"] > 5 else {})
    builder.add_edge(START, "weigh")
    builder.add_edge("weigh", "ask")
    return builder.compile(checkpointer=saver)


def thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "160")
    path = tmp_path / "cases.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph(saver).invoke({"amount": 1}, thread("small"))
        graph(saver).invoke({"amount": 9}, thread("large"))
    return path


def rows(printed: str) -> list[list[str]]:
    """The cells of a table of rich, one list a line."""
    lines = [line for line in printed.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_threads_shows_what_runs_next_and_what_waits(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["threads", str(db)]) == 0
    large, small = rows(capsys.readouterr().out)
    assert large[:3] == ["large", "3", "ask"]
    assert large[3].endswith("how [red]much[/]?")
    assert small == ["small", "4", "", ""]


def test_history_shows_every_checkpoint(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(db), "small"]) == 0
    shown = rows(capsys.readouterr().out)
    assert [row[:3] for row in shown] == [
        ["-1", "input", "__start__"],
        ["0", "loop", "weigh"],
        ["1", "loop", "ask"],
        ["2", "loop", ""],
    ]
    assert all(row[4].endswith(" B") and len(row[5]) == 36 for row in shown)


def test_history_tells_a_fork_from_its_past(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with SqliteSaver.from_conn_string(str(db)) as saver:
        app = graph(saver)
        old = list(app.get_state_history(thread("small")))[1]
        app.update_state(old.config, {"amount": 7}, as_node="weigh")
    main(["history", str(db), "small"])
    printed = capsys.readouterr().out
    assert f"after {old.config['configurable']['checkpoint_id']}" in printed


def test_a_step_that_was_cut_off_shows_how_far_it_came(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(state: State) -> State:
        raise OSError("no gas")

    path = tmp_path / "cut.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder = StateGraph(State).add_node("works", lambda state: {"amount": 1}).add_node("fails", fails)
        app = builder.add_edge(START, "works").add_edge(START, "fails").compile(checkpointer=saver)
        with pytest.raises(OSError, match="no gas"):
            app.invoke({"amount": 0}, thread("t"))
    main(["threads", str(path)])
    assert rows(capsys.readouterr().out)[0][2] in ("works, fails (1 done)", "fails, works (1 done)")


def test_history_of_nobody(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(db), "huge"]) == 2
    assert "no thread 'huge'" in capsys.readouterr().err


def test_packets_are_shown_as_their_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "packets.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder = StateGraph(State).add_node("work", lambda state: {})
        builder.add_conditional_edges(START, lambda state: [Send("work", {"amount": n}) for n in range(2)])
        app = builder.compile(checkpointer=saver, interrupt_before=["work"])
        app.invoke({"amount": 1}, thread("t"))
    main(["threads", str(path)])
    assert rows(capsys.readouterr().out)[0][2] == "work, work"


@dataclass
class Vanished:
    n: int


def test_a_class_that_is_gone_is_no_obstacle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gone.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph(saver).invoke({"amount": 9, "other": Vanished(1)}, thread("t"))
    monkeypatch.delattr(sys.modules[__name__], "Vanished")
    assert main(["threads", str(path)]) == 0
    assert rows(capsys.readouterr().out)[0][0] == "t"
    assert main(["history", str(path), "t"]) == 0


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["threads", str(tmp_path / "none.sqlite")]) == 2
    assert "no file" in capsys.readouterr().err
    assert not (tmp_path / "none.sqlite").exists()


def test_a_file_that_is_no_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("dear reader")
    assert main(["threads", str(path)]) == 2
    assert "no SQLite database" in capsys.readouterr().err


def test_a_database_without_threads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (n)")
    connection.close()
    assert main(["threads", str(path)]) == 0
    assert "No threads" in capsys.readouterr().out


def test_without_rich_the_command_says_what_to_install(
    db: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert main(["threads", str(db)]) == 2
    assert "pip install 'surestep[cli]'" in capsys.readouterr().err


def test_sweep_counts_first_and_deletes_then(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sweep", str(db), "--strategy", "keep_latest", "--ttl-days", "0"]
    assert main([*command, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert rows(printed) == [["2", "0", "3"]] and "dry run" in printed, "large waits, and is left alone"
    assert main(command) == 0
    assert rows(capsys.readouterr().out) == [["2", "0", "3"]]
    assert main([*command, "--open-threads"]) == 0
    assert rows(capsys.readouterr().out) == [["2", "0", "2"]]
    assert main(["threads", str(db)]) == 0
    large, small = rows(capsys.readouterr().out)
    assert large[1] == small[1] == "1"


def test_sweep_refuses_what_can_not_be(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(db), "--ttl-days", "-1"]) == 2
    assert "ttl is negative" in capsys.readouterr().err


def test_an_encrypted_file_needs_its_key(
    db: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = bytes(range(32))
    with SqliteSaver.from_conn_string(str(db)) as saver:
        saver.serde = EncryptedSerializer(KeyRing({"k": key}))
        saver.reencrypt()
    assert main(["threads", str(db)]) == 2
    assert "encrypted (aes-gcm:k)" in capsys.readouterr().err
    monkeypatch.setenv("SURESTEP_AES_KEYS", f"k:{key.hex()}")
    assert main(["threads", str(db)]) == 0
    assert [row[0] for row in rows(capsys.readouterr().out)] == ["large", "small"]
