//! A length of time as flags write it: `45s`, `90m`, `12h`, `20d`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A whole number of seconds, minutes, hours or days, from one second to a year. One length has one spelling: the largest unit
/// that divides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interval(u64);

const DAY: u64 = 24 * 60 * 60;
const UNITS: [(char, u64); 4] = [('d', DAY), ('h', 60 * 60), ('m', 60), ('s', 1)];
const LONGEST: u64 = 366 * DAY;

impl Interval {
    /// So many minutes; for constants.
    pub const fn minutes(minutes: u64) -> Self {
        assert!(minutes > 0 && minutes * 60 <= LONGEST);
        Interval(minutes * 60)
    }

    /// So many days; for constants.
    pub const fn days(days: u64) -> Self {
        assert!(days > 0 && days * DAY <= LONGEST);
        Interval(days * DAY)
    }

    /// In seconds.
    pub const fn seconds(self) -> u64 {
        self.0
    }

    /// As the standard library has it.
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) =
            UNITS.into_iter().find(|(_, size)| self.0.is_multiple_of(*size)).expect("one divides everything");
        write!(f, "{}{unit}", self.0 / size)
    }
}

/// The text is no [`Interval`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no length of time; write a whole number and s, m, h or d, from 1s to 366d")]
pub struct NoInterval(pub String);

impl FromStr for Interval {
    type Err = NoInterval;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (number, size) = UNITS.into_iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)))?;
            let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            let seconds = plain.then(|| number.parse::<u64>().ok()).flatten()?.checked_mul(size)?;
            (1..=LONGEST).contains(&seconds).then_some(Interval(seconds))
        };
        read().ok_or_else(|| NoInterval(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_one_spelling() {
        for (text, spelling, seconds) in [
            ("45s", "45s", 45),
            ("120s", "2m", 120),
            ("36h", "36h", 129_600),
            ("48h", "2d", 172_800),
            ("366d", "366d", LONGEST),
        ] {
            let interval: Interval = text.parse().unwrap();
            assert_eq!((interval.to_string().as_str(), interval.seconds()), (spelling, seconds));
            assert_eq!(spelling.parse(), Ok(interval));
        }
        for wrong in ["", "d", "12", "0s", "-1d", "+1d", "1.5h", "1 d", "1w", "367d", "99999999999999999999d", "1h30m"]
        {
            assert!(wrong.parse::<Interval>().is_err(), "{wrong}");
        }
    }
}
