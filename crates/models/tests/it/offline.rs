//! The demo model in the real engine: whole turns with lango's topologies and instructions. Only the tools are scripted.

mod answers;
mod caution;
mod commands;
mod memories;
mod phrases;
mod refusals;
mod searches;

use lango_core::{
    Effect, Environment, Event, EventBody, EventRange, Risk, SessionStore, Timestamp, Tool,
    ToolError, TurnEnvironment, UserId,
};
use lango_engine::{
    CancelToken, Gate, Runner, RunnerParts, Topology, Tree, TreeSettings, turn_updates,
};
use lango_models::OfflineModel;
use lango_store::Store;
use lango_testkit::tool::CountingTool;
use serde_json::Value;
use std::sync::Arc;

/// The tools of the default configuration, with a browser.
pub(super) const TOOLS: &[&str] = &[
    "fs_list",
    "fs_read",
    "fs_stat",
    "fs_write",
    "fs_edit",
    "fs_mkdir",
    "fs_delete",
    "fs_search",
    "exec",
    "browser_navigate",
    "secrets_list",
    "crypto_hash",
    "list_skills",
    "save_knowledge",
    "search_knowledge",
    "rag_retrieve",
    "graph_traverse",
    "graph_query",
    "graph_relate",
    "search_fetch",
    "memory_list_observations",
    "memory_list_reflections",
    "memory_save",
    "memory_recall",
    "memory_forget",
];

/// What a tool returns for a call.
pub(super) type Run = fn(&str, &Value) -> Result<String, ToolError>;

/// A finished turn.
#[derive(Debug)]
pub(super) struct FinishedTurn {
    /// `operator fs_read notes.md` for each call: the agent, the tool and the values of its arguments by their names'
    /// order.
    pub calls: Vec<String>,
    /// `librarian: the reason` for each rejection.
    pub rejections: Vec<String>,
    /// `operator: the task` for each delegation.
    pub delegations: Vec<String>,
    pub model_calls: u32,
    pub answer: String,
}

impl FinishedTurn {
    pub(super) fn is_refused(&self) -> bool {
        self.answer
            .contains("connect a real model with `lango setup`")
            && self.answer.contains("These work now:")
    }
}

/// The team or the single agent that gets a message.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    Specialists,
    Classic,
    Single,
}

pub(super) fn done(_: &str, _: &Value) -> Result<String, ToolError> {
    Ok("done".to_owned())
}

/// Plays a turn of the default team, whose tools all succeed.
pub(super) fn ask(text: &str) -> FinishedTurn {
    play(Mode::Specialists, TOOLS, text, done)
}

/// Plays a turn to its end.
pub(super) fn play(mode: Mode, tools: &'static [&str], text: &str, run: Run) -> FinishedTurn {
    let tools: Vec<Arc<dyn Tool>> = tools
        .iter()
        .map(|name| {
            // All calls run, so that the test sees what the model wants.
            let tool = CountingTool::new(name)
                .with_effect(Effect::Pure)
                .with_risk(Risk::Safe);
            Arc::new(tool.with_run(move |arguments| run(name, arguments))) as Arc<dyn Tool>
        })
        .collect();
    let specs = tools
        .iter()
        .map(|tool| Arc::new(tool.spec().clone()))
        .collect();
    let settings = TreeSettings::default();
    let multi = |name, specs| {
        Tree::multi(&Topology::built_in(name).unwrap(), specs, vec![], &settings).unwrap()
    };
    let tree = Arc::new(match mode {
        Mode::Specialists => multi("specialists", specs),
        Mode::Classic => multi("classic", specs),
        Mode::Single => Tree::single(specs, &settings).unwrap(),
    });
    let gate = Gate::new(&tree, tools).unwrap();
    let store: Arc<dyn SessionStore> = Arc::new(Store::in_memory());
    let runner = Runner::new(RunnerParts {
        environment: Some(Arc::new(Monday)),
        ..RunnerParts::new(tree, gate, Arc::new(OfflineModel), Arc::clone(&store))
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut conversation = runner.start(UserId::from("local"));
        let (sender, _) = turn_updates();
        let ended = conversation.turn(text, &CancelToken::new(), &sender).await;
        let report = ended.unwrap().finished().unwrap();
        let all = EventRange {
            from: 1,
            limit: 1000,
        };
        let events = store.read(conversation.session(), all).await.unwrap();
        FinishedTurn {
            calls: events.iter().filter_map(call_text).collect(),
            rejections: events
                .iter()
                .filter_map(|event| match &event.body {
                    EventBody::AgentRejected { reason, .. } => {
                        Some(format!("{}: {reason}", event.author))
                    }
                    _ => None,
                })
                .collect(),
            delegations: events
                .iter()
                .filter_map(|event| match &event.body {
                    EventBody::AgentDelegated { agent, task, .. } => {
                        Some(format!("{agent}: {task}"))
                    }
                    _ => None,
                })
                .collect(),
            model_calls: report.model_calls,
            answer: report.answer.unwrap().to_string(),
        }
    })
}

fn call_text(event: &Event) -> Option<String> {
    let EventBody::ToolCalled {
        tool, arguments, ..
    } = &event.body
    else {
        return None;
    };
    let values = arguments.as_object().unwrap().values();
    let values = values.filter(|value| **value != true && **value != "sha256");
    let values: Vec<String> = values
        .map(|value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        })
        .collect();
    let text = format!("{} {tool} {}", event.author, values.join(" | "));
    Some(text.trim_end().to_owned())
}

struct Monday;

impl Environment for Monday {
    fn at(&self, _: Timestamp) -> TurnEnvironment {
        TurnEnvironment {
            date: "Monday, 2026-11-16".into(),
            utc_offset: "UTC+01:00".into(),
            os: "Linux".into(),
        }
    }
}
