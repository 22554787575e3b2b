//! Approvals: at a terminal, without one, by rules, later, and by other processes.

use crate::lango::{Lango, field_values, finish, of_type, text};
use crate::terminal::Terminal;
use serde_json::Value;
use std::fs;

pub(crate) const CREATE: &str = "create notes/a.md with the word hi";
const ALLOW: &str = r#"approval.rules=[{action="allow",tool="fs_write"}]"#;
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

pub(crate) fn workspace_file(lango: &Lango, path: &str) -> Option<String> {
    fs::read_to_string(lango.workspace().join(path)).ok()
}

/// Runs a question in a terminal until lango asks for an approval. Returns the terminal and what it has shown.
pub(crate) fn run_until_asked(lango: &Lango, question: &str) -> (Terminal, String) {
    let mut terminal = Terminal::start(lango, 100, &["run", question], &[]);
    let shown = terminal.prompt();
    (terminal, shown)
}

/// Returns the events of the only session.
fn only_session_events(lango: &Lango) -> Vec<Value> {
    let listed = lango.run(&["sessions", "list", "--json"]).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    lango.events(text(&listed[0]["id"]))
}

pub(crate) fn waiting_approvals(lango: &Lango) -> Vec<Value> {
    let listed = lango.run(&["approvals", "list", "--json"]).ok().json();
    listed["waiting"].as_array().unwrap().clone()
}

#[test]
fn without_a_terminal_a_write_is_denied_with_exit_code_4_and_the_rule_that_would_allow_it() {
    let lango = Lango::new();
    let ran = lango.run(&["run", CREATE]).exits(4);
    assert!(ran.stdout.contains("no user could be asked"), "{ran:#?}");
    let rule = r#"next: allow it with -c 'approval.rules=[{action="allow",tool="fs_write",match="notes/a.md"}]'"#;
    assert!(
        ran.stderr
            .contains("denied: operator wanted to call fs_write"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains(rule), "{ran:#?}");
    assert_eq!(workspace_file(&lango, "notes/a.md"), None);
    let log = only_session_events(&lango);
    let answered = of_type(&log, "approval.answered");
    assert_eq!(
        (text(&answered[0]["answer"]), text(&answered[0]["by"])),
        ("no", "nobody")
    );
    assert_eq!(of_type(&log, "approval.requested")[0]["agent"], "operator");
    let summary = lango.run(&["run", "--json", CREATE]).exits(4).json();
    assert_eq!(summary["outcome"], "answered");
    assert_eq!(summary["denied"][0]["tool"], "fs_write");
}

#[test]
fn the_suggested_rule_allows_the_call() {
    let lango = Lango::new();
    let ran = lango.run(&["run", CREATE]).exits(4);
    let (_, rule) = ran.stderr.split_once("-c '").unwrap();
    let (rule, _) = rule.split_once("'\n").unwrap();
    lango.run(&["run", "-c", rule, CREATE]).ok();
    assert_eq!(
        workspace_file(&lango, "notes/a.md").as_deref(),
        Some("hi\n")
    );
    let other = "create elsewhere.md with the word hi";
    lango.run(&["run", "-c", rule, other]).exits(4);
}

#[test]
fn a_rule_in_a_flag_or_in_the_users_file_allows_a_call() {
    let lango = Lango::new();
    lango.run(&["-c", ALLOW, "run", CREATE]).ok();
    assert_eq!(
        workspace_file(&lango, "notes/a.md").as_deref(),
        Some("hi\n")
    );
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "[[approval.rules]]\naction = 'allow'\ntool = 'fs_*'\n",
    );
    lango.run(&["run", CREATE]).ok();
    assert!(workspace_file(&lango, "notes/a.md").is_some());
    let deny = r#"approval.rules=[{action="deny",match="*.md"}]"#;
    let ran = lango.run(&["-c", deny, "run", "create b.md with the word hi"]);
    let ran = ran.ok();
    assert!(
        ran.stdout.contains("forbids it") && workspace_file(&lango, "b.md").is_none(),
        "{ran:#?}"
    );
}

