//! Systems that have no sandbox here: nothing is ever started.

use crate::launcher::Launcher;
use crate::{Child, CleanUpReport, Command, LaunchError, LimitsBy, Policy, SelfTest, Strength};
use std::path::PathBuf;

fn why() -> String {
    let system = std::env::consts::OS;
    format!("there is none for {system}; run lango on Linux or macOS, or in a container of Linux")
}

/// There is nothing to find.
pub(crate) fn find() -> Option<PathBuf> {
    None
}

/// Refuses.
pub(crate) fn spawn(_: &Launcher, _: &Policy, _: Command) -> Result<Child, LaunchError> {
    Err(LaunchError::NoSandbox { why: why() })
}

/// Nothing can be nested.
pub(crate) async fn check_nesting(_: &Launcher) -> Result<(), LaunchError> {
    Err(LaunchError::NoNesting { why: why() })
}

/// There is nothing to recover.
pub(crate) async fn recover(_: &Launcher) -> Vec<CleanUpReport> {
    Vec::new()
}

/// Says why not.
pub(crate) async fn self_test(_: &Launcher) -> SelfTest {
    let nothing = || "nothing".to_string();
    SelfTest {
        strength: Strength::None { why: why() },
        checks: Vec::new(),
        limits: LimitsBy {
            processes: nothing(),
            memory: nothing(),
            disk: nothing(),
        },
    }
}
