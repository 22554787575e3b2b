//! The machine that agents work on, as they are told about it.

use chrono::{DateTime, Local};
use lango_core::{Environment, Timestamp, TurnEnvironment};

/// This machine, with the time zone of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisMachine;

impl Environment for ThisMachine {
    fn at(&self, time: Timestamp) -> TurnEnvironment {
        let milliseconds = i64::try_from(time.0).unwrap_or(i64::MAX);
        let time = DateTime::from_timestamp_millis(milliseconds).unwrap_or_default();
        let here = time.with_timezone(&Local);
        TurnEnvironment {
            date: here.format("%A, %Y-%m-%d").to_string().into(),
            utc_offset: here.format("UTC%:z").to_string().into(),
            os: system().into(),
        }
    }
}

/// The operating system, as people write its name.
fn system() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "macOS",
        other => other,
    }
}
