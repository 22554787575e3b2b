//! What survives when a test ends the simulated process: the database, and the effects that tools had. Checks both
//! afterwards.

use super::planted::PlantedBug;
use super::points::{FailPointModel, FailPointStore, FailPointTool, FailPoints};
use crate::bench::local;
use crate::support::rule;
use lango_core::{
    AnswerSource, ApprovalAnswer, ApprovalQuestion, BoxFuture, BusyPolicy, CallStatus, Caller,
    Effect, Event, EventBody, EventRange, IdGenerator, ModelReply, ModelRequest, Outcome,
    SessionId, SessionStore, StoreError, Tool, ToolError, ToolOutput, ToolSpec,
};
use lango_engine::{
    ApprovalRules, CancelToken, Gate, RuleAction, Runner, RunnerError, RunnerParts, Topology, Tree,
    TreeSettings, TurnEnd, TurnUpdate, UpdateReceiver, turn_updates,
};
use lango_store::Store;
use lango_testkit::clock_and_ids::ManualClock;
use lango_testkit::model::{ScriptedModel, calls, delegate, say};
use lango_testkit::postgres;
use lango_testkit::tool::spec;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

const TOOL: &str = "exec_do";
const OTHER_TOOL: &str = "fs_look";

/// The variant of a turn.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub effect: Effect,
    /// Whether the call needs approval.
    pub needs_approval: bool,
    /// The answer about a call with an unknown outcome.
    pub answer: ApprovalAnswer,
}

/// Creates empty databases of one kind.
pub(super) struct Databases {
    make: Box<dyn Fn() -> BoxFuture<'static, Database> + Send + Sync>,
}

/// A database that outlives the processes that open it.
pub(super) struct Database {
    session: SessionId,
    pub open: Box<dyn Fn() -> Arc<dyn SessionStore> + Send + Sync>,
    pub _keep: Option<TempDir>,
}

impl Databases {
    pub(super) fn memory() -> Self {
        Self::from_fn(|| {
            let store: Arc<dyn SessionStore> = Arc::new(Store::in_memory());
            Database {
                session: SessionId::from("s_1"),
                open: Box::new(move || Arc::clone(&store)),
                _keep: None,
            }
        })
    }

    pub(super) fn sqlite() -> Self {
        // Created once and copied: creating a database is slow and not what is tested here.
        let empty = tempfile::tempdir().unwrap();
        let file = empty.path().join("lango.db");
        drop(Store::open_sqlite(&file, "lango-orchestrator".into()).unwrap());
        Self::from_fn(move || {
            let (folder, _empty) = (tempfile::tempdir().unwrap(), &empty);
            let path = folder.path().join("lango.db");
            std::fs::copy(&file, &path).unwrap();
            let open = move || {
                let store = Store::open_sqlite(&path, "lango-orchestrator".into());
                Arc::new(store.unwrap()) as Arc<dyn SessionStore>
            };
            Database {
                session: SessionId::from("s_1"),
                open: Box::new(open),
                _keep: Some(folder),
            }
        })
    }

    pub(super) fn postgres() -> Self {
        // One database with a session for each test: creating a database is slow and not what is tested here.
        let (address, made) = (postgres::fresh_schema(), AtomicUsize::new(0));
        Self::from_fn(move || {
            let number = made.fetch_add(1, Ordering::Relaxed);
            let address = address.clone();
            let open = move || {
                let store = Store::at(&address, "lango-orchestrator".into());
                Arc::new(store.unwrap()) as Arc<dyn SessionStore>
            };
            Database {
                session: SessionId::new(format!("s_{number}")),
                open: Box::new(open),
                _keep: None,
            }
        })
    }

    fn from_fn(make: impl Fn() -> Database + Send + Sync + 'static) -> Self {
        Self {
            make: Box::new(move || Box::pin(std::future::ready(make()))),
        }
    }
}

/// What happened outside of any process.
#[derive(Default)]
struct ExternalState {
    /// The key of each run of the tool.
    runs: Mutex<Vec<String>>,
    /// Whether the user saw that the message is stored.
    is_acknowledged: Mutex<bool>,
    /// Keys of calls that the user repeated.
    retried: Mutex<Vec<String>>,
    /// Why a process could not continue.
    failures: Mutex<Vec<String>>,
}

pub(super) struct World {
    plan: Plan,
    database: Database,
    outside: Arc<ExternalState>,
    pub planted: PlantedBug,
}

/// The result of running one process.
pub(super) struct ProcessRun {
    pub passed: Vec<String>,
    pub was_ended: bool,
}

impl World {
    pub(super) async fn new(databases: &Databases, plan: Plan) -> Self {
        Self {
            plan,
            database: (databases.make)().await,
            outside: Arc::default(),
            planted: PlantedBug::Nothing,
        }
    }

