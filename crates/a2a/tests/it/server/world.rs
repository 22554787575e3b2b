//! Agents that remember: what they did is in a log that outlives them, and one at a time is at a conversation. Several of
//! them over one log stand for several copies of a program; dropping the runtime of one stands for its death.

use super::memory::SystemClock;
use super::support::{Caller, recover_continuously, settings, soon};
use a2a::{Part, Task};
use lango_a2a::server::{
    AgentBackend, AgentServer, AgentStatus, ArtifactChunk, Report, ReportError, Reporter,
    RunResult, ServerSettings, StatusMessage, StopReason, TaskRun,
};
use lango_core::{AgentName, BoxFuture, Changes, TaskStore, UserId};
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

/// Where an agent can be stopped for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    /// The run has begun, nothing is held.
    BeforeHold,
    /// It is held, nothing is logged.
    Held,
    /// The log knows it.
    Begun,
    /// After this step.
    Stepped(usize),
    /// All is done, and the log does not say so yet.
    BeforeEnd,
    /// The log says so, and nobody was told.
    Ended,
    /// The client was told.
    Told,
}

/// What outlives the agents.
#[derive(Default)]
pub struct World {
    turns: Mutex<HashMap<String, Turn>>,
    held: Mutex<HashSet<String>>,
    freed: Notify,
    /// The steps that were taken, in their order: task and number.
    pub steps: Mutex<Vec<(String, usize)>>,
    /// The tasks whose turn was begun, in their order.
    pub begun: Mutex<Vec<String>>,
    /// The most that were at work at one time.
    pub most: AtomicUsize,
    /// How often it was asked whether a conversation is free.
    pub looks: AtomicUsize,
}

#[derive(Default)]
struct Turn {
    steps: usize,
    is_over: Option<How>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Done,
    Cancelled,
}

/// One copy of the agent.
pub struct LoggedAgent {
    pub world: Arc<World>,
    /// Where this copy stops for good.
    dies_at: Option<Point>,
    pub reached: Notify,
    /// What each step waits for.
    pub gate: Semaphore,
    pub runs: Mutex<Vec<TaskRun>>,
    at_work: AtomicUsize,
}

struct HeldContext(Arc<World>, String);

impl Drop for HeldContext {
    fn drop(&mut self) {
        self.0.held.lock().unwrap().remove(&self.1);
        self.0.freed.notify_waiters();
    }
}

impl World {
    fn try_hold(self: &Arc<Self>, context: &str) -> Option<HeldContext> {
        let is_free = self.held.lock().unwrap().insert(context.to_owned());
        is_free.then(|| HeldContext(Arc::clone(self), context.to_owned()))
    }

    async fn hold(self: &Arc<Self>, context: &str) -> HeldContext {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if let Some(held) = self.try_hold(context) {
                return held;
            }
            freed.await;
        }
    }

    fn over(&self, task: &str) -> Option<How> {
        self.turns.lock().unwrap().get(task)?.is_over
    }
}

impl LoggedAgent {
    async fn pass(&self, point: Point) {
        if self.dies_at == Some(point) {
            self.reached.notify_one();
            std::future::pending::<()>().await;
        }
    }

    /// `steps N` takes N steps.
    async fn act(&self, mut run: TaskRun, reporter: &Reporter) -> Result<RunResult, ReportError> {
        self.pass(Point::BeforeHold).await;
        let _held = tokio::select! {
            biased;
            reason = run.stop.wait() => return stopped(reporter, reason).await,
            held = self.world.hold(&run.context) => held,
        };
        self.pass(Point::Held).await;
        let known = self
            .world
            .turns
            .lock()
            .unwrap()
            .get(&run.task)
            .map(|turn| turn.steps);
        if known.is_none() {
            self.world
                .turns
                .lock()
                .unwrap()
                .insert(run.task.clone(), Turn::default());
            self.world.begun.lock().unwrap().push(run.task.clone());
        }
        self.pass(Point::Begun).await;
        if self.world.over(&run.task).is_none() {
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
                            self.end(&run.task, How::Cancelled);
                        }
                        return stopped(reporter, reason).await;
                    }
                    permit = self.gate.acquire() => permit.unwrap().forget(),
                }
                self.world
                    .steps
                    .lock()
                    .unwrap()
                    .push((run.task.clone(), step));
                self.world
                    .turns
                    .lock()
                    .unwrap()
                    .get_mut(&run.task)
                    .unwrap()
                    .steps += 1;
                reporter
                    .artifact(ArtifactChunk::more("steps", format!("{step} ")))
                    .await?;
                self.pass(Point::Stepped(step)).await;
            }
            self.pass(Point::BeforeEnd).await;
            self.end(&run.task, How::Done);
        }
        self.pass(Point::Ended).await;
        for report in self.ending(&run.task) {
            reporter.report(report).await?;
        }
        self.pass(Point::Told).await;
        Ok(RunResult::Reported)
    }

    fn end(&self, task: &str, how: How) {
        let mut turns = self.world.turns.lock().unwrap();
        turns.get_mut(task).unwrap().is_over = Some(how);
    }

    /// What became of a task by the log, as a whole.
    fn ending(&self, task: &str) -> Vec<Report> {
        let turns = self.world.turns.lock().unwrap();
        let turn = &turns[task];
        let text: String = (0..turn.steps).map(|step| format!("{step} ")).collect();
        match turn.is_over {
            Some(How::Done) => vec![
                Report::Artifact(ArtifactChunk::whole("steps", vec![Part::text(text)])),
                Report::Completed("done".into()),
            ],
            Some(How::Cancelled) => vec![Report::Cancelled(StatusMessage::empty())],
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
            let at_work = self.at_work.fetch_add(1, Ordering::SeqCst) + 1;
            self.world.most.fetch_max(at_work, Ordering::SeqCst);
            let ended = self
                .act(run, &reporter)
                .await
                .unwrap_or(RunResult::Reported);
            self.at_work.fetch_sub(1, Ordering::SeqCst);
            ended
        })
    }

    fn is_idle<'a>(&'a self, _user: &'a UserId, context: &'a str) -> BoxFuture<'a, bool> {
        self.world.looks.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { self.world.try_hold(context).is_some() })
    }

    fn status<'a>(&'a self, _user: &'a UserId, task: &'a Task) -> BoxFuture<'a, AgentStatus> {
        Box::pin(async {
            if self.world.over(&task.id).is_some() {
                return AgentStatus::Changed(self.ending(&task.id));
            }
            let Some(_held) = self.world.try_hold(&task.context_id) else {
                return AgentStatus::Busy;
            };
            match self.world.turns.lock().unwrap().get(&task.id) {
                Some(_) => AgentStatus::Interrupted,
                None => AgentStatus::Unknown,
            }
        })
    }
}

