//! Turns in a database whose write-ahead log only grows, a record of what was stored when, and copies of the files.

use super::random::Random;
use lango_core::{
    Answer, AnsweredBy, Asks, Batch, BusyPolicy, Effect, Limits, Message, ModelReply, ModelRequest,
    SessionId, SessionStore, Tool, UserId,
};
use lango_engine::{
    Action, Conversation, Gate, RandomIds, Rule, Rules, Runner, RunnerParts, Shown, Stop,
    SystemClock, Topology, Tree, TreeSettings, TurnEnd,
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
use tokio::sync::mpsc;

/// Who authors messages from before there were authors: nobody here.
pub const ROOT: &str = "lango-orchestrator";

/// Whose sessions these are.
pub const USER: &str = "local";

const SESSIONS: usize = 6;
const TURNS: usize = 4;
const COPIES: usize = 5;

/// Some events that were stored together, and how long the write-ahead log was when they had been.
#[derive(Debug, Clone)]
pub struct Stored {
    pub events: Batch,
    pub wal_length: usize,
}

/// The files at one moment.
#[derive(Debug, Clone)]
pub struct Copy {
    pub database: Vec<u8>,
    pub wal: Vec<u8>,
    /// How many batches had been acknowledged when it was begun.
    pub acknowledged: usize,
}

/// What was written.
#[derive(Debug, Clone)]
pub struct Truth {
    pub batches: Vec<Stored>,
    pub copies: Vec<Copy>,
}

impl Truth {
    pub fn sessions(&self) -> BTreeSet<SessionId> {
        let sessions = self.batches.iter();
        sessions
            .map(|batch| batch.events[0].session.clone())
            .collect()
    }
}

/// Runs turns and takes copies meanwhile, and one at the end.
pub async fn make(random: &mut Random) -> Truth {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let store = Arc::new(Store::open_sqlite(&path, ROOT.into()).unwrap());
    // A reader who never leaves: nothing is moved into the file, so that every frame is only in the log.
    let reader = Connection::open(&path).unwrap();
    reader
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    reader
        .execute_batch("BEGIN; SELECT id FROM sessions")
        .unwrap();
    let before = fs::read(&path).unwrap();
    let stored: Arc<Mutex<Vec<Stored>>> = Arc::default();
    let runner = runner(store);
    let talks = (0..SESSIONS).map(|number| {
        let session = SessionId::new(format!("s_{number}"));
        let talk = runner.start_as(UserId::from(USER), session);
        tokio::spawn(converse(
            talk,
            wal(&path),
            Arc::clone(&stored),
            Random::new(random.next()),
        ))
    });
    let talks: Vec<_> = talks.collect();
    let mut copies = Vec::new();
    while !talks.iter().all(|talk| talk.is_finished()) {
        tokio::time::sleep(random.within(Duration::from_millis(100))).await;
        let acknowledged = stored.lock().unwrap().len();
        let copy = copy(&path, acknowledged);
        if copy.wal.len() > 32 {
            copies.push(copy);
        }
    }
    for talk in talks {
        talk.await.unwrap();
    }
    while copies.len() >= COPIES {
        let at = random.below(copies.len() as u64);
        copies.swap_remove(usize::try_from(at).unwrap());
    }
    let batches = stored.lock().unwrap().clone();
    copies.push(copy(&path, batches.len()));
    let is_same = copies.iter().all(|copy| copy.database == before);
    assert!(is_same, "something was moved into the file");
    Truth { batches, copies }
}

fn copy(path: &Path, acknowledged: usize) -> Copy {
    Copy {
        database: fs::read(path).unwrap(),
        wal: fs::read(wal(path)).unwrap(),
        acknowledged,
    }
}

pub fn wal(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

async fn converse(
    mut talk: Conversation,
    wal: PathBuf,
    stored: Arc<Mutex<Vec<Stored>>>,
    mut random: Random,
) {
    let (sender, mut shown) = mpsc::channel(1);
    let noting = async {
        while let Some(shown) = shown.recv().await {
            if let Shown::Stored(events) = shown {
                let mut stored = stored.lock().unwrap();
                let length = fs::metadata(&wal).unwrap().len();
                let wal_length = usize::try_from(length).unwrap();
                stored.push(Stored { events, wal_length });
            }
        }
    };
    let talking = async {
        for turn in 0..TURNS {
            run_turn(&mut talk, &format!("turn {turn}"), &sender, &mut random).await;
        }
        drop(sender);
    };
    tokio::join!(noting, talking);
}

/// Runs a turn to its end, with somebody there who answers.
pub async fn run_turn(
    talk: &mut Conversation,
    question: &str,
    shown: &mpsc::Sender<Shown>,
    random: &mut Random,
) {
    let end = talk.turn(question, &Stop::new(), shown).await.unwrap();
    answer_all(talk, end, shown, random).await;
}

/// Answers until the turn has ended.
pub async fn answer_all(
    talk: &mut Conversation,
    mut end: TurnEnd,
    shown: &mpsc::Sender<Shown>,
    random: &mut Random,
) {
    while let TurnEnd::Waiting(waiting) = end {
        let asked = &waiting[0].request;
        let text = "it is there".into();
        let answer = match asked.asks {
            Asks::Permission if random.chance(50) => Answer::Once,
            Asks::Permission => Answer::No { reason: None },
            Asks::Fate | Asks::Turn if random.chance(50) => Answer::Retry,
            Asks::Fate | Asks::Turn => Answer::Happened { text },
        };
        let (stop, by) = (Stop::new(), AnsweredBy::Person);
        let answered = talk.answer(&asked.id, answer, by, &stop, shown);
        end = answered.await.unwrap();
    }
}

/// The orchestrator delegates, the operator calls a tool of each class; one of them has to be allowed.
pub fn runner(store: Arc<dyn SessionStore>) -> Runner {
    let tool =
        |name, effect| -> Arc<dyn Tool> { Arc::new(CountingTool::new(name).with_effect(effect)) };
    let tools = vec![
        tool("fs_read", Effect::Pure),
        tool("fs_write", Effect::Idempotent),
        tool("exec", Effect::Effect),
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
    let ask = Rule {
        action: Action::Ask,
        agent: None,
        tool: Some("fs_write".to_owned()),
        matching: None,
        origin: "the harness".into(),
    };
    Runner::new(RunnerParts {
        gate: Gate::new(&tree, tools).unwrap(),
        tree,
        model: Arc::new(ScriptedModel::from_fn(reply).forgetful()),
        models: Default::default(),
        model_settings: Default::default(),
        environment: None,
        remotes: Vec::new(),
        store,
        attachments: Arc::new(lango_store::Store::in_memory()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        limits: Limits::default(),
        rules: Arc::new(Rules::new(vec![ask])),
        recollection: None,
        busy_policy: BusyPolicy::Wait { max_waiters: 16 },
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
