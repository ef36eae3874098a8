"""Steps that are one transaction: what a longer conversation with the database consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from surestep._sql.statement import Steps

if TYPE_CHECKING:
    from surestep._sql.run import Runner


class Transaction(NamedTuple):
    """What steps in a transaction come to."""

    steps: Steps[Any]
    writes: bool

    def answer(self, runner: Runner) -> Any:
        return (runner.write if self.writes else runner.read)(self.steps)

    async def aanswer(self, runner: Runner) -> Any:
        return await (runner.awrite if self.writes else runner.aread)(self.steps)
