//! The task that stays with a command until it is gone: it collects the helper's reports, and makes sure that clean-up
//! happened even if the guard was killed.

use super::cgroup::Group;
use super::clean_up::{self, CleanUpStart};
use super::start::Started;
use crate::launcher::Launcher;
use crate::report::{Outcome, says_cleaning_up};
use crate::running::Running;
use crate::scratch::Scratch;
use crate::{Child, CleanUpReport, Ended, Limits, Stopped};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// More than this the helper does not report.
const REPORT_BYTES: usize = 2 << 20;
/// How long to wait for the helper to end a command before bubblewrap is killed.
const END_TIME: Duration = Duration::from_secs(15);
/// How long to wait for a clean-up; the guard's own limit is shorter.
const CLEAN_UP_TIME: Duration = Duration::from_secs(90);

/// How often a clean-up is tried again before it is left to the next start.
const MOST_TRIES: usize = 2;

/// What belongs to a running command.
pub(super) struct Supervised {
    pub(super) launcher: Launcher,
    pub(super) running: Running,
    pub(super) clean_up: CleanUpStart,
    pub(super) group: Option<Group>,
    pub(super) scratch: Option<Scratch>,
    pub(super) limits: Limits,
}

/// Supervises what was started.
pub(super) fn supervise(
    runtime: &tokio::runtime::Handle,
    started: Started,
    supervised: Supervised,
) -> Child {
    let (sender, ended) = oneshot::channel();
    let (lifeline, cut) = oneshot::channel::<()>();
    let child = Child::new(
        (started.stdin, started.stdout, started.stderr),
        started.handover,
        (started.lifeline, lifeline),
        ended,
    );
    let (process, reports) = (started.process, started.reports);
    runtime.spawn(async move {
        let Supervised {
            launcher,
            running,
            clean_up,
            group,
            scratch,
            limits,
        } = supervised;
        let said = collect(process, reports, limits.time, cut).await;
        let out_of_memory = group.as_ref().is_some_and(Group::ran_out_of_memory);
        drop((group, scratch));
        let outcome = match Outcome::of(&said) {
            Outcome::NotRun(what) => {
                clean_up.record.remove();
                Err(what)
            }
            Outcome::Ran {
                exit,
                stopped,
                clean_up: report,
            } => Ok(Ended {
                exit,
                stopped: stopped.or(out_of_memory.then_some(Stopped::Memory)),
                clean_up: finish(&launcher, clean_up, report).await,
            }),
        };
        if let Err(Ok(ended)) = sender.send(outcome) {
            crate::add_unseen_report(ended.clean_up);
        }
        drop(running);
    });
    child
}

/// Makes sure that clean-up happened: if the guard did not report it, or a limit ended it, another guard cleans up.
pub(super) async fn finish(
    launcher: &Launcher,
    clean_up: CleanUpStart,
    report: Option<CleanUpReport>,
) -> CleanUpReport {
    let mut total = report.unwrap_or_default();
    let mut failure = None;
    for _ in 0..MOST_TRIES {
        if !clean_up.record.is_due() {
            break;
        }
        match clean_up::run_alone(launcher, &clean_up.record, None).await {
            Ok(report) => total.absorb(report),
            Err(what) => failure = Some(what),
        }
    }
    if clean_up.record.is_due() {
        // The record stays for the next start.
        if let Some(what) = failure {
            total.add_incomplete(&what);
        }
    } else {
        clean_up.record.remove();
    }
    total
}

/// All that the helper reported, once no process is left.
pub(super) async fn collect(
    mut process: tokio::process::Child,
    reports: std::os::fd::OwnedFd,
    time: Option<Duration>,
    cut: oneshot::Receiver<()>,
) -> Vec<u8> {
    let mut said = Vec::new();
    let Ok(mut reports) = Receiver::from_owned_fd(reports) else {
        let _ = process.kill().await;
        return said;
    };
    let started = Instant::now();
    let mut deadline = time.map(|time| started + time + END_TIME);
    let mut cut = Some(cut);
    let mut is_cleaning_up = false;
    let mut buffer = vec![0; 4096];
    let is_overdue = loop {
        let overdue = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let cut_short = async {
            match &mut cut {
                Some(cut) => drop(cut.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            read = read_some(&mut reports, &mut buffer) => {
                if read == 0 || said.len() + read > REPORT_BYTES {
                    break false;
                }
                said.extend_from_slice(&buffer[..read]);
                if !is_cleaning_up && says_cleaning_up(&said) {
                    is_cleaning_up = true;
                    deadline = Some(Instant::now() + CLEAN_UP_TIME);
                }
            }
            () = overdue => break true,
            () = cut_short, if !is_cleaning_up => {
                cut = None;
                deadline = Some(Instant::now() + END_TIME);
            }
        }
    };
    if is_overdue {
        let _ = process.start_kill();
    }
    // Bubblewrap ends after the first process inside, which ends after all others.
    let _ = process.wait().await;
    said
}

/// What was reported up to a failure still counts.
async fn read_some(reports: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> usize {
    reports.read(buffer).await.unwrap_or(0)
}
