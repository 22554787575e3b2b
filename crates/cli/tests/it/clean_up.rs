//! Clean-up removes a repository that a command planted, however lango ends.

use crate::lango::{Lango, RunResult, TIMEOUT, finish_child};
use crate::models::{self, Provider, flags};
use lango_testkit::model::{call, delegate_and_finish, say};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::json;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const ALLOW: &str = r#"approval.rules=[{action="allow"}]"#;
const PLANT: &str = "mkdir -p docs/.git && echo '[core] fsmonitor=x' > docs/.git/config";

fn planted_path(lango: &Lango) -> PathBuf {
    lango.workspace().join("docs/.git")
}

/// Starts a lango whose command has planted a repository and keeps running.
fn start_planting(lango: &Lango, more: &[&str]) -> Child {
    let question = format!("run `{PLANT}; sleep 600`");
    let arguments: Vec<&str> = ["-c", ALLOW]
        .iter()
        .chain(more)
        .chain(&["run", &question])
        .copied()
        .collect();
    let child = lango
        .command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let since = Instant::now();
    while !planted_path(lango).join("config").exists() {
        assert!(since.elapsed() < TIMEOUT, "the command did not start");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

fn assert_clean(lango: &Lango, ran: &RunResult) {
    assert!(!planted_path(lango).exists(), "{ran:#?}");
}

#[test]
fn clean_up_runs_for_a_job_that_still_runs_at_exit() {
    let lango = Lango::new();
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "start"),
        call(
            "exec_bg",
            json!({ "command": format!("{PLANT}; touch done; sleep 600") }),
        ),
        call(
            "exec",
            json!({ "command": "while [ ! -e done ]; do sleep 0.01; done" }),
        ),
        say("Started."),
    ]);
    let model = flags("openai", provider.server.url());
    let ran = models::run(&lango, &model, &["-c", ALLOW, "start it"]).ok();
    assert_clean(&lango, &ran);
    assert!(
        ran.stderr.contains("/docs/.git`: moved to the trash"),
        "{ran:#?}"
    );
}

#[test]
fn clean_up_runs_after_an_interrupt_from_the_terminal() {
    let lango = Lango::new();
    let child = start_planting(&lango, &[]);
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    assert_clean(&lango, &finish_child(child, b"").exits(130));
}

#[test]
fn clean_up_runs_after_sigterm() {
    let lango = Lango::new();
    let child = start_planting(&lango, &[]);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_clean(&lango, &finish_child(child, b""));
}

#[test]
fn clean_up_runs_after_the_turn_timeout() {
    let lango = Lango::new();
    let child = start_planting(&lango, &["-c", "agent.turnTimeout=3s"]);
    assert_clean(&lango, &finish_child(child, b""));
}

#[test]
fn after_a_kill_the_clean_up_still_runs_and_the_next_start_reports_it() {
    let lango = Lango::new();
    let child = start_planting(&lango, &[]);
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    finish_child(child, b"");
    let since = Instant::now();
    while planted_path(&lango).exists() {
        assert!(since.elapsed() < TIMEOUT, "the repository was not removed");
        thread::sleep(Duration::from_millis(5));
    }
    let mut printed = String::new();
    while printed.is_empty() && since.elapsed() < TIMEOUT {
        printed = lango.run(&["run", "-q", "hello"]).ok().stderr;
    }
    assert!(
        printed.contains("/docs/.git`: moved to the trash"),
        "{printed}"
    );
    let again = lango.run(&["run", "-q", "hello"]).ok().stderr;
    assert!(!again.contains("trash"), "{again}");
}

#[test]
fn the_trash_lists_what_clean_up_removed() {
    let lango = Lango::new();
    let question = format!("run `{PLANT}`");
    lango.run(&["-c", ALLOW, "run", "-q", &question]).ok();
    let listed = lango.run(&["trash"]).ok();
    assert!(
        listed.stdout.starts_with("created by a command: .git."),
        "{listed:#?}"
    );
    assert!(
        listed.stderr.contains("trash/after-commands"),
        "{listed:#?}"
    );
    let emptied = lango.run(&["trash", "empty"]).ok().stdout;
    assert!(emptied.starts_with("1 item"), "{emptied}");
    assert!(
        lango
            .run(&["trash"])
            .ok()
            .stdout
            .contains("the trash is empty")
    );
}

#[test]
fn a_repository_that_a_command_creates_is_removed_with_a_notice_unless_allowed() {
    let lango = Lango::new();
    let init = ["run", "run `git init -q repo`"];
    let run = |more: &[&str]| {
        let arguments: Vec<&str> = ["-c", ALLOW]
            .iter()
            .chain(more)
            .chain(&init)
            .copied()
            .collect();
        lango.run(&arguments).ok()
    };
    let repository = lango.workspace().join("repo/.git");
    let ran = run(&[]);
    assert!(!repository.exists(), "{ran:#?}");
    assert!(
        ran.stderr.contains("/repo/.git`: moved to the trash")
            && ran.stderr.contains("tools.exec.allowGitInit = true"),
        "{ran:#?}"
    );
    let ran = run(&["-c", "tools.exec.allowGitInit=true"]);
    assert!(repository.join("HEAD").exists(), "{ran:#?}");
    assert!(!ran.stderr.contains("trash"), "{ran:#?}");
}
