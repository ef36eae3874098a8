-- The schema of surestep's savers in SQLite, version 4. What lies in the BLOBs: state.py and pages.py.
--
-- Plain tables with an index, and not WITHOUT ROWID: there a row of more than a kilobyte takes a file page of its own.

-- One row a checkpoint. Cost follows the change: `state` says what changed since the parent.
CREATE TABLE surestep_checkpoints (
    thread_id      TEXT NOT NULL,
    checkpoint_ns  TEXT NOT NULL,
    checkpoint_id  TEXT NOT NULL,     -- sorts by time
    parent_id      TEXT,              -- NULL for the first one of a thread
    depth          INTEGER NOT NULL,  -- 0: `state` is whole; else how many ancestors it takes to make it whole:
                                      -- as a rule they are the rows before this one, as many as that
    state          BLOB NOT NULL,     -- versions, what nodes have seen, and where the channels' values are
    metadata       BLOB NOT NULL,     -- typed: the serializer's tag ("" for msgpack), a zero byte, the value
    led_here       BLOB,              -- writes of the parent that were committed together with this checkpoint
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);

-- Pages: items of lists, and other large values. A page is written once and never changes; `state` and writes refer
-- to ranges of pages of a log. Many checkpoints and writes of the thread share a page.
CREATE TABLE surestep_pages (
    thread_id      TEXT NOT NULL,
    log            INTEGER NOT NULL,  -- a random number
    page           INTEGER NOT NULL,  -- from 0, without gaps when it is written
    data           BLOB NOT NULL,     -- typed
    PRIMARY KEY (thread_id, log, page)
);

-- Writes of tasks that ran from a checkpoint, as far as they aren't in `led_here` of the next one.
CREATE TABLE surestep_writes (
    thread_id      TEXT NOT NULL,
    checkpoint_ns  TEXT NOT NULL,
    checkpoint_id  TEXT NOT NULL,
    task_id        TEXT NOT NULL,
    idx            INTEGER NOT NULL,  -- the position among the task's writes; negative: errors, interrupts, answers
    channel        TEXT NOT NULL,
    value          BLOB NOT NULL,     -- typed; with the tag "surestep:page": where the value is, msgpack
    task_path      TEXT NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);

-- Checkpoints that no sweep and no prune deletes.
CREATE TABLE surestep_pins (
    thread_id      TEXT NOT NULL,
    checkpoint_ns  TEXT NOT NULL,
    checkpoint_id  TEXT NOT NULL,
    label          TEXT NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, label)
);

-- When a sweep that deletes threads saw one first: its time counts from then.
CREATE TABLE surestep_first_seen (
    thread_id      TEXT NOT NULL,
    seen_at        DOUBLE PRECISION NOT NULL,  -- seconds since 1970
    PRIMARY KEY (thread_id)
);

-- Effects: what was, may have been, or is not to be done outside of the graph. States: _core/effects.py.
CREATE TABLE surestep_effects (
    id             TEXT NOT NULL,     -- also the idempotency key
    thread_id      TEXT NOT NULL,
    name           TEXT NOT NULL,
    state          TEXT NOT NULL,
    checkpoint_ns  TEXT NOT NULL,
    checkpoint_id  TEXT NOT NULL,     -- of the outermost graph
    task_id        TEXT NOT NULL,
    node           TEXT NOT NULL,
    business_key   TEXT,              -- NULL: known by its place; else it is one intent over all threads
    position       INTEGER NOT NULL,  -- among the effects of its task
    digest         TEXT NOT NULL,     -- of the arguments
    attempt        INTEGER NOT NULL,
    arguments      BLOB,              -- typed
    result         BLOB NOT NULL,     -- typed: a result or an exception
    late           INTEGER NOT NULL,
    reason         BLOB,              -- typed
    actor          TEXT,
    asked_at       TEXT NOT NULL,
    changed_at     TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX surestep_effects_of_task ON surestep_effects (thread_id, task_id);

-- What people decided, and the questions of gates (kind "ask").
CREATE TABLE surestep_decisions (
    thread_id      TEXT NOT NULL,
    subject        TEXT NOT NULL,     -- a question's or an effect's id
    kind           TEXT NOT NULL,
    decided_at     TEXT NOT NULL,
    actor          TEXT,
    reason         BLOB,              -- typed
    digest         TEXT,              -- of what a gate binds
    checkpoint_id  TEXT NOT NULL,
    deadline       TEXT,
    PRIMARY KEY (thread_id, subject, kind)
);

-- Which run holds a thread. The row stays when it is free: the epoch only grows.
CREATE TABLE surestep_leases (
    thread_id      TEXT NOT NULL,
    epoch          INTEGER NOT NULL,
    holder         TEXT,                       -- a run; NULL: nobody
    taken_at       DOUBLE PRECISION NOT NULL,  -- seconds since 1970, as the next
    expires_at     DOUBLE PRECISION NOT NULL,
    base_id        TEXT,                       -- the newest checkpoint when it was taken
    stopped        TEXT,                       -- 'cancel': the last holder was cancelled
    reason         TEXT,
    actor          TEXT,
    PRIMARY KEY (thread_id)
);

-- Runs that wait for a thread, in the order of their tickets.
CREATE TABLE surestep_queue (
    thread_id      TEXT NOT NULL,
    ticket         INTEGER NOT NULL,
    holder         TEXT NOT NULL,
    expires_at     DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (thread_id, ticket)
);

-- A view and not a table: a database whose threads were all deleted has no row of ours left.
CREATE VIEW surestep_schema AS SELECT 4 AS version;
