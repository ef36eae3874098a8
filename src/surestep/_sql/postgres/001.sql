-- The schema of surestep's savers in PostgreSQL. What lies in the columns: ../sqlite/schema.sql, state.py and pages.py.
--
-- Statements use the views, which show what belongs to one tenant: the one in the setting `surestep.tenant`, '' if there
-- is none. Row-level security says the same of the tables, so that it holds for whoever goes past the views.
-- A view runs with the rights of who uses it, and so do the functions.

-- Views with the rights of their user came with PostgreSQL 15.
DO $$
BEGIN
    IF current_setting('server_version_num')::int < 150000 THEN
        RAISE EXCEPTION 'surestep needs PostgreSQL 15 or later';
    END IF;
END $$;

CREATE TABLE surestep_all_checkpoints (
    depth          integer NOT NULL,
    thread_id      text COLLATE "C" NOT NULL,
    checkpoint_ns  text COLLATE "C" NOT NULL,
    checkpoint_id  text COLLATE "C" NOT NULL,
    parent_id      text COLLATE "C",
    state          bytea NOT NULL,
    metadata       bytea NOT NULL,
    led_here       bytea,
    tenant         text COLLATE "C" NOT NULL DEFAULT coalesce(current_setting('surestep.tenant', true), ''),
    PRIMARY KEY (tenant, thread_id, checkpoint_ns, checkpoint_id)
);

CREATE TABLE surestep_all_pages (
    log            integer NOT NULL,
    page           integer NOT NULL,
    thread_id      text COLLATE "C" NOT NULL,
    data           bytea NOT NULL,
    tenant         text COLLATE "C" NOT NULL DEFAULT coalesce(current_setting('surestep.tenant', true), ''),
    PRIMARY KEY (tenant, thread_id, log, page)
);

