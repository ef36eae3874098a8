"""Taking turns: who changes a thread after looking at it does so while nobody else writes to it."""

from __future__ import annotations

from surestep._sql.dialect import Dialect
from surestep._sql.statement import Many, Steps


def take_turn(dialect: Dialect, *thread_ids: str) -> Steps[None]:
    """Wait until nobody else writes to these threads; nobody will until the transaction ends.

    In the order of their ids, so that two who want the same threads never wait for each other in a circle.
    """
    if dialect.turn is not None:
        yield Many(dialect.turn, [(thread_id,) for thread_id in sorted(thread_ids)])
