//! The schedule's State, and nothing else of it: on with a warrant, off always.
//!
//! UpdateSchedule replaces the whole schedule, so that the whole schedule is sent, as it is at this moment. AWS has no conditional
//! write; a second read right before narrows the gap, and a third one right after says what became of it.

use anyhow::Context as _;

use crate::cloud::{Answer, Schedules};
use crate::exit::Stop;
use crate::gate::Warrant;
use crate::model::{Schedule, State};

/// Switches it on. Nobody gets here without a warrant; what it says is not looked at again.
pub async fn on(cloud: &impl Schedules, looked_at: &Schedule, _warrant: &Warrant, program: &str) -> anyhow::Result<()> {
    let (group, name) = names(looked_at);
    let fresh = cloud.schedule(group, name).await?;
    if fresh != *looked_at {
        let what = format!("somebody changed schedule {group}/{name} while we looked at it");
        return Err(Stop::refused(what, format!("look again: {program} plan")).into());
    }
    let wanted = fresh.with_state(State::Enabled);
    let sent = cloud.update_schedule(&wanted).await;
    let found = cloud.schedule(group, name).await;
    if let Err(error) = sent {
        // The answer may have been lost on the way, and the write not.
        return match found {
            Ok(found) if found.writable() == wanted.writable() => Ok(()),
            Ok(_) => Err(error.into()),
            Err(_) => {
                Err(anyhow::Error::new(error).context("whether the schedule is ENABLED now could not be read back"))
            }
        };
    }
    let found = found.context("the schedule was switched on, and cannot be read back")?;
    if found.writable() != wanted.writable() {
        let what = format!("schedule {group}/{name} is not what was sent: somebody else changed it");
        return Err(Stop::failed(what, format!("look at it: {program} plan")).into());
    }
    Ok(())
}

/// Switches it off. AWS may refuse a start date of long ago, which by now means nothing; and an answer may be lost on the way, and
/// the write not.
pub async fn off(cloud: &impl Schedules, schedule: &Schedule) -> Answer<()> {
    let wanted = schedule.with_state(State::Disabled);
    let sent = match cloud.update_schedule(&wanted).await {
        Err(error) if error.said.contains("StartDate") && wanted.0.contains_key("StartDate") => {
            cloud.update_schedule(&schedule.switched_off()).await
        }
        other => other,
    };
    let Err(error) = sent else { return Ok(()) };
    let (group, name) = names(schedule);
    match cloud.schedule(group, name).await {
        Ok(after) if after.state() == State::Disabled => Ok(()),
        _ => Err(error),
    }
}

fn names(schedule: &Schedule) -> (&str, &str) {
    (schedule.text("GroupName").unwrap_or("default"), schedule.text("Name").unwrap_or_default())
}
