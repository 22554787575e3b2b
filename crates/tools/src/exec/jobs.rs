//! The table of started commands.
//!
//! A job belongs to one session and is invisible to all others. Ended jobs stay in the table as long as the limit
//! allows.

use super::network::CommandTraffic;
use super::output::Output;
use lango_core::SessionId;
use lango_sandbox::CommandOutcome;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// How a command was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// The call waits until the command ends. Ids look like `run_1`.
    Foreground,
    /// The command outlives the call. Ids look like `job_1`.
    Background,
}

/// A started command.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) mode: RunMode,
    pub(crate) session: SessionId,
    /// The command on one line.
    pub(crate) command: String,
    /// Time limit.
    pub(crate) time: Duration,
    pub(crate) output: Arc<Output>,
    pub(crate) traffic: CommandTraffic,
    is_exclusive: bool,
    started: Instant,
    state: watch::Sender<JobState>,
    stop: Notify,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobState {
    Running,
    /// The command ended after this time.
    Ended(CommandOutcome, Duration),
    /// The sandbox failed.
    Failed(String),
    /// The call that waited for the command was dropped, which ended the command.
    Abandoned,
}

impl Job {
    pub(crate) fn state(&self) -> JobState {
        self.state.borrow().clone()
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(*self.state.borrow(), JobState::Running)
    }

    /// Returns how long the command has been running, or ran.
    pub(crate) fn elapsed(&self) -> Duration {
        match *self.state.borrow() {
            JobState::Ended(_, after) => after,
            _ => self.started.elapsed(),
        }
    }

    /// Records the end of the command. Only the first call has an effect.
    pub(crate) fn end(&self, state: JobState) {
        self.output.finish();
        self.traffic.end();
        self.state.send_if_modified(|current| {
            let running = matches!(current, JobState::Running);
            if running {
                *current = state;
            }
            running
        });
    }

    /// Asks the task that runs the command to stop it.
    pub(crate) fn stop(&self) {
        self.stop.notify_one();
    }

    pub(crate) async fn wait_for_stop_request(&self) {
        self.stop.notified().await;
    }

    pub(crate) async fn wait_until_ended(&self) {
        let mut state = self.state.subscribe();
        // The sender lives as long as this job, so the channel cannot be closed.
        let _ = state
            .wait_for(|state| !matches!(state, JobState::Running))
            .await;
    }
}

/// All jobs of all sessions.
#[derive(Debug)]
pub(crate) struct Jobs {
    max_running_in_background: usize,
    max_jobs: usize,
    table: Mutex<JobTable>,
}

#[derive(Debug, Default)]
struct JobTable {
    /// In the order they were started.
    jobs: VecDeque<Arc<Job>>,
    foreground: u64,
    background: u64,
}

/// A job to add.
pub(crate) struct NewJob {
    pub(crate) mode: RunMode,
    pub(crate) session: SessionId,
    pub(crate) command: String,
    pub(crate) time: Duration,
    pub(crate) output: Arc<Output>,
    /// Whether the command sees the value of a secret. If so, no other command may run at the same time, because the
    /// other command could change files that this command executes.
    pub(crate) is_exclusive: bool,
}

impl Jobs {
    pub(crate) fn new(max_running_in_background: usize, max_jobs: usize) -> Self {
        Self {
            max_running_in_background,
            max_jobs,
            table: Mutex::default(),
        }
    }

    /// Adds a job, or returns why it cannot start now.
    pub(crate) fn add(&self, new: NewJob) -> Result<Arc<Job>, String> {
        let mut table = self.table();
        let in_background = |job: &&Arc<Job>| job.mode == RunMode::Background && job.is_running();
        let running = table.jobs.iter().filter(in_background).count();
        if new.mode == RunMode::Background && running >= self.max_running_in_background {
            return Err(format!(
                "{running} jobs run in the background, which is the limit; stop one with `exec_stop`, or wait until one \
                 ends (see `exec_status`)"
            ));
        }
        if let Some(conflict) = table.conflict(&new.session, new.is_exclusive) {
            return Err(format!("the command was not run: {conflict}"));
        }
        let id = match new.mode {
            RunMode::Foreground => {
                table.foreground += 1;
                format!("run_{}", table.foreground)
            }
            RunMode::Background => {
                table.background += 1;
                format!("job_{}", table.background)
            }
        };
        let job = Arc::new(Job {
            id,
            mode: new.mode,
            session: new.session,
            command: new.command,
            time: new.time,
            output: new.output,
            traffic: CommandTraffic::default(),
            is_exclusive: new.is_exclusive,
            started: Instant::now(),
            state: watch::Sender::new(JobState::Running),
            stop: Notify::new(),
        });
        table.jobs.push_back(Arc::clone(&job));
        table.remove_oldest(self.max_jobs);
        Ok(job)
    }

    /// Returns why a command that sees the value of a secret cannot start now.
    pub(crate) fn conflict(&self, session: &SessionId) -> Option<String> {
        self.table().conflict(session, true)
    }

    /// Finds a job of this session by its id.
    pub(crate) fn find(&self, session: &SessionId, id: &str) -> Option<Arc<Job>> {
        let is_it = |job: &&Arc<Job>| job.session == *session && job.id == id;
        self.table().jobs.iter().find(is_it).cloned()
    }

    /// Returns the jobs of this session, in the order they were started.
    pub(crate) fn of_session(&self, session: &SessionId) -> Vec<Arc<Job>> {
        let own = |job: &&Arc<Job>| job.session == *session;
        self.table().jobs.iter().filter(own).cloned().collect()
    }

    fn table(&self) -> MutexGuard<'_, JobTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobTable {
    /// Returns why a command cannot start while the others run. A command that sees the value of a secret runs alone.
    fn conflict(&self, session: &SessionId, is_exclusive: bool) -> Option<String> {
        let mut running = self.jobs.iter().filter(|job| job.is_running());
        let other = running.find(|job| is_exclusive || job.is_exclusive)?;
        let name = if other.session == *session {
            format!("`{}`", other.id)
        } else {
            "a command of another session".to_owned()
        };
        Some(if other.is_exclusive {
            format!(
                "{name} sees the value of a secret and must run alone; try again when it has ended"
            )
        } else {
            format!(
                "a program that sees the value of a secret must run alone, because other commands could change what it \
                 executes, and {name} is running; wait until it has ended, or stop it with `exec_stop`"
            )
        })
    }

    /// Removes the oldest ended jobs until at most `max` are left.
    fn remove_oldest(&mut self, max: usize) {
        let mut excess = self.jobs.len().saturating_sub(max);
        self.jobs.retain(|job| {
            let is_removed = excess > 0 && !job.is_running();
            excess -= usize::from(is_removed);
            !is_removed
        });
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for job in &self.table().jobs {
            job.stop();
        }
    }
}
