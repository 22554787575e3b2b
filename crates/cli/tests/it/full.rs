//! A disk that gets full, or turns read-only, in the middle of a turn: the turn ends with a clear error, nothing that was
//! acknowledged is lost, and the same session goes on when the disk is well again.

use crate::disk::{Disk, FailingDisk};
use crate::lango::{Lango, PATIENCE, Ran, each, of_type};
use crate::models::{flags, run};
use crate::serve::Serving;
use lango_core::ModelReply;
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::{Answer, Recorded, WireServer};
use serde_json::{Value, json};
use std::fs;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

type Harm = Box<dyn FnOnce() + Send>;

/// A model that answers by what it is asked, and does harm once, just before it answers for the second time.
struct HarmfulProvider {
    _runtime: Runtime,
    server: WireServer,
}

impl HarmfulProvider {
    fn new(harm: impl FnOnce() + Send + 'static) -> Self {
        let runtime = Runtime::new().unwrap();
        let harm: Mutex<Option<Harm>> = Mutex::new(Some(Box::new(harm)));
        let script = move |request: &Recorded| {
            let is_operator = request.functions().iter().any(|name| name == "fs_list");
            if is_operator && let Some(harm) = harm.lock().unwrap().take() {
                harm();
            }
            Answer::from(reply(request))
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

fn reply(request: &Recorded) -> ModelReply {
    let messages = request.body["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    let wants_files = last["content"].as_str().unwrap().contains("list the files");
    let can = |name: &str| request.functions().iter().any(|function| function == name);
    match last["role"] == "user" && wants_files {
        true if can("delegate") => delegate_and_finish("operator", "list the files"),
        true => call("fs_list", json!({})),
        false => say(&format!("done. {}", "word ".repeat(2000))),
    }
}

/// It says what is wrong, and the next step, after whatever it had to tell before.
#[track_caller]
fn says(ran: &Ran, words: &[&str]) {
    let error = ran.stderr.find("error: ");
    let error = &ran.stderr[error.unwrap_or_else(|| panic!("{ran:#?}"))..];
    for word in words.iter().chain(&["\n  next: "]) {
        assert!(error.contains(word), "no `{word}` in {ran:#?}");
    }
}

/// The two turns of a session of which the first was cut off and went on before the second.
fn went_on(lango: &Lango, session: &str) {
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
    let types = each(&events, "type");
    assert_eq!(
        types.iter().filter(|kind| **kind == "user.message").count(),
        3
    );
}

#[test]
fn a_turn_that_runs_out_of_room_says_so_and_goes_on_when_there_is_room() {
    let disk = Disk::of("3m");
    let lango = Lango::with_home(disk.path());
    let folder = disk.path().to_owned();
    let provider = HarmfulProvider::new(move || drop(crate::disk::fill(&folder)));
    let flags = provider.flags();
    let ran = run(&lango, &flags, &["--json", "hello"]).ok().json();
    let session = crate::lango::text(&ran["session"]);
    let full = run(&lango, &flags, &["--session", session, "list the files"]);
    let next = format!("lango sessions resume {session}");
    says(&full.exits(1), &["no room left", "lango.db", &next]);
    // Nothing of what was said before is lost, and it is still so when it is tried again.
    let again = run(&lango, &flags, &["--session", session, "and now?"]);
    says(&again.exits(1), &["no room left"]);
    fs::remove_file(disk.path().join(crate::disk::BALLAST)).unwrap();
    run(&lango, &flags, &["--session", session, "and now?"]).ok();
    went_on(&lango, session);
}

#[test]
fn a_turn_whose_disk_turns_read_only_says_so_and_goes_on_when_it_is_repaired() {
    let mut disk = FailingDisk::new();
    let lango = Lango::with_home(&disk.path());
    let provider = HarmfulProvider::new(disk.failure());
    let flags = provider.flags();
    let ran = run(&lango, &flags, &["--json", "hello"]).ok().json();
    let session = crate::lango::text(&ran["session"]);
    let failed = run(&lango, &flags, &["--session", session, "list the files"]);
    says(&failed.exits(3), &["cannot be written", "lango.db"]);
    disk.repair();
    run(&lango, &flags, &["--session", session, "and now?"]).ok();
    went_on(&lango, session);
}

#[test]
fn a_server_without_room_takes_nothing_loses_nothing_and_goes_on_when_there_is_room() {
    let disk = Disk::of("3m");
    let folder = disk.path().to_owned();
    let provider = HarmfulProvider::new(move || drop(crate::disk::fill(&folder)));
    let serving = serve(&provider, Lango::with_home(disk.path()));
    let taken = send(&serving, "m-1", "list the files");
    let task = taken["result"]["task"]["id"].as_str().unwrap();
    let ballast = disk.path().join(crate::disk::BALLAST);
    wait_until("the disk is full", || ballast.exists());
    let long = format!("hello {}", "again ".repeat(5000));
    let refused = send(&serving, "m-2", &long);
    assert!(
        refused.get("error").is_some(),
        "acknowledged without room: {refused}"
    );
    assert!(!is_done(&serving, task));
    fs::remove_file(ballast).unwrap();
    wait_until("the task went on", || is_done(&serving, task));
    let taken = send(&serving, "m-2", &long);
    let other = taken["result"]["task"]["id"].as_str().unwrap();
    wait_until("the other is done", || is_done(&serving, other));
    one_turn_each(serving, &[task, other]);
}

#[test]
fn a_server_whose_disk_turns_read_only_stays_and_its_tasks_go_on_after_the_repair() {
    let mut disk = FailingDisk::new();
    let provider = HarmfulProvider::new(disk.failure());
    let mut serving = serve(&provider, Lango::with_home(&disk.path()));
    let taken = send(&serving, "m-1", "list the files");
    let task = taken["result"]["task"]["id"].as_str().unwrap().to_owned();
    wait_until("the disk is read-only", || {
        fs::write(disk.path().join("x"), "").is_err()
    });
    let refused = send(&serving, "m-2", "hello");
    assert!(refused.get("error").is_some(), "acknowledged: {refused}");
    let (said, code) = serving.end();
    assert!(code.is_some() && !said.contains("panicked"), "{said}");
    // The same workspace: a turn goes on where it was begun.
    let lango = std::mem::replace(&mut serving.lango, Lango::new());
    drop(serving);
    disk.repair();
    let serving = serve(&provider, lango);
    wait_until("the task went on", || is_done(&serving, &task));
    one_turn_each(serving, &[&task]);
}

fn serve(provider: &HarmfulProvider, lango: Lango) -> Serving {
    let flags = provider.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Serving::start_with(lango, &flags)
}

fn send(serving: &Serving, id: &str, text: &str) -> Value {
    let message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] });
    let now = json!({ "returnImmediately": true });
    serving.rpc(
        "SendMessage",
        json!({ "message": message, "configuration": now }),
    )
}

fn is_done(serving: &Serving, task: &str) -> bool {
    let task = serving.rpc("GetTask", json!({ "id": task }));
    task["result"]["status"]["state"] == "TASK_STATE_COMPLETED"
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < give_up, "not in time: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Each task is one turn that was answered, and there is no other.
fn one_turn_each(mut serving: Serving, tasks: &[&str]) {
    let (said, code) = serving.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    let lango = &serving.lango;
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
