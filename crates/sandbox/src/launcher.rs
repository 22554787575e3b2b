//! What starts commands.

use crate::{Check, Child, Command, LaunchError, LimitsBy, Policy, SelfTest, Strength};
use std::ffi::OsString;
use std::path::PathBuf;

/// How to start this program again as the inner helper. Its `main` hands over to [`enter`](crate::enter).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Helper {
    /// The program: usually this one itself.
    pub program: PathBuf,
    /// The arguments by which it knows what it is started for.
    pub arguments: Vec<OsString>,
}

/// Starts commands in a sandbox.
#[derive(Debug, Clone)]
pub struct Launcher {
    helper: Helper,
    strength: Strength,
    trash: Option<PathBuf>,
}

impl Launcher {
    /// A launcher that uses all layers, and starts nothing if one of them is missing.
    pub fn new(helper: Helper) -> Self {
        Self {
            helper,
            strength: Strength::Full,
            trash: None,
        }
    }

    /// Makes do with what the self-test found.
    pub fn with_strength(mut self, strength: Strength) -> Self {
        self.strength = strength;
        self
    }

    /// Where things go that commands made where nothing may be made. Without it they are deleted.
    pub fn with_trash(mut self, folder: PathBuf) -> Self {
        self.trash = Some(folder);
        self
    }

    /// Tries for real what a command could do: starts probes the way commands are started.
    pub async fn self_test(&self) -> SelfTest {
        let unknown = || "nothing".to_string();
        SelfTest {
            strength: Strength::None {
                why: "not built yet".into(),
            },
            checks: Vec::<Check>::new(),
            limits: LimitsBy {
                processes: unknown(),
                memory: unknown(),
                disk: unknown(),
            },
        }
    }

    /// Starts a command. Nothing runs if a layer cannot be set up. Must be called inside of a tokio runtime.
    pub fn spawn(&self, policy: &Policy, command: Command) -> Result<Child, LaunchError> {
        let _ = (policy, command, &self.helper, &self.trash);
        Err(LaunchError::NoSandbox {
            why: "not built yet".into(),
        })
    }
}