    /// Starts a process, lets it do its work, and ends it at this fail point at the latest.
    pub(super) async fn run_process(&self, ends_at: Option<usize>) -> ProcessRun {
        let points = FailPoints::ending_at(ends_at);
        let store = self.planted.in_front_of((self.database.open)());
        let was_ended = tokio::select! {
            () = self.work(self.runner(store, &points)) => false,
            () = points.ended() => true,
        };
        ProcessRun {
            passed: points.passed(),
            was_ended,
        }
    }

    fn runner(&self, store: Arc<dyn SessionStore>, points: &Arc<FailPoints>) -> Runner {
        let tool = |name, effect| -> Arc<dyn Tool> {
            let mut spec = spec(name);
            spec.effect = effect;
            Arc::new(FailPointTool {
                inner: Arc::new(Worker {
                    spec,
                    outside: Arc::clone(&self.outside),
                }),
                points: Arc::clone(points),
            })
        };
        let rules = if self.plan.needs_approval {
            ApprovalRules::new(vec![rule(RuleAction::Ask, TOOL)])
        } else {
            ApprovalRules::default()
        };
        let effect = self.planted.claimed(self.plan.effect);
        let tools = vec![tool(TOOL, effect), tool(OTHER_TOOL, Effect::Pure)];
        let tree = tree(effect, &tools);
        let gate = Gate::new(&tree, tools).unwrap();
        let model = Arc::new(FailPointModel {
            inner: ScriptedModel::from_fn(reply),
            points: Arc::clone(points),
        });
        let store = Arc::new(FailPointStore {
            inner: store,
            points: Arc::clone(points),
        });
        Runner::new(RunnerParts {
            clock: Arc::new(ManualClock::default()),
            ids: Arc::new(OneTurn),
            rules: Arc::new(rules.in_folder("/work".into())),
            busy_policy: BusyPolicy::Refuse,
            ..RunnerParts::new(tree, gate, model, store)
        })
    }

    /// The work of a process: it resumes the turn, or starts it if its message was never acknowledged, and the user
    /// answers all requests.
    async fn work(&self, runner: Runner) {
        let session = self.database.session.clone();
        let (sender, updates) = turn_updates();
        let stop = CancelToken::new();
        let mut conversation = match runner.open(session.clone()).await {
            Ok(conversation) => conversation,
            Err(RunnerError::Store(StoreError::NotFound { .. })) => {
                runner.start_as(local(), session)
            }
            Err(error) => panic!("{error}"),
        };
        let watching = self.watch(updates);
        let working = async move {
            let mut end = match conversation.turns() {
                0 if *self.outside.is_acknowledged.lock().unwrap() => return Ok(()),
                0 => Some(conversation.turn("go", &stop, &sender).await?),
                _ => conversation.resume(&stop, &sender).await?,
            };
            while let Some(TurnEnd::Waiting(waiting)) = end {
                let asked = &waiting[0].request;
                let answer = match asked.question {
                    ApprovalQuestion::Permission => ApprovalAnswer::Once,
                    ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn => {
                        self.plan.answer.clone()
                    }
                };
                if answer == ApprovalAnswer::Retry {
                    let key = format!("t_1/{}", asked.call);
                    self.outside.retried.lock().unwrap().push(key);
                }
                let by = AnswerSource::Person;
                let answered = conversation.answer(&asked.id, answer, by, &stop, &sender);
                end = Some(answered.await?);
            }
            Ok(())
        };
        let worked: (Result<(), RunnerError>, ()) = tokio::join!(working, watching);
        if let Err(error) = worked.0 {
            let mut failures = self.outside.failures.lock().unwrap();
            failures.push(error.to_string());
        }
    }

    /// The user sees the updates. From the first stored batch on, the message counts as acknowledged.
    async fn watch(&self, mut updates: UpdateReceiver) {
        while let Some(item) = updates.recv().await {
            if let TurnUpdate::Stored(_) = item {
                *self.outside.is_acknowledged.lock().unwrap() = true;
            }
        }
    }

    /// Returns the broken promises, after all processes ended and one of them finished the turn.
    pub(super) async fn violations(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let store = (self.database.open)();
        let page = EventRange {
            from: 1,
            limit: 10_000,
        };
        let events = store.read(&self.database.session, page).await;
        let events = events.unwrap_or_default();
        let mut check = |holds: bool, what: String| {
            if !holds {
                broken.push(what);
            }
        };
        let questions = count(&events, |body| {
            matches!(body, EventBody::UserMessage { .. })
        });
        let ends: Vec<&Outcome> = events.iter().filter_map(outcome).collect();
        check(questions == 1, format!("{questions} turns were started"));
        let is_answered = matches!(ends[..], [Outcome::Answered { .. }]);
        check(is_answered, format!("the turn ended as {ends:?}"));
        let numbers = events.iter().map(|event| event.seq);
        let is_gap_free = numbers.eq(1..=events.len() as u64);
        check(is_gap_free, "there is a gap in the log".to_owned());
        let authors = ["user", "lango-orchestrator", "operator"];
        let is_known = |event: &Event| authors.contains(&event.author.as_str());
        check(events.iter().all(is_known), "a wrong author".to_owned());
        self.check_effects(&events, &mut check);
        broken.extend(self.outside.failures.lock().unwrap().drain(..));
        broken
    }

