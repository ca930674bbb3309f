//! The secrets' parameters: made when absent, otherwise left alone unless a rotation is asked for, or another key.

use super::{Draft, Refusal, Sign, Step, Thing, tag_lines};
use crate::desired::WantedParameter;
use crate::model::parameter::{AWS_OWN_KEY, is_same_key};
use crate::model::{Parameter, ParameterType, Seen, State, tags};

impl Draft<'_> {
    pub(super) fn parameters(&mut self) {
        let (desired, live) = (self.desired, self.live);
        for (wanted, seen) in desired.parameters.iter().zip(&live.parameters) {
            match seen {
                Seen::Hidden { why } => self.hidden(Thing::Parameter, &wanted.name, why),
                Seen::Absent => {
                    if self.is_enabled() && !self.wish.disabled {
                        let env = &wanted.env;
                        let what = format!("the job is ENABLED, and a new value of {env} would move what it runs");
                        self.keep_still(what);
                    }
                    let WantedParameter { env, name, from, kms_key: key, .. } = wanted.clone();
                    let why = format!("not found; its value will come from {from}");
                    let step = Step::CreateParameter { name, env, from, key, tags: desired.tags.clone() };
                    self.item(Thing::Parameter, &wanted.name, Sign::Create, why).steps.push(step);
                }
                Seen::Present(found) => self.parameter(wanted, found),
            }
        }
    }

    fn is_enabled(&self) -> bool {
        self.live.schedule.present().is_some_and(|schedule| schedule.state() == State::Enabled)
    }

    fn parameter(&mut self, wanted: &WantedParameter, found: &Parameter) {
        let WantedParameter { env, name, from, kms_key, .. } = wanted;
        if found.kind != ParameterType::SecureString {
            self.item(Thing::Parameter, name, Sign::Blocked, format!("{}, not a SecureString", found.kind));
            let what = format!("parameter {name} is a {}: anybody who may read it reads it in clear", found.kind);
            let hint = "its type cannot be changed: name another parameter, or delete this one yourself";
            return self.refusals.push(Refusal::new(what, hint));
        }
        let ours = found.tags.as_ref().map(|found| tags::are_ours(found, &self.desired.job.name));
        let rotate = self.wish.rotate.iter().any(|one| one == env || one == name);
        let is = found.key.as_deref().unwrap_or("(not shown)");
        let moved_key = kms_key.as_deref().filter(|wanted| !is_same_key(is, wanted));
        if (rotate || moved_key.is_some()) && ours != Some(true) && !self.wish.adopt {
            return self.foreign(Thing::Parameter, name, "its value would be overwritten");
        }
        let (mut steps, mut words, mut details) = (Vec::new(), Vec::new(), Vec::new());
        let version = found.version;
        if rotate || moved_key.is_some() {
            let key = kms_key.clone().or_else(|| found.key.clone());
            steps.push(Step::OverwriteParameter { name: name.clone(), env: env.clone(), from: from.clone(), key });
            words.push(format!("a new version after v{version}, from {from}"));
            let on = self.live.schedule.present().is_some_and(|schedule| schedule.state() == State::Enabled);
            let stays = match on && !self.wish.disabled && !self.desired.job.stopped {
                true => "; the job stays ENABLED and takes the new value at its next run",
                false => "",
            };
            self.notes.push(format!("a proven run of {env} v{version} no longer counts{stays}"));
        }
        if let (None, Some(key)) = (kms_key, found.key.as_deref().filter(|key| !is_same_key(key, AWS_OWN_KEY))) {
            self.notes.push(format!(
                "parameter {name} is encrypted with {key}, which the configuration does not name: nothing here lets the execution role decrypt with it, or you encrypt; say kms_key = {key:?} in its secret"
            ));
        }
        if let Some(key) = moved_key {
            details.push(("key".to_owned(), format!("{is} -> {key}")));
        }
        let missing = found.tags.as_ref().map(|found| tag_lines(found, &self.desired.tags)).unwrap_or_default();
        if !missing.is_empty() && (ours == Some(true) || self.wish.adopt) {
            steps.push(Step::TagParameter { name: name.clone(), tags: self.desired.tags.clone() });
            words.push(match ours {
                Some(true) => "tags differ".to_owned(),
                _ => "becomes ours by its tags; its value stays".to_owned(),
            });
            details.extend(missing);
        }
        let whose = match ours {
            Some(true) => "value not read",
            Some(false) => "not ours, used as it is; value not read",
            None => "whose it is could not be seen; value not read",
        };
        let (sign, why) = match words.is_empty() {
            true => (Sign::Same, format!("SecureString v{version}, {whose}")),
            false => (Sign::Change, words.join("; ")),
        };
        let item = self.item(Thing::Parameter, name, sign, why);
        (item.steps, item.details) = (steps, details);
    }
}
