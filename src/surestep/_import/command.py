"""The command `surestep import-langgraph`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surestep._find import CommandError, is_postgres
from surestep._import.raw import Raw
from surestep._import.sources import Size, Source, opened
from surestep._import.threads import Outcome, import_thread
from surestep.checkpoint.serde._aes import keys_of_the_environment
from surestep.checkpoint.serde.base import SerializationError, SerializerProtocol
from surestep.checkpoint.serde.encrypted import EncryptedSerializer, KeyRing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surestep._sql.saver import SqlSaver
    from surestep._sql.statement import Steps

TOGETHER = 200
"""So many checkpoints are written in one transaction, or one thread that has more."""


class Report:
    """What an import came to."""

    def __init__(self) -> None:
        self.threads: Counter[str] = Counter()
        self.checkpoints = 0
        self.moved_on: list[str] = []
        self.failed: list[tuple[str, str]] = []

    def add(self, thread_id: str, outcome: Outcome) -> None:
        self.threads[outcome.what] += 1
        self.checkpoints += outcome.checkpoints
        if outcome.what == "moved on here":
            self.moved_on.append(thread_id)


def run(url: str, into: str | None, progress: Callable[[int], Any]) -> Report:
    """Import all threads. `progress` is called with the number of checkpoints, and what it gives for each of them."""
    serde: SerializerProtocol = Raw()
    if keys_of_the_environment():
        serde = EncryptedSerializer(KeyRing(), serde)
    report = Report()
    into = into or default_target(url)
    with opened(url, serde) as source, _target(url, into) as saver:
        saver.serde = serde
        threads = source.threads()
        told = progress(sum(thread.checkpoints for thread in threads))
        for group in _grouped(threads):
            _import_together(saver, source, group, report, told)
    return report


def _import_together(saver: SqlSaver, source: Source, group: Sequence[Size], report: Report, told: Any) -> None:
    try:
        with source.snapshot():
            outcomes = saver._runner.write(_all(saver, source, group, told))
    except (SerializationError, CommandError) as error:
        if len(group) > 1:  # which one was it?
            for thread in group:
                _import_together(saver, source, [thread], report, told)
        else:
            report.failed.append((group[0].thread_id, str(error)))
        return
    for thread, outcome in zip(group, outcomes, strict=True):
        report.add(thread.thread_id, outcome)


def _all(saver: SqlSaver, source: Source, group: Sequence[Size], told: Any) -> Steps[list[Outcome]]:
    outcomes = []
    for thread in group:
        outcomes.append((yield from import_thread(saver._desk, source, thread.thread_id, told)))
    return outcomes


def _grouped(threads: Sequence[Size]) -> Iterator[list[Size]]:
    group: list[Size] = []
    size = 0
    for thread in threads:
        if group and size + thread.checkpoints > TOGETHER:
            yield group
            group, size = [], 0
        group.append(thread)
        size += thread.checkpoints
    if group:
        yield group


@contextmanager
def _target(url: str, into: str) -> Iterator[SqlSaver]:
    """The saver to write to."""
    from surestep.checkpoint.sqlite import SqliteSaver

    if is_postgres(into):
        with _postgres_target(into) as saver:
            yield saver
        return
    path = Path(into.removeprefix("sqlite:///"))
    if not path.resolve().parent.is_dir():
        raise CommandError(f"no folder {path.parent} for the new database")
    if path.exists() and path.stat().st_size:
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\x00":
                raise CommandError(f"{path} is no SQLite database")
    if not is_postgres(url) and path.resolve() == Path(url.removeprefix("sqlite:///")).resolve():
        raise CommandError("--into is the source itself, which is left untouched: name another file")
    with SqliteSaver.from_conn_string(str(path)) as saver:
        yield saver


@contextmanager
def _postgres_target(into: str) -> Iterator[SqlSaver]:
    try:
        from surestep.checkpoint.postgres import PostgresSaver
    except ModuleNotFoundError:
        raise CommandError("this needs psycopg: pip install 'surestep[postgres]'") from None
    with PostgresSaver.from_conn_string(into) as saver:
        saver.setup()
        yield saver


def default_target(url: str) -> str:
    """A file beside the source."""
    if is_postgres(url):
        raise CommandError("say where to: --into with a file or with the URL of a database")
    path = Path(url.removeprefix("sqlite:///"))
    return str(path.with_name(f"{path.stem}.surestep{path.suffix or '.db'}"))
