//! A disk that becomes full or read-only in the middle of a turn: the turn ends with a clear error, nothing
//! acknowledged is lost, and the session continues when the disk is repaired.

use crate::disk::{Disk, FailingDisk};
use crate::lango::{Lango, RunResult, TIMEOUT, field_values, of_type};
use crate::models::{flags, run};
use crate::serve::TestServer;
use lango_core::ModelReply;
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::{RecordedRequest, ScriptedAnswer, WireServer};
use serde_json::{Value, json};
use std::fs;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

type FaultAction = Box<dyn FnOnce() + Send>;

/// A model that causes a fault once, just before its first answer to the operator.
struct FaultInjectingProvider {
    _runtime: Runtime,
    server: WireServer,
}

impl FaultInjectingProvider {
    fn new(fault: impl FnOnce() + Send + 'static) -> Self {
        let runtime = Runtime::new().unwrap();
        let fault: Mutex<Option<FaultAction>> = Mutex::new(Some(Box::new(fault)));
        let script = move |request: &RecordedRequest| {
            let is_operator = request.functions().iter().any(|name| name == "fs_list");
            if is_operator && let Some(fault) = fault.lock().unwrap().take() {
                fault();
            }
            ScriptedAnswer::from(reply(request))
        };
        let server = runtime.block_on(WireServer::start(script));
        Self {
            _runtime: runtime,
            server,
        }
    }

    fn flags(&self) -> Vec<String> {
        flags("openai", self.server.url())
    }
}

