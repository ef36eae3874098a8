"""Effects and decisions as a ledger keeps them: the words that the engine and the savers share."""

from __future__ import annotations

from typing import Any, NamedTuple


class EffectRecord(NamedTuple):
    """An effect as the ledger knows it. Times are ISO 8601, UTC.

    id: also its idempotency key. business_key: None for one known by its position. position: the how manyth
    effect of its task it was. digest: of its arguments. attempt: how often its body was started. late: its outcome
    came after its run had lost the right to it. reason, actor: of the last decision about it.
    """

    id: str
    thread_id: str
    name: str
    state: str
    checkpoint_ns: str = ""
    checkpoint_id: str = ""  # of the outermost graph, when the effect was asked for
    task_id: str = ""
    node: str = ""
    business_key: str | None = None
    position: int = 0
    digest: str = ""
    attempt: int = 0
    arguments: Any = None
    result: Any = None  # or the exception that it failed with
    late: bool = False
    reason: str | None = None
    actor: str | None = None
    asked_at: str = ""
    changed_at: str = ""


class Move(NamedTuple):
    """A move of a record from one of the `allowed` states ("new": there is none yet), and what it is afterwards."""

    kind: str
    allowed: frozenset[str]
    record: EffectRecord


class Decision(NamedTuple):
    """Something that was decided about a thread, for audits: `kind` is what (ask, approve, reject, expire, cancel,
    complete, retry, abort), `subject` the question or effect that it was about."""

    thread_id: str
    subject: str
    kind: str
    decided_at: str
    actor: str | None = None
    reason: str | None = None
    digest: str | None = None
    checkpoint_id: str = ""
    deadline: str | None = None  # of a gate
