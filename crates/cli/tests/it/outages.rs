//! A server with unanswered approvals, after a crash, with a database that is moved or upgraded while it runs, and with
//! a wrong clock; through the real binary.

use crate::archive::waiting_session;
use crate::lango::{Lango, TIMEOUT, of_type, text};
use crate::restored_backups::{CommandModel, start, wait_for_state};
use crate::serve::{TestServer, message};
use lango_testkit::postgres;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Sends a message in a conversation, and returns the task.
fn send(server: &TestServer, text: &str, context: &str) -> Value {
    let mut message = message(text);
    message["message"]["contextId"] = json!(context);
    server.rpc("SendMessage", message)["result"]["task"].clone()
}

/// Returns the states of the listed tasks.
fn states(server: &TestServer, filter: Value) -> Vec<String> {
    let listed = server.rpc("ListTasks", filter);
    let tasks = listed["result"]["tasks"].as_array().unwrap().clone();
    let state = |task: &Value| text(&task["status"]["state"]).to_owned();
    tasks.iter().map(state).collect()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < TIMEOUT, "timeout: it never {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

const WRITE: &str = "create notes/a.md with the word hi";

#[test]
fn an_unanswered_approval_expires_and_its_task_fails() {
    let lango = Lango::new();
    // An approval of the local user does not expire, only those of A2A clients.
    let own = waiting_session(&lango);
    let server = TestServer::start_with(lango, &["-c", "approval.expiry=3s"]);
    let task = send(&server, WRITE, "c-1");
    assert_eq!(task["status"]["state"], "TASK_STATE_AUTH_REQUIRED");
    let pending = || {
        let listed = server
            .lango
            .run(&["approvals", "list", "--json"])
            .ok()
            .json();
        let pending = listed["waiting"].as_array().unwrap().clone();
        let sessions = pending
            .iter()
            .map(|waiting| text(&waiting["session"]).to_owned());
        sessions.collect::<Vec<_>>()
    };
    let session = pending()
        .into_iter()
        .find(|session| *session != own)
        .unwrap();
    let before = of_type(&server.lango.events(&session), "agent.message").len();
    // The waiting approval does not affect another conversation.
    let other = send(&server, "hello", "c-2");
    assert_eq!(other["status"]["state"], "TASK_STATE_COMPLETED", "{other}");
    let started = Instant::now();
    wait_for("expired", || {
        states(&server, json!({ "contextId": "c-1" })) == ["TASK_STATE_FAILED"]
    });
    assert!(
        started.elapsed() > Duration::from_secs(1),
        "it expired too early"
    );
    let got = server.rpc("GetTask", json!({ "id": task["id"] }));
    assert!(got.to_string().contains("not answered in time"), "{got}");
    let events = server.lango.events(&session);
    let answers = of_type(&events, "approval.answered");
    assert_eq!(answers.len(), 1, "{events:#?}");
    assert_eq!(
        (&answers[0]["answer"], &answers[0]["by"]),
        (&json!("no"), &json!("expired"))
    );
    let messages = of_type(&events, "agent.message");
    // The last message comes from lango: no model was called again.
    assert_eq!(messages.len(), before + 1, "{events:#?}");
    assert_eq!(messages[before]["model"], Value::Null);
    assert_eq!(of_type(&events, "tool.called").len(), 0);
    assert!(!server.lango.workspace().join("notes/a.md").exists());
    assert_eq!(pending(), [own]);
    let shown = server.lango.run(&["sessions", "show", &session]).ok();
    assert!(shown.stdout.contains("no answer in time"), "{shown:#?}");
    // The conversation is free again.
    let next = send(&server, "hello", "c-1");
    assert_eq!(next["status"]["state"], "TASK_STATE_COMPLETED", "{next}");
}

#[test]
fn a_list_shows_the_state_after_an_approval() {
    let server = TestServer::start();
    let task = send(&server, WRITE, "c-1");
    assert_eq!(task["status"]["state"], "TASK_STATE_AUTH_REQUIRED");
    assert_eq!(states(&server, json!({})), ["TASK_STATE_AUTH_REQUIRED"]);
    let listed = server
        .lango
        .run(&["approvals", "list", "--json"])
        .ok()
        .json();
    let id = text(&listed["waiting"][0]["id"]).to_owned();
    server.lango.run(&["approvals", "answer", &id, "yes"]).ok();
    let completed = json!({ "status": "TASK_STATE_COMPLETED" });
    assert_eq!(states(&server, completed), ["TASK_STATE_COMPLETED"]);
    assert_eq!(states(&server, json!({})), ["TASK_STATE_COMPLETED"]);
}

#[test]
fn a_move_is_refused_while_a_server_uses_either_database() {
    let mut server = TestServer::start();
    server.ask("hello");
    let own = format!("sqlite:{}", server.lango.database().display());
    for (from, to) in [(&own[..], "sqlite:new.db"), ("sqlite:old.db", &own)] {
        server.lango.file("old.db", "");
        let ran = server.lango.run(&["store", "move", from, to]);
        ran.refused(2, &["a server is using", "stop `lango serve`"]);
        let _ = fs::remove_file(server.lango.workspace().join("new.db"));
    }
    server.end();
    server
        .lango
        .run(&["store", "move", &own, "sqlite:new.db"])
        .ok();
    let address = postgres::fresh_schema();
    let store = format!("session.store={address}");
    let lango = server.lango.sibling();
    let mut server = TestServer::start_with(lango, &["-c", &store]);
    server.ask("hello");
    // The server marks a new schema as in use shortly after creating it.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let ran = server
        .lango
        .run(&["store", "move", &address, "sqlite:newer.db"]);
    ran.refused(2, &["a server is using", "stop `lango serve`"]);
    let _ = fs::remove_file(server.lango.workspace().join("newer.db"));
    server.end();
    server
        .lango
        .run(&["store", "move", &address, "sqlite:newer.db"])
        .ok();
}

#[test]
fn a_server_stops_when_a_newer_lango_upgrades_its_database() {
    let mut server = TestServer::start();
    server.ask("hello");
    let database = Connection::open(server.lango.database()).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    let (printed, code) = server.wait();
    assert_eq!(code, Some(3), "{printed}");
    assert!(
        printed.contains("a newer lango has upgraded the database"),
        "{printed}"
    );
    let address = postgres::fresh_schema();
    let store = format!("session.store={address}");
    let mut server = TestServer::start_with(Lango::new(), &["-c", &store]);
    psql(
        &address,
        "INSERT INTO lango_migrations (version, name) VALUES (999, 'newer')",
    );
    let (printed, code) = server.wait();
    assert_eq!(code, Some(3), "{printed}");
    assert!(
        printed.contains("a newer lango has upgraded the database"),
        "{printed}"
    );
}

pub(crate) fn psql(address: &str, statement: &str) {
    query(address, statement);
}

/// Runs a statement, and returns what psql prints.
pub(crate) fn query(address: &str, statement: &str) -> String {
    let mut psql = Command::new(postgres::programs().join("psql"));
    let ran = psql.args(["-qAt", "-v", "ON_ERROR_STOP=1", "-c", statement, address]);
    let ran = ran.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// A command that records that it ran, and runs until the file `go` exists.
const LONG_COMMAND: &str = "echo ran >> effects.txt; while [ ! -e go ]; do sleep 0.05; done";

fn effects(lango: &Lango) -> usize {
    let lines = fs::read_to_string(lango.workspace().join("effects.txt"));
    lines.map_or(0, |lines| lines.lines().count())
}

/// Starts a task and waits until its command runs.
fn running_command(server: &TestServer) -> Value {
    let mut message = message("deploy it");
    message["configuration"] = json!({ "returnImmediately": true });
    let task = server.rpc("SendMessage", message)["result"]["task"]["id"].take();
    wait_for("ran", || effects(&server.lango) == 1);
    task
}

#[test]
fn a_restarted_server_takes_over_its_own_leases_immediately() {
    let address = postgres::fresh_schema();
    let store = format!("session.store={address}");
    let lango = Lango::new();
    let model = CommandModel::new(LONG_COMMAND, || ());
    let arguments = model.arguments(&["-c", &store, "-c", "session.lease=40s"]);
    let server = start(lango.sibling(), &arguments);
    let task = running_command(&server);
    drop(server);
    let server = start(lango.sibling(), &arguments);
    let started = Instant::now();
    wait_for_state(&server, &task, "TASK_STATE_AUTH_REQUIRED");
    let taken_over = started.elapsed();
    assert!(
        taken_over < Duration::from_secs(10),
        "it took {taken_over:?}"
    );
    assert_eq!(effects(&lango), 1);
    lango.file("go", "");
}

#[test]
fn a_server_in_a_copied_home_does_not_take_over_from_a_running_one() {
    let address = postgres::fresh_schema();
    let store = format!("session.store={address}");
    let lango = Lango::new();
    let model = CommandModel::new(LONG_COMMAND, || ());
    let arguments = model.arguments(&["-c", &store, "-c", "session.lease=10s"]);
    let first = start(lango.sibling(), &arguments);
    let task = running_command(&first);
    let copy = lango.home().with_file_name("copied-home");
    let copied = Command::new("cp")
        .arg("-a")
        .args([lango.home(), &copy])
        .status();
    assert!(copied.unwrap().success());
    // Start one server in the copied home, and one in the same home.
    let second = start(lango.sibling().using_home(&copy), &arguments);
    let third = start(lango.sibling(), &arguments);
    thread::sleep(Duration::from_secs(5));
    for server in [&first, &second, &third] {
        wait_for_state(server, &task, "TASK_STATE_WORKING");
    }
    lango.file("go", "");
    wait_for_state(&first, &task, "TASK_STATE_COMPLETED");
    assert_eq!(effects(&lango), 1);
}

#[test]
fn a_clock_that_is_far_ahead_does_not_expire_sessions() {
    let lango = Lango::new();
    let session = lango.session("hello");
    // To a clock that is a year ahead, all sessions seem a year old.
    let database = Connection::open(lango.database()).unwrap();
    let year = 365_i64 * 24 * 60 * 60 * 1000;
    let aged = database.execute("UPDATE sessions SET updated = updated - ?1", [year]);
    assert_eq!(aged.unwrap(), 1);
    let mut server = TestServer::start_with(lango, &["-c", "session.ttl=30d"]);
    let printed = server.wait_for_output("session.ttl deletes nothing");
    assert!(
        printed.contains("lango sessions delete --expired"),
        "{printed}"
    );
    server.lango.run(&["sessions", "show", &session]).ok();
    let delete = [
        "sessions",
        "delete",
        "--expired",
        "--yes",
        "-c",
        "session.ttl=30d",
    ];
    server.lango.run(&delete).ok();
    assert_eq!(
        server.lango.run(&["sessions", "show", &session]).code,
        Some(2)
    );
}
