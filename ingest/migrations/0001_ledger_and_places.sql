-- Run with search_path set to the schema that holds these tables and nothing else.

-- One row a source: the fence. Only the run whose id is here may write places.
CREATE TABLE ingest_sources (
    source text PRIMARY KEY,
    fence  bigint NOT NULL DEFAULT 0
);

-- One row a run, skipped ones included. Counts and codes only, never payloads.
CREATE TABLE ingest_runs (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the fencing token
    run_id             uuid NOT NULL UNIQUE,                            -- what people see, and what retry_of names
    source             text NOT NULL,
    trigger            text NOT NULL CHECK (trigger IN ('manual', 'scheduled', 'backfill')),
    occurrence         text,
    retry_of           uuid,
    deactivate_stale   boolean NOT NULL,
    program            text NOT NULL,
    status             text NOT NULL CHECK (status IN (
                           'running', 'abandoned', 'succeeded', 'skipped', 'withheld', 'upstream_failed', 'snapshot_refused',
                           'internal', 'database_lost', 'busy', 'misconfigured', 'interrupted')),
    started_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    heartbeat_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at        timestamptz,
    duration_ms        bigint,
    pages              bigint NOT NULL DEFAULT 0,                       -- read so far, over all crawls
    fetched            bigint,
    inserted           bigint,
    updated            bigint,
    unchanged          bigint,
    reactivated        bigint,
    rejected           bigint,
    deactivated        bigint,
    active             bigint,
    duplicates         bigint,
    complete           boolean,
    snapshot_sha256    text,
    withheld           bigint,
    withheld_reason    text,
    error_code         text,
    holder_pid         integer,                                         -- of a skipped run: who held the lock
    holder_application text,
    holder_run_id      uuid,
    committed_xid      xid8,
    CHECK ((status = 'running') = (finished_at IS NULL))
);

CREATE INDEX ingest_runs_by_source ON ingest_runs (source, id DESC);

CREATE TABLE places (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source        text NOT NULL,
    key           text NOT NULL,
    name          text NOT NULL,
    category      text,
    address       text,
    province      text,
    district      text,
    latitude      double precision CHECK (latitude BETWEEN -90 AND 90),
    longitude     double precision CHECK (longitude BETWEEN -180 AND 180),
    attributes    jsonb NOT NULL,                                       -- every published field
    digest        bytea NOT NULL CHECK (octet_length(digest) = 32),
    first_seen_at timestamptz NOT NULL DEFAULT now(),
    changed_at    timestamptz NOT NULL DEFAULT now(),
    deleted_at    timestamptz,                                          -- soft-deleted: the last snapshot lacks it
    duplicate_of  bigint REFERENCES places (id),
    UNIQUE (source, key),
    CHECK ((latitude IS NULL) = (longitude IS NULL)),
    CHECK (duplicate_of <> id)
);

-- What each run did to which place; plain inserts are left out (a place's first_seen_at says it).
CREATE TABLE ingest_changes (
    run    bigint NOT NULL REFERENCES ingest_runs (id),
    place  bigint NOT NULL REFERENCES places (id),
    change text NOT NULL CHECK (change IN ('updated', 'reactivated', 'deactivated')),
    PRIMARY KEY (run, place)
);

-- Rows that were set aside: where and why, not what.
CREATE TABLE ingest_rejects (
    run         bigint NOT NULL REFERENCES ingest_runs (id),
    row_number  bigint NOT NULL,                                        -- position in the snapshot, from 1
    key         text,                                                   -- the place that counts as present for it
    column_name text NOT NULL,
    reason      text NOT NULL,
    PRIMARY KEY (run, row_number)
);
