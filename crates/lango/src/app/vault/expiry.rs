//! When a secret expires: after a time, at the end of a day in UTC, or never.

use crate::app::Failure;
use chrono::{NaiveDate, NaiveTime};
use lango_core::{Clock, Timestamp};
use lango_engine::SystemClock;
use lango_vault::SecretEntry;

const DAY_MILLISECONDS: i64 = 24 * 60 * 60 * 1000;

/// When a secret expires.
#[derive(Clone, Copy)]
pub enum Expiry {
    /// This long after it is stored, in milliseconds.
    After(u64),
    /// At this time; a day means its last millisecond in UTC.
    At(Timestamp),
    Never,
}

impl Expiry {
    /// Parses the text of `--expires`.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if text == "never" {
            return Ok(Self::Never);
        }
        if let Ok(day) = text.parse::<NaiveDate>() {
            let start = day.and_time(NaiveTime::MIN).and_utc().timestamp_millis();
            let last = start.saturating_add(DAY_MILLISECONDS - 1);
            let last = Timestamp(u64::try_from(last).unwrap_or_default());
            if last.0 < SystemClock.now().0 {
                return Err(refuse(format!("the day of `--expires {text}` is over")));
            }
            return Ok(Self::At(last));
        }
        if is_date(text) {
            return Err(refuse(format!("there is no day {text}")));
        }
        let age = lango_config::age(text)
            .map_err(|_| refuse(format!("`{text}` is not a time for `--expires`")))?;
        Ok(Self::After(
            u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        ))
    }

    /// Returns the expiry that gives a new value the same lifetime as the stored one.
    pub fn same_lifetime_as(old: &SecretEntry) -> Self {
        match old.expires {
            Some(at) => Self::After(at.0.saturating_sub(old.updated.0)),
            None => Self::Never,
        }
    }

    /// Returns the time of expiry for a secret that is stored now.
    pub fn time(self) -> Option<Timestamp> {
        match self {
            Self::After(age) => Some(Timestamp(SystemClock.now().0.saturating_add(age))),
            Self::At(time) => Some(time),
            Self::Never => None,
        }
    }
}

/// Returns whether a text has the form of a date.
fn is_date(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split('-').count() == 3 && text.split('-').all(is_part)
}

fn refuse(message: String) -> Failure {
    Failure::usage(message)
        .next("give a lifetime such as 90d (at least 1s), the last valid day in UTC such as 2027-01-31, or never")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_vault::date_and_time;

    #[test]
    fn a_day_is_valid_until_its_end_in_utc() {
        let at = Expiry::parse("2027-01-31").ok().and_then(Expiry::time);
        assert_eq!(date_and_time(at.unwrap()), "2027-01-31 23:59 UTC");
        assert_eq!((at.unwrap().0 + 1) % (DAY_MILLISECONDS as u64), 0);
        assert!(Expiry::parse("never").ok().and_then(Expiry::time).is_none());
        for (wrong, reason) in [
            ("tomorrow", "is not a time"),
            ("0d", "is not a time"),
            ("2020-01-01", "is over"),
            ("2027-02-30", "there is no day 2027-02-30"),
        ] {
            let failure = Expiry::parse(wrong).err().unwrap();
            assert!(failure.message().contains(reason), "{failure}");
        }
    }
}
