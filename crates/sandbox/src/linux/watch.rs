//! Clean-up around a call of a program that runs on after it, such as a server: a scan before, a sweep after.

use super::clean_up::CleanUpStart;
use super::supervise::finish;
use super::user::User;
use super::{Scan, mode_for};
use crate::launcher::Launcher;
use crate::running::Running;
use crate::{CleanUpReport, LaunchError, NewFiles, Policy};

/// A scan that a sweep will follow, whether or not anybody waits for it.
#[derive(Debug)]
pub(crate) struct Watch {
    launcher: Launcher,
    start: Option<(CleanUpStart, Running)>,
}

impl Watch {
    pub(crate) fn start(launcher: &Launcher, policy: &Policy) -> Result<Self, LaunchError> {
        let user = User::of(mode_for(launcher)?, &policy.workspace)?;
        let scan = Scan::take(policy, NewFiles::Remove, launcher.records.as_deref())?;
        let start = CleanUpStart::new(launcher, user, &scan.checklist)?;
        Ok(Self {
            launcher: launcher.clone(),
            start: Some((start, Running::new())),
        })
    }

    pub(crate) async fn finish(mut self) -> CleanUpReport {
        match self.start.take() {
            Some((start, _running)) => finish(&self.launcher, start, None).await,
            None => CleanUpReport::default(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let (Some((start, running)), Ok(runtime)) =
            (self.start.take(), tokio::runtime::Handle::try_current())
        else {
            // Without a runtime the record stays for the next start.
            return;
        };
        let launcher = self.launcher.clone();
        runtime.spawn(async move {
            crate::add_unseen_report(finish(&launcher, start, None).await);
            drop(running);
        });
    }
}
