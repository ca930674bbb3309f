//! Is the way from Scheduler to a task proven, for the role, target and Input of today?
//!
//! By the record that `trigger-now --via-scheduler` keeps, or by a run that the schedule itself started. Such a run names neither
//! role nor Input: it counts only when the schedule has not been written since, and a proof from before it is of today's role.

use jiff::Timestamp;

use super::PathNow;
use super::runs::PastRun;
use crate::commands::look::minute;
use crate::fingerprint::Fingerprint;
use crate::fire_times::timetable::Timetable;
use crate::gate::listed;
use crate::model::{Live, Seen};
use crate::receipt::Receipt;

/// What is known of it; `now` is the world's fingerprint, when it has one.
pub fn path(live: &Live, now: Option<&Fingerprint>, runs: &[PastRun]) -> PathNow {
    if let (Seen::Present(Ok(record)), Some(now)) = (&live.scheduled_path, now)
        && record.proven_for(now).is_ok()
    {
        return known(true, format!("proven {} {}", minute(record.at()), record.how().words()));
    }
    if let Some(began) = by_schedule(live, runs).and_then(PastRun::earliest) {
        return match is_of_today(live, now, began) {
            Ok(()) => known(true, format!("proven: the schedule itself ran the job on {}", minute(began))),
            Err(why) => {
                known(false, format!("unproven: the schedule itself ran the job on {}, but {why}", minute(began)))
            }
        };
    }
    match (&live.scheduled_path, now) {
        (Seen::Hidden { why }, _) => PathNow { proven: None, says: format!("not seen: {why}") },
        (Seen::Present(Err(error)), _) => known(false, format!("unproven: {error}")),
        (Seen::Present(Ok(record)), Some(now)) => {
            let moved = record.proven_for(now).err().unwrap_or_default();
            known(false, format!("unproven: {} moved since {}", listed(&moved), minute(record.at())))
        }
        (Seen::Present(Ok(_)), None) => known(false, "unproven: what would run cannot be told".to_owned()),
        (Seen::Absent, _) if runs.iter().any(PastRun::is_nobodys) => known(
            false,
            "unproven: a run that calls itself scheduled does not say of which job, and shows nothing".to_owned(),
        ),
        (Seen::Absent, _) => known(false, "unproven: Scheduler has not yet started the job as it is now".to_owned()),
    }
}

/// The run of the schedule itself that shows the path as it is today, and when it began.
pub fn shown_by<'a>(live: &Live, now: &Fingerprint, runs: &'a [PastRun]) -> Option<(&'a PastRun, Timestamp)> {
    let run = by_schedule(live, runs)?;
    let began = run.earliest()?;
    is_of_today(live, Some(now), began).ok().map(|()| (run, began))
}

/// The newest run that the schedule itself started and that succeeded.
fn by_schedule<'a>(live: &Live, runs: &'a [PastRun]) -> Option<&'a PastRun> {
    let schedule = live.schedule.present()?;
    runs.iter().find(|run| run.report.outcome == geuneul::Outcome::Succeeded && run.is_by(schedule))
}

fn known(proven: bool, says: String) -> PathNow {
    PathNow { proven: Some(proven), says }
}

/// Whether a scheduled run went the way that is there today.
fn is_of_today(live: &Live, now: Option<&Fingerprint>, began: Timestamp) -> Result<(), String> {
    let written = live.schedule.present().and_then(|schedule| Timetable::of(schedule).written);
    if written.is_some_and(|written| written > began) {
        return Err("the schedule was written since".to_owned());
    }
    match (live.receipt.present(), now) {
        // What was true only after the run says nothing of it.
        (Some(Ok(Receipt::Verified(run))), _) if run.at() > began => {
            Err("with which role is not known: the verified run is younger".to_owned())
        }
        (Some(Ok(Receipt::Verified(run))), Some(now)) => match run.fingerprint().of_path().moved(now).as_slice() {
            [] => Ok(()),
            moved => Err(format!("{} moved since it was proven", listed(moved))),
        },
        _ => Err("whether with today's role is not known without a verified run".to_owned()),
    }
}
