"""The statements by name; the tables are described in sqlite/schema.sql. `?` stands for a parameter.

Parameters come in the order thread, namespace, checkpoint, and then the rest, unless a comment says
otherwise.
"""

from __future__ import annotations

_AT = "thread_id = ? AND checkpoint_ns = ?"
_CHECKPOINT = f"{_AT} AND checkpoint_id = ?"

ROW = "checkpoint_id, parent_id, depth, state, metadata"
"""The columns that a checkpoint is read from."""

# ---- checkpoints ----

# The latest checkpoint: its id and state, and has it got writes of its own?
HEAD = f"""
SELECT checkpoint_id, state, EXISTS (
    SELECT 1 FROM surestep_writes w
    WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns AND w.checkpoint_id = c.checkpoint_id)
FROM surestep_checkpoints c WHERE {_AT} ORDER BY checkpoint_id DESC LIMIT 1"""

LATEST = f"SELECT {ROW} FROM surestep_checkpoints WHERE {_AT} ORDER BY checkpoint_id DESC LIMIT 1"

EXACT = f"SELECT {ROW} FROM surestep_checkpoints WHERE {_CHECKPOINT}"

# A checkpoint and the rows before it, as many as its depth says: with those its state is whole, as a rule.
# Parameters: thread, namespace, checkpoint, and these once more.
CHAIN = f"""
SELECT {ROW} FROM surestep_checkpoints WHERE {_AT} AND checkpoint_id <= ? ORDER BY checkpoint_id DESC
LIMIT (SELECT coalesce(max(depth), -1) + 1 FROM surestep_checkpoints WHERE {_CHECKPOINT})"""

# The same for the latest. Parameters: thread, namespace, and these once more.
LATEST_CHAIN = f"""
SELECT {ROW} FROM surestep_checkpoints WHERE {_AT} ORDER BY checkpoint_id DESC
LIMIT (SELECT coalesce(max(depth), -1) + 1 FROM (
    SELECT depth FROM surestep_checkpoints WHERE {_AT} ORDER BY checkpoint_id DESC LIMIT 1) h)"""

# All columns of the table.
PUT = """
INSERT INTO surestep_checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE SET
    parent_id = excluded.parent_id, depth = excluded.depth, state = excluded.state, metadata = excluded.metadata"""

# Parameters: the state, thread, namespace, checkpoint.
MAKE_WHOLE = f"UPDATE surestep_checkpoints SET depth = 0, state = ? WHERE {_CHECKPOINT}"

# Parameters: thread, namespace, parent.
CHILDREN = f"SELECT checkpoint_id FROM surestep_checkpoints WHERE {_AT} AND parent_id = ? AND depth > 0"

# The two checkpoints from this one on.
FROM_HERE = f"""
SELECT checkpoint_id, parent_id, led_here FROM surestep_checkpoints
WHERE {_AT} AND checkpoint_id >= ? ORDER BY checkpoint_id LIMIT 2"""

EARLIER = f"SELECT checkpoint_id FROM surestep_checkpoints WHERE {_AT} AND checkpoint_id < ?"

# What the rows of a thread refer to. Parameter: thread.
REFERENCES = "SELECT state, led_here FROM surestep_checkpoints WHERE thread_id = ?"

CHAINED = f"SELECT checkpoint_id, parent_id FROM surestep_checkpoints WHERE {_AT} AND depth > 0"

# Parameter: thread.
HEADS = """
SELECT checkpoint_ns, max(checkpoint_id) FROM surestep_checkpoints WHERE thread_id = ? GROUP BY checkpoint_ns"""

ALL_METADATA = """
SELECT thread_id, checkpoint_ns, checkpoint_id, metadata FROM surestep_checkpoints"""

FORGET_LED = f"UPDATE surestep_checkpoints SET led_here = NULL WHERE {_CHECKPOINT}"

DELETE_CHECKPOINT = f"DELETE FROM surestep_checkpoints WHERE {_CHECKPOINT}"

RIDERS = f"""
SELECT checkpoint_id, parent_id, led_here FROM surestep_checkpoints WHERE {_AT} AND led_here IS NOT NULL"""

