//! `[job.NAME.schedule]`: when it fires, and with whose rights.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::Timing;
use super::cron;
use super::place::{Here, Place, is_name};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleTable {
    cron: Spanned<String>,
    timezone: Spanned<String>,
    group: Option<Spanned<String>>,
    role: Option<Spanned<String>>,
    role_path: Option<Spanned<String>>,
    permissions_boundary: Option<Spanned<String>>,
    dead_letter_queue: Option<Spanned<String>>,
    flexible_window: Option<Spanned<String>>,
    retries: Option<Spanned<u32>>,
    retry_for: Option<Spanned<String>>,
}

impl ScheduleTable {
    pub(super) fn into_timing(self, job: &str, at: &Place<'_>, here: &Here<'_>) -> anyhow::Result<Timing> {
        let timezone = at.check(self.timezone, "timezone", "an IANA name such as Asia/Seoul", |v| {
            (1..=50).contains(&v.len()) && jiff::tz::TimeZone::get(v).is_ok_and(|zone| zone.iana_name() == Some(v))
        })?;
        let group = match self.group {
            Some(group) => {
                let span = group.span();
                let legal = "a name of 1 to 64 letters, digits, - _ and .";
                let group = at.check(group, "group", legal, |v| is_name(v, "-_.", 64))?;
                if group == "default" {
                    let what = "the group default is everybody's: marked as this job's, every schedule in it would be";
                    let hint =
                        "leave `group` out, and the job gets one of its own; a schedule cannot move between groups";
                    return Err(at.stop(Some(span), what, hint));
                }
                group
            }
            None if job == "default" => {
                let what = "a job that is called default needs `group`: the group default is everybody's";
                return Err(at.stop(None, what, "say group = \"NAME\" in its [job.default.schedule]"));
            }
            None => job.to_owned(),
        };
        let role = match self.role {
            Some(role) => {
                let legal = "the ARN of a role";
                Some(at.check_here(role, "role", legal, here, |v| {
                    v.starts_with("arn:") && v.contains(":iam::") && v.contains(":role/") && !v.ends_with('/')
                })?)
            }
            None => None,
        };
        let given = role.is_some();
        let role_path = match self.role_path {
            Some(path) if given => {
                return Err(at.stop(
                    Some(path.span()),
                    "role_path and role",
                    "a given role has its own path: keep one of them",
                ));
            }
            Some(path) => at.check(path, "role_path", "/ or /some/path/", |v| {
                let slashes = v.starts_with('/') && v.ends_with('/') && !v.contains("//");
                slashes && v.len() <= 512 && v.bytes().all(|b| b.is_ascii_graphic())
            })?,
            None => "/".to_owned(),
        };
        let permissions_boundary = match self.permissions_boundary {
            Some(arn) if given => {
                return Err(at.stop(
                    Some(arn.span()),
                    "permissions_boundary and role",
                    "a given role has its own boundary: keep one of them",
                ));
            }
            Some(arn) => {
                // AWS's own policies are of the account `aws`.
                let of_aws = arn.get_ref().contains(":iam::aws:");
                let here = if of_aws { here.of_any_account() } else { Here { ..*here } };
                Some(at.check_here(arn, "permissions_boundary", "the ARN of a managed policy", &here, |v| {
                    v.starts_with("arn:") && v.contains(":iam::") && v.contains(":policy/")
                })?)
            }
            None => None,
        };
        let dead_letter_queue = match self.dead_letter_queue {
            Some(arn) => {
                Some(at.check(arn, "dead_letter_queue", "the ARN of a standard SQS queue (not .fifo)", |v| {
                    let ["arn", _, "sqs", region, account, name] = v.split(':').collect::<Vec<_>>()[..] else {
                        return false;
                    };
                    let digits = account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit());
                    digits && is_name(region, "-", 64) && is_name(name, "-_", 80)
                })?)
            }
            None => None,
        };
        let flexible_window = match self.flexible_window {
            Some(text) => {
                let span = text.span();
                let minutes = at.duration(text, "flexible_window")?.as_secs() / 60;
                let minutes = u32::try_from(minutes).ok().filter(|minutes| (1..=1440).contains(minutes));
                Some(minutes.ok_or_else(|| {
                    at.stop(Some(span), "flexible_window is out of range", "write 1m to 24h, or leave it out")
                })?)
            }
            None => None,
        };
        // AWS's own defaults, 185 tries within a day, would run a monthly job at a time that nobody expects.
        let retries = match self.retries {
            Some(n) => at.check(n, "retries", "a number from 0 to 185", |v| *v <= 185)?,
            None => 3,
        };
        let retry_for = match self.retry_for {
            Some(text) => {
                let span = text.span();
                let age = at.duration(text, "retry_for")?;
                if !(60..=86_400).contains(&age.as_secs()) {
                    return Err(at.stop(
                        Some(span),
                        "retry_for is out of what AWS takes, 1m to 24h",
                        "as in: retry_for = \"1h\"",
                    ));
                }
                age
            }
            None => Duration::from_secs(3600),
        };
        let expression = cron::expression(&self.cron, &timezone, at)?;
        Ok(Timing {
            expression,
            timezone,
            group,
            role,
            role_path,
            permissions_boundary,
            dead_letter_queue,
            flexible_window,
            retries,
            retry_for,
        })
    }
}
