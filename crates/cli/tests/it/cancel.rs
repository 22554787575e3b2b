//! Ctrl-C outside of a chat: a running turn is cancelled and stored as cancelled; anything else simply exits.

use crate::lango::{Lango, TIMEOUT, finish_child, of_type, text};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Instant;

const INTERRUPT: i32 = 2;

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// Waits until the status of a process meets a condition.
fn wait_until(process: u32, what: &str, is_so: impl Fn(&str) -> bool) {
    let path = format!("/proc/{process}/status");
    let since = Instant::now();
    while !is_so(&fs::read_to_string(&path).unwrap()) {
        assert!(since.elapsed() < TIMEOUT, "the process never {what}");
        thread::yield_now();
    }
}

/// Waits until the first turn of a process runs.
fn wait_for_first_turn(process: u32) {
    wait_until(process, "began the turn", catches_interrupts);
}

/// Returns whether the process handles SIGINT itself, which it does from its first turn on.
fn catches_interrupts(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
    mask & (1 << (INTERRUPT - 1)) != 0
}

/// Returns whether a thread of the process is reading from a pipe.
fn is_reading(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.flatten().any(|thread| {
        let waits_in = fs::read_to_string(thread.path().join("wchan"));
        waits_in.is_ok_and(|place| place.contains("pipe_read"))
    })
}

/// Locks the database, so that a turn has to wait.
pub(crate) fn lock_database(lango: &Lango) -> Connection {
    let connection = Connection::open(lango.database()).unwrap();
    connection.busy_timeout(TIMEOUT).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

pub(crate) fn unlock_database(connection: Connection) {
    connection.execute_batch("ROLLBACK").unwrap();
}

/// Starts a turn that waits for the database, which this test has locked.
fn start_turn(lango: &Lango, arguments: &[&str]) -> (Connection, Child) {
    let connection = lock_database(lango);
    let mut command = lango.command(arguments);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for_first_turn(child.id());
    (connection, child)
}

#[test]
fn an_interrupted_turn_is_stored_as_cancelled_and_exits_with_130() {
    let lango = Lango::new();
    let session = lango.session("hello");
    let arguments = [
        "run",
        "--json",
        "--session",
        &session,
        "what files are here?",
    ];
    let (connection, child) = start_turn(&lango, &arguments);
    interrupt(&child);
    unlock_database(connection);
    let ran = finish_child(child, b"").exits(130);
    let summary = ran.json();
    assert_eq!(summary["outcome"], "cancelled");
    assert!(ran.stderr.contains("stopped\n"), "{ran:#?}");
    let events = lango.events(&session);
    assert_eq!(events[3]["text"], "what files are here?");
    assert_eq!(events.last().unwrap()["outcome"], "cancelled");
    let again = lango.run(&["run", "--session", &session, "what files are here?"]);
    assert!(again.ok().stdout.contains("notes.md"));
}

/// Creates a session whose second turn was interrupted, because its process was killed.
fn interrupted_session(lango: &Lango) -> String {
    lango.create_many_files();
    let session = lango.session("hello");
    let question = "list the files in many/";
    let mut command = lango.command(&["run", "-q", "--jsonl", "--session", &session, question]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let events = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut events = events.map(|line| line.unwrap());
    assert!(events.any(|event| event.contains("\"agent.delegated\"")));
    // Listing takes long enough to lock the database before it is complete.
    let connection = lock_database(lango);
    child.kill().unwrap();
    child.wait().unwrap();
    unlock_database(connection);
    session
}

fn outcomes(lango: &Lango, session: &str) -> Vec<String> {
    let events = lango.events(session);
    let ends = of_type(&events, "turn.finished").into_iter();
    ends.map(|end| text(&end["outcome"]).to_owned()).collect()
}

#[test]
fn a_turn_whose_process_was_killed_is_resumed_before_the_next_one() {
    let lango = Lango::new();
    let session = interrupted_session(&lango);
    let listed = lango.run(&["sessions", "list"]).ok().stdout;
    assert!(listed.contains("(not finished)"), "{listed}");
    let shown = lango.run(&["sessions", "show", &session]).ok().stderr;
    assert!(shown.contains("lango sessions resume"), "{shown}");
    let summary = lango.run(&["run", "--json", "--session", &session, "hello"]);
    assert_eq!(summary.ok().json()["outcome"], "answered");
    assert_eq!(outcomes(&lango, &session), ["answered"; 3]);
    let events = lango.events(&session);
    let numbers = events.iter().map(|event| event["seq"].as_u64().unwrap());
    assert!(numbers.eq(1..=events.len() as u64));
    let listed = lango.run(&["sessions", "list"]).ok().stdout;
    assert!(!listed.contains("finished"), "{listed}");
}

#[test]
fn an_interrupted_turn_is_resumed_in_its_own_folder_or_closed() {
    let lango = Lango::new();
    let session = interrupted_session(&lango);
    let before = lango.events(&session);
    let elsewhere = Lango::with_home(lango.home());
    let folder = lango.workspace().display().to_string();
    let next = format!("lango sessions close {session}");
    let ran = elsewhere.run(&["run", "--session", &session, "hello"]);
    ran.refused(2, &[&folder, &next]);
    assert_eq!(lango.events(&session), before);
    let closed = elsewhere.run(&["sessions", "close", &session]).ok();
    assert!(closed.stdout.contains("closed"), "{closed:#?}");
    assert_eq!(outcomes(&lango, &session), ["answered", "interrupted"]);
    elsewhere.run(&["run", "--session", &session, "hello"]).ok();
    let again = lango.run(&["sessions", "close", &session]).ok();
    assert!(again.stdout.contains("nothing to close"), "{again:#?}");
}

#[test]
fn a_command_that_waits_for_input_exits_immediately_and_stores_nothing() {
    let lango = Lango::new();
    let mut command = lango.command(&["run"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    wait_until(child.id(), "read its input", |_| is_reading(child.id()));
    interrupt(&child);
    let ran = finish_child(child, b"");
    drop(stdin);
    assert_eq!(ran.signal, Some(INTERRUPT), "{ran:#?}");
    assert!(!lango.home().exists());
}

#[test]
fn a_command_that_waits_for_input_says_so_after_a_while() {
    let lango = Lango::new();
    let mut command = lango.command(&["run", "--json", "hello"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let hint = "waiting for the end of standard input; use `< /dev/null` to pass none\n";
    assert_eq!(line, hint);
    drop(child.stdin.take());
    let summary = finish_child(child, b"").ok().json();
    assert_eq!(text(&summary["outcome"]), "answered");
}
