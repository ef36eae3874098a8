"""The command `surestep graph`, seen from outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from surestep.cli import main

BOT = """
from __future__ import annotations
from dataclasses import dataclass

from surestep.func import entrypoint
from surestep.graph import START, StateGraph
from surestep.pregel import Pregel


@dataclass
class State:
    n: int = 0


inner = StateGraph(State).add_node("think", lambda state: {}).add_edge(START, "think")
app = StateGraph(State).add_node("agent", inner.compile()).add_edge(START, "agent").compile()


@entrypoint()
def flow(n: int) -> int:
    return n


def make() -> Pregel:
    return app


class Shop:
    graph = app


answer = 42
"""


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of a module in the working directory, another for each test."""
    name = "bot_" + "".join(c if c.isalnum() else "_" for c in request.node.name)
    (tmp_path / f"{name}.py").write_text(BOT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    return name


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["graph", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["graph", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("surestep: ")
    return err.removeprefix("surestep: ").strip()


@pytest.mark.parametrize("name", ["app", "make", "Shop.graph"])
def test_mermaid_text_of_a_graph_in_a_module(bot: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, f"{bot}:{name}").splitlines()
    assert lines[0] == "flowchart TD"
    assert '    agent["agent"]' in lines and "    __start__ --> agent" in lines


def test_a_builder_and_an_entrypoint_are_graphs_too(bot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert '["think"]' in shown(capsys, f"{bot}:inner")
    assert '["flow"]' in shown(capsys, f"{bot}:flow")


def test_a_graph_in_a_file(bot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert '["agent"]' in shown(capsys, f"{tmp_path / bot}.py:app")


def test_xray_shows_the_graphs_inside(bot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "think" not in shown(capsys, f"{bot}:app")
    assert '        agent_think["think"]' in shown(capsys, "--xray", f"{bot}:app")


def test_ascii_art(bot: str, capsys: pytest.CaptureFixture[str]) -> None:
    art = shown(capsys, f"{bot}:app", "--ascii")
    assert art.isascii() and " agent " in art and "flowchart" not in art


def test_a_png_in_a_file(bot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, f"{bot}:app", "--png", "bot.png", "--xray") == ""
    assert (tmp_path / "bot.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert "cannot write missing" in refused(capsys, f"{bot}:app", "--png", "missing/bot.png")


def test_what_is_not_there(bot: str, capsys: pytest.CaptureFixture[str]) -> None:
    known = "Graphs in it: inner, app, flow."
    assert refused(capsys, f"{bot}:nope") == f"no nope in {bot}. {known}"
    assert refused(capsys, bot) == f"which graph of {bot}? {known}"
    assert refused(capsys, f"{bot}:answer") == f"{bot}:answer is no graph but of the type int. {known}"
    assert refused(capsys, f"{bot}:State").endswith(f"but of the type type. {known}")
    assert refused(capsys, "no.such.module:app").startswith("no module no.such.module;")
    assert refused(capsys, "nothing.py:app") == "no file nothing.py"
    assert refused(capsys, ":app") == "'' is no name of a module"
    assert refused(capsys, "json:app") == "no app in json. There is no graph at its top level."


def test_what_a_module_raises_is_its_own_matter(bot: str, tmp_path: Path) -> None:
    (tmp_path / f"{bot}_broken.py").write_text("import nothing_like_that")
    with pytest.raises(ModuleNotFoundError, match="nothing_like_that"):
        main(["graph", f"{bot}_broken:app"])


def test_the_extra_that_is_missing(
    bot: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mermaidx", None)
    assert "pip install 'surestep[draw]'" in refused(capsys, f"{bot}:app", "--png", "bot.png")


def test_it_needs_no_other_package(bot: str) -> None:
    code = (
        "import sys; from surestep.cli import main; main(['graph', sys.argv[1]]);"
        "assert not {'langchain_core', 'rich', 'pydantic', 'mermaidx'} & {*sys.modules}"
    )
    run = subprocess.run([sys.executable, "-c", code, f"{bot}:app"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("flowchart TD")