# Parameter: thread.
RIDERS_OF_THREAD = """
SELECT checkpoint_ns, checkpoint_id, parent_id, led_here FROM surestep_checkpoints
WHERE thread_id = ? AND led_here IS NOT NULL"""

# Parameter: thread.
ROWS_OF_THREAD = """
SELECT checkpoint_ns, checkpoint_id, parent_id, depth, state, metadata FROM surestep_checkpoints WHERE thread_id = ?"""

# ---- writes ----

WRITES = f"""
SELECT task_id, idx, channel, value, task_path FROM surestep_writes WHERE {_CHECKPOINT}"""

NEXT = f"""
SELECT parent_id, led_here FROM surestep_checkpoints
WHERE {_AT} AND checkpoint_id > ? ORDER BY checkpoint_id LIMIT 1"""

_PUT_WRITE = """
INSERT INTO surestep_writes VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO UPDATE SET
    channel = excluded.channel, value = excluded.value, task_path = excluded.task_path
WHERE excluded.idx """

# All columns of the table. A later error, interrupt or answer replaces; another write is stored once.
PUT_WRITE = _PUT_WRITE + "< 0"

# The same for a write that was there before those in the table: it stays, or has been replaced already.
PUT_EARLIER_WRITE = _PUT_WRITE + ">= 0"

DELETE_WRITES = f"DELETE FROM surestep_writes WHERE {_CHECKPOINT}"

# Parameter: thread.
WRITES_OF_THREAD = """
SELECT checkpoint_ns, checkpoint_id, task_id, idx, channel, value, task_path FROM surestep_writes WHERE thread_id = ?"""

# All columns of the table; what is there is replaced.
COPY_WRITE = _PUT_WRITE.replace("WHERE excluded.idx ", "")

# ---- pages ----

# One row when it was put; none when the log goes on from there already. Parameters: thread, log, page, data, and the
# first three once more.
APPEND_PAGE = """
INSERT INTO surestep_pages SELECT ?, ?, ?, ? WHERE NOT EXISTS (
    SELECT 1 FROM surestep_pages WHERE thread_id = ? AND log = ? AND page >= ?)
ON CONFLICT DO NOTHING RETURNING 1"""

# All columns of the table.
PUT_PAGE = "INSERT INTO surestep_pages VALUES (?, ?, ?, ?)"

# Parameter: thread.
PAGE_KEYS = "SELECT log, page FROM surestep_pages WHERE thread_id = ?"

# Parameter: thread.
LOGS = "SELECT DISTINCT log FROM surestep_pages WHERE thread_id = ?"

# Parameters: the new thread and log, the old ones.
COPY_LOG = """
INSERT INTO surestep_pages SELECT ?, ?, page, data FROM surestep_pages WHERE thread_id = ? AND log = ?"""

DELETE_PAGE = "DELETE FROM surestep_pages WHERE thread_id = ? AND log = ? AND page = ?"


def read(triples: str) -> str:
    """What belongs to a checkpoint besides its row: pages (0, log, page, "", "", "", data), its writes (1, index, 0,
    task id, channel, task path, value) and the row that follows (2, 0, 0, parent's id, "", "", the writes that ride).

    `triples`: how the database reads [[log, from page, to page], ...] in JSON from its first parameter, as columns
    `log`, `first` and `beyond`. Parameters: that JSON, thread, and then three times or twice (thread, namespace,
    checkpoint).
    """
    return f"""
SELECT 0, p.log, p.page, '', '', '', p.data FROM ({triples}) t CROSS JOIN surestep_pages p
WHERE p.thread_id = ? AND p.log = t.log AND p.page >= t.first AND p.page < t.beyond
UNION ALL SELECT 1, idx, 0, task_id, channel, task_path, value FROM surestep_writes WHERE {_CHECKPOINT}
UNION ALL SELECT 2, 0, 0, parent_id, '', '', led_here FROM (
    SELECT parent_id, led_here FROM surestep_checkpoints
    WHERE {_AT} AND checkpoint_id > ? ORDER BY checkpoint_id LIMIT 1) f"""


def pages(triples: str) -> str:
    """Pages alone: log, page, data. Parameters: the JSON, thread."""
    return f"""
SELECT p.log, p.page, p.data FROM ({triples}) t CROSS JOIN surestep_pages p
WHERE p.thread_id = ? AND p.log = t.log AND p.page >= t.first AND p.page < t.beyond"""


