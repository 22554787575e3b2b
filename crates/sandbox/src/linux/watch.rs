//! Clean-up around one call of a program that keeps running, such as a server: a scan before the call, a sweep after
//! it.

use super::clean_up::CleanUpSetup;
use super::supervise::finish;
use super::user::User;
use super::{Scan, mode_for};
use crate::launcher::Launcher;
use crate::running::RunningToken;
use crate::{CleanUpReport, LaunchError, NewFiles, Policy};

/// A scan that is followed by a sweep, even if the watch is dropped.
#[derive(Debug)]
pub(crate) struct CleanUpWatch {
    launcher: Launcher,
    start: Option<(CleanUpSetup, RunningToken)>,
}

impl CleanUpWatch {
    pub(crate) fn start(launcher: &Launcher, policy: &Policy) -> Result<Self, LaunchError> {
        let user = User::of(mode_for(launcher)?, &policy.workspace)?;
        let scan = Scan::run(policy, NewFiles::Remove, launcher.records.as_deref())?;
        let start = CleanUpSetup::new(launcher, user, &scan.checklist)?;
        Ok(Self {
            launcher: launcher.clone(),
            start: Some((start, RunningToken::new())),
        })
    }

    pub(crate) async fn finish(mut self) -> CleanUpReport {
        match self.start.take() {
            Some((start, _running)) => finish(&self.launcher, start, None).await,
            None => CleanUpReport::default(),
        }
    }
}

impl Drop for CleanUpWatch {
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
