//! A good run's report, for tests in here and for those of the whole program.

use geuneul::{Outcome, RunReport, SourceName, Trigger};

/// What a good run says of itself.
pub fn report() -> RunReport {
    RunReport {
        run_id: "7b0b1f3e-1111-4222-8333-944445555666".parse().expect("a run id"),
        source: SourceName::Library,
        trigger: Trigger::Manual,
        outcome: Outcome::Succeeded,
        fetched: 3555,
        inserted: 12,
        updated: 0,
        unchanged: 3543,
        reactivated: 0,
        rejected: 0,
        noted: 0,
        carried_over: 0,
        merged: 0,
        deactivated: 3,
        upserted: 12,
        active: 3466,
        duplicates: 89,
        complete: true,
        snapshot_sha256: None,
        occurrence: None,
        started_at: "2026-11-29T03:00:00Z".into(),
        duration_ms: 812,
        skip: None,
        withheld: None,
        error: None,
    }
}
