//! Agents that work at the same time.

use super::tmux::{NARROW, Tmux, WIDE};
use super::{last_seconds, spinner_rows};
use crate::lango::Lango;
use crate::models::{Provider, flags};
use lango_testkit::model::{call, calls, say};
use lango_testkit::wire_server::ScriptedAnswer;
use serde_json::json;
use std::time::Duration;

/// Starts a provider whose orchestrator delegates to two agents at once. Each of them takes its time.
pub(super) fn two_slow_agents() -> Provider {
    Provider::answering(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        let is_first = messages.last().unwrap()["role"] == "user";
        let is_root = request.functions().iter().any(|name| name == "delegate");
        let says = |text: &str| request.body.to_string().contains(text);
        match (is_root, is_first) {
            (true, true) => calls([
                (
                    "delegate",
                    json!({ "agent": "operator", "task": "list the files" }),
                ),
                (
                    "delegate",
                    json!({ "agent": "planner", "task": "plan the day" }),
                ),
            ])
            .into(),
            (true, false) => say("Both are done.").into(),
            (false, _) if says("plan the day") => {
                ScriptedAnswer::from(say("A plan.")).after(Duration::from_millis(2500))
            }
            (false, _) => ScriptedAnswer::from(say("Files.")).after(Duration::from_millis(1500)),
        }
    })
}

#[test]
fn agents_that_work_at_the_same_time_are_a_tree_and_each_ends_with_its_time() {
    for size in [WIDE, NARROW] {
        let provider = two_slow_agents();
        let lango = Lango::new();
        let terminal = Tmux::chat(&lango, size, provider.server.url());
        terminal.say("go");
        let screen = terminal.wait_until("a tree with both agents", |screen| {
            branch(screen, "├─", "operator") && branch(screen, "└─", "planner")
        });
        assert!(screen.contains("→ operator  list the files"), "{screen}");
        assert!(screen.contains("→ planner  plan the day"), "{screen}");
        assert!(
            spinner_rows(&screen)[0].contains("2 agents at work"),
            "{screen}"
        );

        // The other one goes on when the first is done.
        let screen = terminal.wait_for("✓ operator");
        assert!(screen.contains("planner  thinking"), "{screen}");
        let screen = terminal.wait_for("4 model calls");
        for (agent, seconds) in [("operator", 1.5), ("planner", 2.5)] {
            let ends = screen.lines().filter(|row| {
                let row = row.strip_prefix("✓ ").unwrap_or_default();
                row.starts_with(agent)
            });
            let ends: Vec<&str> = ends.collect();
            assert_eq!(ends.len(), 1, "{screen}");
            assert!(last_seconds(ends[0]).unwrap() >= seconds, "{screen}");
        }
        assert!(!screen.contains("├─") && !screen.contains("└─"), "{screen}");
        terminal.assert_no_line_is_too_long();
    }
}

/// Starts a provider with two agents: the operator wants to write a file, and the planner plans for this time.
fn writer_and_planner(time: Duration) -> Provider {
    Provider::answering(move |request| {
        let messages = request.body["messages"].as_array().unwrap();
        let is_first = messages.last().unwrap()["role"] == "user";
        let is_root = request.functions().iter().any(|name| name == "delegate");
        let is_operator = request.functions().iter().any(|name| name == "fs_write");
        match (is_root, is_first) {
            (true, true) => calls([
                ("delegate", json!({ "agent": "operator", "task": "write" })),
                ("delegate", json!({ "agent": "planner", "task": "plan" })),
            ])
            .into(),
            (true, false) => say("Both are done.").into(),
            (false, true) if is_operator => {
                call("fs_write", json!({ "path": "new.md", "content": "x" })).into()
            }
            (false, false) => say("Written.").into(),
            (false, true) => ScriptedAnswer::from(say("A plan.")).after(time),
        }
    })
}

#[test]
fn a_question_is_asked_and_answered_while_another_agent_works() {
    let provider = writer_and_planner(Duration::from_secs(6));
    for size in [WIDE, NARROW] {
        let lango = Lango::new();
        let terminal = Tmux::chat(&lango, size, provider.server.url());
        terminal.say("go");
        let screen = terminal.wait_for("press a key");
        // Nothing of another agent stands next to the question, where it could be taken for a part of it.
        assert!(screen.contains("1 agent at work"), "{screen}");
        assert!(!screen.contains("planner  thinking"), "{screen}");
        terminal.press(&["y"]);
        let screen = terminal.wait_for("✓ write new.md");
        assert!(!screen.contains("✓ planner"), "{screen}");
        let screen = terminal.wait_for("5 model calls");
        assert!(screen.contains("└ allowed once"), "{screen}");
        assert!(screen.contains("operator: Written."), "{screen}");
        assert!(lango.workspace().join("new.md").exists());
    }
}

#[test]
fn events_of_another_agent_do_not_push_a_question_off_the_screen() {
    let provider = writer_and_planner(Duration::from_secs(3));
    let lango = Lango::new();
    let mut arguments = flags("openai", provider.server.url());
    arguments.extend(["run", "--jsonl", "go"].map(str::to_owned));
    let terminal = Tmux::start(&lango, WIDE, &arguments, &[]);
    let screen = terminal.wait_for("press a key");
    assert!(screen.contains("1 agent at work"), "{screen}");
    let screen = terminal.wait_until("the end of the planner's work", |screen| {
        !screen.contains("at work")
    });
    let (_, question) = screen.split_once("┌ operator wants to use").unwrap();
    assert!(!question.contains("planner"), "{screen}");
    terminal.press(&["y"]);
    assert_eq!(terminal.exit_code(), 0);
    let scrollback = terminal.scrollback().replace('\n', "");
    assert!(scrollback.contains("\"A plan.\""), "{scrollback}");
}

fn branch(screen: &str, mark: &str, agent: &str) -> bool {
    screen
        .lines()
        .any(|row| row.starts_with(mark) && row.contains(&format!(" {agent}  thinking")))
}
