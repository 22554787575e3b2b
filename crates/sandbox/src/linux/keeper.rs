//! What stays with a command until it is gone: a task that hears the helper out, and cleans up.

use super::cgroup::Group;
use super::start::Started;
use crate::kept::Snapshot;
use crate::report::Outcome;
use crate::scratch::Scratch;
use crate::{Child, Ended, Limits, NewNames, Policy, Stopped};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// More than this the helper does not say.
const REPORT_BYTES: u64 = 64 * 1024;
/// The helper ends a command by itself; after this long it is not waited for any more.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is done once a command is gone.
pub(super) struct Aftermath {
    pub(super) policy: Policy,
    pub(super) found: Snapshot,
    pub(super) trash: Option<PathBuf>,
    pub(super) group: Option<Group>,
    pub(super) scratch: Option<Scratch>,
    pub(super) limits: Limits,
    pub(super) new_names: NewNames,
}

/// Looks after what was started.
pub(super) fn keep(
    runtime: &tokio::runtime::Handle,
    started: Started,
    aftermath: Aftermath,
) -> Child {
    let (sender, ended) = oneshot::channel();
    let (lifeline, cut) = oneshot::channel::<()>();
    let child = Child::new(
        (started.stdin, started.stdout, started.stderr),
        (started.lifeline, lifeline),
        ended,
    );
    let (process, reports) = (started.process, started.reports);
    runtime.spawn(async move {
        let said = hear(process, reports, aftermath.limits.time, cut).await;
        let clean = tokio::task::spawn_blocking(move || aftermath.clean(&said));
        let outcome = clean
            .await
            .unwrap_or_else(|failure| Err(failure.to_string()));
        // Whoever does not wait does not want to know.
        let _ = sender.send(outcome);
    });
    child
}

/// All that the helper said, once no process is left.
async fn hear(
    mut process: tokio::process::Child,
    reports: std::os::fd::OwnedFd,
    time: Option<Duration>,
    cut: oneshot::Receiver<()>,
) -> Vec<u8> {
    let mut said = Vec::new();
    let overdue = async {
        let cut_short = async { drop(cut.await) };
        match time {
            Some(time) => drop(tokio::time::timeout(time, cut_short).await),
            None => cut_short.await,
        }
        tokio::time::sleep_until(Instant::now() + PATIENCE).await;
    };
    let gone = async {
        if let Ok(reports) = Receiver::from_owned_fd(reports) {
            read(reports, &mut said).await;
        }
        // Bubblewrap ends after the first process inside, which ends after all others.
        let _ = process.wait().await;
    };
    let is_overdue = tokio::select! {
        () = gone => false,
        () = overdue => true,
    };
    if is_overdue {
        let _ = process.kill().await;
    }
    said
}

async fn read(reports: impl AsyncRead + Unpin, said: &mut Vec<u8>) {
    // What was said up to a failure still counts.
    let _ = reports.take(REPORT_BYTES).read_to_end(said).await;
}

impl Aftermath {
    fn clean(self, said: &[u8]) -> Result<Ended, String> {
        let swept = match self.new_names {
            NewNames::TakenAway => self.found.sweep(&self.policy, self.trash.as_deref()),
            NewNames::Reported => self.found.look(&self.policy),
        };
        let out_of_memory = self.group.as_ref().is_some_and(Group::ran_out_of_memory);
        drop((self.group, self.scratch));
        match Outcome::of(said) {
            Outcome::NotRun(what) => Err(what),
            Outcome::Ran { exit, stopped } => Ok(Ended {
                exit,
                stopped: stopped.or(out_of_memory.then_some(Stopped::Memory)),
                removed: swept.removed,
                left: swept.left,
            }),
        }
    }
}
