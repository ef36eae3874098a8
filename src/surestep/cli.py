"""The command `surestep`: see it work, look into a database of threads without the program that wrote it, draw a graph.

surestep demo                 the bank's support bot: killed, resumed, approved, drained, forked
surestep threads DB           the threads of an SQLite file or a PostgreSQL database: what runs next, what waits
surestep history DB THREAD    the checkpoints of one thread
surestep sweep DB             delete what a retention doesn't keep
surestep import-langgraph URL  the threads of a database that LangGraph wrote
surestep postgres-sql         the SQL that sets a PostgreSQL database up, for somebody else to run
surestep graph MODULE:NAME    a graph as Mermaid text, as ASCII art or as a PNG
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surestep._find import CommandError, find_graph, is_postgres
from surestep.checkpoint.base._pending import next_nodes
from surestep.checkpoint.serde.base import SerializationError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from surestep.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from surestep.types import RunnableConfig

__all__ = ("main",)

# Rows that tell how a task stands; every other row is output, and a task with output has finished.
_NO_OUTPUT = {"__interrupt__", "__resume__", "__error__", "__error_source_node__"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (default: those of the process) and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (CommandError, SerializationError) as error:
        print(f"surestep: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, `head` for example, has seen enough
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="surestep", description="A durable graph runtime for agents.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="a bank's support bot: killed, resumed, approved, drained, forked")
    demo.set_defaults(run=_demo)

    threads = commands.add_parser("threads", help="the threads of a database")
    threads.set_defaults(run=_threads)
    history = commands.add_parser("history", help="the checkpoints of one thread, oldest first")
    history.set_defaults(run=_history)
    sweep = commands.add_parser("sweep", help="delete the threads, or their histories, whose time is up")
    sweep.set_defaults(run=_sweep)
    for command in (threads, history, sweep):
        command.add_argument("db", metavar="DB", help="a file that SqliteSaver wrote, or a URL of PostgreSQL")
        command.add_argument("--schema", help="PostgreSQL: where the tables are")
        command.add_argument("--tenant", help="PostgreSQL: whose threads")
    history.add_argument("thread", metavar="THREAD", help="the thread_id")

    sweep.add_argument("--strategy", choices=("delete", "keep_latest"), default="delete", help="default: delete")
    sweep.add_argument("--ttl-days", metavar="DAYS", type=float, required=True, help="how long a thread is kept")
    sweep.add_argument("--incident-days", metavar="DAYS", type=float, help="keep_latest: how long decisions are kept")
    sweep.add_argument("--open-threads", action="store_true", help="also threads that wait or may be running")
    sweep.add_argument("--dry-run", action="store_true", help="only count")

    move = commands.add_parser("import-langgraph", help="the threads of a database that LangGraph wrote")
    move.set_defaults(run=_import_langgraph)
    move.add_argument("url", metavar="URL", help="a file of SqliteSaver's, or the URL of PostgresSaver's database")
    move.add_argument("--into", metavar="URL", help="where to; default for a file: NAME.surestep.db beside it")

    sql = commands.add_parser("postgres-sql", help="the SQL that sets a PostgreSQL database up")
    sql.set_defaults(run=_postgres_sql)
    sql.add_argument("--schema", help="where the tables go; default: the first schema of the search path")
    sql.add_argument("--since", metavar="NUMBER", type=int, default=0, help="the latest in surestep_migrations")
    sql.add_argument("--grant", metavar="ROLE", help="instead, the rights that a role needs")
    sql.add_argument("--tenant", help="with --grant: the role sees this tenant only")

    graph = commands.add_parser("graph", help="a graph as Mermaid text, as ASCII art or as a PNG")
    graph.set_defaults(run=_graph)
    graph.add_argument(
        "graph",
        metavar="MODULE:NAME",
        help="a graph in a module, or in a file (bot.py:app); a function without parameters may make it",
    )
    form = graph.add_mutually_exclusive_group()
    form.add_argument("--ascii", action="store_true", help="ASCII art instead of Mermaid text")
    form.add_argument("--png", metavar="FILE", type=Path, help="write a PNG instead")
    graph.add_argument("--xray", action="store_true", help="with the graphs that its nodes run")
    return parser


def _demo(_options: argparse.Namespace) -> int:
    _console()  # says so when rich is missing, before a process starts
    here = Path(__file__).resolve().parent
    # Beside the package in a wheel, in examples/ in a checkout: the same files.
    places = [here / "_examples" / "bank", here.parent.parent / "examples" / "bank"]
    for place in places:
        if (place / "demo.py").exists():
            return subprocess.call([sys.executable, str(place / "demo.py")])
    raise CommandError(f"the demo's files are missing; looked in {places[0]} and {places[1]}")


def _threads(options: argparse.Namespace) -> int:
    console = _console()
    with _saver(options) as saver:
        newest: dict[str, CheckpointTuple] = {}
        checkpoints: dict[str, int] = {}
        for saved in saver.list(None):  # newest first
            where = saved.config["configurable"]
            if where.get("checkpoint_ns"):
                continue
            newest.setdefault(where["thread_id"], saved)
            checkpoints[where["thread_id"]] = checkpoints.get(where["thread_id"], 0) + 1
    table = _table("thread", "checkpoints", "runs next", "waiting question")
    for thread, saved in newest.items():
        questions = "\n".join(_questions(saved))
        _add(table, thread, checkpoints[thread], _next(saved), questions)
    console.print(table if newest else "No threads.")
    return 0


def _history(options: argparse.Namespace) -> int:
    console = _console()
    table = _table("step", "source", "ran next", "writes", "size", "checkpoint")
    with _saver(options) as saver:
        place: RunnableConfig = {"configurable": {"thread_id": options.thread, "checkpoint_ns": ""}}
        found = {saved.checkpoint["id"]: saved for saved in saver.list(place)}
        if not found:
            raise CommandError(f"no thread {options.thread!r}; `surestep threads` lists them")
        previous: str | None = None
        for checkpoint_id, saved in reversed(found.items()):
            parent = saved.parent_config["configurable"]["checkpoint_id"] if saved.parent_config else None
            branch = "" if parent == previous else f"\nafter {parent or 'nothing: its past was pruned'}"
            previous = checkpoint_id
            size = len(saver.serde.dumps_typed(saved.checkpoint)[1])
            about, writes = saved.metadata, len(saved.pending_writes or ())
            row = (about.get("step"), about.get("source"), _next(saved), writes, f"{size} B", checkpoint_id + branch)
            _add(table, *row)
    console.print(table)
    return 0


def _sweep(options: argparse.Namespace) -> int:
    from datetime import timedelta

    from surestep.retention import Retention

    console = _console()
    days = None if options.incident_days is None else timedelta(days=options.incident_days)
    try:
        ttl = timedelta(days=options.ttl_days)
        retention = Retention(
            strategy=options.strategy, ttl=ttl, incident_ttl=days, open_threads=options.open_threads, limit=1000
        )
    except ValueError as error:
        raise CommandError(str(error)) from None
    table = _table("threads seen", "threads deleted", "checkpoints deleted")
    seen = threads = checkpoints = 0
    after: str | None = None
    with _saver(options) as saver, console.status("Sweeping") as status:
        while True:
            swept = saver.sweep(retention, after=after, dry_run=options.dry_run)  # type: ignore[attr-defined]
            seen, threads = seen + swept.threads_seen, threads + swept.threads_deleted
            checkpoints, after = checkpoints + swept.checkpoints_deleted, swept.after
            if after is None:
                break
            status.update(f"Sweeping: {seen} threads seen")
    _add(table, seen, threads, checkpoints)
    console.print(table)
    if options.dry_run:
        console.print("Nothing was deleted: this was a dry run.")
    return 0


def _import_langgraph(options: argparse.Namespace) -> int:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from surestep._import import command

    console = _console()
    columns = (TextColumn("checkpoints"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:

        def begin(total: int) -> Callable[[], None]:
            task = bar.add_task("", total=total)
            return lambda: bar.advance(task)

        report = command.run(options.url, options.into, begin)
    table = _table("threads", "count")
    for what, count in sorted(report.threads.items()):
        _add(table, what, count)
    console.print(table if report.threads else "No threads were found.")
    console.print(f"{report.checkpoints} checkpoints written.")
    for thread in report.moved_on:
        print(f"surestep: thread {thread!r} has moved on in the new database and was left alone", file=sys.stderr)
    for thread, error in report.failed:
        print(f"surestep: thread {thread!r} was not imported: {error}", file=sys.stderr)
    return 1 if report.failed else 0


def _postgres_sql(options: argparse.Namespace) -> int:
    from surestep.checkpoint.postgres import grant_sql, setup_sql

    if options.grant is not None:
        print(grant_sql(options.grant, schema=options.schema, tenant=options.tenant), end="")
    else:
        print(setup_sql(options.schema, since=options.since), end="")
    return 0


def _graph(options: argparse.Namespace) -> int:
    from surestep.pregel.draw import mermaid_ascii, mermaid_png, mermaid_text

    graph = find_graph(options.graph)
    try:
        if options.png is not None:
            options.png.write_bytes(mermaid_png(graph, xray=options.xray))
        else:
            print((mermaid_ascii if options.ascii else mermaid_text)(graph, xray=options.xray))
    except ImportError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"cannot write {options.png}: {error.strerror}") from None
    return 0


def _next(saved: CheckpointTuple) -> str:
    """The nodes that run from a checkpoint, and how many of their tasks are done."""
    nodes = next_nodes(saved)
    done = {task for task, channel, _ in saved.pending_writes or () if channel not in _NO_OUTPUT}
    finished = f" ({len(done)} done)" if 0 < len(done) < len(nodes) else ""
    return ", ".join(nodes) + finished


def _questions(saved: CheckpointTuple) -> Iterator[str]:
    """Id and value of every question that nobody has answered."""
    rows = saved.pending_writes or ()
    settled = {task for task, channel, _ in rows if channel not in _NO_OUTPUT}
    for task, channel, value in rows:
        if channel == "__interrupt__" and task not in settled:
            for question in [value] if isinstance(value, str) else value:
                yield f"{getattr(question, 'id', '')} {getattr(question, 'value', question)}".strip()


@contextmanager
def _saver(options: argparse.Namespace) -> Iterator[BaseCheckpointSaver[Any]]:
    """A saver over what is there, which loads values of classes that are not here as text. Keys for an encrypted one
    come from the environment."""
    from surestep.checkpoint.serde._aes import keys_of_the_environment
    from surestep.checkpoint.serde.encrypted import EncryptedSerializer, KeyRing
    from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer

    class Looking(JsonPlusSerializer):
        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            try:
                return super().loads_typed(data)
            except SerializationError as error:
                return f"<{type(error).__name__}: {str(error).splitlines()[0]}>"

    serde = Looking()
    with (_on_postgres if is_postgres(options.db) else _on_sqlite)(options) as saver:
        saver.serde = EncryptedSerializer(KeyRing(), serde) if keys_of_the_environment() else serde
        yield saver


@contextmanager
def _on_sqlite(options: argparse.Namespace) -> Iterator[BaseCheckpointSaver[Any]]:
    from surestep.checkpoint.sqlite import SqliteSaver

    path = Path(options.db)
    if not path.is_file():
        raise CommandError(f"no file {path}")
    with path.open("rb") as file:
        if file.read(16) != b"SQLite format 3\x00":
            raise CommandError(f"{path} is no SQLite database")
    with SqliteSaver.from_conn_string(str(path)) as saver:
        yield saver


@contextmanager
def _on_postgres(options: argparse.Namespace) -> Iterator[BaseCheckpointSaver[Any]]:
    try:
        from psycopg import Error

        from surestep.checkpoint.postgres import PostgresSaver
    except ModuleNotFoundError:
        raise CommandError("this needs psycopg: pip install 'surestep[postgres]'") from None
    try:
        with PostgresSaver.from_conn_string(options.db, schema=options.schema, tenant=options.tenant) as saver:
            yield saver
    except Error as error:
        notes = getattr(error, "__notes__", ())
        raise CommandError(" ".join([str(error).strip(), *notes])) from None


def _console() -> Console:
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        raise CommandError("this needs the package rich: pip install 'surestep[cli]'") from None
    return Console()


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(show_lines=False)
    for column in columns:
        number = column in ("checkpoints", "step", "writes", "size")
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def _add(table: Table, *cells: object) -> None:
    from rich.text import Text

    # As text: what stands in brackets in somebody's question is no markup of ours.
    table.add_row(*(Text(str(cell)) for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
