//! Runs turns in a database whose write-ahead log only grows, and records the stored batches and snapshots of the
//! files.

use super::random::Random;
use lango_core::{
    AnswerSource, ApprovalAnswer, ApprovalQuestion, Effect, EventBatch, Message, ModelReply,
    ModelRequest, SessionId, SessionStore, Tool, UserId,
};
use lango_engine::{
    ApprovalRule, ApprovalRules, CancelToken, Conversation, Gate, RuleAction, Runner, RunnerParts,
    Topology, Tree, TreeSettings, TurnEnd, TurnUpdate, UpdateSender, turn_updates,
};
use lango_store::Store;
use lango_testkit::model::{ScriptedModel, calls, delegate, delegate_and_finish, say};
use lango_testkit::tool::CountingTool;
use rusqlite::Connection;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The author that the store assigns to old events without one. There are none here.
pub(crate) const ROOT: &str = "lango-orchestrator";

pub(crate) const USER: &str = "local";

const SESSIONS: usize = 6;
const TURNS: usize = 4;
const SNAPSHOTS: usize = 5;

/// A stored batch, and the length of the write-ahead log after it.
#[derive(Debug, Clone)]
pub(crate) struct StoredBatch {
    pub events: EventBatch,
    pub wal_length: usize,
}

/// The database files at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub database: Vec<u8>,
    pub wal: Vec<u8>,
    /// How many batches had been acknowledged before the snapshot was taken.
    pub acknowledged: usize,
}

/// All stored batches, and snapshots taken meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct Recording {
    pub batches: Vec<StoredBatch>,
    pub snapshots: Vec<Snapshot>,
}

impl Recording {
    pub(crate) fn sessions(&self) -> BTreeSet<SessionId> {
        let sessions = self.batches.iter();
        sessions
            .map(|batch| batch.events[0].session.clone())
            .collect()
    }
}

/// Runs turns, and takes snapshots meanwhile and at the end.
pub(crate) async fn record(random: &mut Random) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let store = Arc::new(Store::open_sqlite(&path, ROOT.into()).unwrap());
    // An open read transaction prevents checkpoints, so that all frames stay in the log.
    let reader = Connection::open(&path).unwrap();
    reader
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    reader
        .execute_batch("BEGIN; SELECT id FROM sessions")
        .unwrap();
    let before = fs::read(&path).unwrap();
    let stored: Arc<Mutex<Vec<StoredBatch>>> = Arc::default();
    let runner = runner(store);
    let conversations = (0..SESSIONS).map(|number| {
        let session = SessionId::new(format!("s_{number}"));
        let conversation = runner.start_as(UserId::from(USER), session);
        tokio::spawn(run_conversation(
            conversation,
            wal(&path),
            Arc::clone(&stored),
            Random::new(random.next()),
        ))
    });
    let conversations: Vec<_> = conversations.collect();
    let mut snapshots = Vec::new();
    while !conversations.iter().all(|running| running.is_finished()) {
        tokio::time::sleep(random.within(Duration::from_millis(100))).await;
        let acknowledged = stored.lock().unwrap().len();
        let snapshot = take_snapshot(&path, acknowledged);
        if snapshot.wal.len() > 32 {
            snapshots.push(snapshot);
        }
    }
    for conversation in conversations {
        conversation.await.unwrap();
    }
    while snapshots.len() >= SNAPSHOTS {
        let at = random.below(snapshots.len() as u64);
        snapshots.swap_remove(usize::try_from(at).unwrap());
    }
    let batches = stored.lock().unwrap().clone();
    snapshots.push(take_snapshot(&path, batches.len()));
    let is_same = snapshots.iter().all(|snapshot| snapshot.database == before);
    assert!(is_same, "a checkpoint changed the database file");
    Recording { batches, snapshots }
}

fn take_snapshot(path: &Path, acknowledged: usize) -> Snapshot {
    Snapshot {
        database: fs::read(path).unwrap(),
        wal: fs::read(wal(path)).unwrap(),
        acknowledged,
    }
}