    fn check_effects(&self, events: &[Event], check: &mut impl FnMut(bool, String)) {
        let mut runs: HashMap<String, usize> = HashMap::new();
        for key in self.outside.runs.lock().unwrap().iter() {
            *runs.entry(key.clone()).or_default() += 1;
        }
        let retried = self.outside.retried.lock().unwrap();
        let has_effect = self.plan.effect == Effect::NonIdempotent;
        let of_tool = |body: &EventBody| match body {
            EventBody::ToolCalled { call, tool, .. } if *tool == *TOOL => Some(call.clone()),
            _ => None,
        };
        let called: Vec<_> = events
            .iter()
            .filter_map(|event| of_tool(&event.body))
            .collect();
        for call in &called {
            let key = format!("t_1/{call}");
            let ran = runs.get(&key).copied().unwrap_or(0);
            let again = retried.iter().filter(|retried| **retried == key).count();
            check(
                !has_effect || ran <= 1 + again,
                format!("it was run {ran} times, and {again} times again by the user"),
            );
            let results: Vec<CallStatus> = events
                .iter()
                .filter_map(|event| match &event.body {
                    EventBody::ToolReturned {
                        call: of, status, ..
                    } if of == call => Some(*status),
                    _ => None,
                })
                .collect();
            check(
                results.len() == 1,
                format!("it has the results {results:?}"),
            );
            let is_told = matches!(self.plan.answer, ApprovalAnswer::Happened { .. });
            let is_true = !results.contains(&CallStatus::Ok) || ran > 0 || (has_effect && is_told);
            check(
                is_true,
                "the log says that it ran, but it did not".to_owned(),
            );
            let is_unknown = results.contains(&CallStatus::Unknown);
            let may_be = has_effect && self.plan.answer == ApprovalAnswer::Skip;
            check(
                !is_unknown || may_be,
                "it is unknown without need".to_owned(),
            );
        }
        let is_intended = |key: &String| called.iter().any(|call| *key == format!("t_1/{call}"));
        check(
            runs.keys().all(is_intended),
            "something ran that is not in the log".to_owned(),
        );
    }
}

/// Builds a tree once for each class of effect, because thousands of processes start here.
fn tree(effect: Effect, tools: &[Arc<dyn Tool>]) -> Arc<Tree> {
    static TREES: Mutex<Vec<(Effect, Arc<Tree>)>> = Mutex::new(Vec::new());
    let mut trees = TREES.lock().unwrap();
    if let Some((_, tree)) = trees.iter().find(|(of, _)| *of == effect) {
        return Arc::clone(tree);
    }
    let specs = tools.iter().map(|tool| Arc::new(tool.spec().clone()));
    let topology = Topology::built_in("specialists").unwrap();
    let tree = Tree::multi(
        &topology,
        specs.collect(),
        Vec::new(),
        &TreeSettings::default(),
    );
    let tree = Arc::new(tree.unwrap());
    trees.push((effect, Arc::clone(&tree)));
    tree
}

fn count(events: &[Event], is_match: impl Fn(&EventBody) -> bool) -> usize {
    events.iter().filter(|event| is_match(&event.body)).count()
}

fn outcome(event: &Event) -> Option<&Outcome> {
    match &event.body {
        EventBody::TurnFinished { outcome, .. } => Some(outcome),
        _ => None,
    }
}

/// Returns the same reply for the same request: a delegation, two calls in one reply, and text.
fn reply(request: &ModelRequest) -> ModelReply {
    let offers = |name: &str| request.functions.iter().any(|one| &*one.name == name);
    let has_result = request.messages.len() > 1;
    match () {
        () if has_result => say("Done."),
        () if offers("delegate") => delegate("operator", "do it"),
        () => calls([(TOOL, json!({})), (OTHER_TOOL, json!({}))]),
    }
}

/// Ids of one session and one turn, the same in each process.
struct OneTurn;

impl IdGenerator for OneTurn {
    fn fresh(&self, prefix: &str) -> String {
        format!("{prefix}1")
    }
}

/// A tool that records each run outside of the process.
struct Worker {
    spec: ToolSpec,
    outside: Arc<ExternalState>,
}

impl Tool for Worker {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        _: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            if self.spec.name == *TOOL {
                self.outside.runs.lock().unwrap().push(caller.key());
            }
            Ok(ToolOutput::from("done".to_owned()))
        })
    }
}
