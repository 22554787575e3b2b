//! What a server does when approvals are forgotten, when it crashed, when its database is moved or upgraded beneath it, and when
//! the clock is wrong; through the real binary.

use crate::archive::waiting;
use crate::lango::{Lango, PATIENCE, of_type, text};
use crate::restoring::{CommandModel, start, until};
use crate::serve::{Serving, message};
use lango_testkit::postgres;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Sends a message in a conversation, and returns the task.
fn send(serving: &Serving, text: &str, context: &str) -> Value {
    let mut message = message(text);
    message["message"]["contextId"] = json!(context);
    serving.rpc("SendMessage", message)["result"]["task"].clone()
}

/// The tasks of a list, by state.
fn states(serving: &Serving, filter: Value) -> Vec<String> {
    let listed = serving.rpc("ListTasks", filter);
    let tasks = listed["result"]["tasks"].as_array().unwrap().clone();
    let state = |task: &Value| text(&task["status"]["state"]).to_owned();
    tasks.iter().map(state).collect()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "it never {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

const WRITE: &str = "create notes/a.md with the word hi";

#[test]
fn an_approval_that_nobody_answers_expires_and_its_task_fails() {
    let lango = Lango::new();
    // What the user asked for, and not a caller, does not expire.
    let own = waiting(&lango);
    let serving = Serving::start_with(lango, &["-c", "approval.expiry=3s"]);
    let task = send(&serving, WRITE, "c-1");
    assert_eq!(task["status"]["state"], "TASK_STATE_AUTH_REQUIRED");
    let pending = || {
        let listed = serving
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
    let before = of_type(&serving.lango.events(&session), "agent.message").len();
    // Another caller is not affected by what waits.
    let other = send(&serving, "hello", "c-2");
    assert_eq!(other["status"]["state"], "TASK_STATE_COMPLETED", "{other}");
    let started = Instant::now();
    wait_for("expired", || {
        states(&serving, json!({ "contextId": "c-1" })) == ["TASK_STATE_FAILED"]
    });
    assert!(
        started.elapsed() > Duration::from_secs(1),
        "it expired too early"
    );
    let got = serving.rpc("GetTask", json!({ "id": task["id"] }));
    assert!(got.to_string().contains("not answered in time"), "{got}");
    let events = serving.lango.events(&session);
    let answers = of_type(&events, "approval.answered");
    assert_eq!(answers.len(), 1, "{events:#?}");
    assert_eq!(
        (&answers[0]["answer"], &answers[0]["by"]),
        (&json!("no"), &json!("expired"))
    );
    let said = of_type(&events, "agent.message");
    // The last message is lango's own: no model was asked again.
    assert_eq!(said.len(), before + 1, "{events:#?}");
    assert_eq!(said[before]["model"], Value::Null);
    assert_eq!(of_type(&events, "tool.called").len(), 0);
    assert!(!serving.lango.workspace().join("notes/a.md").exists());
    assert_eq!(pending(), [own]);
    let shown = serving.lango.run(&["sessions", "show", &session]).ok();
    assert!(
        shown.stdout.contains("nobody answered in time"),
        "{shown:#?}"
    );
    // The conversation is free again.
    let next = send(&serving, "hello", "c-1");
    assert_eq!(next["status"]["state"], "TASK_STATE_COMPLETED", "{next}");
}

#[test]
fn a_list_shows_the_state_after_an_approval() {
    let serving = Serving::start();
    let task = send(&serving, WRITE, "c-1");
    assert_eq!(task["status"]["state"], "TASK_STATE_AUTH_REQUIRED");
    assert_eq!(states(&serving, json!({})), ["TASK_STATE_AUTH_REQUIRED"]);
    let listed = serving
        .lango
        .run(&["approvals", "list", "--json"])
        .ok()
        .json();
    let id = text(&listed["waiting"][0]["id"]).to_owned();
    serving.lango.run(&["approvals", "answer", &id, "yes"]).ok();
    let completed = json!({ "status": "TASK_STATE_COMPLETED" });
    assert_eq!(states(&serving, completed), ["TASK_STATE_COMPLETED"]);
    assert_eq!(states(&serving, json!({})), ["TASK_STATE_COMPLETED"]);
}

#[test]
fn a_move_is_refused_while_a_server_uses_either_database() {
    let mut serving = Serving::start();
    serving.say("hello");
    let own = format!("sqlite:{}", serving.lango.database().display());
    for (from, to) in [(&own[..], "sqlite:new.db"), ("sqlite:old.db", &own)] {
        serving.lango.file("old.db", "");
        let ran = serving.lango.run(&["store", "move", from, to]);
        ran.refused(2, &["a server uses", "stop `lango serve`"]);
        let _ = fs::remove_file(serving.lango.workspace().join("new.db"));
    }
    serving.end();
    serving
        .lango
        .run(&["store", "move", &own, "sqlite:new.db"])
        .ok();
    let address = postgres::empty();
    let store = format!("session.store={address}");
    let lango = serving.lango.beside();
    let mut serving = Serving::start_with(lango, &["-c", &store]);
    serving.say("hello");
    // The server marks a new schema shortly after it created it.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let ran = serving
        .lango
        .run(&["store", "move", &address, "sqlite:newer.db"]);
    ran.refused(2, &["a server uses", "stop `lango serve`"]);
    let _ = fs::remove_file(serving.lango.workspace().join("newer.db"));
    serving.end();
    serving
        .lango
        .run(&["store", "move", &address, "sqlite:newer.db"])
        .ok();
}

#[test]
fn a_server_stops_when_a_newer_lango_upgrades_its_database() {
    let mut serving = Serving::start();
    serving.say("hello");
    let database = Connection::open(serving.lango.database()).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    let (said, code) = serving.wait();
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("a newer lango has upgraded the database"),
        "{said}"
    );
    let address = postgres::empty();
    let store = format!("session.store={address}");
    let mut serving = Serving::start_with(Lango::new(), &["-c", &store]);
    psql(
        &address,
        "INSERT INTO lango_migrations (version, name) VALUES (999, 'newer')",
    );
    let (said, code) = serving.wait();
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("a newer lango has upgraded the database"),
        "{said}"
    );
}

