//! A runner with a real store, for tests that run whole turns.

use lango_core::{
    AgentName, AttachmentStore, BoxStream, Clock, Environment, Event, Ids, Limits, Model,
    ModelError, ModelEvent, ModelRequest, ModelSettings, ModelTerms, Page, Recollection,
    RemoteAgent, SessionId, SessionStore, Tool, UserId, UserInput,
};
use lango_engine::{
    Conversation, Gate, Homes, RemoteCard, Rules, Runner, RunnerParts, Shown, Stop, Topology, Tree,
    TreeSettings, TurnEnd, TurnReport,
};
use lango_secrets::Masks;
use lango_store::Store;
use lango_testkit::ambient::{CountingIds, SetClock};
use lango_testkit::model::ScriptedModel;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A runner over `specialists` with these tools and this model.
pub struct Bench {
    pub tools: Vec<Arc<dyn Tool>>,
    pub models: BTreeMap<AgentName, Arc<dyn Model>>,
    pub model_settings: ModelSettings,
    pub environment: Option<Arc<dyn Environment>>,
    pub remotes: Vec<Arc<dyn RemoteAgent>>,
    pub store: Arc<dyn SessionStore>,
    pub attachments: Arc<dyn AttachmentStore>,
    pub limits: Limits,
    pub rules: Rules,
    pub folder: &'static str,
    pub clock: Arc<SetClock>,
    pub topology: Topology,
    pub homes: Homes,
    pub recollection: Option<Arc<dyn Recollection>>,
    pub masks: Masks,
    /// The ids of all runners; each has its own if there are none.
    pub ids: Option<Arc<dyn Ids>>,
}

impl Bench {
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            tools,
            models: BTreeMap::new(),
            model_settings: ModelSettings::default(),
            environment: None,
            remotes: Vec::new(),
            store: Arc::new(Store::in_memory()),
            attachments: Arc::new(Store::in_memory()),
            limits: Limits::default(),
            rules: Rules::default(),
            folder: "/work",
            clock: Arc::new(SetClock::default()),
            topology: Topology::built_in("specialists").unwrap(),
            homes: Homes::new(),
            recollection: None,
            masks: Masks::default(),
            ids: None,
        }
    }

    pub fn runner(&self, model: impl Model + 'static) -> Runner {
        let specs = self
            .tools
            .iter()
            .map(|tool| Arc::new(tool.spec().clone()))
            .collect();
        let card = |remote: &Arc<dyn RemoteAgent>| RemoteCard {
            name: remote.name().clone(),
            description: remote.description().to_owned(),
        };
        let cards = self.remotes.iter().map(card).collect();
        let settings = TreeSettings {
            homes: self.homes.clone(),
            ..TreeSettings::default()
        };
        let tree = Arc::new(Tree::multi(&self.topology, specs, cards, &settings).unwrap());
        Runner::new(RunnerParts {
            gate: Gate::new(&tree, self.tools.clone())
                .unwrap()
                .with_masks(self.masks.clone()),
            tree,
            model: Arc::new(model),
            models: self.models.clone(),
            model_settings: self.model_settings,
            environment: self.environment.clone(),
            remotes: self.remotes.clone(),
            store: Arc::clone(&self.store),
            attachments: Arc::clone(&self.attachments),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            ids: self
                .ids
                .clone()
                .unwrap_or_else(|| Arc::new(CountingIds::default())),
            limits: self.limits,
            rules: Arc::new(self.rules.clone().in_folder(self.folder.into())),
            recollection: self.recollection.clone(),
            busy_policy: lango_core::BusyPolicy::Wait { max_waiters: 16 },
        })
    }
}

/// A model that the test keeps too, to see what it was asked.
pub struct Shared(pub Arc<ScriptedModel>);

impl Model for Shared {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn terms(&self) -> ModelTerms {
        self.0.terms()
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        self.0.call(request)
    }
}

pub fn local() -> UserId {
    UserId::from("local")
}

/// Runs a turn and keeps what was shown.
pub async fn turn(conversation: &mut Conversation, question: &str) -> (TurnReport, Vec<Shown>) {
    turn_on(conversation, question.into()).await
}

/// The same on an input of any origin.
pub async fn turn_on(
    conversation: &mut Conversation,
    question: UserInput,
) -> (TurnReport, Vec<Shown>) {
    let (sender, mut shown) = mpsc::channel(10_000);
    let end = conversation
        .turn(question, &Stop::new(), &sender)
        .await
        .unwrap();
    drop(sender);
    let report = finished(end);
    let mut items = Vec::new();
    while let Some(item) = shown.recv().await {
        items.push(item);
    }
    (report, items)
}

/// The report of a turn that ended.
pub fn finished(end: TurnEnd) -> TurnReport {
    match end {
        TurnEnd::Finished(report) => report,
        TurnEnd::Waiting(waiting) => panic!("it waits: {waiting:?}"),
    }
}

pub async fn log(bench: &Bench, session: &SessionId) -> Vec<Event> {
    bench
        .store
        .read(
            session,
            Page {
                from: 1,
                limit: 10_000,
            },
        )
        .await
        .unwrap()
}
