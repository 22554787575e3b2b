//! Dates for models and users.

use chrono::{DateTime, Utc};
use lango_core::Timestamp;

/// Formats the day of a time in UTC: `2026-03-01`.
pub(crate) fn date(time: Timestamp) -> String {
    let milliseconds = i64::try_from(time.0).unwrap_or(i64::MAX);
    let time = DateTime::from_timestamp_millis(milliseconds).unwrap_or(DateTime::<Utc>::MAX_UTC);
    time.format("%Y-%m-%d").to_string()
}
