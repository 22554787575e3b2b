//! The description of this machine that agents get in their instructions.

use chrono::{DateTime, Local};
use lango_core::{Environment, Timestamp, TurnEnvironment};

/// This machine, with the time zone of this process.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LocalEnvironment;

impl Environment for LocalEnvironment {
    fn at(&self, time: Timestamp) -> TurnEnvironment {
        let milliseconds = i64::try_from(time.0).unwrap_or(i64::MAX);
        let time = DateTime::from_timestamp_millis(milliseconds).unwrap_or_default();
        let local = time.with_timezone(&Local);
        TurnEnvironment {
            date: local.format("%A, %Y-%m-%d").to_string().into(),
            utc_offset: local.format("UTC%:z").to_string().into(),
            os: system().into(),
        }
    }
}

/// Returns the usual spelling of the operating system's name.
fn system() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "macOS",
        other => other,
    }
}