/// A database that outlives the copies.
#[derive(Clone)]
pub enum Shelf {
    File(Arc<TempDir>),
    Postgres(String),
}

impl Shelf {
    pub fn file() -> Self {
        Self::File(Arc::new(tempfile::tempdir().unwrap()))
    }

    pub fn postgres() -> Self {
        Self::Postgres(postgres::empty())
    }

    /// The store, as another process would open it.
    pub fn open(&self) -> Arc<dyn TaskStore> {
        let root = AgentName::new("lango");
        match self {
            Self::File(folder) => {
                Arc::new(Store::open_sqlite(folder.path().join("lango.db"), root).unwrap())
            }
            Self::Postgres(address) => Arc::new(Store::at(address, root).unwrap()),
        }
    }
}

/// Makes tests of cases, over each kind of database.
macro_rules! on_each {
    (sync $($case:ident)*) => {
        mod file {
            $(#[test] fn $case() { super::$case(crate::server::world::Shelf::file()); })*
        }

        mod postgres {
            $(#[test] fn $case() { super::$case(crate::server::world::Shelf::postgres()); })*
        }
    };
    (async $($case:ident)*) => {
        mod file {
            use crate::server::world::{Shelf, in_process};
            $(#[test] fn $case() { in_process(super::$case(Shelf::file())); })*
        }

        mod postgres {
            use crate::server::world::{Shelf, in_process};
            $(#[test] fn $case() { in_process(super::$case(Shelf::postgres())); })*
        }
    };
}
pub(crate) use on_each;

/// Runs a case in a process of its own.
pub fn in_process<T>(case: impl Future<Output = T>) -> T {
    Runtime::new().unwrap().block_on(case)
}

/// One copy of a program: a server over a database that others may use as well.
pub struct Copy {
    caller: Caller,
    pub server: AgentServer,
    pub agent: Arc<LoggedAgent>,
    pub tasks: Arc<dyn TaskStore>,
}

impl Deref for Copy {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

/// Settings under which tests need not wait.
pub fn quick() -> ServerSettings {
    let mut settings = settings();
    settings.limits.follow_every = Duration::from_millis(20);
    settings.limits.recover_every = Duration::from_millis(60);
    settings
}

impl Copy {
    /// A copy that has just started.
    pub async fn start(shelf: &Shelf, world: &Arc<World>) -> Self {
        Self::with(shelf, world, None, quick(), None).await
    }

    /// One that stops for good at a point.
    pub async fn dying(shelf: &Shelf, world: &Arc<World>, point: Point) -> Self {
        Self::with(shelf, world, Some(point), quick(), None).await
    }

    pub async fn with(
        shelf: &Shelf,
        world: &Arc<World>,
        dies_at: Option<Point>,
        settings: ServerSettings,
        changes: Option<Arc<dyn Changes>>,
    ) -> Self {
        let agent = Arc::new(LoggedAgent {
            world: Arc::clone(world),
            dies_at,
            reached: Notify::new(),
            gate: Semaphore::new(0),
            runs: Mutex::default(),
            at_work: AtomicUsize::new(0),
        });
        let tasks = shelf.open();
        let kept = Arc::clone(&tasks);
        let clock = Arc::new(SystemClock);
        let server = AgentServer::new(Arc::clone(&agent) as _, kept, clock, settings);
        server.recover().await.unwrap();
        server.watch(changes);
        recover_continuously(&server);
        Self {
            caller: Caller::of(&server).await,
            server,
            agent,
            tasks,
        }
    }

    /// Lets this copy take so many steps.
    pub fn allow(&self, steps: usize) {
        self.agent.gate.add_permits(steps);
    }

    /// Waits until so many steps were taken by all copies together.
    pub async fn stepped(&self, steps: usize) {
        soon(async {
            while self.agent.world.steps.lock().unwrap().len() < steps {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}
