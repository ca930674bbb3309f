-- A run that only shows its plan says nothing about the job, however it ends.
ALTER TABLE ingest_runs ADD COLUMN dry_run boolean NOT NULL DEFAULT false;

UPDATE ingest_runs SET dry_run = true WHERE status = 'dry_run';
