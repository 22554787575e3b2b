//! Clean-up around a call of a program that runs on after it.

use crate::launcher::Launcher;
#[cfg(target_os = "linux")]
use crate::linux::Watch as Inner;
use crate::{CleanUpReport, LaunchError, Policy};

/// A watch over the writable directories of a policy: protected files that appear until it is finished are removed. If it is
/// dropped before, they are removed in the background.
#[derive(Debug)]
pub struct Watch {
    #[cfg(target_os = "linux")]
    inner: Inner,
}

#[cfg(target_os = "linux")]
impl Watch {
    /// Starts to watch: takes note of what exists.
    pub fn start(launcher: &Launcher, policy: &Policy) -> Result<Self, LaunchError> {
        Ok(Self {
            inner: Inner::start(launcher, policy)?,
        })
    }

    /// Removes what was created since.
    pub async fn finish(self) -> CleanUpReport {
        self.inner.finish().await
    }
}

/// Elsewhere the sandbox itself refuses protected names.
#[cfg(not(target_os = "linux"))]
impl Watch {
    /// Does nothing.
    pub fn start(_launcher: &Launcher, _policy: &Policy) -> Result<Self, LaunchError> {
        Ok(Self {})
    }

    /// Does nothing.
    pub async fn finish(self) -> CleanUpReport {
        CleanUpReport::default()
    }
}