/// Returns the path of a database's write-ahead log.
pub(crate) fn wal(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

async fn run_conversation(
    mut conversation: Conversation,
    wal: PathBuf,
    stored: Arc<Mutex<Vec<StoredBatch>>>,
    mut random: Random,
) {
    let (sender, mut shown) = turn_updates();
    let recording = async {
        while let Some(shown) = shown.recv().await {
            if let TurnUpdate::Stored(events) = shown {
                let mut stored = stored.lock().unwrap();
                let length = fs::metadata(&wal).unwrap().len();
                let wal_length = usize::try_from(length).unwrap();
                stored.push(StoredBatch { events, wal_length });
            }
        }
    };
    let turns = async {
        for turn in 0..TURNS {
            let question = format!("turn {turn}");
            run_turn(&mut conversation, &question, &sender, &mut random).await;
        }
        drop(sender);
    };
    tokio::join!(recording, turns);
}

/// Runs a turn to its end and answers its approval requests.
pub(crate) async fn run_turn(
    conversation: &mut Conversation,
    question: &str,
    shown: &UpdateSender,
    random: &mut Random,
) {
    let end = conversation
        .turn(question, &CancelToken::new(), shown)
        .await
        .unwrap();
    answer_all(conversation, end, shown, random).await;
}

/// Answers approval requests until the turn has ended.
pub(crate) async fn answer_all(
    conversation: &mut Conversation,
    mut end: TurnEnd,
    shown: &UpdateSender,
    random: &mut Random,
) {
    while let TurnEnd::Waiting(waiting) = end {
        let asked = &waiting[0].request;
        let text = "it is there".into();
        let answer = match asked.question {
            ApprovalQuestion::Permission if random.chance(50) => ApprovalAnswer::Once,
            ApprovalQuestion::Permission => ApprovalAnswer::No { reason: None },
            ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn
                if random.chance(50) =>
            {
                ApprovalAnswer::Retry
            }
            ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn => {
                ApprovalAnswer::Happened { text }
            }
        };
        let (stop, by) = (CancelToken::new(), AnswerSource::Person);
        let answered = conversation.answer(&asked.id, answer, by, &stop, shown);
        end = answered.await.unwrap();
    }
}

/// Returns a runner whose orchestrator delegates to an operator. The operator calls a tool of each effect class;
/// `fs_write` needs an approval.
pub(crate) fn runner(store: Arc<dyn SessionStore>) -> Runner {
    let tool =
        |name, effect| -> Arc<dyn Tool> { Arc::new(CountingTool::new(name).with_effect(effect)) };
    let tools = vec![
        tool("fs_read", Effect::Pure),
        tool("fs_write", Effect::Idempotent),
        tool("exec", Effect::NonIdempotent),
    ];
    let specs = tools.iter().map(|tool| Arc::new(tool.spec().clone()));
    let topology = Topology::built_in("specialists").unwrap();
    let tree = Tree::multi(
        &topology,
        specs.collect(),
        Vec::new(),
        &TreeSettings::default(),
    );
    let tree = Arc::new(tree.unwrap());
    let ask = ApprovalRule {
        action: RuleAction::Ask,
        agent: None,
        tool: Some("fs_write".to_owned()),
        matching: None,
        origin: "the harness".into(),
    };
    let gate = Gate::new(&tree, tools).unwrap();
    let model = Arc::new(ScriptedModel::from_fn(reply).without_recording());
    Runner::new(RunnerParts {
        rules: Arc::new(ApprovalRules::new(vec![ask])),
        ..RunnerParts::new(tree, gate, model, store)
    })
}

fn reply(request: &ModelRequest) -> ModelReply {
    let is_root = request
        .functions
        .iter()
        .any(|function| *function.name == *"delegate");
    let since = request.messages.iter().rev();
    let results = since.take_while(|message| !matches!(message, Message::User { .. }));
    let results = results
        .filter(|message| matches!(message, Message::Result { .. }))
        .count();
    match (is_root, results) {
        (true, 0) if request.messages.len() % 4 == 1 => delegate_and_finish("operator", "do it"),
        (true, 0) => delegate("operator", "do it"),
        (false, 0) => calls([
            ("fs_read", json!({ "path": "a" })),
            ("exec", json!({ "command": "a" })),
        ]),
        (false, 2) => calls([("fs_write", json!({ "path": "a" }))]),
        _ => say(&"done. ".repeat(40)),
    }
}
