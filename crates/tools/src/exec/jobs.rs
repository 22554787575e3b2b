//! The commands that were started: which there are, whose they are, and how they ended.
//!
//! A job belongs to a session; for every other one it does not exist. Those that ended are known as long as there is room
//! for their outputs.

use super::network::Traffic;
use super::output::Output;
use lango_core::SessionId;
use lango_sandbox::Ended;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// How a command was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// By a call that waits for it: `run_1`.
    Fore,
    /// To live on after the call: `job_1`.
    Back,
}

/// A command that was started.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) ground: Ground,
    pub(crate) session: SessionId,
    /// The command on one line.
    pub(crate) command: String,
    /// How long it may run.
    pub(crate) time: Duration,
    pub(crate) output: Arc<Output>,
    pub(crate) traffic: Traffic,
    is_exclusive: bool,
    started: Instant,
    state: watch::Sender<State>,
    stop: Notify,
}

/// How a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    /// It ended after that time.
    Ended(Ended, Duration),
    /// The sandbox failed.
    Failed(String),
    /// Whoever waited for it went away, and it was ended.
    Abandoned,
}

impl Job {
    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(*self.state.borrow(), State::Running)
    }

    /// How long it has been running, or ran.
    pub(crate) fn elapsed(&self) -> Duration {
        match *self.state.borrow() {
            State::Ended(_, after) => after,
            _ => self.started.elapsed(),
        }
    }

    /// Says how it ended; what was said first stays.
    pub(crate) fn end(&self, state: State) {
        self.output.finish();
        self.traffic.end();
        self.state.send_if_modified(|current| {
            let running = matches!(current, State::Running);
            if running {
                *current = state;
            }
            running
        });
    }

    /// Asks whoever runs it to end it.
    pub(crate) fn stop(&self) {
        self.stop.notify_one();
    }

    /// Waits until somebody asks to end it.
    pub(crate) async fn stop_asked(&self) {
        self.stop.notified().await;
    }

    /// Waits until it ended.
    pub(crate) async fn ended(&self) {
        let mut state = self.state.subscribe();
        // It lives as long as this job does, so it cannot be closed.
        let _ = state
            .wait_for(|state| !matches!(state, State::Running))
            .await;
    }
}

/// All jobs.
#[derive(Debug)]
pub(crate) struct Jobs {
    most_in_background: usize,
    most_known: usize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// In the order they were started.
    jobs: VecDeque<Arc<Job>>,
    foreground: u64,
    background: u64,
}

/// A job as it is asked for.
pub(crate) struct NewJob {
    pub(crate) ground: Ground,
    pub(crate) session: SessionId,
    pub(crate) command: String,
    pub(crate) time: Duration,
    pub(crate) output: Arc<Output>,
    /// Whether it sees the value of a secret, so that no other command may run at the same time: that one could change what
    /// this one executes.
    pub(crate) is_exclusive: bool,
}

impl Jobs {
    pub(crate) fn new(most_in_background: usize, most_known: usize) -> Self {
        Self {
            most_in_background,
            most_known,
            known: Mutex::default(),
        }
    }

    /// Takes a job in; the error says why there is no place for it.
    pub(crate) fn add(&self, new: NewJob) -> Result<Arc<Job>, String> {
        let mut known = self.known();
        let in_background = |job: &&Arc<Job>| job.ground == Ground::Back && job.is_running();
        let running = known.jobs.iter().filter(in_background).count();
        if new.ground == Ground::Back && running >= self.most_in_background {
            return Err(format!(
                "{running} jobs run in the background, which is all there may be; \
                 end one with `exec_stop` or wait until one ends, see `exec_status`"
            ));
        }
        if let Some(conflict) = known.conflict(&new.session, new.is_exclusive) {
            return Err(format!("the command was not run: {conflict}"));
        }
        let id = match new.ground {
            Ground::Fore => {
                known.foreground += 1;
                format!("run_{}", known.foreground)
            }
            Ground::Back => {
                known.background += 1;
                format!("job_{}", known.background)
            }
        };
        let job = Arc::new(Job {
            id,
            ground: new.ground,
            session: new.session,
            command: new.command,
            time: new.time,
            output: new.output,
            traffic: Traffic::default(),
            is_exclusive: new.is_exclusive,
            started: Instant::now(),
            state: watch::Sender::new(State::Running),
            stop: Notify::new(),
        });
        known.jobs.push_back(Arc::clone(&job));
        known.forget(self.most_known);
        Ok(job)
    }

    /// Returns why a command that sees the value of a secret cannot start now.
    pub(crate) fn conflict(&self, session: &SessionId) -> Option<String> {
        self.known().conflict(session, true)
    }

    /// The job of this session with this id.
    pub(crate) fn find(&self, session: &SessionId, id: &str) -> Option<Arc<Job>> {
        let is_it = |job: &&Arc<Job>| job.session == *session && job.id == id;
        self.known().jobs.iter().find(is_it).cloned()
    }

    /// The jobs of this session, in the order they were started.
    pub(crate) fn of(&self, session: &SessionId) -> Vec<Arc<Job>> {
        let own = |job: &&Arc<Job>| job.session == *session;
        self.known().jobs.iter().filter(own).cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Returns why a command cannot start beside those that run. A command that sees the value of a secret runs alone.
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
                "{name} sees the value of a secret, and runs alone; try again when it has ended"
            )
        } else {
            format!(
                "a program that sees the value of a secret runs alone, because other commands could change what it \
                 executes, and {name} is running; wait until it has ended, or end it with `exec_stop`"
            )
        })
    }

    /// Forgets the oldest that ended until there are no more than `most`.
    fn forget(&mut self, most: usize) {
        let mut excess = self.jobs.len().saturating_sub(most);
        self.jobs.retain(|job| {
            let forgotten = excess > 0 && !job.is_running();
            excess -= usize::from(forgotten);
            !forgotten
        });
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for job in &self.known().jobs {
            job.stop();
        }
    }
}
