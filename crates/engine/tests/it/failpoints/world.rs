//! A world around the process: the database, what tools did to it, and somebody who checks both.

use super::planted::Planted;
use super::points::{PointedModel, PointedStore, PointedTool, Points};
use crate::bench::local;
use crate::support::rule;
use lango_core::{
    Answer, AnsweredBy, Asks, BoxFuture, BusyPolicy, CallStatus, Caller, Effect, Event, EventBody,
    Limits, ModelReply, ModelRequest, Outcome, Page, SessionId, SessionStore, StoreError, Tool,
    ToolError, ToolOutput, ToolSpec, TurnId,
};
use lango_engine::{
    Action, Gate, Rules, Runner, RunnerError, RunnerParts, Shown, Stop, Topology, Tree,
    TreeSettings, TurnEnd,
};
use lango_store::Store;
use lango_testkit::ambient::{CountingIds, SetClock};
use lango_testkit::model::{ScriptedModel, calls, delegate, say};
use lango_testkit::postgres;
use lango_testkit::tool::spec;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::sync::mpsc;

const TOOL: &str = "exec_do";
const OTHER_TOOL: &str = "fs_look";

/// How a turn goes.
#[derive(Debug, Clone)]
pub struct Plan {
    pub effect: Effect,
    /// Whether the call has to be allowed.
    pub asks: bool,
    /// What is said of a call of unknown fate.
    pub answer: Answer,
}

/// Makes empty databases of a kind.
pub struct Databases {
    make: Box<dyn Fn() -> BoxFuture<'static, Database> + Send + Sync>,
}

/// A database that outlives the processes that open it.
pub struct Database {
    session: SessionId,
    pub open: Box<dyn Fn() -> Arc<dyn SessionStore> + Send + Sync>,
    pub _keep: Option<TempDir>,
}

impl Databases {
    pub fn memory() -> Self {
        Self::made_by(|| {
            let store: Arc<dyn SessionStore> = Arc::new(Store::in_memory());
            Database {
                session: SessionId::from("s_1"),
                open: Box::new(move || Arc::clone(&store)),
                _keep: None,
            }
        })
    }

