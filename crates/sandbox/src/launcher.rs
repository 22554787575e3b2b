//! What starts commands.

#[cfg(target_os = "linux")]
use crate::linux as platform;
#[cfg(target_os = "macos")]
use crate::macos as platform;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
use crate::nowhere as platform;

use crate::layers::Layers;
use crate::{Child, CleanUpReport, Command, LaunchError, Policy, SelfTest, Strength};
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
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
    #[cfg_attr(not(target_os = "linux"), expect(dead_code))]
    pub(crate) helper: Helper,
    pub(crate) strength: Strength,
    pub(crate) trash: Option<PathBuf>,
    pub(crate) records: Option<PathBuf>,
    own_folder: Option<PathBuf>,
    pub(crate) layers: Layers,
    /// The program that makes the outer layer.
    pub(crate) outer_program: Option<PathBuf>,
}

impl Launcher {
    /// A launcher that uses all layers, and starts nothing if one of them is missing.
    pub fn new(helper: Helper) -> Self {
        Self {
            helper,
            strength: Strength::Full,
            trash: None,
            records: None,
            own_folder: None,
            layers: Layers::default(),
            outer_program: platform::find(),
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

    /// Where to record clean-ups that are due, so that [`recover`](Self::recover) finds them after a crash.
    pub fn with_records(mut self, folder: PathBuf) -> Self {
        self.records = Some(folder);
        self
    }

    /// The same without trash and records.
    #[cfg(target_os = "linux")]
    pub(crate) fn without_clean_up_folders(&self) -> Self {
        Self {
            trash: None,
            records: None,
            ..self.clone()
        }
    }

    /// A folder of the caller's own that is made before a command starts. What is not there cannot be hidden, and would be
    /// seen by a command that runs already when it is made later.
    pub fn with_own_folder(mut self, folder: PathBuf) -> Self {
        self.own_folder = Some(folder);
        self
    }

    /// For tests: takes layers away, or has them fail.
    #[doc(hidden)]
    pub fn with_layers(mut self, layers: Layers) -> Self {
        self.layers = layers;
        self
    }

    /// Tries for real what a command could do: starts probes the way commands are started.
    pub async fn self_test(&self) -> SelfTest {
        platform::self_test(self).await
    }

    /// Starts a command. Nothing runs if a layer cannot be set up. Must be called inside of a tokio runtime.
    ///
    /// It reads the writable folders first: milliseconds for thousands of files, seconds for millions.
    pub fn spawn(&self, policy: &Policy, command: Command) -> Result<Child, LaunchError> {
        for folder in [&self.own_folder, &self.trash, &self.records]
            .into_iter()
            .flatten()
        {
            // Where it cannot be made now, it cannot be made while the command runs either.
            let mut folders = std::fs::DirBuilder::new();
            let _ = folders.recursive(true).mode(0o700).create(folder);
        }
        platform::spawn(self, policy, command)
    }

    /// Tries whether a command of [`Profile::Browser`](crate::Profile::Browser) can make the namespaces that Chromium's own
    /// sandbox needs. If not, Chromium starts with `--no-sandbox` alone, and this sandbox is the only one around its pages.
    pub async fn check_nesting(&self) -> Result<(), LaunchError> {
        platform::check_nesting(self).await
    }

    /// Finishes clean-ups that were interrupted by a crash, and reports them together with those that were finished while
    /// lango was gone.
    pub async fn recover(&self) -> Vec<CleanUpReport> {
        platform::recover(self).await
    }
}
