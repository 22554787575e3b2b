//! Test replicas whose agents share a log and leases: the log survives crashes, and only one agent at a time runs in a
//! conversation. Each replica is a server in this process. Dropping its runtime simulates a crash.

use super::memory::SystemClock;
use super::support::{TestClient, recover_continuously, settings, with_timeout};
use a2a::{Part, Task};
use lango_a2a::server::{
    AgentBackend, AgentServer, AgentStatus, ArtifactChunk, Report, ReportError, Reporter,
    RunResult, ServerSettings, StatusMessage, StopReason, TaskRun,
};
use lango_core::{AgentName, BoxFuture, ChangeFeed, TaskStore, UserId};
use lango_store::Store;
use lango_testkit::postgres;
use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, Semaphore};

/// Where a run can stop forever, to simulate a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CrashPoint {
    /// The run has started, but has no lease.
    BeforeLease,
    /// The run has the lease, but has not logged anything.
    Leased,
    /// The log has the start of the turn.
    Started,
    /// After the step with this number.
    Stepped(usize),
    /// All steps are done, but the log does not have the end of the turn.
    BeforeEnd,
    /// The log has the end of the turn, but it is not reported.
    Ended,
    /// The end is reported to the client.
    Reported,
}

/// The state that all replicas share, and that survives crashes.
#[derive(Default)]
pub(super) struct SharedLog {
    turns: Mutex<HashMap<String, Turn>>,
    /// The conversations that are leased.
    leases: Mutex<HashSet<String>>,
    /// Notified when a lease is released.
    released: Notify,
    /// The steps in order: the task and the number of the step.
    pub steps: Mutex<Vec<(String, usize)>>,
    /// The tasks whose turn has started, in order.
    pub started: Mutex<Vec<String>>,
    /// The maximum number of concurrent runs of one replica.
    pub max_running: AtomicUsize,
    /// How often a replica asked whether a conversation is idle.
    pub idle_checks: AtomicUsize,
}

#[derive(Default)]
struct Turn {
    steps: usize,
    outcome: Option<TurnOutcome>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnOutcome {
    Completed,
    Cancelled,
}

/// The agent of one replica.
pub(super) struct LoggedAgent {
    pub log: Arc<SharedLog>,
    /// Where the runs of this replica stop forever.
    crashes_at: Option<CrashPoint>,
    /// Notified when a run has reached that point.
    pub reached: Notify,
    /// Each step waits for a permit.
    pub gate: Semaphore,
    pub runs: Mutex<Vec<TaskRun>>,
    running: AtomicUsize,
}

struct ContextLease(Arc<SharedLog>, String);

impl Drop for ContextLease {
    fn drop(&mut self) {
        self.0.leases.lock().unwrap().remove(&self.1);
        self.0.released.notify_waiters();
    }
}

impl SharedLog {
    fn try_acquire(self: &Arc<Self>, context: &str) -> Option<ContextLease> {
        let is_free = self.leases.lock().unwrap().insert(context.to_owned());
        is_free.then(|| ContextLease(Arc::clone(self), context.to_owned()))
    }

    async fn acquire(self: &Arc<Self>, context: &str) -> ContextLease {
        loop {
            let released = self.released.notified();
            tokio::pin!(released);
            released.as_mut().enable();
            if let Some(lease) = self.try_acquire(context) {
                return lease;
            }
            released.await;
        }
    }

    fn outcome(&self, task: &str) -> Option<TurnOutcome> {
        self.turns.lock().unwrap().get(task)?.outcome
    }
}

impl LoggedAgent {
    async fn crash_at(&self, point: CrashPoint) {
        if self.crashes_at == Some(point) {
            self.reached.notify_one();
            std::future::pending::<()>().await;
        }
    }

