"""The stage of the demo: it starts real processes, looks at their cases from outside, and keeps the score."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape

HERE = Path(__file__).parent


class Stage:
    """Prints what happens, in order, and remembers every promise that was not kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.console = Console(highlight=False)
        self.broken: list[str] = []

    def part(self, number: int, title: str, story: str) -> None:
        """Open a part of the play."""
        self.console.print()
        self.console.rule(f"[bold cyan]{number}  {title}", align="left", style="cyan")
        self.console.print(f"[dim]{story}[/dim]")

    def promise(self, text: str, kept: bool) -> None:
        """State a claim together with what the facts say about it."""
        self.console.print(f"  [bold green]✔[/] {text}" if kept else f"  [bold red]✘ {text}[/]")
        if not kept:
            self.broken.append(text)

    @contextmanager
    def process(self, script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A Python process of its own, running a file of this folder; its output is shown afterwards."""
        command = [sys.executable, str(HERE / script), str(self.folder), *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        what = escape(" ".join([script, *arguments]))
        self.console.print(f"  [yellow]process {process.pid}[/] {what}", overflow="ellipsis", no_wrap=True)
        try:
            yield process
            self._show(process)
        finally:
            process.kill()
            process.wait()

    def lines(self, process: subprocess.Popen[str]) -> list[str]:
        """Wait for the end of a process: the lines it printed."""
        return self._show(process)

    def run(self, script: str, *arguments: str) -> tuple[int, list[str]]:
        """Run a file of this folder to its end: the exit code and the lines it printed."""
        with self.process(script, *arguments) as process:
            lines = self._show(process)
        return process.returncode, lines

    def wait_until(self, what: str, condition: Callable[[], bool], seconds: float = 20) -> None:
        """Look again and again until the condition holds; TimeoutError names what did not come."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {seconds:g} s in vain: {what}")
            time.sleep(0.02)

    def _show(self, process: subprocess.Popen[str]) -> list[str]:
        assert process.stdout is not None
        if process.stdout.closed:
            return []
        lines = []
        with process.stdout as output:
            for line in output:
                lines.append(line.rstrip())
                self.console.print(f"    [dim]│ {escape(lines[-1])}[/dim]", overflow="ellipsis", no_wrap=True)
        process.wait()
        if process.returncode < 0:
            self.console.print(f"    [red]│ dead: signal {-process.returncode}[/]")
        return lines
