//! Complete turns over real HTTP: runner, resilient model, provider and test server.

use crate::support::{Wire, settings};
use futures_util::StreamExt as _;
use futures_util::future::join;
use lango_core::{
    Clock, Event, EventBody, EventRange, IdGenerator, Model, SessionStore, Tool, UserId,
};
use lango_engine::{
    CancelToken, Conversation, Gate, Runner, RunnerParts, Topology, Tree, TreeSettings, TurnReport,
    TurnUpdate, turn_updates,
};
use lango_models::{Provider, ProviderSettings, ProviderTimeouts, ResilientModel};
use lango_testkit::clock_and_ids::{CountingIds, ManualClock};
use lango_testkit::model::PacedModel;
use lango_testkit::tool::CountingTool;
use std::sync::Arc;
use std::time::Duration;

/// The idle timeout for tests that are not about silence.
pub(crate) const LONG_IDLE: Duration = Duration::from_secs(20);

/// A runner with the topology `specialists` and a tool for three of its agents.
pub(crate) struct TestRuntime {
    pub tools: Vec<Arc<CountingTool>>,
    pub store: Arc<dyn SessionStore>,
    runner: Runner,
}

impl TestRuntime {
    pub(crate) fn new(store: Arc<dyn SessionStore>, model: Arc<dyn Model>) -> Self {
        let names = ["fs_read", "exec_shell", "browser_navigate", "search_web"];
        let tools: Vec<_> = names.map(|name| Arc::new(CountingTool::new(name))).into();
        let specs = tools.iter().map(|tool| Arc::new(tool.spec().clone()));
        let topology = Topology::built_in("specialists").unwrap();
        let tree = Tree::multi(&topology, specs.collect(), vec![], &TreeSettings::default());
        let tree = Arc::new(tree.unwrap());
        let shared = tools.iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>);
        let gate = Gate::new(&tree, shared.collect()).unwrap();
        let runner = Runner::new(RunnerParts {
            clock: Arc::new(ManualClock::default()) as Arc<dyn Clock>,
            ids: Arc::new(CountingIds::default()) as Arc<dyn IdGenerator>,
            ..RunnerParts::new(tree, gate, Arc::new(PacedModel(model)), Arc::clone(&store))
        });
        Self {
            tools,
            store,
            runner,
        }
    }

    pub(crate) fn start(&self) -> Conversation {
        self.runner.start(UserId::from("local"))
    }

    pub(crate) fn tool_runs(&self) -> usize {
        self.tools.iter().map(|tool| tool.runs()).sum()
    }

    pub(crate) async fn log(&self, conversation: &Conversation) -> Vec<Event> {
        let all = EventRange {
            from: 1,
            limit: 10_000,
        };
        self.store.read(conversation.session(), all).await.unwrap()
    }
}

/// Returns a model with this wire format at this address, with another model there as fallback and very short pauses.
pub(crate) fn resilient(kind: Wire, url: &str, streaming: bool, idle: Duration) -> Arc<dyn Model> {
    let settings = ProviderSettings {
        stream: streaming,
        timeouts: ProviderTimeouts {
            idle,
            ..ProviderTimeouts::default()
        },
        ..settings(kind, url)
    };
    let provider = Provider::new(settings);
    let understudy: Arc<dyn Model> = Arc::new(provider.model("second"));
    let resilient = ResilientModel::new(Arc::new(provider.model("first")), vec![understudy]);
    Arc::new(resilient.with_pause(Duration::from_millis(1)))
}

/// Runs a turn. Returns its report and the updates that were shown.
pub(crate) async fn turn(
    conversation: &mut Conversation,
    question: &str,
) -> (TurnReport, Vec<TurnUpdate>) {
    let (sender, shown) = turn_updates();
    let running = async move {
        let stop = CancelToken::new();
        conversation.turn(question, &stop, &sender).await
    };
    // The reader is polled after the turn each time, so it sees every update.
    let (report, items) = join(running, shown.collect()).await;
    (report.unwrap().finished().unwrap(), items)
}

/// How often drafts were shown and withdrawn, and how often the model was retried.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    pub drafts: u32,
    pub withdrawn: u32,
    pub retries: u32,
}

impl Screen {
    /// Replays the updates and checks them: void text is withdrawn before a retry, a rejection is never shown, and a
    /// draft that is not withdrawn is exactly the answer.
    pub(crate) fn watch(shown: &[TurnUpdate], report: &TurnReport) -> Self {
        let mut screen = Self::default();
        let mut draft = String::new();
        for item in shown {
            match item {
                TurnUpdate::Draft { text, .. } => {
                    screen.drafts += u32::from(draft.is_empty());
                    draft.push_str(text);
                    assert!(!draft.contains("[REJECT]"), "{draft}");
                }
                TurnUpdate::DraftWithdrawn => {
                    screen.withdrawn += 1;
                    draft.clear();
                }
                TurnUpdate::Queued
                | TurnUpdate::ModelStarted { .. }
                | TurnUpdate::ModelProgress { .. }
                | TurnUpdate::ToolOutput { .. } => {}
                TurnUpdate::Retrying { .. } => {
                    screen.retries += 1;
                    assert_eq!(draft, "", "void text is withdrawn first");
                }
                TurnUpdate::Stored(batch) => {
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