#[test]
fn a_projects_file_can_forbid_and_cannot_allow_until_it_is_trusted() {
    let lango = Lango::new();
    lango.file(
        "lango.toml",
        "[[approval.rules]]\naction = 'allow'\n[tools.exec]\nnetwork = true\n",
    );
    let ran = lango.run(&["run", CREATE]).exits(4);
    for part in [
        "ignored because",
        "tools.exec.network",
        "lango config trust",
    ] {
        assert!(ran.stderr.contains(part), "no `{part}` in {ran:#?}");
    }
    lango.run(&["config", "trust", "--yes"]).ok();
    lango.run(&["run", CREATE]).ok();
    let reach = lango.run(&["doctor"]).ok().stdout;
    assert!(
        reach.contains("network: open (tools.exec.network)"),
        "{reach}"
    );
    lango.file(
        "lango.toml",
        "[[approval.rules]]\naction = 'allow'\n# changed\n",
    );
    lango.run(&["run", CREATE]).exits(4);
    lango.run(&["config", "trust", "--yes"]).ok();
    lango.run(&["config", "trust", "--revoke"]).ok();
    lango.run(&["run", CREATE]).exits(4);
    lango.file(
        "lango.toml",
        "[[approval.rules]]\naction = 'deny'\ntool = 'fs_list'\n",
    );
    let ran = lango.run(&["run", "what files are here?"]).ok();
    assert!(ran.stdout.contains("forbids it"), "{ran:#?}");
}

#[test]
fn a_terminal_shows_the_difference_and_yes_allows_the_call_once() {
    let lango = Lango::new();
    lango.file("notes/a.md", "old\n");
    let (mut terminal, shown) = run_until_asked(&lango, CREATE);
    for part in [
        "operator wants to use fs_write",
        "-old",
        "+hi",
        "why: it changes something, and no rule allows it",
    ] {
        assert!(shown.contains(part), "no `{part}` in {shown}");
    }
    assert_eq!(
        workspace_file(&lango, "notes/a.md").as_deref(),
        Some("old\n")
    );
    terminal.press("y");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(
        workspace_file(&lango, "notes/a.md").as_deref(),
        Some("hi\n")
    );
    let log = only_session_events(&lango);
    let answered = of_type(&log, "approval.answered");
    assert_eq!(
        (text(&answered[0]["answer"]), text(&answered[0]["by"])),
        ("once", "person")
    );
    assert_eq!(answered[0]["author"], "user");
    assert_eq!(of_type(&log, "tool.called").len(), 1);
}

#[test]
fn a_no_denies_the_call_and_its_reason_is_sent_to_the_agent() {
    let lango = Lango::new();
    let (mut terminal, _) = run_until_asked(&lango, CREATE);
    terminal.press("n");
    assert_eq!(
        terminal.end().0,
        Some(0),
        "a denial by the user is not a failure"
    );
    assert_eq!(workspace_file(&lango, "notes/a.md"), None);
    let (mut terminal, _) = run_until_asked(&lango, CREATE);
    terminal.press("e");
    terminal.wait_for("why not?");
    terminal.press("not in this folder\r");
    let (_, shown) = terminal.end();
    assert!(
        shown.contains("the user said no: not in this folder"),
        "{shown}"
    );
}

#[test]
fn always_stores_the_edited_pattern_until_it_is_revoked() {
    let lango = Lango::new();
    let (mut terminal, shown) = run_until_asked(&lango, CREATE);
    assert!(!shown.contains("for calls like"), "{shown}");
    terminal.press("p");
    terminal.wait_for("for calls like > ");
    terminal.press("\u{15}notes/*.md");
    terminal.wait_for("for calls like > notes/*.md");
    terminal.press("\r");
    assert_eq!(terminal.end().0, Some(0));
    lango
        .run(&["run", "create notes/b.md with the word two"])
        .ok();
    lango
        .run(&["run", "create notes/b.txt with the word two"])
        .exits(4);
    let listed = lango.run(&["approvals"]).ok().stdout;
    assert!(
        listed.contains("fs_write notes/*.md always in "),
        "{listed}"
    );
    let id = listed
        .split_whitespace()
        .find(|word| word.starts_with("p_"))
        .unwrap();
    lango.run(&["approvals", "revoke", id]).ok();
    lango
        .run(&["run", "create notes/c.md with the word three"])
        .exits(4);
    lango
        .run(&["approvals", "revoke", id])
        .refused(2, &["no grant has the id"]);
}