CREATE TABLE surestep_all_writes (
    idx            integer NOT NULL,
    thread_id      text COLLATE "C" NOT NULL,
    checkpoint_ns  text COLLATE "C" NOT NULL,
    checkpoint_id  text COLLATE "C" NOT NULL,
    task_id        text COLLATE "C" NOT NULL,
    channel        text COLLATE "C" NOT NULL,
    value          bytea NOT NULL,
    task_path      text COLLATE "C" NOT NULL,
    tenant         text COLLATE "C" NOT NULL DEFAULT coalesce(current_setting('surestep.tenant', true), ''),
    PRIMARY KEY (tenant, thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);

CREATE TABLE surestep_all_pins (
    thread_id      text COLLATE "C" NOT NULL,
    checkpoint_ns  text COLLATE "C" NOT NULL,
    checkpoint_id  text COLLATE "C" NOT NULL,
    label          text COLLATE "C" NOT NULL,
    tenant         text COLLATE "C" NOT NULL DEFAULT coalesce(current_setting('surestep.tenant', true), ''),
    PRIMARY KEY (tenant, thread_id, checkpoint_ns, checkpoint_id, label)
);

CREATE TABLE surestep_all_first_seen (
    thread_id      text COLLATE "C" NOT NULL,
    seen_at        double precision NOT NULL,
    tenant         text COLLATE "C" NOT NULL DEFAULT coalesce(current_setting('surestep.tenant', true), ''),
    PRIMARY KEY (tenant, thread_id)
);

CREATE TABLE surestep_all_effects (
    position       integer NOT NULL,
    attempt        integer NOT NULL,
    late           integer NOT NULL,
    id             text COLLATE "C" NOT NULL,
    thread_id      text COLLATE "C" NOT NULL,
    name           text COLLATE "C" NOT NULL,
    state          text COLLATE "C" NOT NULL,
    checkpoint_ns  text COLLATE "C" NOT NULL,
    checkpoint_id  text COLLATE "C" NOT NULL,
    task_id        text COLLATE "C" NOT NULL,
    node           text COLLATE "C" NOT NULL,
    business_key   text COLLATE "C",
    digest         text COLLATE "C" NOT NULL,
    arguments      bytea,
    result         bytea NOT NULL,
    reason         bytea,
    actor          text COLLATE "C",
    asked_at       text COLLATE "C" NOT NULL,
    changed_at     text COLLATE "C" NOT NULL,
    tenant         text COLLATE "C" NOT NULL DEFAULT coalesce(current_setting('surestep.tenant', true), ''),
    PRIMARY KEY (tenant, id)
);

CREATE INDEX effects_of_task ON surestep_all_effects (tenant, thread_id, task_id);

CREATE TABLE surestep_all_decisions (
    thread_id      text COLLATE "C" NOT NULL,
    subject        text COLLATE "C" NOT NULL,
    kind           text COLLATE "C" NOT NULL,
    decided_at     text COLLATE "C" NOT NULL,
    actor          text COLLATE "C",
    reason         bytea,
    digest         text COLLATE "C",
    checkpoint_id  text COLLATE "C" NOT NULL,
    deadline       text COLLATE "C",
    tenant         text COLLATE "C" NOT NULL DEFAULT coalesce(current_setting('surestep.tenant', true), ''),
    PRIMARY KEY (tenant, thread_id, subject, kind)
);

CREATE TABLE surestep_all_leases (
    epoch          integer NOT NULL,
    taken_at       double precision NOT NULL,
    expires_at     double precision NOT NULL,
    thread_id      text COLLATE "C" NOT NULL,
    holder         text COLLATE "C",
    base_id        text COLLATE "C",
    stopped        text COLLATE "C",
    reason         text COLLATE "C",
    actor          text COLLATE "C",
    tenant         text COLLATE "C" NOT NULL DEFAULT coalesce(current_setting('surestep.tenant', true), ''),
    PRIMARY KEY (tenant, thread_id)
);

CREATE TABLE surestep_all_queue (
    ticket         integer NOT NULL,
    expires_at     double precision NOT NULL,
    thread_id      text COLLATE "C" NOT NULL,
    holder         text COLLATE "C" NOT NULL,
    tenant         text COLLATE "C" NOT NULL DEFAULT coalesce(current_setting('surestep.tenant', true), ''),
    PRIMARY KEY (tenant, thread_id, ticket)
);

ALTER TABLE surestep_all_checkpoints ENABLE ROW LEVEL SECURITY;
ALTER TABLE surestep_all_checkpoints FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON surestep_all_checkpoints
    USING (tenant = coalesce(current_setting('surestep.tenant', true), ''));

ALTER TABLE surestep_all_pages ENABLE ROW LEVEL SECURITY;
ALTER TABLE surestep_all_pages FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON surestep_all_pages
    USING (tenant = coalesce(current_setting('surestep.tenant', true), ''));

ALTER TABLE surestep_all_writes ENABLE ROW LEVEL SECURITY;
ALTER TABLE surestep_all_writes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON surestep_all_writes
    USING (tenant = coalesce(current_setting('surestep.tenant', true), ''));

ALTER TABLE surestep_all_pins ENABLE ROW LEVEL SECURITY;
ALTER TABLE surestep_all_pins FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON surestep_all_pins
    USING (tenant = coalesce(current_setting('surestep.tenant', true), ''));

ALTER TABLE surestep_all_first_seen ENABLE ROW LEVEL SECURITY;
ALTER TABLE surestep_all_first_seen FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON surestep_all_first_seen
    USING (tenant = coalesce(current_setting('surestep.tenant', true), ''));

ALTER TABLE surestep_all_effects ENABLE ROW LEVEL SECURITY;
ALTER TABLE surestep_all_effects FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON surestep_all_effects
    USING (tenant = coalesce(current_setting('surestep.tenant', true), ''));

ALTER TABLE surestep_all_decisions ENABLE ROW LEVEL SECURITY;
ALTER TABLE surestep_all_decisions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON surestep_all_decisions
    USING (tenant = coalesce(current_setting('surestep.tenant', true), ''));

ALTER TABLE surestep_all_leases ENABLE ROW LEVEL SECURITY;
ALTER TABLE surestep_all_leases FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON surestep_all_leases
    USING (tenant = coalesce(current_setting('surestep.tenant', true), ''));

ALTER TABLE surestep_all_queue ENABLE ROW LEVEL SECURITY;
ALTER TABLE surestep_all_queue FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON surestep_all_queue
    USING (tenant = coalesce(current_setting('surestep.tenant', true), ''));

CREATE VIEW surestep_checkpoints WITH (security_invoker = true) AS
    SELECT thread_id, checkpoint_ns, checkpoint_id, parent_id, depth, state, metadata, led_here, tenant
    FROM surestep_all_checkpoints WHERE tenant = coalesce(current_setting('surestep.tenant', true), '')
    WITH LOCAL CHECK OPTION;

CREATE VIEW surestep_pages WITH (security_invoker = true) AS
    SELECT thread_id, log, page, data, tenant
    FROM surestep_all_pages WHERE tenant = coalesce(current_setting('surestep.tenant', true), '')
    WITH LOCAL CHECK OPTION;

CREATE VIEW surestep_writes WITH (security_invoker = true) AS
    SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, value, task_path, tenant
    FROM surestep_all_writes WHERE tenant = coalesce(current_setting('surestep.tenant', true), '')
    WITH LOCAL CHECK OPTION;

CREATE VIEW surestep_pins WITH (security_invoker = true) AS
    SELECT thread_id, checkpoint_ns, checkpoint_id, label, tenant
    FROM surestep_all_pins WHERE tenant = coalesce(current_setting('surestep.tenant', true), '')
    WITH LOCAL CHECK OPTION;

CREATE VIEW surestep_first_seen WITH (security_invoker = true) AS
    SELECT thread_id, seen_at, tenant
    FROM surestep_all_first_seen WHERE tenant = coalesce(current_setting('surestep.tenant', true), '')
    WITH LOCAL CHECK OPTION;

CREATE VIEW surestep_effects WITH (security_invoker = true) AS
    SELECT id, thread_id, name, state, checkpoint_ns, checkpoint_id, task_id, node, business_key, position, digest,
        attempt, arguments, result, late, reason, actor, asked_at, changed_at, tenant
    FROM surestep_all_effects WHERE tenant = coalesce(current_setting('surestep.tenant', true), '')
    WITH LOCAL CHECK OPTION;

CREATE VIEW surestep_decisions WITH (security_invoker = true) AS
    SELECT thread_id, subject, kind, decided_at, actor, reason, digest, checkpoint_id, deadline, tenant
    FROM surestep_all_decisions WHERE tenant = coalesce(current_setting('surestep.tenant', true), '')
    WITH LOCAL CHECK OPTION;

CREATE VIEW surestep_leases WITH (security_invoker = true) AS
    SELECT thread_id, epoch, holder, taken_at, expires_at, base_id, stopped, reason, actor, tenant
    FROM surestep_all_leases WHERE tenant = coalesce(current_setting('surestep.tenant', true), '')
    WITH LOCAL CHECK OPTION;

CREATE VIEW surestep_queue WITH (security_invoker = true) AS
    SELECT thread_id, ticket, holder, expires_at, tenant
    FROM surestep_all_queue WHERE tenant = coalesce(current_setting('surestep.tenant', true), '')
    WITH LOCAL CHECK OPTION;

-- Waits until nobody else writes to the thread, and keeps others waiting until the transaction ends. What is read
-- afterwards is the latest: that needs statements which see what was committed before each of them.
CREATE FUNCTION surestep_turn(thread text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'surestep writes to a thread in transactions of isolation level READ COMMITTED only'
            USING HINT = 'The transaction has a higher level. Give the saver a connection without a transaction.';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(
        coalesce(current_setting('surestep.tenant', true), ''), hashtextextended(thread, 0)));
END $$;

-- Puts writes in one statement. `run`: who writes, NULL for nobody that is to hold the thread. False, and nothing was
-- done, when he doesn't hold it.
CREATE FUNCTION surestep_write(
    thread text, ns text, id text,
    tasks text[], idxs integer[], channels text[], written bytea[], paths text[], run text
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    mine text := coalesce(current_setting('surestep.tenant', true), '');
BEGIN
    IF run IS NOT NULL THEN
        PERFORM 1 FROM surestep_all_leases l
        WHERE l.tenant = mine AND l.thread_id = thread AND l.holder = run FOR SHARE;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    INSERT INTO surestep_all_writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, value, task_path, tenant)
    SELECT thread, ns, id, n.*, mine FROM unnest(tasks, idxs, channels, written, paths) AS n
    ON CONFLICT (tenant, thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO UPDATE SET
        channel = excluded.channel, value = excluded.value, task_path = excluded.task_path
    WHERE excluded.idx < 0;
    RETURN true;
END $$;

-- A step in one statement: puts a checkpoint behind `parent`, the latest, with `known` in its column `state` (both
-- NULL: there is none yet), new pages, and writes of the parent that can't ride in `led`. True if that was done, or had been. False, and nothing was done, when
-- somebody else has moved the thread on, a log goes on already, or the parent has writes while `led` isn't NULL.
-- `run`: who writes, NULL for nobody that is to hold the thread. It takes the thread, or must hold it, and may let it go.
CREATE FUNCTION surestep_append(
    thread text, ns text, id text, parent text, known bytea,
    new_depth integer, new_state bytea, new_metadata bytea, led bytea,
    run text, take boolean, seconds double precision, release boolean,
    logs integer[] DEFAULT '{}', numbers integer[] DEFAULT '{}', datas bytea[] DEFAULT '{}',
    tasks text[] DEFAULT '{}', idxs integer[] DEFAULT '{}', channels text[] DEFAULT '{}', written bytea[] DEFAULT '{}',
    paths text[] DEFAULT '{}'
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    mine text := coalesce(current_setting('surestep.tenant', true), '');
    head_id text;
    head_state bytea;
    at double precision := extract(epoch FROM clock_timestamp());
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(mine, hashtextextended(thread, 0)));
    SELECT c.checkpoint_id, c.state INTO head_id, head_state FROM surestep_all_checkpoints c
    WHERE c.tenant = mine AND c.thread_id = thread AND c.checkpoint_ns = ns
        AND c.checkpoint_id >= coalesce(parent, '')  -- or all entries of the index's page would be looked at
    ORDER BY c.checkpoint_id DESC LIMIT 1;
    IF head_id IS DISTINCT FROM parent OR head_state IS DISTINCT FROM known THEN
        RETURN head_id = id AND EXISTS (
            SELECT 1 FROM surestep_all_checkpoints c
            WHERE c.tenant = mine AND c.thread_id = thread AND c.checkpoint_ns = ns AND c.checkpoint_id = id
            AND c.state = new_state AND c.metadata = new_metadata
            AND c.parent_id IS NOT DISTINCT FROM parent AND c.led_here IS NOT DISTINCT FROM led);
    END IF;
    IF led IS NOT NULL AND EXISTS (
        SELECT 1 FROM surestep_all_writes w
        WHERE w.tenant = mine AND w.thread_id = thread AND w.checkpoint_ns = ns AND w.checkpoint_id = parent
    ) THEN
        RETURN false;
    END IF;
    IF run IS NOT NULL AND NOT take AND NOT EXISTS (  -- who takes the thread from it waits for his turn
        SELECT 1 FROM surestep_all_leases l WHERE l.tenant = mine AND l.thread_id = thread AND l.holder = run
    ) THEN
        RETURN false;
    END IF;
    IF cardinality(logs) > 0 THEN
        IF EXISTS (
            SELECT 1 FROM unnest(logs, numbers) AS n (log, page) JOIN surestep_all_pages p ON p.log = n.log
            WHERE p.tenant = mine AND p.thread_id = thread AND p.page >= n.page
        ) THEN
            RETURN false;
        END IF;
        INSERT INTO surestep_all_pages (thread_id, log, page, data, tenant)
        SELECT thread, n.*, mine FROM unnest(logs, numbers, datas) AS n;
    END IF;
    IF run IS NOT NULL AND take THEN
        INSERT INTO surestep_all_leases AS l (epoch, taken_at, expires_at, thread_id, holder, base_id, tenant)
        VALUES (1, at, at + seconds, thread, run, (
            SELECT max(c.checkpoint_id) FROM surestep_all_checkpoints c
            WHERE c.tenant = mine AND c.thread_id = thread AND c.checkpoint_ns = ''
        ), mine)
        ON CONFLICT (tenant, thread_id) DO UPDATE SET
            epoch = l.epoch + 1, taken_at = excluded.taken_at, expires_at = excluded.expires_at,
            holder = excluded.holder, base_id = excluded.base_id, stopped = NULL, reason = NULL, actor = NULL;
    END IF;
    INSERT INTO surestep_all_checkpoints
        (depth, thread_id, checkpoint_ns, checkpoint_id, parent_id, state, metadata, led_here, tenant)
    VALUES (new_depth, thread, ns, id, parent, new_state, new_metadata, led, mine);
    IF cardinality(tasks) > 0 THEN
        PERFORM surestep_write(thread, ns, parent, tasks, idxs, channels, written, paths, NULL);
    END IF;
    IF release THEN
        UPDATE surestep_all_leases SET holder = NULL WHERE tenant = mine AND thread_id = thread AND holder = run;
    END IF;
    RETURN true;
END $$;
