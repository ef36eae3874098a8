"""The public face of a store on a database: a batch is one conversation with it, held by a sync or an async
partner."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from surestep._calls import adriven, driven
from surestep._sql.store import ops
from surestep._sql.transaction import Transaction
from surestep.store.base import BaseStore, IndexConfig, ListNamespacesOp, Op, Result, TTLConfig, validate_op_namespace
from surestep.store.base._plan import Index, Plan, Vectors, plan

if TYPE_CHECKING:
    from surestep._sql.run import Runner
    from surestep._sql.store.dialect import StoreDialect
    from surestep._sql.store.vectors import Ranking

Loads = Callable[[Any], dict[str, Any]]


class Embedding(NamedTuple):
    """The vectors of a plan."""

    plan: Plan

    def answer(self, runner: Runner) -> Vectors:
        return self.plan.embed()

    async def aanswer(self, runner: Runner) -> Vectors:
        return await self.plan.aembed()


Conversation = Generator[Embedding | Transaction, Any, list[Result]]
"""What a batch asks for, one after the other, and is sent the answers."""


class SqlStore(BaseStore):
    """Items in a database. What each method does is documented on `BaseStore`."""

    supports_ttl = True

    _runner: Runner
    _tools: ops.Tools

    def _set_up(
        self,
        runner: Runner,
        dialect: StoreDialect,
        loads: Loads | None,
        index: tuple[IndexConfig, Index, Ranking] | None,
        ttl: TTLConfig | None,
    ) -> None:
        self._runner = runner
        self.index_config = None if index is None else index[0]
        self._index = None if index is None else index[1]
        self.embeddings = None if index is None else index[1].embeddings
        self._tools = ops.Tools(dialect, loads or json.loads, None if index is None else index[2])
        self.ttl_config = ttl

    def _conversation(self, given: Iterable[Op]) -> Conversation:
        planned = plan(given, self._index)
        for op in planned.ops:
            if not isinstance(op, ListNamespacesOp):  # a pattern that fits nothing does no harm
                validate_op_namespace(op)
        vectors: Vectors = yield Embedding(planned)
        steps = ops.batch(self._tools, planned, vectors)
        answers: ops.Answers = yield Transaction(steps, writes=ops.is_write(planned))
        if answers.due:
            yield Transaction(ops.refresh(self._tools.dialect, answers.due), writes=True)
        return answers.results

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the operations in one transaction; their results, in order."""
        return driven(self._conversation(ops), lambda asked: asked.answer(self._runner))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch`, awaited. When the caller is cancelled it has either happened or never will."""
        return await adriven(self._conversation(ops), lambda asked: asked.aanswer(self._runner))
