-- A skip is evidence: why, how often in a row, and how long ago a run last succeeded.
ALTER TABLE ingest_runs
    ADD COLUMN lock_key           bigint,                               -- the advisory lock that the run asked for
    ADD COLUMN skip_reason        text CHECK (skip_reason IN ('locked', 'recent_success')),
    ADD COLUMN consecutive_skips  bigint,                               -- behind the lock, this one included
    ADD COLUMN last_success_age_s bigint;

UPDATE ingest_runs SET skip_reason = 'locked' WHERE status IN ('skipped', 'busy');

ALTER TABLE ingest_runs ADD CHECK ((status IN ('skipped', 'busy')) = (skip_reason IS NOT NULL));
