//! The launcher, which starts commands in the sandbox.

#[cfg(target_os = "linux")]
use crate::linux as platform;
#[cfg(target_os = "macos")]
use crate::macos as platform;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
use crate::unsupported as platform;

use crate::layers::Layers;
use crate::{Child, CleanUpReport, Command, LaunchError, Policy, SandboxStrength, SelfTest};
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// How to start this program again as the inner helper. Its `main` must then call [`enter`](crate::enter).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperCommand {
    /// Usually the path of the running program.
    pub program: PathBuf,
    /// The first arguments, by which `main` recognizes that it must call [`enter`](crate::enter).
    pub arguments: Vec<OsString>,
}

/// Starts commands in a sandbox.
#[derive(Debug, Clone)]
pub struct Launcher {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code))]
    pub(crate) helper: HelperCommand,
    pub(crate) strength: SandboxStrength,
    pub(crate) trash: Option<PathBuf>,
    pub(crate) records: Option<PathBuf>,
    private_folder: Option<PathBuf>,
    pub(crate) layers: Layers,
    /// The program that creates the outer layer, such as `bwrap`.
    pub(crate) outer_program: Option<PathBuf>,
}

impl Launcher {
    /// Creates a launcher that uses all layers, and starts nothing if one of them is missing.
    pub fn new(helper: HelperCommand) -> Self {
        Self {
            helper,
            strength: SandboxStrength::Full,
            trash: None,
            records: None,
            private_folder: None,
            layers: Layers::default(),
            outer_program: platform::find(),
        }
    }

    /// Uses the layers that work according to the self-test.
    pub fn with_strength(mut self, strength: SandboxStrength) -> Self {
        self.strength = strength;
        self
    }

    /// Moves protected files that commands create to this folder. Without it they are deleted.
    pub fn with_trash(mut self, folder: PathBuf) -> Self {
        self.trash = Some(folder);
        self
    }

    /// Records pending clean-ups in this folder, so that [`recover`](Self::recover) finds them after a crash.
    pub fn with_records(mut self, folder: PathBuf) -> Self {
        self.records = Some(folder);
        self
    }

    /// Returns a copy without trash and records.
    #[cfg(target_os = "linux")]
    pub(crate) fn without_clean_up_folders(&self) -> Self {
        Self {
            trash: None,
            records: None,
            ..self.clone()
        }
    }

    /// Creates this private folder of the caller before a command starts. A folder that does not exist cannot be
    /// hidden: if it were created later, commands that are already running would see it.
    pub fn with_private_folder(mut self, folder: PathBuf) -> Self {
        self.private_folder = Some(folder);
        self
    }

    /// For tests: skips layers or makes them fail.
    #[doc(hidden)]
    pub fn with_layers(mut self, layers: Layers) -> Self {
        self.layers = layers;
        self
    }

    /// Starts a probe like a command and lets it try to escape.
    pub async fn self_test(&self) -> SelfTest {
        platform::self_test(self).await
    }

    /// Starts a command. Nothing runs if a layer cannot be set up. Must be called inside a tokio runtime.
    ///
    /// Blocks while it reads the writable folders: milliseconds for thousands of files, seconds for millions.
    pub fn spawn(&self, policy: &Policy, command: Command) -> Result<Child, LaunchError> {
        for folder in [&self.private_folder, &self.trash, &self.records]
            .into_iter()
            .flatten()
        {
            // If it cannot be created now, it cannot be created while the command runs either.
            let mut folders = std::fs::DirBuilder::new();
            let _ = folders.recursive(true).mode(0o700).create(folder);
        }
        platform::spawn(self, policy, command)
    }

    /// Checks whether a command with [`SandboxProfile::Browser`](crate::SandboxProfile::Browser) can create the
    /// namespaces that Chromium's own sandbox needs. If not, Chromium only starts with `--no-sandbox`, and this sandbox
    /// alone confines its pages.
    pub async fn check_nesting(&self) -> Result<(), LaunchError> {
        platform::check_nesting(self).await
    }

    /// Finishes clean-ups that a crash interrupted. Returns their reports and those of clean-ups that finished while
    /// lango was not running.
    pub async fn recover(&self) -> Vec<CleanUpReport> {
        platform::recover(self).await
    }
}