    pub fn sqlite() -> Self {
        // Made once, and copied: what a fresh database costs is not what is tried here.
        let empty = tempfile::tempdir().unwrap();
        let file = empty.path().join("lango.db");
        drop(Store::open_sqlite(&file, "lango-orchestrator".into()).unwrap());
        Self::made_by(move || {
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

    pub fn postgres() -> Self {
        // One database with a session for each: what a fresh one costs is not what is tried here.
        let (address, made) = (postgres::empty(), AtomicUsize::new(0));
        Self::made_by(move || {
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

    fn made_by(make: impl Fn() -> Database + Send + Sync + 'static) -> Self {
        Self {
            make: Box::new(move || Box::pin(std::future::ready(make()))),
        }
    }
}

/// What happened outside of any process.
#[derive(Default)]
struct Outside {
    /// The key of each run of the tool.
    runs: Mutex<Vec<String>>,
    /// Whether the person was shown that the message is stored.
    is_acknowledged: Mutex<bool>,
    /// Keys of calls that the person had run again.
    retried: Mutex<Vec<String>>,
    /// Why a process could not go on.
    failures: Mutex<Vec<String>>,
}

pub struct World {
    plan: Plan,
    database: Database,
    outside: Arc<Outside>,
    pub planted: Planted,
}

/// How one life of a process went.
pub struct Life {
    pub passed: Vec<String>,
    pub is_cut_off: bool,
}

impl World {
    pub async fn new(databases: &Databases, plan: Plan) -> Self {
        Self {
            plan,
            database: (databases.make)().await,
            outside: Arc::default(),
            planted: Planted::Nothing,
        }
    }

    /// A process starts, does what there is to do, and ends, at the latest at this place.
    pub async fn live(&self, ends_at: Option<usize>) -> Life {
        let points = Points::ending_at(ends_at);
        let store = self.planted.in_front_of((self.database.open)());
        let is_cut_off = tokio::select! {
            () = self.work(self.runner(store, &points)) => false,
            () = points.ended() => true,
        };
        Life {
            passed: points.passed(),
            is_cut_off,
        }
    }

    fn runner(&self, store: Arc<dyn SessionStore>, points: &Arc<Points>) -> Runner {
        let tool = |name, effect| -> Arc<dyn Tool> {
            let mut spec = spec(name);
            spec.effect = effect;
            Arc::new(PointedTool {
                inner: Arc::new(Worker {
                    spec,
                    outside: Arc::clone(&self.outside),
                }),
                points: Arc::clone(points),
            })
        };
        let rules = match self.plan.asks {
            true => Rules::new(vec![rule(Action::Ask, TOOL)]),
            false => Rules::default(),
        };
        let effect = self.planted.claimed(self.plan.effect);
        let tools = vec![tool(TOOL, effect), tool(OTHER_TOOL, Effect::Pure)];
        let tree = tree(effect, &tools);
        Runner::new(RunnerParts {
            gate: Gate::new(&tree, tools).unwrap(),
            tree,
            model: Arc::new(PointedModel {
                inner: ScriptedModel::from_fn(reply),
                points: Arc::clone(points),
            }),
            models: BTreeMap::new(),
            model_settings: Default::default(),
            environment: None,
            remotes: Vec::new(),
            store: Arc::new(PointedStore {
                inner: store,
                points: Arc::clone(points),
            }),
            attachments: Arc::new(Store::in_memory()),
            clock: Arc::new(SetClock::default()),
            ids: Arc::new(CountingIds::default()),
            limits: Limits::default(),
            rules: Arc::new(rules.in_folder("/work".into())),
            recollection: None,
            busy_policy: BusyPolicy::Refuse,
        })
    }

    /// What a process does: it goes on with the turn, or begins it if its message was never acknowledged; and the person
    /// answers what they are asked.
    async fn work(&self, runner: Runner) {
        let session = self.database.session.clone();
        let (sender, shown) = mpsc::channel(1000);
        let stop = Stop::new();
        let mut conversation = match runner.open(session.clone()).await {
            Ok(conversation) => conversation,
            Err(RunnerError::Store(StoreError::NotFound { .. })) => {
                runner.start_as(local(), session)
            }
            Err(error) => panic!("{error}"),
        };
        let watching = self.watch(shown);
        let working = async move {
            let mut end = match conversation.turns() {
                0 if *self.outside.is_acknowledged.lock().unwrap() => return Ok(()),
                0 => {
                    let id = TurnId::from("t_1");
                    Some(conversation.turn_as(id, "go", &stop, &sender).await?)
                }
                _ => conversation.resume(&stop, &sender).await?,
            };
            while let Some(TurnEnd::Waiting(waiting)) = end {
                let asked = &waiting[0].request;
                let answer = match asked.asks {
                    Asks::Permission => Answer::Once,
                    Asks::Fate | Asks::Turn => self.plan.answer.clone(),
                };
                if answer == Answer::Retry {
                    let key = format!("t_1/{}", asked.call);
                    self.outside.retried.lock().unwrap().push(key);
                }
                let by = AnsweredBy::Person;
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

    /// The person sees what is shown: from then on the message counts as acknowledged.
    async fn watch(&self, mut shown: mpsc::Receiver<Shown>) {
        while let Some(item) = shown.recv().await {
            if let Shown::Stored(_) = item {
                *self.outside.is_acknowledged.lock().unwrap() = true;
            }
        }
    }

    /// What of the promises is broken, once every process is gone and one has come to its end.
    pub async fn judge(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let store = (self.database.open)();
        let page = Page {
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
        check(questions == 1, format!("{questions} turns were begun"));
        let is_answered = matches!(ends[..], [Outcome::Answered { .. }]);
        check(is_answered, format!("the turn ended as {ends:?}"));
        let numbers = events.iter().map(|event| event.seq);
        let is_gap_free = numbers.eq(1..=events.len() as u64);
        check(is_gap_free, "there is a gap in the log".to_owned());
        let authors = ["user", "lango-orchestrator", "operator"];
        let is_known = |event: &Event| authors.contains(&event.author.as_str());
        check(events.iter().all(is_known), "a wrong author".to_owned());
        self.judge_effects(&events, &mut check);
        broken.extend(self.outside.failures.lock().unwrap().drain(..));
        broken
    }

    fn judge_effects(&self, events: &[Event], check: &mut impl FnMut(bool, String)) {
        let mut runs: HashMap<String, usize> = HashMap::new();
        for key in self.outside.runs.lock().unwrap().iter() {
            *runs.entry(key.clone()).or_default() += 1;
        }
        let retried = self.outside.retried.lock().unwrap();
        let has_effect = self.plan.effect == Effect::Effect;
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
                format!("it was run {ran} times, and {again} times again by a person"),
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
            let is_told = matches!(self.plan.answer, Answer::Happened { .. });
            let is_true = !results.contains(&CallStatus::Ok) || ran > 0 || (has_effect && is_told);
            check(is_true, "it is said to have run, and it did not".to_owned());
            let is_unknown = results.contains(&CallStatus::Unknown);
            let may_be = has_effect && self.plan.answer == Answer::Skip;
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

/// A tree is built once for each class of effect: thousands of processes start here.
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

fn count(events: &[Event], is_meant: impl Fn(&EventBody) -> bool) -> usize {
    events.iter().filter(|event| is_meant(&event.body)).count()
}

fn outcome(event: &Event) -> Option<&Outcome> {
    match &event.body {
        EventBody::TurnFinished { outcome, .. } => Some(outcome),
        _ => None,
    }
}

/// The same reply to the same request, whoever asks: a delegation, two calls at once, and words.
fn reply(request: &ModelRequest) -> ModelReply {
    let offers = |name: &str| request.functions.iter().any(|one| &*one.name == name);
    let has_result = request.messages.len() > 1;
    match () {
        () if has_result => say("Done."),
        () if offers("delegate") => delegate("operator", "do it"),
        () => calls([(TOOL, json!({})), (OTHER_TOOL, json!({}))]),
    }
}

/// A tool that leaves a mark outside each time it runs.
struct Worker {
    spec: ToolSpec,
    outside: Arc<Outside>,
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
