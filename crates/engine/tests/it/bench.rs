//! A runner with a real store, for tests that run whole turns.

use futures_util::StreamExt as _;
use futures_util::future::join;
use lango_core::{
    AgentName, AttachmentStore, BoxStream, Clock, Environment, Event, EventRange, IdGenerator,
    Limits, MemoryProvider, Model, ModelError, ModelEvent, ModelInfo, ModelRequest, ModelSettings,
    RemoteAgent, SessionId, SessionStore, Tool, UserId, UserInput,
};
use lango_engine::{
    ApprovalRules, CancelToken, Conversation, Gate, ModeSwitch, RemoteCard, Runner, RunnerParts,
    ToolAssignments, Topology, Tree, TreeSettings, TurnEnd, TurnReport, TurnUpdate, turn_updates,
};
use lango_secrets::{Masks, SecretSource};
use lango_store::Store;
use lango_testkit::clock_and_ids::{CountingIds, ManualClock};
use lango_testkit::model::ScriptedModel;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A runner for `specialists` with these tools.
pub(crate) struct Bench {
    pub tools: Vec<Arc<dyn Tool>>,
    pub models: BTreeMap<AgentName, Arc<dyn Model>>,
    pub model_settings: ModelSettings,
    pub environment: Option<Arc<dyn Environment>>,
    pub remotes: Vec<Arc<dyn RemoteAgent>>,
    pub store: Arc<dyn SessionStore>,
    pub attachments: Option<Arc<dyn AttachmentStore>>,
    pub limits: Limits,
    pub rules: ApprovalRules,
    pub mode: ModeSwitch,
    pub folder: &'static str,
    pub clock: Arc<ManualClock>,
    pub topology: Topology,
    pub tool_assignments: ToolAssignments,
    pub memory: Option<Arc<dyn MemoryProvider>>,
    pub masks: Masks,
    pub secrets: Option<Arc<dyn SecretSource>>,
    /// The ids of all runners; if `None`, each runner has its own.
    pub ids: Option<Arc<dyn IdGenerator>>,
}

impl Bench {
    pub(crate) fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            tools,
            models: BTreeMap::new(),
            model_settings: ModelSettings::default(),
            environment: None,
            remotes: Vec::new(),
            store: Arc::new(Store::in_memory()),
            attachments: Some(Arc::new(Store::in_memory())),
            limits: Limits::default(),
            rules: ApprovalRules::default(),
            mode: ModeSwitch::default(),
            folder: "/work",
            clock: Arc::new(ManualClock::default()),
            topology: Topology::built_in("specialists").unwrap(),
            tool_assignments: ToolAssignments::new(),
            memory: None,
            masks: Masks::default(),
            secrets: None,
            ids: None,
        }
    }

    pub(crate) fn runner(&self, model: impl Model + 'static) -> Runner {
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
            tool_assignments: self.tool_assignments.clone(),
            ..TreeSettings::default()
        };
        let tree = Arc::new(Tree::multi(&self.topology, specs, cards, &settings).unwrap());
        let gate = Gate::new(&tree, self.tools.clone()).unwrap();
        let mut gate = gate.with_masks(self.masks.clone());
        if let Some(secrets) = &self.secrets {
            gate = gate.with_secrets(Arc::clone(secrets));
        }
        let ids = self.ids.clone();
        Runner::new(RunnerParts {
            models: self.models.clone(),
            model_settings: self.model_settings,
            environment: self.environment.clone(),
            remotes: self.remotes.clone(),
            attachments: self.attachments.clone(),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            ids: ids.unwrap_or_else(|| Arc::new(CountingIds::default())),
            limits: self.limits,
            rules: Arc::new(self.rules.clone().in_folder(self.folder.into())),
            mode: self.mode.clone(),
            memory: self.memory.clone(),
            ..RunnerParts::new(tree, gate, Arc::new(model), Arc::clone(&self.store))
        })
    }
}

/// A model that the test shares, to inspect its requests.
pub(crate) struct Shared(pub Arc<ScriptedModel>);

impl Model for Shared {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn info(&self) -> ModelInfo {
        self.0.info()
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        self.0.call(request)
    }
}

pub(crate) fn local() -> UserId {
    UserId::from("local")
}

/// Runs a turn and collects its updates.
pub(crate) async fn turn(
    conversation: &mut Conversation,
    question: &str,
) -> (TurnReport, Vec<TurnUpdate>) {
    turn_on(conversation, question.into()).await
}

/// Runs a turn on an input of any origin.
pub(crate) async fn turn_on(
    conversation: &mut Conversation,
    question: UserInput,
) -> (TurnReport, Vec<TurnUpdate>) {
    let (sender, updates) = turn_updates();
    let running = async move {
        let stop = CancelToken::new();
        conversation.turn(question, &stop, &sender).await.unwrap()
    };
    // The reader is polled after the turn each time, so it sees every update of a model that yields.
    let (end, items) = join(running, updates.collect()).await;
    (finished(end), items)
}

/// Returns the report of a finished turn.
pub(crate) fn finished(end: TurnEnd) -> TurnReport {
    match end {
        TurnEnd::Finished(report) => report,
        TurnEnd::Waiting(waiting) => panic!("it waits: {waiting:?}"),
    }
}

pub(crate) async fn log(bench: &Bench, session: &SessionId) -> Vec<Event> {
    bench
        .store
        .read(
            session,
            EventRange {
                from: 1,
                limit: 10_000,
            },
        )
        .await
        .unwrap()
}
