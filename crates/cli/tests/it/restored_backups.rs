//! A server on a restored backup, through the real binary: turns that were running during the backup are not resumed
//! until the user agrees.

use crate::lango::{Lango, TIMEOUT, text};
use crate::models::flags;
use crate::serve::{TestServer, message};
use lango_testkit::model::{call, say};
use lango_testkit::postgres;
use lango_testkit::wire_server::{RecordedRequest, ScriptedAnswer, WireServer};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

type Hook = Box<dyn FnOnce() + Send>;

/// A model that runs one command in each turn, and calls a hook before its first answer.
pub(crate) struct CommandModel {
    _runtime: Runtime,
    server: WireServer,
}

impl CommandModel {
    pub(crate) fn new(command: &'static str, hook: impl FnOnce() + Send + 'static) -> Self {
        let runtime = Runtime::new().unwrap();
        let hook: Mutex<Option<Hook>> = Mutex::new(Some(Box::new(hook)));
        let script = move |request: &RecordedRequest| {
            if let Some(hook) = hook.lock().unwrap().take() {
                hook();
            }
            let messages = request.body["messages"].as_array().unwrap();
            ScriptedAnswer::from(if messages.last().unwrap()["role"] == "user" {
                call("exec", json!({ "command": command }))
            } else {
                say("done")
            })
        };
        let server = runtime.block_on(WireServer::start(script));
        Self {
            _runtime: runtime,
            server,
        }
    }

    /// Returns arguments with this model, a single agent, and commands that need no approval.
    pub(crate) fn arguments(&self, more: &[&str]) -> Vec<String> {
        let mut arguments = flags("openai", self.server.url());
        let rule = "approval.rules=[{action=\"allow\",tool=\"exec\"}]";
        for key in ["agent.multiAgent=false", rule] {
            arguments.extend(["-c".to_owned(), key.to_owned()]);
        }
        arguments.extend(more.iter().map(|&more| more.to_owned()));
        arguments
    }
}

pub(crate) fn start(lango: Lango, arguments: &[String]) -> TestServer {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    TestServer::start_with(lango, &arguments)
}