# ---- pins and sweeps ----

EXISTS = f"SELECT checkpoint_id FROM surestep_checkpoints WHERE {_CHECKPOINT}"

HEAD_ID = f"SELECT checkpoint_id FROM surestep_checkpoints WHERE {_AT} ORDER BY checkpoint_id DESC LIMIT 1"

# All columns of the table.
PUT_PIN = "INSERT INTO surestep_pins VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"

# Parameter: thread.
PINS = """
SELECT checkpoint_ns, checkpoint_id, label FROM surestep_pins WHERE thread_id = ?
ORDER BY checkpoint_ns, checkpoint_id, label"""

DELETE_PIN = f"DELETE FROM surestep_pins WHERE {_CHECKPOINT} AND label = ?"

FORGET_PINS = f"DELETE FROM surestep_pins WHERE {_CHECKPOINT}"

# Parameters: the new thread, the old one.
COPY_PINS = """
INSERT INTO surestep_pins SELECT ?, checkpoint_ns, checkpoint_id, label FROM surestep_pins WHERE thread_id = ?
ON CONFLICT DO NOTHING"""

IDS = f"SELECT checkpoint_id FROM surestep_checkpoints WHERE {_AT}"

# Parameters: thread, channel.
WITH_WRITE = """
SELECT DISTINCT checkpoint_ns, checkpoint_id FROM surestep_writes WHERE thread_id = ? AND channel = ?"""

# Threads in order, from one to the next by the index: id, greatest checkpoint id, when a sweep first saw it.
# Parameters: the thread after which they begin, how many.
THREADS = """
WITH RECURSIVE t (id) AS (
    SELECT min(thread_id) FROM surestep_checkpoints WHERE thread_id > ?
    UNION ALL
    SELECT (SELECT min(thread_id) FROM surestep_checkpoints WHERE thread_id > t.id) FROM t WHERE t.id IS NOT NULL
)
SELECT t.id, (SELECT max(checkpoint_id) FROM surestep_checkpoints WHERE thread_id = t.id),
    (SELECT seen_at FROM surestep_first_seen s WHERE s.thread_id = t.id)
FROM t WHERE t.id IS NOT NULL LIMIT ?"""

# Parameters: thread, seconds since 1970.
FIRST_SEEN = "INSERT INTO surestep_first_seen VALUES (?, ?) ON CONFLICT DO NOTHING"

# ---- encrypting again ----

# Parameter: thread.
COLUMNS_OF_THREAD = """
SELECT checkpoint_ns, checkpoint_id, state, metadata, led_here FROM surestep_checkpoints WHERE thread_id = ?"""

# Parameter: thread.
PAGES_OF_THREAD = "SELECT log, page, data FROM surestep_pages WHERE thread_id = ?"

# Parameters: the three columns, thread, namespace, checkpoint.
SET_COLUMNS = f"UPDATE surestep_checkpoints SET state = ?, metadata = ?, led_here = ? WHERE {_CHECKPOINT}"

# Parameters: the data, thread, log, page.
SET_PAGE = "UPDATE surestep_pages SET data = ? WHERE thread_id = ? AND log = ? AND page = ?"

# Parameters: the value, thread, namespace, checkpoint, task, index.
SET_VALUE = f"UPDATE surestep_writes SET value = ? WHERE {_CHECKPOINT} AND task_id = ? AND idx = ?"

# ---- whole threads ----

TABLES = (
    *("surestep_checkpoints", "surestep_writes", "surestep_pages", "surestep_pins", "surestep_first_seen"),
    *("surestep_leases", "surestep_queue"),
)

# Parameter: thread.
DELETE_THREAD = tuple(f"DELETE FROM {table} WHERE thread_id = ?" for table in TABLES)


def page(conditions: list[str]) -> str:
    """A page of checkpoints, newest first. Parameters: of the conditions, and how many."""
    return (
        f"SELECT thread_id, checkpoint_ns, {ROW} FROM surestep_checkpoints WHERE "
        f"{' AND '.join(conditions) or '1 = 1'} ORDER BY checkpoint_id DESC, thread_id DESC, checkpoint_ns "
        "DESC LIMIT ?"
    )