pub fn psql(address: &str, statement: &str) {
    query(address, statement);
}

/// Runs a statement, and returns what psql prints.
pub fn query(address: &str, statement: &str) -> String {
    let mut psql = Command::new(postgres::programs().join("psql"));
    let ran = psql.args(["-qAt", "-v", "ON_ERROR_STOP=1", "-c", statement, address]);
    let ran = ran.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// A command that says that it runs, and runs until the file `go` exists.
const LONG_COMMAND: &str = "echo ran >> effects.txt; while [ ! -e go ]; do sleep 0.05; done";

fn effects(lango: &Lango) -> usize {
    let lines = fs::read_to_string(lango.workspace().join("effects.txt"));
    lines.map_or(0, |lines| lines.lines().count())
}

/// Starts a task whose command runs.
fn running_command(serving: &Serving) -> Value {
    let mut message = message("deploy it");
    message["configuration"] = json!({ "returnImmediately": true });
    let task = serving.rpc("SendMessage", message)["result"]["task"]["id"].take();
    wait_for("ran", || effects(&serving.lango) == 1);
    task
}

#[test]
fn a_server_that_crashed_takes_its_leases_over_at_once() {
    let address = postgres::empty();
    let store = format!("session.store={address}");
    let lango = Lango::new();
    let model = CommandModel::new(LONG_COMMAND, || ());
    let arguments = model.arguments(&["-c", &store, "-c", "session.lease=40s"]);
    let serving = start(lango.beside(), &arguments);
    let task = running_command(&serving);
    drop(serving);
    let serving = start(lango.beside(), &arguments);
    let started = Instant::now();
    until(&serving, &task, "TASK_STATE_AUTH_REQUIRED");
    let taken_over = started.elapsed();
    assert!(
        taken_over < Duration::from_secs(10),
        "it took {taken_over:?}"
    );
    assert_eq!(effects(&lango), 1);
    lango.file("go", "");
}

#[test]
fn a_server_in_a_copy_of_the_folder_takes_over_nothing_from_one_that_runs() {
    let address = postgres::empty();
    let store = format!("session.store={address}");
    let lango = Lango::new();
    let model = CommandModel::new(LONG_COMMAND, || ());
    let arguments = model.arguments(&["-c", &store, "-c", "session.lease=10s"]);
    let first = start(lango.beside(), &arguments);
    let task = running_command(&first);
    let copy = lango.home().with_file_name("copied-home");
    let copied = Command::new("cp")
        .arg("-a")
        .args([lango.home(), &copy])
        .status();
    assert!(copied.unwrap().success());
    // One in a copied folder, and one in the same folder.
    let second = start(lango.beside().at_home(&copy), &arguments);
    let third = start(lango.beside(), &arguments);
    thread::sleep(Duration::from_secs(5));
    for serving in [&first, &second, &third] {
        until(serving, &task, "TASK_STATE_WORKING");
    }
    lango.file("go", "");
    until(&first, &task, "TASK_STATE_COMPLETED");
    assert_eq!(effects(&lango), 1);
}

#[test]
fn a_clock_that_is_far_ahead_deletes_nothing() {
    let lango = Lango::new();
    let session = lango.session("hello");
    // By a clock that is a year ahead, all sessions are a year old.
    let database = Connection::open(lango.database()).unwrap();
    let year = 365_i64 * 24 * 60 * 60 * 1000;
    let aged = database.execute("UPDATE sessions SET updated = updated - ?1", [year]);
    assert_eq!(aged.unwrap(), 1);
    let mut serving = Serving::start_with(lango, &["-c", "session.ttl=30d"]);
    let said = serving.until_said("session.ttl deletes nothing");
    assert!(said.contains("lango sessions delete --expired"), "{said}");
    serving.lango.run(&["sessions", "show", &session]).ok();
    let delete = [
        "sessions",
        "delete",
        "--expired",
        "--yes",
        "-c",
        "session.ttl=30d",
    ];
    serving.lango.run(&delete).ok();
    assert_eq!(
        serving.lango.run(&["sessions", "show", &session]).code,
        Some(2)
    );
}