    /// Runs a message such as `steps N`, which takes N steps.
    async fn act(&self, mut run: TaskRun, reporter: &Reporter) -> Result<RunResult, ReportError> {
        self.crash_at(CrashPoint::BeforeLease).await;
        let _lease = tokio::select! {
            biased;
            reason = run.stop.wait() => return stopped(reporter, reason).await,
            lease = self.log.acquire(&run.context) => lease,
        };
        self.crash_at(CrashPoint::Leased).await;
        let known = self
            .log
            .turns
            .lock()
            .unwrap()
            .get(&run.task)
            .map(|turn| turn.steps);
        if known.is_none() {
            self.log
                .turns
                .lock()
                .unwrap()
                .insert(run.task.clone(), Turn::default());
            self.log.started.lock().unwrap().push(run.task.clone());
        }
        self.crash_at(CrashPoint::Started).await;
        if self.log.outcome(&run.task).is_none() {
            reporter.working("on it").await?;
            let text = run.message.text().unwrap_or_default();
            let wanted = text
                .rsplit(' ')
                .next()
                .and_then(|text| text.parse().ok())
                .unwrap_or(0);
            for step in known.unwrap_or(0)..wanted {
                tokio::select! {
                    biased;
                    reason = run.stop.wait() => {
                        if reason == StopReason::Cancelled {
                            self.end(&run.task, TurnOutcome::Cancelled);
                        }
                        return stopped(reporter, reason).await;
                    }
                    permit = self.gate.acquire() => permit.unwrap().forget(),
                }
                self.log
                    .steps
                    .lock()
                    .unwrap()
                    .push((run.task.clone(), step));
                self.log
                    .turns
                    .lock()
                    .unwrap()
                    .get_mut(&run.task)
                    .unwrap()
                    .steps += 1;
                reporter
                    .artifact(ArtifactChunk::text("steps", format!("{step} ")))
                    .await?;
                self.crash_at(CrashPoint::Stepped(step)).await;
            }
            self.crash_at(CrashPoint::BeforeEnd).await;
            self.end(&run.task, TurnOutcome::Completed);
        }
        self.crash_at(CrashPoint::Ended).await;
        for report in self.ending(&run.task) {
            reporter.report(report).await?;
        }
        self.crash_at(CrashPoint::Reported).await;
        Ok(RunResult::Reported)
    }

    fn end(&self, task: &str, outcome: TurnOutcome) {
        let mut turns = self.log.turns.lock().unwrap();
        turns.get_mut(task).unwrap().outcome = Some(outcome);
    }

    /// Returns the reports for the end of a task, from the log.
    fn ending(&self, task: &str) -> Vec<Report> {
        let turns = self.log.turns.lock().unwrap();
        let turn = &turns[task];
        let text: String = (0..turn.steps).map(|step| format!("{step} ")).collect();
        match turn.outcome {
            Some(TurnOutcome::Completed) => vec![
                Report::Artifact(ArtifactChunk::whole("steps", vec![Part::text(text)])),
                Report::Completed("done".into()),
            ],
            Some(TurnOutcome::Cancelled) => vec![Report::Cancelled(StatusMessage::empty())],
            None => Vec::new(),
        }
    }
}

async fn stopped(reporter: &Reporter, reason: StopReason) -> Result<RunResult, ReportError> {
    match reason {
        StopReason::Cancelled => reporter.cancelled(StatusMessage::empty()).await?,
        StopReason::Shutdown => return Ok(RunResult::Deferred),
    }
    Ok(RunResult::Reported)
}

impl AgentBackend for LoggedAgent {
    fn run<'a>(&'a self, run: TaskRun, reporter: Reporter) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            self.runs.lock().unwrap().push(run.clone());
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.log.max_running.fetch_max(running, Ordering::SeqCst);
            let ended = self
                .act(run, &reporter)
                .await
                .unwrap_or(RunResult::Reported);
            self.running.fetch_sub(1, Ordering::SeqCst);
            ended
        })
    }

    fn is_idle<'a>(&'a self, _user: &'a UserId, context: &'a str) -> BoxFuture<'a, bool> {
        self.log.idle_checks.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { self.log.try_acquire(context).is_some() })
    }

    fn status<'a>(&'a self, _user: &'a UserId, task: &'a Task) -> BoxFuture<'a, AgentStatus> {
        Box::pin(async {
            if self.log.outcome(&task.id).is_some() {
                return AgentStatus::Changed(self.ending(&task.id));
            }
            let Some(_lease) = self.log.try_acquire(&task.context_id) else {
                return AgentStatus::Busy;
            };
            match self.log.turns.lock().unwrap().get(&task.id) {
                Some(_) => AgentStatus::Interrupted,
                None => AgentStatus::Unknown,
            }
        })
    }
}

