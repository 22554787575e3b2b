//! A repository that a command planted is gone when lango is gone, whatever ended it.

use crate::lango::{Lango, PATIENCE, Ran, finish_child};
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

fn planted(lango: &Lango) -> PathBuf {
    lango.workspace().join("docs/.git")
}

/// A lango whose command has planted a repository and stays.
fn planting(lango: &Lango, more: &[&str]) -> Child {
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
    while !planted(lango).join("config").exists() {
        assert!(since.elapsed() < PATIENCE, "the command did not start");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

fn assert_clean(lango: &Lango, ran: &Ran) {
    assert!(!planted(lango).exists(), "{ran:#?}");
}

#[test]
fn a_job_that_still_runs_at_a_normal_exit_is_cleaned_up_after() {
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
fn an_interrupt_from_the_terminal_is_followed_by_the_clean_up() {
    let lango = Lango::new();
    let child = planting(&lango, &[]);
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    assert_clean(&lango, &finish_child(child, b"").exits(130));
}

#[test]
fn a_request_to_end_is_followed_by_the_clean_up() {
    let lango = Lango::new();
    let child = planting(&lango, &[]);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_clean(&lango, &finish_child(child, b""));
}

#[test]
fn the_time_limit_of_a_turn_is_followed_by_the_clean_up() {
    let lango = Lango::new();
    let child = planting(&lango, &["-c", "agent.turnTimeout=3s"]);
    assert_clean(&lango, &finish_child(child, b""));
}

#[test]
fn after_a_kill_the_clean_up_goes_on_and_the_next_start_reports_it() {
    let lango = Lango::new();
    let child = planting(&lango, &[]);
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    finish_child(child, b"");
    let since = Instant::now();
    while planted(&lango).exists() {
        assert!(since.elapsed() < PATIENCE, "it is still there");
        thread::sleep(Duration::from_millis(5));
    }
    let mut said = String::new();
    while said.is_empty() && since.elapsed() < PATIENCE {
        said = lango.run(&["run", "-q", "hello"]).ok().stderr;
    }
    assert!(said.contains("/docs/.git`: moved to the trash"), "{said}");
    let again = lango.run(&["run", "-q", "hello"]).ok().stderr;
    assert!(!again.contains("trash"), "{again}");
}

#[test]
fn what_was_removed_after_a_command_is_in_the_list_of_the_trash() {
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
    assert!(emptied.starts_with("1 thing"), "{emptied}");
    assert!(
        lango
            .run(&["trash"])
            .ok()
            .stdout
            .contains("the trash is empty")
    );
}

#[test]
fn a_repository_that_a_command_creates_is_removed_with_a_word_unless_that_is_allowed() {
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
