-- Places that keep their id when their row moves, and runs that only look.

-- Checked at the end of a statement, so that places can take over each other's keys.
ALTER TABLE places
    DROP CONSTRAINT places_source_key_key,
    ADD CONSTRAINT places_source_key_key UNIQUE (source, key) DEFERRABLE INITIALLY IMMEDIATE;

CREATE INDEX places_by_face ON places (duplicate_of) WHERE duplicate_of IS NOT NULL;

-- A change of a row behind a place is one of that row's id.
ALTER TABLE ingest_changes
    DROP CONSTRAINT ingest_changes_change_check,
    ADD CONSTRAINT ingest_changes_change_check CHECK (change IN (
        'updated', 'reactivated', 'deactivated', 'carried_over', 'merged', 'separated', 'delisted')),
    ADD COLUMN key_before text,                                         -- of a place whose row moved: its old key
    ADD COLUMN merged_into bigint REFERENCES places (id),
    ADD CHECK ((change = 'merged') <= (merged_into IS NOT NULL));

ALTER TABLE ingest_runs
    DROP CONSTRAINT ingest_runs_status_check,
    ADD CONSTRAINT ingest_runs_status_check CHECK (status IN (
        'running', 'abandoned', 'succeeded', 'skipped', 'withheld', 'upstream_failed', 'snapshot_refused',
        'internal', 'database_lost', 'busy', 'misconfigured', 'interrupted', 'dry_run')),
    ADD COLUMN carried_over bigint,
    ADD COLUMN merged       bigint,
    ADD COLUMN noted        bigint,                                     -- values stored in another form than published
    ADD COLUMN ceiling      bigint;                                     -- deactivations that a person allowed for
