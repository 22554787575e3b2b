//! When a secret expires: after a time, at the end of a day in UTC, or never.

use crate::config;
use crate::exit::{Exit, Failure};
use chrono::{NaiveDate, NaiveTime};
use lango_core::{Clock, Timestamp};
use lango_engine::SystemClock;
use lango_vault::Entry;

const DAY_MILLISECONDS: i64 = 24 * 60 * 60 * 1000;

/// From when on a secret is refused.
#[derive(Clone, Copy)]
pub enum Expiry {
    /// So long after it is stored, in milliseconds.
    After(u64),
    /// From this time on; of a day its last millisecond in UTC.
    At(Timestamp),
    /// Not at all.
    Never,
}

impl Expiry {
    /// Parses the text of `--expires`.
    pub fn read(text: &str) -> Result<Self, Failure> {
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
        let age = config::age(text)
            .map_err(|_| refuse(format!("`{text}` is not a time for `--expires`")))?;
        Ok(Self::After(
            u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        ))
    }

    /// Returns the expiry after which a new value lives as long as the stored one does.
    pub fn like(old: &Entry) -> Self {
        match old.expires {
            Some(at) => Self::After(at.0.saturating_sub(old.updated.0)),
            None => Self::Never,
        }
    }

    /// Returns the time, for a secret that is stored now.
    pub fn time(self) -> Option<Timestamp> {
        match self {
            Self::After(age) => Some(Timestamp(SystemClock.now().0.saturating_add(age))),
            Self::At(time) => Some(time),
            Self::Never => None,
        }
    }
}

/// Returns whether a text is written like a date.
fn is_date(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split('-').count() == 3 && text.split('-').all(is_part)
}

fn refuse(message: String) -> Failure {
    Failure::new(Exit::Usage, message)
        .next("give a time from 1s on such as 90d, the last day (UTC) such as 2027-01-31, or never")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_vault::date_and_time;

    #[test]
    fn a_day_is_the_last_one_to_its_end_in_utc() {
        let at = Expiry::read("2027-01-31").ok().and_then(Expiry::time);
        assert_eq!(date_and_time(at.unwrap()), "2027-01-31 23:59 UTC");
        assert_eq!((at.unwrap().0 + 1) % (DAY_MILLISECONDS as u64), 0);
        assert!(Expiry::read("never").ok().and_then(Expiry::time).is_none());
        for (wrong, reason) in [
            ("tomorrow", "is not a time"),
            ("0d", "is not a time"),
            ("2020-01-01", "is over"),
            ("2027-02-30", "there is no day 2027-02-30"),
        ] {
            let failure = Expiry::read(wrong).err().unwrap();
            assert!(failure.message().contains(reason), "{failure}");
        }
    }
}
