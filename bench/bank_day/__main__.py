"""A bank's day of dialogues on surestep and on LangGraph, side by side: `python bench/bank_day --fraction 0.005`.

A whole day is 8,000 dialogues of fifteen turns. Each turn asks three systems at once; in one of them the run
pauses for an operator and is resumed. The engines play the same fraction, one after the other, each in a
process of its own and on a database of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from rich.console import Console
from rich.table import Table

from day import Figures, played
from dialogue import TURNS

DIALOGUES = 8000
ENGINES = ("surestep", "langgraph")
SAVERS = ("sqlite", "postgres")


def main() -> None:
    args = arguments().parse_args()
    dialogues = max(1, round(DIALOGUES * args.fraction))
    if args.engine and args.saver:  # one day, for a program to read
        figures = played(args.engine, args.saver, dialogues, args.workers, args.work / 1000)
        print(json.dumps(figures._asdict()))
        return
    console = Console()
    console.print(f"{dialogues} dialogues of {TURNS} turns, {args.workers} at a time; answers after {args.work} ms.")
    for saver in [args.saver] if args.saver else SAVERS:
        with console.status(f"A day on {saver}"):
            days = [in_process(engine, saver) for engine in ([args.engine] if args.engine else ENGINES)]
        console.print(table(saver, days))


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench/bank_day", description=__doc__, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--fraction", type=float, default=0.005, help="of the day's 8,000 dialogues (default 0.005)")
    parser.add_argument("--saver", choices=SAVERS, help="only this one")
    parser.add_argument("--engine", choices=ENGINES, help="only this one; with --saver, prints JSON")
    parser.add_argument("--workers", type=int, default=8, help="threads that play turns (default 8)")
    parser.add_argument("--work", type=float, default=0.0, help="milliseconds that a system takes (default 0)")
    return parser


def in_process(engine: str, saver: str) -> Figures:
    """The same arguments for one engine and saver, in a process that has loaded nothing else."""
    command = [sys.executable, sys.argv[0], *sys.argv[1:], "--engine", engine, "--saver", saver]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"The day of {engine} on {saver} failed; its error is above.")
    return Figures(**json.loads(done.stdout))


def table(saver: str, days: list[Figures]) -> Table:
    shown = Table(title=saver, title_justify="left")
    for heading in ("", "turns/s", "CPU a turn", "median turn", "p95 of a turn", "stored a dialogue"):
        shown.add_column(heading, justify="right" if heading else "left")
    for day in days:
        times = (f"{seconds * 1000:.1f} ms" for seconds in (day.cpu_a_turn, day.median_turn, day.p95_turn))
        shown.add_row(day.engine, f"{day.turns_a_second:.0f}", *times, f"{day.bytes_a_dialogue / 1024:.1f} KiB")
    if len(days) == 2:
        ours, theirs = days
        shown.add_row("ratio", *(f"{ratio:.1f}x" for ratio in ratios(ours, theirs)), style="bold")
    return shown


def ratios(ours: Figures, theirs: Figures) -> list[float]:
    """How many times better the first is, column by column."""
    cheaper = ("cpu_a_turn", "median_turn", "p95_turn", "bytes_a_dialogue")
    return [
        ours.turns_a_second / theirs.turns_a_second,
        *(getattr(theirs, figure) / getattr(ours, figure) for figure in cheaper),
    ]


if __name__ == "__main__":
    main()