#[test]
fn a_waiting_turn_survives_a_killed_process_and_the_tool_runs_once() {
    let lango = Lango::new();
    let (terminal, _) = run_until_asked(&lango, "run `echo ran >> count.txt`");
    // Dropping the terminal kills the process while it waits.
    drop(terminal);
    let waiting = waiting_approvals(&lango);
    assert_eq!((waiting.len(), text(&waiting[0]["tool"])), (1, "exec"));
    let session = text(&waiting[0]["session"]);
    let behind = lango.run(&["run", "--session", session, "hello"]);
    behind.refused(4, &["waits for approval", "lango approvals answer p_"]);
    let id = text(&waiting[0]["id"]);
    let ran = lango.run(&["approvals", "answer", id, "yes"]).ok();
    assert!(ran.stdout.contains("exit code 0"), "{ran:#?}");
    assert_eq!(
        workspace_file(&lango, "count.txt").as_deref(),
        Some("ran\n")
    );
    let again = lango.run(&["approvals", "answer", id, "yes"]);
    again.refused(2, &["no pending approval has the id"]);
    assert_eq!(
        workspace_file(&lango, "count.txt").as_deref(),
        Some("ran\n")
    );
    let log = lango.events(session);
    let kinds = field_values(&log, "type");
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "tool.called").count(),
        1
    );
    lango.run(&["run", "--session", session, "hello"]).ok();
}

#[test]
fn a_waiting_call_can_be_denied_with_a_reason_or_granted_with_a_pattern_by_another_process() {
    let lango = Lango::new();
    for (answer, code) in [
        (vec!["no", "--because", "too early"], None),
        (vec!["always", "--pattern", "notes/*"], Some("hi\n")),
    ] {
        let (mut terminal, _) = run_until_asked(&lango, CREATE);
        terminal.press(CTRL_D);
        let (exit, shown) = terminal.end();
        assert_eq!(exit, Some(4), "{shown}");
        assert!(shown.contains("next: lango approvals answer p_"), "{shown}");
        let id = text(&waiting_approvals(&lango)[0]["id"]).to_owned();
        let arguments = [vec!["approvals", "answer", &id], answer].concat();
        let ran = lango.run(&arguments).ok();
        assert_eq!(
            workspace_file(&lango, "notes/a.md").as_deref(),
            code,
            "{ran:#?}"
        );
    }
    lango.run(&["run", CREATE]).ok();
}

#[test]
fn an_answer_from_another_folder_is_refused() {
    let lango = Lango::new();
    let (mut terminal, _) = run_until_asked(&lango, "delete notes.md");
    terminal.press(CTRL_D);
    terminal.end();
    let waiting = waiting_approvals(&lango);
    assert_eq!(
        text(&waiting[0]["folder"]),
        lango.workspace().canonicalize().unwrap().to_str().unwrap()
    );
    let elsewhere = lango.workspace().join("src");
    fs::write(elsewhere.join("notes.md"), "other").unwrap();
    let id = text(&waiting[0]["id"]);
    let mut command = lango.command(&["approvals", "answer", id, "yes"]);
    let ran = finish(command.current_dir(&elsewhere), b"");
    ran.refused(2, &["was requested in", "can only be answered there"]);
    assert!(elsewhere.join("notes.md").exists() && workspace_file(&lango, "notes.md").is_some());
    lango.run(&["approvals", "answer", id, "yes"]).ok();
    assert!(elsewhere.join("notes.md").exists() && workspace_file(&lango, "notes.md").is_none());
}

