//! Clean-up around one call of a program that keeps running, such as a server.

use crate::launcher::Launcher;
#[cfg(target_os = "linux")]
use crate::linux::CleanUpWatch as Inner;
use crate::{CleanUpReport, LaunchError, Policy};

/// A watch over the writable directories of a policy. [`finish`](Self::finish) removes protected files that appeared
/// since the start. If the watch is dropped instead, they are removed in the background.
#[derive(Debug)]
pub struct CleanUpWatch {
    #[cfg(target_os = "linux")]
    inner: Inner,
}

#[cfg(target_os = "linux")]
impl CleanUpWatch {
    /// Starts the watch: scans which protected files exist.
    pub fn start(launcher: &Launcher, policy: &Policy) -> Result<Self, LaunchError> {
        Ok(Self {
            inner: Inner::start(launcher, policy)?,
        })
    }

    /// Removes the protected files that were created since the start.
    pub async fn finish(self) -> CleanUpReport {
        self.inner.finish().await
    }
}

/// On other systems the sandbox itself refuses protected names, so there is nothing to clean up.
#[cfg(not(target_os = "linux"))]
impl CleanUpWatch {
    /// Does nothing.
    pub fn start(_launcher: &Launcher, _policy: &Policy) -> Result<Self, LaunchError> {
        Ok(Self {})
    }

    /// Does nothing.
    pub async fn finish(self) -> CleanUpReport {
        CleanUpReport::default()
    }
}
