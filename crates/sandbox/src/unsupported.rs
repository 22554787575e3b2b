//! Operating systems without a sandbox: no command is ever started.

use crate::launcher::Launcher;
use crate::{
    Child, CleanUpReport, Command, LaunchError, LimitEnforcement, Policy, SandboxStrength, SelfTest,
};
use std::path::PathBuf;

fn reason() -> String {
    let system = std::env::consts::OS;
    format!("lango has no sandbox for {system}; run it on Linux or macOS, or in a Linux container")
}

pub(crate) fn find() -> Option<PathBuf> {
    None
}

/// Always fails.
pub(crate) fn spawn(_: &Launcher, _: &Policy, _: Command) -> Result<Child, LaunchError> {
    Err(LaunchError::NoSandbox { why: reason() })
}

/// Always fails.
pub(crate) async fn check_nesting(_: &Launcher) -> Result<(), LaunchError> {
    Err(LaunchError::NoNesting { why: reason() })
}

/// Does nothing: no command ever runs, so there is nothing to clean up.
pub(crate) async fn recover(_: &Launcher) -> Vec<CleanUpReport> {
    Vec::new()
}

/// Reports that there is no sandbox.
pub(crate) async fn self_test(_: &Launcher) -> SelfTest {
    let nothing = || "nothing".to_string();
    SelfTest {
        strength: SandboxStrength::None { why: reason() },
        checks: Vec::new(),
        limits: LimitEnforcement {
            processes: nothing(),
            memory: nothing(),
            disk: nothing(),
        },
    }
}
