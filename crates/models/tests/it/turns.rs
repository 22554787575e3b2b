//! Whole turns over real HTTP: runner, resilient model, provider, wire server.

use crate::support::{Kind, settings};
use lango_core::{Clock, Event, EventBody, Ids, Limits, Model, Page, SessionStore, Tool, UserId};
use lango_engine::{
    Conversation, Gate, Runner, RunnerParts, Shown, Stop, Topology, Tree, TreeSettings, TurnReport,
};
use lango_models::{Patience, Provider, ProviderSettings, Resilient};
use lango_testkit::ambient::{CountingIds, SetClock};
use lango_testkit::tool::CountingTool;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a model may be silent where silence is not what is tested.
pub const PATIENT: Duration = Duration::from_secs(20);

/// A runner over `specialists` with a tool for three of its agents.
pub struct House {
    pub tools: Vec<Arc<CountingTool>>,
    pub store: Arc<dyn SessionStore>,
    runner: Runner,
}

impl House {
    pub fn new(store: Arc<dyn SessionStore>, model: Arc<dyn Model>) -> Self {
        let names = ["fs_read", "exec_shell", "browser_navigate", "search_web"];
        let tools: Vec<_> = names.map(|name| Arc::new(CountingTool::new(name))).into();
        let specs = tools.iter().map(|tool| Arc::new(tool.spec().clone()));
        let topology = Topology::built_in("specialists").unwrap();
        let tree = Tree::multi(&topology, specs.collect(), vec![], &TreeSettings::default());
        let tree = Arc::new(tree.unwrap());
        let shared = tools.iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>);
        let runner = Runner::new(RunnerParts {
            gate: Gate::new(&tree, shared.collect()).unwrap(),
            tree,
            model,
            models: Default::default(),
            model_settings: Default::default(),
            environment: None,
            remotes: vec![],
            store: Arc::clone(&store),
            attachments: Arc::new(lango_store::Store::in_memory()),
            clock: Arc::new(SetClock::default()) as Arc<dyn Clock>,
            ids: Arc::new(CountingIds::default()) as Arc<dyn Ids>,
            limits: Limits::default(),
            rules: Arc::default(),
            recollection: None,
            busy_policy: lango_core::BusyPolicy::Wait { max_waiters: 16 },
        });
        Self {
            tools,
            store,
            runner,
        }
    }

    pub fn start(&self) -> Conversation {
        self.runner.start(UserId::from("local"))
    }

    pub fn tool_runs(&self) -> usize {
        self.tools.iter().map(|tool| tool.runs()).sum()
    }

    pub async fn log(&self, conversation: &Conversation) -> Vec<Event> {
        let all = Page {
            from: 1,
            limit: 10_000,
        };
        self.store.read(conversation.session(), all).await.unwrap()
    }
}

/// A model of this kind at this address with another of its models as understudy, in no mood to
/// wait before it asks again.
pub fn resilient(kind: Kind, url: &str, streaming: bool, idle: Duration) -> Arc<dyn Model> {
    let settings = ProviderSettings {
        stream: streaming,
        patience: Patience {
            idle,
            ..Patience::default()
        },
        ..settings(kind, url)
    };
    let provider = Provider::new(settings);
    let understudy: Arc<dyn Model> = Arc::new(provider.model("second"));
    let resilient = Resilient::new(Arc::new(provider.model("first")), vec![understudy]);
    Arc::new(resilient.with_pause(Duration::from_millis(1)))
}

/// Runs a turn and keeps what was shown.
pub async fn turn(conversation: &mut Conversation, question: &str) -> (TurnReport, Vec<Shown>) {
    let (sender, mut shown) = mpsc::channel(100_000);
    let report = conversation.turn(question, &Stop::new(), &sender).await;
    drop(sender);
    let mut items = Vec::new();
    while let Some(item) = shown.recv().await {
        items.push(item);
    }
    (report.unwrap().finished().unwrap(), items)
}

/// What a person had on the screen, and how often some of it was taken back.
#[derive(Debug, Default)]
pub struct Screen {
    pub drafts: u32,
    pub withdrawn: u32,
    pub retries: u32,
}

impl Screen {
    /// Plays what was shown. Text that is void is gone before anything else is said, no refusal is ever seen, and a draft
    /// that stays is the answer word for word.
    pub fn watch(shown: &[Shown], report: &TurnReport) -> Self {
        let mut screen = Self::default();
        let mut draft = String::new();
        for item in shown {
            match item {
                Shown::Draft { text, .. } => {
                    screen.drafts += u32::from(draft.is_empty());
                    draft.push_str(text);
                    assert!(!draft.contains("[REJECT]"), "{draft}");
                }
                Shown::Withdrawn => {
                    screen.withdrawn += 1;
                    draft.clear();
                }
                Shown::InLine => {}
                Shown::Retrying { .. } => {
                    screen.retries += 1;
                    assert_eq!(draft, "", "void text is withdrawn first");
                }
                Shown::Stored(batch) => {
                    let ends = |event: &Event| matches!(event.body, EventBody::TurnFinished { .. });
                    if batch.iter().any(ends) {
                        let answer = report.answer.as_deref().unwrap_or_default();
                        assert!(
                            draft.is_empty() || draft == answer,
                            "{draft:?} is not {answer:?}"
                        );
                    }
                }
            }
        }
        screen
    }
}
