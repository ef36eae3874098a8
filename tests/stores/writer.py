"""A process that puts and changes items: `python writer.py KIND PLACE NAME ITEMS`, started by a line on its
input."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from surestep.store.base import GetOp, PutOp


def work(store: Any, name: str, items: int) -> int:
    """Set the store up, put items of one's own and items that all put, and refresh what others have put; how
    many of one's own are there."""
    store.setup()
    for number in range(items):
        shared = [PutOp(("shared", str(key)), "k", {"by": name, "n": number}, ttl=60) for key in range(5)]
        if number % 2:
            shared.reverse()
        store.batch([*shared, PutOp(("own", name), str(number), {"n": number}, ttl=60)])
        seen = store.batch([GetOp(("shared", str(key)), "k") for key in range(5)])
        # One batch is there as a whole or not at all.
        assert len({(item.value["by"], item.value["n"]) for item in seen}) == 1, seen
        store.sweep_ttl()
    return len(store.search(("own", name), limit=1000))


def in_processes(kind: str, place: str, writers: int, items: int) -> list[tuple[str, str]]:
    """What that many processes that `work` at the same time print: (output, errors) of each."""
    command = [sys.executable, __file__, kind, place]
    children = [
        subprocess.Popen(
            [*command, f"w{number}", str(items)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(writers)
    ]
    outputs = [child.communicate("go\n") for child in children]
    return [(out.strip(), err) for out, err in outputs]


if __name__ == "__main__":
    kind, place, name, count = sys.argv[1:]
    sys.stdin.readline()  # all begin together
    if kind == "sqlite":
        from surestep.store.sqlite import SqliteStore as Store
    else:
        from surestep.store.postgres import PostgresStore as Store  # type: ignore[no-redef,import-not-found]
    with Store.from_conn_string(place) as store:
        print(work(store, name, int(count)))
