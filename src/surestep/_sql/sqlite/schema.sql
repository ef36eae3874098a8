-- The schema of surestep's savers in SQLite, version 1.
--
-- The tables are WITHOUT ROWID: each is one B-tree in the order of its key, so that the rows of a thread lie
-- together, and a step of a run touches one page at the end of it.

-- One row a checkpoint.
CREATE TABLE surestep_checkpoints (
    thread_id      TEXT NOT NULL,
    checkpoint_ns  TEXT NOT NULL,
    checkpoint_id  TEXT NOT NULL,   -- sorts by time
    parent_id      TEXT,            -- NULL for the first one of a thread
    type           TEXT NOT NULL,   -- the serializer's tag for the next column
    checkpoint     BLOB NOT NULL,   -- the checkpoint without its channel values
    metadata_type  TEXT NOT NULL,   -- the serializer's tag for the next column
    metadata       BLOB NOT NULL,
    small          BLOB NOT NULL,   -- the small channel values: msgpack of {channel: [tag, bytes]}
    led_here       BLOB,            -- writes of the parent that were committed together with this checkpoint:
                                    -- msgpack of [[task id, index, channel, [tag, bytes], task path], ...]
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
) WITHOUT ROWID;

-- The channel values that are too big to be repeated in every checkpoint: one row a version.
-- The version stands before the channel because it grows: what a step stores lies at the end.
CREATE TABLE surestep_values (
    thread_id      TEXT NOT NULL,
    checkpoint_ns  TEXT NOT NULL,
    version        NOT NULL,        -- text, or a number with savers that count
    channel        TEXT NOT NULL,
    type           TEXT NOT NULL,
    value          BLOB NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, version, channel)
) WITHOUT ROWID;

-- Writes of tasks that ran from a checkpoint, as far as they aren't in `led_here` of the next one.
CREATE TABLE surestep_writes (
    thread_id      TEXT NOT NULL,
    checkpoint_ns  TEXT NOT NULL,
    checkpoint_id  TEXT NOT NULL,
    task_id        TEXT NOT NULL,
    idx            INTEGER NOT NULL,  -- the position among the task's writes; negative: errors, interrupts, answers
    channel        TEXT NOT NULL,
    type           TEXT NOT NULL,
    value          BLOB NOT NULL,
    task_path      TEXT NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
) WITHOUT ROWID;

-- A view and not a table: a database whose threads were all deleted has no row of ours left.
CREATE VIEW surestep_schema AS SELECT 1 AS version;
