"""The bank's support bot through a bad day: time-outs, killed processes, questions, a shutdown, second thoughts.

Run `python demo.py`. Every claim that it prints is checked, and the exit code is 1 if one does not hold.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from rich.table import Table

from bank import Bank
from bot import build
from stage import Stage
from surestep.checkpoint.sqlite import SqliteSaver
from surestep.pregel.draw import mermaid_text
from surestep.types import RunnableConfig, StateSnapshot


class Play:
    """The seven parts. They share the cases on disk, the bank's ledger and nothing else."""

    def __init__(self, stage: Stage, saver: SqliteSaver) -> None:
        self.stage = stage
        self.saver = saver
        self.graph = build().compile(checkpointer=saver)
        self.bank = Bank(stage.folder / "calls.log")
        self.fates: dict[str, tuple[int, int, str, str]] = {}  # what became of Emil's messages, by strategy

    def state(self, case: str) -> StateSnapshot:
        """What any process can see of a case at this moment."""
        return self.graph.get_state(thread(case))

    def antifraud_times_out(self) -> None:
        stage = self.stage
        stage.part(
            1,
            "One of three systems does not answer",
            "Limits, history and antifraud are asked at once. Antifraud may take one\n"
            "second, gets two attempts, and then its handler asks for a review by hand.",
        )
        stage.run("turn.py", "case-1", "Anna", "I was charged 4200 twice")
        calls, findings = self.bank.calls("Anna"), self.state("case-1").values["findings"]
        stage.promise("antifraud was tried twice", calls["antifraud"] == 2)
        stage.promise("limits and history were asked once", calls["limits"] == calls["history"] == 1)
        stage.promise("the handler took antifraud's place", "by hand" in findings["antifraud"])

    def killed_in_the_middle(self) -> None:
        stage = self.stage
        stage.part(
            2,
            "SIGKILL in the middle of a step",
            "Two of three systems have answered when the process is killed. A second one\n"
            "goes on with the case. The calls are counted in a file outside the graph.",
        )
        with stage.process("turn.py", "case-2", "Boris", "Give me back 2500") as process:
            stage.wait_until("two answers on disk", lambda: self.state("case-2").next == ("antifraud",))
            process.send_signal(signal.SIGKILL)
        before = self.bank.calls("Boris")
        stage.promise("the process died of the signal", process.returncode == -signal.SIGKILL)
        stage.promise("limits and history had been asked", before["limits"] == before["history"] == 1)
        stage.run("turn.py", "case-2")
        calls = self.bank.calls("Boris")
        stage.promise("they were not asked again", calls["limits"] == calls["history"] == 1)
        stage.promise("antifraud was, as it had not answered", calls["antifraud"] > before["antifraud"] == 1)
        stage.promise("the case went on to its question", {*self.state("case-2").next} == {"approval", "apology"})

    def operator_answers(self) -> None:
        stage = self.stage
        stage.part(
            3,
            "A person decides",
            "No process holds the cases now. Beside the question another branch wants to\n"
            "send a voucher: it is held. The operator's desk, another program, lists what\n"
            "waits and answers by the question's id.",
        )
        _, listed = stage.run("desk.py")
        questions = dict(line.split()[:2] for line in listed)
        stage.promise("both questions are listed", list(questions) == ["case-1", "case-2"])
        stage.promise("nothing has been paid yet", not self.paid("Anna") and not self.paid("Boris"))
        stage.promise("no voucher is out, both are held", self.effects("case-1") == {"send_voucher": "held"})
        with stage.process("desk.py", "approve", "case-1", questions["case-1"]):
            stage.run("desk.py", "approve", "case-1", questions["case-1"])  # a double click
        stage.run("desk.py", "decline", "case-2", questions["case-2"], "the payment was made by the client")
        stage.promise("approved twice, the refund was paid once", self.paid("Anna") == 1)
        stage.promise("and its voucher was sent once", self.bank.calls("Anna")["voucher"] == 1)
        stage.promise("the declined one was not paid", self.paid("Boris") == 0)
        stage.promise("its voucher is cancelled for good", self.effects("case-2") == {"send_voucher": "cancelled"})
        code, _ = stage.run("desk.py", "approve", "case-2", questions["case-2"])
        stage.promise("a second answer to a question is refused", code != 0 and self.paid("Boris") == 0)

    def drained(self) -> None:
        stage = self.stage
        stage.part(
            4,
            "SIGTERM in the middle of a turn",
            "A deployment stops the process. The step that is under way is finished and\n"
            "saved, the next one is left to the process that comes after.",
        )
        with stage.process("turn.py", "case-3", "Vera", "350 too much on my last bill") as process:
            stage.wait_until("antifraud under way", lambda: self.state("case-3").next == ("antifraud",))
            process.send_signal(signal.SIGTERM)
        stage.promise("the process ended by itself", process.returncode == 0)
        stage.promise("at the boundary between two steps", self.state("case-3").next == ("decide",))
        stage.run("turn.py", "case-3")
        calls = self.bank.calls("Vera")
        stage.promise("every system was called exactly once", set(calls.values()) == {1} and len(calls) == 4)
        stage.promise("the client has an answer", "receipt" in self.state("case-3").values["reply"])

    def killed_while_paying(self) -> None:
        stage = self.stage
        stage.part(
            5,
            "SIGKILL between a payment and its record",
            "The bank has paid, its receipt is on the way, and the process is killed. The\n"
            "one that goes on does not know whether money was moved, so it asks.",
        )
        with stage.process("turn.py", "case-4", "Dora", "Give me back 300") as process:
            stage.wait_until("the payment", lambda: self.paid("Dora") == 1)
            process.send_signal(signal.SIGKILL)
        stage.run("turn.py", "case-4")
        stage.promise("it was not paid a second time", self.paid("Dora") == 1)
        [question] = self.state("case-4").interrupts
        stage.promise("somebody is asked whether it happened", question.value["effect"] == "pay_back")
        stage.run("desk.py", "found", "case-4", question.id, "R-300")  # the operator has looked into the bank's books
        stage.promise("the case ended with the receipt", "R-300" in self.state("case-4").values["reply"])
        stage.promise("and one payment", self.paid("Dora") == 1)

    def changed_his_mind(self) -> None:
        stage = self.stage
        stage.part(
            6,
            '"Cancel that": a second message while the refund runs',
            "The bank takes two seconds for Emil's receipts. Meanwhile he writes again, in\n"
            "four cases with four strategies.",
        )
        books = Table("strategy", "paid", "taken back", "first message", "second message", title="Emil's cases")
        for strategy in ("reject", "enqueue", "interrupt", "rollback"):
            before = self.bank.calls("Emil")
            with stage.process("turn.py", strategy, "Emil", "Give me back 70") as first:
                stage.wait_until("the payment", lambda before=before: self.paid("Emil") > before["refund"])  # type: ignore[misc]
                _, said = stage.run("turn.py", strategy, "Emil", "No, make that 20", strategy)
                heard = stage.lines(first)
            moved = self.bank.calls("Emil") - before
            books.add_row(strategy, str(moved["refund"]), str(moved["take_back"]), ended(heard), ended(said))
            self.fates[strategy] = moved["refund"], moved["take_back"], ended(heard), ended(said)
        stage.console.print(books)
        stage.promise("reject: the second is told to wait", self.fates["reject"] == (1, 0, "answered", "ThreadBusy"))
        stage.promise("enqueue: one after the other", self.fates["enqueue"] == (2, 0, "answered", "answered"))
        stage.promise("interrupt: the first is told to stop", self.fates["interrupt"][2:] == ("RunFenced", "answered"))
        stage.promise("rollback: what it had paid is taken back", self.fates["rollback"][:2] == (2, 1))

    def looked_at_afterwards(self) -> None:
        stage = self.stage
        stage.part(
            7,
            "What happened, and what if",
            "The first case goes back to the moment of its decision, with 90 in place of\n"
            "4200. The what-if has a bank of its own: the outside world is context.",
        )
        past = list(self.graph.get_state_history(thread("case-1")))
        [moment] = [snapshot for snapshot in past if snapshot.next == ("decide",)]
        fork = self.graph.update_state(moment.config, {"amount": 90}, as_node="decide")
        pretended = Bank(stage.folder / "what-if.log")
        result = self.graph.invoke(None, fork, context=pretended, durability="sync")
        history = list(self.graph.get_state_history(thread("case-1")))
        stage.console.print(self.table(reversed(history), {id_of(snapshot) for snapshot in past}))
        stage.promise("90 is refunded without a question", result["outcome"]["receipt"] == "R-90")
        stage.promise("the real bank has seen nothing of it", self.paid("Anna") == 1)
        stage.promise("the first branch is as it was", {*map(id_of, past)} < {*map(id_of, history)})
        stage.console.print("\n  The graph as Mermaid text:\n")
        stage.console.print(mermaid_text(self.graph), markup=False, soft_wrap=True)

    def table(self, history: Iterable[StateSnapshot], before_the_fork: set[str]) -> Table:
        """One row a checkpoint: what had led to it, what ran from it, and what that wrote."""
        table = Table("step", "source", "node that ran next", "writes", "size", title="case-1 and its fork")
        for snapshot in history:
            saved = self.saver.get_tuple(snapshot.config)
            assert saved is not None and snapshot.metadata is not None
            size = len(self.saver.serde.dumps_typed(saved.checkpoint)[1])
            nodes = ", ".join(task.name for task in snapshot.tasks) or "(end)"
            step, source = str(snapshot.metadata["step"]), snapshot.metadata["source"]
            style = None if id_of(snapshot) in before_the_fork else "cyan"
            table.add_row(step, source, nodes, str(len(saved.pending_writes or ())), f"{size} B", style=style)
        return table

    def paid(self, client: str) -> int:
        """How many refunds the real bank has paid to this client."""
        return self.bank.calls(client)["refund"]

    def effects(self, case: str) -> dict[str, str]:
        """How the effects of a case stand, by name."""
        return {record.name: record.state for record in self.graph.get_effects(thread(case)).effects}


def ended(lines: list[str]) -> str:
    """How a turn ended, from what its process printed."""
    return "answered" if lines[-1].startswith("reply") else lines[-1].partition(":")[0]


def thread(case: str) -> RunnableConfig:
    return {"configurable": {"thread_id": case}}


def id_of(snapshot: StateSnapshot) -> str:
    return str(snapshot.config["configurable"]["checkpoint_id"])


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="surestep-demo-") as name:
        stage = Stage(Path(name))
        with SqliteSaver.from_conn_string(str(stage.folder / "cases.sqlite")) as saver:
            play = Play(stage, saver)
            play.antifraud_times_out()
            play.killed_in_the_middle()
            play.operator_answers()
            play.drained()
            play.killed_while_paying()
            play.changed_his_mind()
            play.looked_at_afterwards()
    stage.console.print()
    if stage.broken:
        stage.console.print(f"[bold red]{len(stage.broken)} promises broken[/]")
        return 1
    stage.console.print("[bold green]Every promise was kept.[/]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