fn reply(request: &RecordedRequest) -> ModelReply {
    let messages = request.body["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    let wants_files = last["content"].as_str().unwrap().contains("list the files");
    let can = |name: &str| request.functions().iter().any(|function| function == name);
    if last["role"] != "user" || !wants_files {
        say(&format!("done. {}", "word ".repeat(2000)))
    } else if can("delegate") {
        delegate_and_finish("operator", "list the files")
    } else {
        call("fs_list", json!({}))
    }
}

/// Asserts that the error contains these texts and a next step.
#[track_caller]
fn assert_error(ran: &RunResult, arguments: &[&str]) {
    let error = ran.stderr.find("error: ");
    let error = &ran.stderr[error.unwrap_or_else(|| panic!("{ran:#?}"))..];
    for word in arguments.iter().chain(&["\n  next: "]) {
        assert!(error.contains(word), "no `{word}` in {ran:#?}");
    }
}

/// Asserts that the interrupted second turn of a session was resumed and finished before the third.
fn assert_resumed(lango: &Lango, session: &str) {
    let events = lango.events(session);
    let questions = of_type(&events, "user.message");
    let asked: Vec<_> = questions.iter().map(|event| &event["text"]).collect();
    assert_eq!(asked, ["hello", "list the files", "and now?"]);
    let ends = of_type(&events, "turn.finished");
    let outcomes: Vec<_> = ends.iter().map(|event| &event["outcome"]).collect();
    assert_eq!(outcomes, ["answered"; 3], "{events:#?}");
    let faults = of_type(&events, "turn.corrected");
    assert!(faults.iter().any(|event| event["fault"] == "interrupted"));
    assert_eq!(of_type(&events, "tool.returned").len(), 1);
    let types = field_values(&events, "type");
    assert_eq!(
        types.iter().filter(|kind| **kind == "user.message").count(),
        3
    );
}

#[test]
fn a_turn_on_a_full_disk_fails_clearly_and_is_resumed_when_there_is_space() {
    let disk = Disk::with_size("3m");
    let lango = Lango::with_home(disk.path());
    let folder = disk.path().to_owned();
    let provider = FaultInjectingProvider::new(move || drop(crate::disk::fill(&folder)));
    let flags = provider.flags();
    let ran = run(&lango, &flags, &["--json", "hello"]).ok().json();
    let session = crate::lango::text(&ran["session"]);
    let full = run(&lango, &flags, &["--session", session, "list the files"]);
    let next = format!("lango sessions resume {session}");
    assert_error(&full.exits(1), &["no space left", "lango.db", &next]);
    // A retry on the full disk fails in the same way.
    let again = run(&lango, &flags, &["--session", session, "and now?"]);
    assert_error(&again.exits(1), &["no space left"]);
    fs::remove_file(disk.path().join(crate::disk::BALLAST)).unwrap();
    run(&lango, &flags, &["--session", session, "and now?"]).ok();
    assert_resumed(&lango, session);
}

#[test]
fn a_turn_on_a_read_only_disk_fails_clearly_and_is_resumed_after_the_repair() {
    let mut disk = FailingDisk::new();
    let lango = Lango::with_home(&disk.path());
    let provider = FaultInjectingProvider::new(disk.failure());
    let flags = provider.flags();
    let ran = run(&lango, &flags, &["--json", "hello"]).ok().json();
    let session = crate::lango::text(&ran["session"]);
    let failed = run(&lango, &flags, &["--session", session, "list the files"]);
    assert_error(&failed.exits(3), &["cannot be written", "lango.db"]);
    disk.repair();
    run(&lango, &flags, &["--session", session, "and now?"]).ok();
    assert_resumed(&lango, session);
}

#[test]
fn a_server_on_a_full_disk_accepts_nothing_loses_nothing_and_resumes_when_there_is_space() {
    let disk = Disk::with_size("3m");
    let folder = disk.path().to_owned();
    let provider = FaultInjectingProvider::new(move || drop(crate::disk::fill(&folder)));
    let server = serve(&provider, Lango::with_home(disk.path()));
    let taken = send(&server, "m-1", "list the files");
    let task = taken["result"]["task"]["id"].as_str().unwrap();
    let ballast = disk.path().join(crate::disk::BALLAST);
    wait_until("the disk is full", || ballast.exists());
    let long = format!("hello {}", "again ".repeat(5000));
    let refused = send(&server, "m-2", &long);
    assert!(
        refused.get("error").is_some(),
        "acknowledged without room: {refused}"
    );
    assert!(!is_done(&server, task));
    fs::remove_file(ballast).unwrap();
    wait_until("the task is done", || is_done(&server, task));
    let taken = send(&server, "m-2", &long);
    let other = taken["result"]["task"]["id"].as_str().unwrap();
    wait_until("the other is done", || is_done(&server, other));
    assert_one_turn_each(server, &[task, other]);
}

#[test]
fn a_server_survives_a_read_only_disk_and_its_tasks_are_resumed_after_the_repair() {
    let mut disk = FailingDisk::new();
    let provider = FaultInjectingProvider::new(disk.failure());
    let mut server = serve(&provider, Lango::with_home(&disk.path()));
    let taken = send(&server, "m-1", "list the files");
    let task = taken["result"]["task"]["id"].as_str().unwrap().to_owned();
    wait_until("the disk is read-only", || {
        fs::write(disk.path().join("x"), "").is_err()
    });
    let refused = send(&server, "m-2", "hello");
    assert!(refused.get("error").is_some(), "acknowledged: {refused}");
    let (printed, code) = server.end();
    assert!(code.is_some() && !printed.contains("panicked"), "{printed}");
    // Keep the workspace, because a turn is resumed only in its own folder.
    let lango = std::mem::replace(&mut server.lango, Lango::new());
    drop(server);
    disk.repair();
    let server = serve(&provider, lango);
    wait_until("the task is done", || is_done(&server, &task));
    assert_one_turn_each(server, &[&task]);
}

fn serve(provider: &FaultInjectingProvider, lango: Lango) -> TestServer {
    let flags = provider.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    TestServer::start_with(lango, &flags)
}

fn send(server: &TestServer, id: &str, text: &str) -> Value {
    let message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] });
    let now = json!({ "returnImmediately": true });
    server.rpc(
        "SendMessage",
        json!({ "message": message, "configuration": now }),
    )
}

fn is_done(server: &TestServer, task: &str) -> bool {
    let task = server.rpc("GetTask", json!({ "id": task }));
    task["result"]["status"]["state"] == "TASK_STATE_COMPLETED"
}

fn wait_until(what: &str, is_met: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_met() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Asserts that each task has one answered turn, and that there are no other turns.
fn assert_one_turn_each(mut server: TestServer, tasks: &[&str]) {
    let (printed, code) = server.end();
    assert_eq!(code, Some(0), "{printed}");
    assert!(!printed.contains("panicked"), "{printed}");
    let lango = &server.lango;
    let listed = ["sessions", "list", "--json", "-c", "session.user=a2a"];
    let sessions = lango.run(&listed).ok().json();
    let sessions = sessions.as_array().unwrap().iter();
    let events: Vec<Value> = sessions
        .flat_map(|session| lango.events(session["id"].as_str().unwrap()))
        .collect();
    let mut turns: Vec<&str> = of_type(&events, "turn.finished")
        .iter()
        .filter(|event| event["outcome"] == "answered")
        .map(|event| event["turn"].as_str().unwrap())
        .collect();
    let mut tasks = tasks.to_vec();
    turns.sort_unstable();
    tasks.sort_unstable();
    assert_eq!(turns, tasks);
    assert_eq!(of_type(&events, "user.message").len(), tasks.len());
}