/// A database that all replicas share, and that survives crashes.
#[derive(Clone)]
pub(super) enum TestDatabase {
    File(Arc<TempDir>),
    Postgres(String),
}

impl TestDatabase {
    pub(super) fn file() -> Self {
        Self::File(Arc::new(tempfile::tempdir().unwrap()))
    }

    pub(super) fn postgres() -> Self {
        Self::Postgres(postgres::fresh_schema())
    }

    /// Opens the store like another process would.
    pub(super) fn open(&self) -> Arc<dyn TaskStore> {
        let root = AgentName::new("lango");
        match self {
            Self::File(folder) => {
                Arc::new(Store::open_sqlite(folder.path().join("lango.db"), root).unwrap())
            }
            Self::Postgres(address) => Arc::new(Store::at(address, root).unwrap()),
        }
    }
}

/// Creates a test from each case, for each kind of database.
macro_rules! on_each {
    (sync $($case:ident)*) => {
        mod file {
            $(#[test] fn $case() { super::$case(crate::server::test_replica::TestDatabase::file()); })*
        }

        mod postgres {
            $(#[test] fn $case() { super::$case(crate::server::test_replica::TestDatabase::postgres()); })*
        }
    };
    (async $($case:ident)*) => {
        mod file {
            use crate::server::test_replica::{TestDatabase, in_process};
            $(#[test] fn $case() { in_process(super::$case(TestDatabase::file())); })*
        }

        mod postgres {
            use crate::server::test_replica::{TestDatabase, in_process};
            $(#[test] fn $case() { in_process(super::$case(TestDatabase::postgres())); })*
        }
    };
}
pub(crate) use on_each;

/// Runs a case in a new runtime.
pub(super) fn in_process<T>(case: impl Future<Output = T>) -> T {
    Runtime::new().unwrap().block_on(case)
}

/// A replica: a server over a database that others may use as well.
pub(super) struct TestReplica {
    client: TestClient,
    pub server: AgentServer,
    pub agent: Arc<LoggedAgent>,
    pub tasks: Arc<dyn TaskStore>,
}

impl Deref for TestReplica {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.client
    }
}

/// Returns settings with short intervals, so that tests need not wait.
pub(super) fn fast_settings() -> ServerSettings {
    let mut settings = settings();
    settings.limits.follow_every = Duration::from_millis(20);
    settings.limits.recover_every = Duration::from_millis(60);
    settings
}

impl TestReplica {
    /// Starts a replica.
    pub(super) async fn start(database: &TestDatabase, log: &Arc<SharedLog>) -> Self {
        Self::with(database, log, None, fast_settings(), None).await
    }

    /// Starts a replica whose runs stop forever at this point.
    pub(super) async fn crashing(
        database: &TestDatabase,
        log: &Arc<SharedLog>,
        point: CrashPoint,
    ) -> Self {
        Self::with(database, log, Some(point), fast_settings(), None).await
    }

    pub(super) async fn with(
        database: &TestDatabase,
        log: &Arc<SharedLog>,
        crashes_at: Option<CrashPoint>,
        settings: ServerSettings,
        changes: Option<Arc<dyn ChangeFeed>>,
    ) -> Self {
        let agent = Arc::new(LoggedAgent {
            log: Arc::clone(log),
            crashes_at,
            reached: Notify::new(),
            gate: Semaphore::new(0),
            runs: Mutex::default(),
            running: AtomicUsize::new(0),
        });
        let tasks = database.open();
        let store = Arc::clone(&tasks);
        let clock = Arc::new(SystemClock);
        let server = AgentServer::new(Arc::clone(&agent) as _, store, clock, settings);
        server.recover().await.unwrap();
        server.watch(changes);
        recover_continuously(&server);
        Self {
            client: TestClient::serve(&server).await,
            server,
            agent,
            tasks,
        }
    }

    /// Lets this replica take this many steps.
    pub(super) fn allow_steps(&self, steps: usize) {
        self.agent.gate.add_permits(steps);
    }

    /// Waits until all replicas together have taken this many steps.
    pub(super) async fn wait_for_steps(&self, steps: usize) {
        with_timeout(async {
            while self.agent.log.steps.lock().unwrap().len() < steps {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}
