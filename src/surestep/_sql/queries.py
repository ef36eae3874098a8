"""The statements by name; the tables are described in sqlite/schema.sql. `?` stands for a parameter.

Parameters come in the order thread, namespace, checkpoint, and then the rest, unless a comment says
otherwise.
"""

from __future__ import annotations

_AT = "thread_id = ? AND checkpoint_ns = ?"
_CHECKPOINT = f"{_AT} AND checkpoint_id = ?"

ROW = "checkpoint_id, parent_id, type, checkpoint, metadata_type, metadata, small"
"""The columns that a checkpoint is read from."""

# ---- checkpoints ----

# The latest checkpoint: its id, its small values, and has it got writes of its own?
HEAD = f"""
SELECT checkpoint_id, small, EXISTS (
    SELECT 1 FROM surestep_writes w
    WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns AND w.checkpoint_id = c.checkpoint_id)
FROM surestep_checkpoints c WHERE {_AT} ORDER BY checkpoint_id DESC LIMIT 1"""

LATEST = f"SELECT {ROW} FROM surestep_checkpoints WHERE {_AT} ORDER BY checkpoint_id DESC LIMIT 1"

EXACT = f"SELECT {ROW} FROM surestep_checkpoints WHERE {_CHECKPOINT}"

SMALL = f"SELECT small FROM surestep_checkpoints WHERE {_CHECKPOINT}"

# All columns of the table.
PUT = """
INSERT INTO surestep_checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE SET
    parent_id = excluded.parent_id, type = excluded.type, checkpoint = excluded.checkpoint,
    metadata_type = excluded.metadata_type, metadata = excluded.metadata, small = excluded.small"""

# The two checkpoints from this one on.
FROM_HERE = f"""
SELECT checkpoint_id, parent_id, led_here FROM surestep_checkpoints
WHERE {_AT} AND checkpoint_id >= ? ORDER BY checkpoint_id LIMIT 2"""

NEXT = f"""
SELECT parent_id, led_here FROM surestep_checkpoints
WHERE {_AT} AND checkpoint_id > ? ORDER BY checkpoint_id LIMIT 1"""

EARLIER = f"SELECT checkpoint_id FROM surestep_checkpoints WHERE {_AT} AND checkpoint_id < ?"

BODIES = f"SELECT type, checkpoint FROM surestep_checkpoints WHERE {_AT}"

# Parameter: thread.
HEADS = """
SELECT checkpoint_ns, max(checkpoint_id) FROM surestep_checkpoints WHERE thread_id = ? GROUP BY checkpoint_ns"""

ALL_METADATA = """
SELECT thread_id, checkpoint_ns, checkpoint_id, metadata_type, metadata FROM surestep_checkpoints"""

FORGET_LED = f"UPDATE surestep_checkpoints SET led_here = NULL WHERE {_CHECKPOINT}"

DELETE_CHECKPOINT = f"DELETE FROM surestep_checkpoints WHERE {_CHECKPOINT}"

RIDERS = f"""
SELECT checkpoint_id, parent_id, led_here FROM surestep_checkpoints WHERE {_AT} AND led_here IS NOT NULL"""

# Parameter: thread.
RIDERS_OF_THREAD = """
SELECT checkpoint_ns, checkpoint_id, parent_id, led_here FROM surestep_checkpoints
WHERE thread_id = ? AND led_here IS NOT NULL"""

# ---- writes ----

WRITES = f"""
SELECT task_id, idx, channel, type, value, task_path FROM surestep_writes WHERE {_CHECKPOINT}"""

_PUT_WRITE = """
INSERT INTO surestep_writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO UPDATE SET
    channel = excluded.channel, type = excluded.type, value = excluded.value, task_path = excluded.task_path
WHERE excluded.idx """

# All columns of the table. A later error, interrupt or answer replaces; another write is stored once.
PUT_WRITE = _PUT_WRITE + "< 0"

# The same for a write that was there before those in the table: it stays, or has been replaced already.
PUT_EARLIER_WRITE = _PUT_WRITE + ">= 0"

DELETE_WRITES = f"DELETE FROM surestep_writes WHERE {_CHECKPOINT}"

# ---- values ----

PUT_VALUE = """
INSERT INTO surestep_values VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (thread_id, checkpoint_ns, version, channel) DO UPDATE SET type = excluded.type, value = excluded.value"""

VALUE_KEYS = f"SELECT version, channel FROM surestep_values WHERE {_AT}"

DELETE_VALUE = f"DELETE FROM surestep_values WHERE {_AT} AND version = ? AND channel = ?"


def values(pairs: str) -> str:
    """The values of (version, channel) pairs. `pairs`: how the database reads those from its first
    parameter."""
    return f"""
SELECT channel, type, value FROM ({pairs}) CROSS JOIN surestep_values
WHERE {_AT} AND version = first AND channel = second"""


# ---- whole threads ----

# Parameter: thread.
DELETE_THREAD = tuple(
    f"DELETE FROM {table} WHERE thread_id = ?"
    for table in ("surestep_checkpoints", "surestep_writes", "surestep_values")
)


def _copy(table: str, key: str, columns: str) -> str:
    updates = ", ".join(f"{column} = excluded.{column}" for column in columns.split(", "))
    return f"""
INSERT INTO {table} (thread_id, {key}, {columns}) SELECT ?, {key}, {columns} FROM {table} WHERE thread_id = ?
ON CONFLICT (thread_id, {key}) DO UPDATE SET {updates}"""


# Parameters: the new thread, the old one. The column `led_here` is left out: see rule 3 in ops.
COPY_THREAD = (
    _copy(
        "surestep_checkpoints",
        "checkpoint_ns, checkpoint_id",
        "parent_id, type, checkpoint, metadata_type, metadata, small",
    ),
    _copy("surestep_writes", "checkpoint_ns, checkpoint_id, task_id, idx", "channel, type, value, task_path"),
    _copy("surestep_values", "checkpoint_ns, version, channel", "type, value"),
)


def page(conditions: list[str]) -> str:
    """A page of checkpoints, newest first. Parameters: of the conditions, and how many."""
    return (
        f"SELECT thread_id, checkpoint_ns, {ROW} FROM surestep_checkpoints WHERE "
        f"{' AND '.join(conditions) or '1 = 1'} ORDER BY checkpoint_id DESC, thread_id DESC, checkpoint_ns "
        "DESC LIMIT ?"
    )
