"""The operator's desk, a process of its own:

python desk.py FOLDER                           lists the cases that wait, each with its question
python desk.py FOLDER approve CASE ID           answers one of them by the question's id
python desk.py FOLDER decline CASE ID REASON
python desk.py FOLDER found CASE ID RECEIPT     answers whether a refund happened: it did
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bank import Bank
from bot import Case, build
from surestep.checkpoint.sqlite import SqliteSaver
from surestep.effects import Approve, Completed, Reject
from surestep.errors import UnknownInterruptError
from surestep.graph.state import CompiledStateGraph
from surestep.types import Command, Interrupt

Graph = CompiledStateGraph[Case, Bank, Case, Case]


def waiting(graph: Graph, cases: Iterable[str]) -> Iterator[tuple[str, Interrupt[Any]]]:
    """Every question that waits for an answer, with its case."""
    for case in cases:
        for question in graph.get_state({"configurable": {"thread_id": case}}).interrupts:
            yield case, question


def main(folder: Path, verb: str = "list", case: str = "", question_id: str = "", text: str = "") -> None:
    with SqliteSaver.from_conn_string(str(folder / "cases.sqlite")) as saver:
        graph = build().compile(checkpointer=saver)
        if verb == "list":
            cases = {saved.config["configurable"]["thread_id"] for saved in saver.list(None)}
            for case, question in waiting(graph, sorted(cases)):
                print(case, question.id, question.value)
            return
        # The answer names its question, so that it can't reach another one that happens to wait too.
        answers = {"approve": Approve(), "decline": Reject(text), "found": Completed(text)}
        try:
            result = graph.invoke(
                Command(resume={question_id: answers[verb]}),
                {"configurable": {"thread_id": case, "actor": "the operator"}},
                context=Bank(folder / "calls.log"),
                durability="sync",
            )
        except UnknownInterruptError as refused:
            sys.exit(f"refused: {refused}")
        print(f"{case}: {result['reply']}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
