//! Tags: how this program knows what is its own.

use std::collections::BTreeMap;

/// Tags of one thing.
pub type Tags = BTreeMap<String, String>;

/// The tag that says which program manages a thing.
pub const MANAGED_BY: (&str, &str) = ("managed-by", "geuneul-deploy");

/// The tag that says for which job.
pub const JOB: &str = "job";

/// The tag that says in which region. Only what is of the whole account needs it: a job of the same name in another region has a
/// role of the same name.
pub const REGION: &str = "region";

/// The tags that everything of a job carries.
pub fn ours(job: &str) -> Tags {
    Tags::from([(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned()), (JOB.to_owned(), job.to_owned())])
}

/// Whether all of these are among the tags; what else is there is nobody's business.
pub fn has_all(found: &Tags, wanted: &Tags) -> bool {
    wanted.iter().all(|(key, value)| found.get(key) == Some(value))
}

/// Whether the tags say that a thing belongs to this job. A name alone never does.
pub fn are_ours(tags: &Tags, job: &str) -> bool {
    has_all(tags, &ours(job))
}