#[test]
fn an_untrusted_project_can_neither_bring_grants_nor_bypass_a_rule_for_an_agent() {
    let lango = Lango::new();
    lango.file(
        "lango.toml",
        "session.store = 'sqlite:./planted.db'\nagent.multiAgent = false\n",
    );
    lango.home_file(
        "lango.toml",
        "[[approval.rules]]\naction = 'deny'\nagent = 'operator'\ntool = 'fs_list'\n",
    );
    let ran = lango.run(&["run", "what files are here?"]).ok();
    assert!(ran.stdout.contains("forbids it"), "{ran:#?}");
    assert!(ran.stderr.contains("session.store"), "{ran:#?}");
    assert!(lango.database().exists() && !lango.workspace().join("planted.db").exists());
    lango.run(&["config", "trust", "--yes"]).ok();
    let ran = lango.run(&["run", "what files are here?"]).ok();
    assert!(ran.stdout.contains("notes.md"), "{ran:#?}");
    assert!(lango.workspace().join("planted.db").exists());
}

#[test]
fn ctrl_c_at_an_approval_prompt_cancels_the_turn() {
    let lango = Lango::new();
    let (mut terminal, _) = run_until_asked(&lango, CREATE);
    terminal.press(CTRL_C);
    assert_eq!(terminal.end().0, Some(130));
    assert!(waiting_approvals(&lango).is_empty());
    let log = only_session_events(&lango);
    assert_eq!(log.last().unwrap()["outcome"], "cancelled");
    assert_eq!(of_type(&log, "approval.answered")[0]["by"], "turn_ended");
}

#[test]
fn a_chat_continues_after_an_answer_and_asks_again_when_it_is_resumed() {
    let lango = Lango::new();
    let mut terminal = Terminal::start(&lango, 100, &[], &[]);
    terminal.prompt();
    let shown = terminal.say("delete notes.md");
    assert!(shown.contains("operator wants to use fs_delete"), "{shown}");
    terminal.press("y");
    terminal.wait_for("1 tool call");
    terminal.prompt();
    assert_eq!(workspace_file(&lango, "notes.md"), None);
    terminal.say("delete budget.csv");
    terminal.press(CTRL_D);
    terminal.wait_for("waiting: p_");
    terminal.prompt();
    terminal.press(CTRL_D);
    let (_, shown) = terminal.end();
    let (_, session) = shown.split_once("continue: lango resume ").unwrap();
    let session = session.trim();
    let mut terminal = Terminal::start(&lango, 100, &["sessions", "resume", session], &[]);
    let shown = terminal.prompt();
    assert!(shown.contains("waits for your answer"), "{shown}");
    assert!(workspace_file(&lango, "budget.csv").is_some());
    terminal.press("y");
    terminal.wait_for("1 tool call");
    terminal.prompt();
    assert_eq!(workspace_file(&lango, "budget.csv"), None);
    let listed = lango.run(&["trash", "list", "--json"]).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    lango
        .run(&["trash", "restore", text(&listed[0]["id"])])
        .ok();
    assert!(workspace_file(&lango, "budget.csv").is_some());
}

#[test]
fn invalid_rules_are_refused_with_the_reason() {
    let lango = Lango::new();
    for (rules, expected) in [
        ("7", "a list of rules"),
        ("[7]", "a list of rules"),
        ("[{tool='x'}]", "whose `action` is"),
        ("[{action='maybe'}]", "whose `action` is"),
        ("[{action='deny', tols='x'}]", "the fields"),
        ("[{action='deny', tool=7}]", "text that is not empty"),
    ] {
        let flag = format!("approval.rules={rules}");
        lango
            .run(&["-c", &flag, "run", "hello"])
            .refused(2, &[expected]);
    }
}

#[test]
fn misspelt_rules_are_reported_and_only_a_valid_file_can_be_trusted() {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "[[approval.rules]]\naction = 'deny'\ntool = 'exce'\n",
    );
    lango.file("lango.toml", "tools.exec.network = true\n");
    let checked = lango.run(&["config", "check"]).ok();
    assert!(
        checked.stderr.contains("is a name misspelt?"),
        "{checked:#?}"
    );
    let trusted = lango.run(&["config", "trust", "--yes"]).ok().stdout;
    assert!(
        trusted.contains("now in effect: tools.exec.network"),
        "{trusted}"
    );
    lango.file("lango.toml", "tools.exec.netwrk = true\n");
    lango
        .run(&["config", "trust", "--yes"])
        .refused(3, &["unknown key"]);
}