/// Polls a task until it is in this state.
#[track_caller]
pub(crate) fn wait_for_state(server: &TestServer, id: &Value, state: &str) -> Value {
    let started = Instant::now();
    loop {
        let got = server.rpc("GetTask", json!({ "id": id }));
        if got["result"]["status"]["state"] == state {
            return got["result"].clone();
        }
        assert!(started.elapsed() < TIMEOUT, "not {state}: {got}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns how often the command has run.
fn effects(lango: &Lango) -> usize {
    let lines = fs::read_to_string(lango.workspace().join("effects.txt"));
    lines.map_or(0, |lines| lines.lines().count())
}

const COMMAND: &str = "echo ran >> effects.txt";

fn send(server: &TestServer) -> Value {
    let mut message = message("deploy it");
    message["configuration"] = json!({ "returnImmediately": true });
    server.rpc("SendMessage", message)["result"]["task"]["id"].take()
}

/// Returns the id of the only waiting request, which must be about continuing the turn.
#[track_caller]
fn question(lango: &Lango, arguments: &[&str]) -> String {
    let list = [&["approvals", "list", "--json"], arguments].concat();
    let listed = lango.run(&list).ok().json();
    let waiting = listed["waiting"].as_array().unwrap();
    assert_eq!(waiting.len(), 1, "{listed:#}");
    assert_eq!(waiting[0]["asks"], "turn", "{listed:#}");
    assert_eq!(waiting[0]["arguments"]["message"], "deploy it");
    text(&waiting[0]["id"]).to_owned()
}

/// Creates a home whose database was backed up during a model call, and a task that finished after the backup.
fn back_up_before_command() -> (Lango, CommandModel, Value) {
    let lango = Lango::new();
    let copier = lango.sibling();
    let model = CommandModel::new(COMMAND, move || {
        copier.run(&["store", "backup", "copy.db"]).ok();
    });
    let server = start(lango.sibling(), &model.arguments(&[]));
    let task = send(&server);
    wait_for_state(&server, &task, "TASK_STATE_COMPLETED");
    assert_eq!(effects(&lango), 1);
    drop(server);
    for suffix in ["db", "db-wal", "db-shm"] {
        let _ = fs::remove_file(lango.home().join("lango").with_extension(suffix));
    }
    (lango, model, task)
}

#[test]
fn a_server_on_a_restored_backup_asks_before_it_resumes_a_turn() {
    let (lango, model, task) = back_up_before_command();
    let ran = lango.run(&["store", "restore", "copy.db"]).ok();
    assert!(ran.stdout.contains("1 turn and 1 task"), "{ran:#?}");
    let parts = fs::read_dir(lango.home()).unwrap();
    let mut parts = parts.map(|part| part.unwrap().path());
    assert!(!parts.any(|part| part.to_string_lossy().contains(".part")));
    lango
        .run(&["sessions", "verify", "--all", "-c", "session.user=a2a"])
        .ok();
    let server = start(lango.sibling(), &model.arguments(&[]));
    let waiting = wait_for_state(&server, &task, "TASK_STATE_AUTH_REQUIRED");
    assert!(
        waiting
            .to_string()
            .contains("it is unknown what the task did afterwards")
    );
    assert_eq!(effects(&lango), 1, "it ran again without being asked");
    let id = question(&lango, &[]);
    let shown = lango.run(&["approvals"]).ok();
    assert!(shown.stdout.contains("unknown"), "{shown:#?}");
    assert!(shown.stderr.contains("retry (continue) or skip (end it)"));
    lango.run(&["approvals", "answer", &id, "yes"]).exits(2);
    // Another start does not ask again, and repeats nothing.
    drop(server);
    let server = start(lango.sibling(), &model.arguments(&[]));
    wait_for_state(&server, &task, "TASK_STATE_AUTH_REQUIRED");
    assert_eq!((question(&lango, &[]), effects(&lango)), (id.clone(), 1));
    lango.run(&["approvals", "answer", &id, "skip"]).exits(1);
    wait_for_state(&server, &task, "TASK_STATE_FAILED");
    assert_eq!(effects(&lango), 1);
}

#[test]
fn a_restored_turn_continues_if_the_user_says_so() {
    let (lango, model, task) = back_up_before_command();
    lango.run(&["store", "restore", "copy.db"]).ok();
    let server = start(lango.sibling(), &model.arguments(&[]));
    wait_for_state(&server, &task, "TASK_STATE_AUTH_REQUIRED");
    let id = question(&lango, &[]);
    let mut answer = vec!["approvals".to_owned(), "answer".to_owned(), id];
    answer.push("retry".to_owned());
    answer.extend(model.arguments(&[]));
    let answer: Vec<&str> = answer.iter().map(String::as_str).collect();
    lango.run(&answer).ok();
    wait_for_state(&server, &task, "TASK_STATE_COMPLETED");
    assert_eq!(effects(&lango), 2);
}

#[test]
fn without_recovery_a_server_asks_about_turns_of_a_copied_database() {
    let (lango, model, task) = back_up_before_command();
    fs::copy(lango.workspace().join("copy.db"), lango.database()).unwrap();
    let server = start(lango.sibling(), &model.arguments(&["--no-recovery"]));
    wait_for_state(&server, &task, "TASK_STATE_AUTH_REQUIRED");
    question(&lango, &[]);
    assert_eq!(effects(&lango), 1);
}

#[test]
fn a_command_that_ran_during_the_backup_is_not_repeated() {
    let lango = Lango::new();
    let command = "echo ran >> effects.txt; while [ ! -e go ]; do sleep 0.05; done";
    let model = CommandModel::new(command, || ());
    let server = start(lango.sibling(), &model.arguments(&[]));
    let task = send(&server);
    let started = Instant::now();
    while effects(&lango) == 0 {
        assert!(started.elapsed() < TIMEOUT);
        thread::sleep(Duration::from_millis(20));
    }
    lango.run(&["store", "backup", "copy.db"]).ok();
    lango.file("go", "");
    wait_for_state(&server, &task, "TASK_STATE_COMPLETED");
    drop(server);
    lango
        .run(&["store", "restore", "copy.db"])
        .refused(2, &["already exists"]);
    for suffix in ["db", "db-wal", "db-shm"] {
        let _ = fs::remove_file(lango.home().join("lango").with_extension(suffix));
    }
    lango.run(&["store", "restore", "copy.db"]).ok();
    let server = start(lango.sibling(), &model.arguments(&[]));
    wait_for_state(&server, &task, "TASK_STATE_AUTH_REQUIRED");
    question(&lango, &[]);
    assert_eq!(effects(&lango), 1);
}

#[test]
fn a_restored_postgresql_database_is_marked_before_the_server_starts() {
    let cluster = postgres::Cluster::start(&[]);
    let address = cluster.address();
    let lango = Lango::new();
    let dump = lango.workspace().join("lango.sql");
    let (from, to) = (address.clone(), dump.clone());
    let model = CommandModel::new(COMMAND, move || {
        let mut dumping = Command::new(postgres::programs().join("pg_dump"));
        let dumped = dumping.arg("--file").arg(&to).arg(&from).status();
        assert!(dumped.unwrap().success());
    });
    let store = format!("session.store={address}");
    let short = ["-c", "session.lease=3s"];
    let server = start(
        lango.sibling(),
        &model.arguments(&[&["-c", &store], &short[..]].concat()),
    );
    let task = send(&server);
    wait_for_state(&server, &task, "TASK_STATE_COMPLETED");
    drop(server);
    let psql = |database: &str, arguments: &[&str]| {
        let mut psql = Command::new(postgres::programs().join("psql"));
        let ran = psql
            .args(["-q", "-v", "ON_ERROR_STOP=1"])
            .args(arguments)
            .arg(database)
            .output();
        let ran = ran.unwrap();
        assert!(ran.status.success(), "{ran:?}");
    };
    psql(&address, &["-c", "CREATE DATABASE restored"]);
    let restored = format!("{}/restored", address.rsplit_once('/').unwrap().0);
    psql(&restored, &["-f", dump.to_str().unwrap()]);
    let store = format!("session.store={restored}");
    lango
        .run(&[&["store", "restore", "-c", &store], &short[..]].concat())
        .ok();
    let server = start(lango.sibling(), &model.arguments(&["-c", &store]));
    wait_for_state(&server, &task, "TASK_STATE_AUTH_REQUIRED");
    question(&lango, &["-c", &store]);
    assert_eq!(effects(&lango), 1);
}

#[test]
fn a_backup_is_not_restored_next_to_an_old_log_or_under_a_running_server() {
    let lango = Lango::new();
    lango.run(&["run", "-q", "hello"]).ok();
    lango.run(&["store", "backup", "copy.db"]).ok();
    let log = lango.home().join("lango.db-wal");
    assert!(!log.exists(), "the backup left a log beside the database");
    let server = start(lango.sibling(), &[]);
    let moved = lango.home().join("moved");
    fs::create_dir(&moved).unwrap();
    for name in ["lango.db", "lango.db-wal", "lango.db-shm"] {
        let _ = fs::rename(lango.home().join(name), moved.join(name));
    }
    let restore = ["store", "restore", "copy.db"];
    lango
        .run(&restore)
        .refused(2, &["a server uses the database"]);
    drop(server);
    fs::write(&log, "what another database left").unwrap();
    lango
        .run(&restore)
        .refused(2, &["lango.db-wal", "already exists"]);
    fs::remove_file(&log).unwrap();
    lango.run(&restore).ok();
    assert!(!log.exists(), "the file alone is not the whole database");
    let listed = lango.run(&["sessions", "list", "--json"]).ok().json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed:#}");
}

#[test]
fn a_stopped_server_leaves_all_data_in_the_database_file() {
    let lango = Lango::new();
    let mut server = start(lango.sibling(), &[]);
    server.ask("hello");
    // Another process opens and closes the database meanwhile.
    lango.run(&["sessions", "list"]).ok();
    server.ask("hello");
    let (_, code) = server.end();
    assert_eq!(code, Some(0));
    let log = fs::metadata(lango.home().join("lango.db-wal"));
    assert_eq!(log.map_or(0, |log| log.len()), 0);
    let alone = lango.home().join("alone.db");
    fs::copy(lango.home().join("lango.db"), &alone).unwrap();
    let store = format!("session.store=sqlite:{}", alone.display());
    let list = ["sessions", "list", "--json", "-c", "session.user=a2a", "-c"];
    let listed = lango.run(&[&list[..], &[&store]].concat()).ok().json();
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed:#}");
}
