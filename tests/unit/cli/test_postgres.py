"""The commands that look into a PostgreSQL database, sweep it, and print the SQL that sets it up."""

from __future__ import annotations

import uuid
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from surestep.checkpoint.postgres import PostgresSaver
from surestep.cli import main
from surestep.graph import START, StateGraph


def url_of(conn_string: str) -> str:
    known = conninfo_to_dict(conn_string)
    host, options = str(known["host"]).replace("/", "%2F"), str(known["options"]).replace("=", "%3D")
    return f"postgresql://{known['user']}@{host}/{known['dbname']}?options={options}"


def test_threads_history_and_a_sweep(
    postgres: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    with PostgresSaver.from_conn_string(postgres, tenant="a") as saver:
        saver.setup()
        graph = StateGraph(dict).add_node("n", lambda state: {}).add_edge(START, "n").compile(checkpointer=saver)
        graph.invoke({"x": 1}, {"configurable": {"thread_id": "case-7"}})
    url = url_of(postgres)
    assert main(["threads", url, "--tenant", "a"]) == 0
    assert "case-7" in capsys.readouterr().out
    assert main(["threads", url]) == 0
    assert "No threads." in capsys.readouterr().out
    assert main(["history", url, "case-7", "--tenant", "a"]) == 0
    keep = ["--strategy", "keep_latest", "--ttl-days", "0", "--tenant", "a"]
    assert main(["sweep", url, *keep, "--dry-run"]) == 0
    assert main(["sweep", url, *keep]) == 0
    with PostgresSaver.from_conn_string(postgres, tenant="a") as saver:
        assert len(list(saver.list(None))) == 1


def test_what_is_wrong_is_said(postgres: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["threads", url_of(postgres)]) == 2
    assert "setup()" in capsys.readouterr().err
    assert main(["threads", f"postgresql:///none?host={tmp_path}"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_the_sql_is_printed(postgres: str, capsys: pytest.CaptureFixture[str]) -> None:
    role = f"surestep_{uuid.uuid4().hex[:12]}"
    assert main(["postgres-sql"]) == 0
    sql = capsys.readouterr().out
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute(sql)
        conn.execute(f"CREATE ROLE {role}")
        assert main(["postgres-sql", "--grant", role, "--tenant", "a"]) == 0
        conn.execute(capsys.readouterr().out)
        conn.execute(f"DROP OWNED BY {role}")
        conn.execute(f"DROP ROLE {role}")
    with PostgresSaver.from_conn_string(postgres) as saver:
        assert list(saver.list(None)) == []
