//! What starts commands.

use crate::layers::Layers;
use crate::{Child, Command, LaunchError, Policy, SelfTest, Strength};
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
    pub(crate) helper: Helper,
    pub(crate) strength: Strength,
    pub(crate) trash: Option<PathBuf>,
    pub(crate) layers: Layers,
    bubblewrap: Option<PathBuf>,
}

impl Launcher {
    /// A launcher that uses all layers, and starts nothing if one of them is missing.
    pub fn new(helper: Helper) -> Self {
        Self {
            helper,
            strength: Strength::Full,
            trash: None,
            layers: Layers::default(),
            bubblewrap: crate::linux::bubblewrap::find(),
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

    /// For tests: takes layers away, or has them fail.
    #[doc(hidden)]
    pub fn with_layers(mut self, layers: Layers) -> Self {
        self.layers = layers;
        self
    }

    /// Tries for real what a command could do: starts probes the way commands are started.
    pub async fn self_test(&self) -> SelfTest {
        crate::linux::self_test::run(self).await
    }

    /// Starts a command. Nothing runs if a layer cannot be set up. Must be called inside of a tokio runtime.
    ///
    /// It looks through the writable folders first, which takes a few milliseconds if they are large.
    pub fn spawn(&self, policy: &Policy, command: Command) -> Result<Child, LaunchError> {
        use crate::linux::{mode_for, spawn};
        let mode = mode_for(self)?;
        spawn(self, mode, policy, command, crate::plan::Work::Command)
    }
}

#[cfg(target_os = "linux")]
mod layers_here {
    use super::Launcher;
    use crate::LaunchError;
    use crate::inner::{LEAST_ABI, kernel_abi};
    use crate::layers::Layer;
    use crate::linux::Mode;
    use std::path::PathBuf;

    impl Launcher {
        /// Whether the kernel has rules about files.
        pub(crate) fn has_landlock(&self) -> bool {
            self.layers.landlock != Layer::Failing && kernel_abi() >= LEAST_ABI
        }

        /// Bubblewrap, if it is to be used.
        pub(crate) fn bubblewrap_for(&self, mode: Mode) -> Result<Option<PathBuf>, LaunchError> {
            match (mode, self.layers.bubblewrap) {
                (Mode::LandlockOnly, _) | (_, Layer::LeftOut) => Ok(None),
                (_, Layer::Failing) => Err(LaunchError::NoBubblewrap),
                (_, Layer::Used) => {
                    let program = self.bubblewrap.clone();
                    program.map(Some).ok_or(LaunchError::NoBubblewrap)
                }
            }
        }
    }
}
