//! The task that supervises a command until it has ended. It collects the helper's reports, and makes sure that the
//! clean-up happens even if the guard was killed.

use super::cgroup::ControlGroup;
use super::clean_up::{self, CleanUpSetup};
use super::start::StartedProcess;
use crate::launcher::Launcher;
use crate::report::{HelperOutcome, reports_cleaning_up};
use crate::running::RunningToken;
use crate::scratch::Scratch;
use crate::{Child, CleanUpReport, CommandOutcome, ExceededLimit, ResourceLimits};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Maximum size of all reports of the helper.
const REPORT_BYTES: usize = 2 << 20;
/// How long to wait for the helper to end a command before bubblewrap is killed.
const END_TIME: Duration = Duration::from_secs(15);
/// How long to wait for a clean-up; the guard's own limit is shorter.
const CLEAN_UP_TIME: Duration = Duration::from_secs(90);

/// Number of attempts to finish a clean-up before it is left to the next start.
const MAX_ATTEMPTS: usize = 2;

/// The resources of a running command.
pub(super) struct CommandResources {
    pub(super) launcher: Launcher,
    pub(super) running: RunningToken,
    pub(super) clean_up: CleanUpSetup,
    pub(super) group: Option<ControlGroup>,
    pub(super) scratch: Option<Scratch>,
    pub(super) limits: ResourceLimits,
}

/// Supervises a started command in a background task.
pub(super) fn supervise(
    runtime: &tokio::runtime::Handle,
    started: StartedProcess,
    resources: CommandResources,
) -> Child {
    let (sender, ended) = oneshot::channel();
    let (lifeline, cancelled) = oneshot::channel::<()>();
    let child = Child::new(
        (started.stdin, started.stdout, started.stderr),
        started.handover,
        (started.lifeline, lifeline),
        ended,
    );
    let (process, reports) = (started.process, started.reports);
    runtime.spawn(async move {
        let CommandResources {
            launcher,
            running,
            clean_up,
            group,
            scratch,
            limits,
        } = resources;
        let output = collect_reports(process, reports, limits.time, cancelled).await;
        let out_of_memory = group.as_ref().is_some_and(ControlGroup::ran_out_of_memory);
        drop((group, scratch));
        let outcome = match HelperOutcome::parse(&output) {
            HelperOutcome::NotRun(what) => {
                clean_up.record.remove();
                Err(what)
            }
            HelperOutcome::Ran {
                exit,
                stopped,
                clean_up: report,
            } => Ok(CommandOutcome {
                exit,
                stopped_by: stopped.or(out_of_memory.then_some(ExceededLimit::Memory)),
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

/// Finishes the clean-up with another guard if the first guard did not report a result or was stopped by a limit.
pub(super) async fn finish(
    launcher: &Launcher,
    clean_up: CleanUpSetup,
    report: Option<CleanUpReport>,
) -> CleanUpReport {
    let mut total = report.unwrap_or_default();
    let mut failure = None;
    for _ in 0..MAX_ATTEMPTS {
        if !clean_up.record.is_due() {
            break;
        }
        match clean_up::run_clean_up_guard(launcher, &clean_up.record, None).await {
            Ok(report) => total.merge(report),
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

/// Waits until all processes have ended and returns the helper's reports. Kills bubblewrap if the helper does not end
/// the command in time.
pub(super) async fn collect_reports(
    mut process: tokio::process::Child,
    reports: std::os::fd::OwnedFd,
    time: Option<Duration>,
    cancelled: oneshot::Receiver<()>,
) -> Vec<u8> {
    let mut output = Vec::new();
    let Ok(mut reports) = Receiver::from_owned_fd(reports) else {
        let _ = process.kill().await;
        return output;
    };
    let started = Instant::now();
    let mut deadline = time.map(|time| started + time + END_TIME);
    let mut cancelled = Some(cancelled);
    let mut is_cleaning_up = false;
    let mut buffer = vec![0; 4096];
    let is_overdue = loop {
        let overdue = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let cancellation = async {
            match &mut cancelled {
                Some(cancelled) => drop(cancelled.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            read = read_some(&mut reports, &mut buffer) => {
                if read == 0 || output.len() + read > REPORT_BYTES {
                    break false;
                }
                output.extend_from_slice(&buffer[..read]);
                if !is_cleaning_up && reports_cleaning_up(&output) {
                    is_cleaning_up = true;
                    deadline = Some(Instant::now() + CLEAN_UP_TIME);
                }
            }
            () = overdue => break true,
            () = cancellation, if !is_cleaning_up => {
                cancelled = None;
                deadline = Some(Instant::now() + END_TIME);
            }
        }
    };
    if is_overdue {
        let _ = process.start_kill();
    }
    // Bubblewrap ends after its first process inside, which ends after all others.
    let _ = process.wait().await;
    output
}

/// Reads some bytes. Treats an error as the end, so that earlier reports still count.
async fn read_some(reports: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> usize {
    reports.read(buffer).await.unwrap_or(0)
}
