//! The secrets' parameters: made when absent, otherwise left alone unless a rotation is asked for.

use super::{Draft, Refusal, Sign, Step, Thing};
use crate::desired::WantedParameter;
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
                    let WantedParameter { env, name, from, .. } = wanted.clone();
                    let why = format!("not found; its value will come from {from}");
                    let step = Step::CreateParameter { name, env, from, tags: desired.tags.clone() };
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
        let WantedParameter { env, name, from, .. } = wanted;
        if found.kind != ParameterType::SecureString {
            self.item(Thing::Parameter, name, Sign::Blocked, format!("{}, not a SecureString", found.kind));
            let what = format!("parameter {name} is a {}: anybody who may read it reads it in clear", found.kind);
            let hint = "its type cannot be changed: name another parameter, or delete this one yourself";
            return self.refusals.push(Refusal::new(what, hint));
        }
        let ours = found.tags.as_ref().map(|found| tags::are_ours(found, &self.desired.job.name));
        if self.wish.rotate && ours != Some(true) && !self.wish.adopt {
            return self.foreign(Thing::Parameter, name, "its value would be overwritten");
        }
        let mut steps = Vec::new();
        if self.wish.rotate && self.is_enabled() && !self.wish.disabled {
            self.keep_still(format!("the job is ENABLED, and another value of {env} would move what it runs"));
        }
        if self.wish.rotate {
            steps.push(Step::OverwriteParameter { name: name.clone(), env: env.clone(), from: from.clone() });
        }
        if self.wish.adopt && ours == Some(false) {
            steps.push(Step::TagParameter { name: name.clone(), tags: self.desired.tags.clone() });
        }
        let whose = match ours {
            Some(true) => "value not read",
            Some(false) => "not ours, used as it is; value not read",
            None => "whose it is could not be seen; value not read",
        };
        let version = found.version;
        let (sign, why) = match (self.wish.rotate, steps.is_empty()) {
            (true, _) => (Sign::Change, format!("a new version after v{version}, from {from}")),
            (false, false) => (Sign::Change, "becomes ours by its tags; its value stays".to_owned()),
            (false, true) => (Sign::Same, format!("SecureString v{version}, {whose}")),
        };
        self.item(Thing::Parameter, name, sign, why).steps = steps;
    }
}
