//! The scope of grants: a harmless command with its listed options, the exact path of a protected file, the exact
//! content of a script. Everything about a call can be viewed before it is answered.

use crate::approvals::{run_until_asked, waiting_approvals, workspace_file};
use crate::lango::{Lango, of_type, text};
use crate::models::{self, Provider, flags};
use crate::terminal::Terminal;
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::{Value, json};

const CTRL_U: &str = "\u{15}";

/// Returns a question that makes the operator run this command.
fn command(line: &str) -> String {
    format!("run `{line}`")
}

/// Runs a command and answers with the offered grant for this folder.
fn grant_always(lango: &Lango, line: &str) {
    let (mut terminal, _) = run_until_asked(lango, &command(line));
    terminal.press("p");
    terminal.wait_for("for calls like > ");
    terminal.press("\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_grant_for_git_log_does_not_cover_an_option_that_writes_a_file() {
    let lango = Lango::new();
    let (mut terminal, _) = run_until_asked(&lango, &command("git log -3"));
    terminal.press("p");
    let offered = terminal.wait_for("for calls like > ");
    assert!(
        offered.contains("always in this folder let operator run `git log …`"),
        "{offered}"
    );
    terminal.press("\r");
    assert_eq!(terminal.end().0, Some(0));
    let listed = lango.run(&["approvals"]).ok().stdout;
    assert!(
        listed.contains("granted  p_") && listed.contains("git log …"),
        "{listed}"
    );
    lango.run(&["run", &command("git log --oneline")]).ok();
    for line in [
        "git log --output=Makefile",
        "git log --outp=Makefile",
        "git log '--output=Makefile'",
        "git log --oneline; touch Makefile",
        "git -c alias.x=!touch x",
        "GIT_PAGER=x git log",
    ] {
        lango.run(&["run", &command(line)]).exits(4);
    }
    assert_eq!(workspace_file(&lango, "Makefile"), None);
}

#[test]
fn a_grant_for_an_unknown_command_covers_only_the_exact_command() {
    let lango = Lango::new();
    grant_always(&lango, "git commit -m a");
    lango.run(&["run", &command("git commit -m a")]).ok();
    lango.run(&["run", &command("git commit -m b")]).exits(4);
}

#[test]
fn a_wildcard_pattern_for_commands_is_refused() {
    let lango = Lango::new();
    let (mut terminal, _) = run_until_asked(&lango, &command("git log -3"));
    terminal.press("p");
    terminal.wait_for("for calls like > ");
    terminal.press(&format!("{CTRL_U}git log *\r"));
    terminal.wait_for("not granted: a wildcard would also cover options");
    terminal.press("\u{1b}");
    terminal.wait_for("answers later");
    terminal.press("\u{4}");
    terminal.end();
    let id = text(&waiting_approvals(&lango)[0]["id"]).to_owned();
    let answer = ["approvals", "answer", &id, "always", "--pattern", "git *"];
    lango.run(&answer).refused(
        2,
        &["a wildcard would also cover options", "leave out --pattern"],
    );
    assert_eq!(waiting_approvals(&lango).len(), 1);
}

#[test]
fn a_wildcard_that_an_earlier_version_granted_is_not_in_force() {
    let lango = Lango::new();
    grant_always(&lango, "git log -3");
    let database = rusqlite::Connection::open(lango.database()).unwrap();
    let changed = database
        .execute("UPDATE approvals SET pattern = 'git log *'", [])
        .unwrap();
    assert_eq!(changed, 1);
    drop(database);
    let listed = lango.run(&["approvals"]).ok().stdout;
    assert!(listed.starts_with("lapsed   p_"), "{listed}");
    assert!(
        listed.contains("not in force: a wildcard would also cover"),
        "{listed}"
    );
    let listed = lango.run(&["approvals", "list", "--json"]).ok().json();
    assert!(text(&listed["granted"][0]["not_in_force"]).contains("wildcard"));
    lango.run(&["run", &command("git log --oneline")]).exits(4);
    lango
        .run(&["run", &command("git log --output=Makefile")])
        .exits(4);
}

#[test]
fn rules_that_allow_commands_by_a_wildcard_still_apply_with_a_warning() {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "[[approval.rules]]\naction = 'allow'\ntool = 'exec'\nmatch = 'git log *'\n\
         [[approval.rules]]\naction = 'allow'\ntool = 'exec'\nmatch = 'touch *'\n\
         [[approval.rules]]\naction = 'allow'\ntool = 'exec'\nmatch = 'ls …'\n\
         [[approval.rules]]\naction = 'allow'\ntool = 'fs_write'\nmatch = 'notes/*'\n\
         [[approval.rules]]\naction = 'deny'\ntool = 'exec'\nmatch = '*curl*'\n",
    );
    let printed = lango.run(&["config", "check"]).ok().stderr;
    assert!(printed.contains("match = \"git log *\" }"), "{printed}");
    assert!(
        printed.contains("write `match = \"git log …\"`"),
        "{printed}"
    );
    assert!(printed.contains("match = \"touch *\" }"), "{printed}");
    assert!(printed.contains("write the exact command"), "{printed}");
    for fine in ["ls …\" }", "notes/*", "curl"] {
        assert!(!printed.contains(fine), "{printed}");
    }
    let doctor = lango.run(&["doctor"]).ok().stdout;
    assert!(doctor.contains("match = \"touch *\" }"), "{doctor}");
    let ran = lango.run(&["run", &command("touch made.txt")]).ok();
    assert!(!ran.stderr.contains("wildcard"), "{ran:#?}");
    assert!(workspace_file(&lango, "made.txt").is_some());
    lango.run(&["run", &command("ls -la")]).ok();
    lango.run(&["run", &command("ls -la *")]).exits(4);
}

const ALLOW: &str = r#"approval.rules=[{action="allow",tool="fs_*"}]"#;
const TASKS: &str = "create .vscode/tasks.json with the word hi";

#[test]
fn a_protected_file_needs_an_approval_each_time_with_the_reason() {
    let lango = Lango::new();
    lango
        .run(&["run", "-c", ALLOW, "create notes.txt with the word hi"])
        .ok();
    let denied = lango.run(&["run", "-c", ALLOW, TASKS]).exits(4);
    assert!(
        denied
            .stderr
            .contains("`.vscode` configures other programs"),
        "{denied:#?}"
    );
    assert_eq!(workspace_file(&lango, ".vscode/tasks.json"), None);
    let mut terminal = Terminal::start(&lango, 100, &["run", "-c", ALLOW, TASKS], &[]);
    terminal
        .wait_for("why: `.vscode` configures other programs; each change of `.vscode/tasks.json`");
    let keys = terminal.prompt();
    assert!(!keys.contains("this session"), "{keys}");
    terminal.press("y");
    let (code, shown) = terminal.end();
    assert!(!shown.contains("this session"), "{shown}");
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(
        workspace_file(&lango, ".vscode/tasks.json").as_deref(),
        Some("hi\n")
    );
    lango.run(&["run", "-c", ALLOW, TASKS]).exits(4);
}

#[test]
fn only_a_rule_for_the_exact_path_allows_a_protected_file() {
    let lango = Lango::new();
    let rule = |path: &str| {
        format!(r#"approval.rules=[{{action="allow",tool="fs_write",match="{path}"}}]"#)
    };
    for path in ["*", ".vscode/*", ".vscode/tasks.jso?", ".vscode/other.json"] {
        lango.run(&["run", "-c", &rule(path), TASKS]).exits(4);
    }
    assert_eq!(workspace_file(&lango, ".vscode/tasks.json"), None);
    lango
        .run(&["run", "-c", &rule(".vscode/tasks.json"), TASKS])
        .ok();
    assert_eq!(
        workspace_file(&lango, ".vscode/tasks.json").as_deref(),
        Some("hi\n")
    );
}

#[test]
fn a_symlink_does_not_allow_writing_a_protected_file() {
    let lango = Lango::new();
    lango.file(".vscode/tasks.json", "old");
    let inside = |path: &str| lango.workspace().join(path);
    std::os::unix::fs::symlink(".vscode", inside("notes")).unwrap();
    let exact = r#"approval.rules=[{action="allow",tool="fs_write",match="notes/tasks.json"}]"#;
    for rules in [ALLOW, exact] {
        let through = "create notes/tasks.json with the word hi";
        lango.run(&["run", "-c", rules, through]).exits(4);
    }
    assert_eq!(
        workspace_file(&lango, ".vscode/tasks.json").as_deref(),
        Some("old")
    );
}

#[test]
fn creating_a_git_directory_needs_an_approval_each_time() {
    let lango = Lango::new();
    lango.file("docs/objects/x", "");
    lango.file("docs/refs/x", "");
    let denied = lango
        .run(&["run", "-c", ALLOW, "create docs/HEAD with the word hi"])
        .exits(4);
    assert!(
        denied.stderr.contains("`docs` is a git directory"),
        "{denied:#?}"
    );
    assert_eq!(workspace_file(&lango, "docs/HEAD"), None);
}

/// Creates a home with the skill `greet` and this script.
fn with_skill(script: &str) -> Lango {
    let lango = Lango::new();
    let skill = "---\nname: greet\ndescription: Greets people by name.\n---\nSay hello.\n";
    lango.home_file("skills/greet/SKILL.md", skill);
    lango.home_file("skills/greet/scripts/hello.sh", script);
    lango
}

fn greeting_replies() -> Vec<lango_core::ModelReply> {
    vec![
        delegate_and_finish("operator", "greet"),
        call("skill_greet", json!({ "script": "hello.sh" })),
        say("Greeted."),
    ]
}

/// Runs a turn in a terminal until lango asks for an approval of the script.
fn run_greeting_until_asked(lango: &Lango, provider: &Provider) -> (Terminal, String) {
    let model = flags("openai", provider.server.url());
    let arguments: Vec<&str> = ["run"]
        .into_iter()
        .chain(model.iter().map(String::as_str))
        .chain(["greet"])
        .collect();
    let mut terminal = Terminal::start(lango, 100, &arguments, &[]);
    terminal.wait_for("skill_greet");
    let shown = terminal.prompt();
    (terminal, shown)
}

fn greet(lango: &Lango) -> Value {
    let provider = Provider::new(greeting_replies());
    let model = flags("openai", provider.server.url());
    let ran = models::run(lango, &model, &["--json", "greet"]);
    ran.json()
}

#[test]
fn a_grant_for_a_script_ends_when_the_script_changes() {
    let lango = with_skill("echo one > greeting.txt\n");
    let provider = Provider::new(greeting_replies());
    let (mut terminal, _) = run_greeting_until_asked(&lango, &provider);
    terminal.press("p");
    terminal.wait_for("for calls like > ");
    terminal.press("\r");
    assert_eq!(terminal.end().0, Some(0));
    std::fs::remove_file(lango.workspace().join("greeting.txt")).unwrap();
    assert_eq!(greet(&lango)["denied"], json!([]));
    assert_eq!(
        workspace_file(&lango, "greeting.txt").as_deref(),
        Some("one\n")
    );
    lango.home_file("skills/greet/scripts/hello.sh", "echo two > greeting.txt\n");
    assert_eq!(greet(&lango)["denied"][0]["tool"], "skill_greet");
    assert_eq!(
        workspace_file(&lango, "greeting.txt").as_deref(),
        Some("one\n")
    );
}

#[test]
fn a_script_that_changes_after_the_request_does_not_run() {
    let lango = with_skill("echo one > greeting.txt\n");
    let provider = Provider::new(greeting_replies());
    let (mut terminal, _) = run_greeting_until_asked(&lango, &provider);
    lango.home_file("skills/greet/scripts/hello.sh", "echo two > greeting.txt\n");
    terminal.press("y");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(workspace_file(&lango, "greeting.txt"), None);
    let listed = lango.run(&["sessions", "list", "--json"]).ok().json();
    let log = lango.events(text(&listed[0]["id"]));
    let returned = of_type(&log, "tool.returned");
    let output = text(&returned[0]["output"]);
    assert!(output.contains("changed after the approval"), "{output}");
}

#[test]
fn a_long_script_can_be_viewed_page_by_page_before_the_answer() {
    let script: String = (1..=3000)
        .map(|line| format!("echo line {line} {}\n", "x".repeat(40)))
        .collect();
    let lango = with_skill(&script);
    let provider = Provider::new(greeting_replies());
    let (mut terminal, shown) = run_greeting_until_asked(&lango, &provider);
    for line in ["| echo line 4 ", "| echo line 3000 "] {
        assert!(shown.contains(line), "no `{line}` in {shown}");
    }
    assert!(!shown.contains("| echo line 25 "), "{shown}");
    assert!(shown.contains("more lines (v shows everything)"), "{shown}");
    terminal.press("v");
    let page = terminal.wait_for("q back");
    assert!(page.contains("| echo line 1 "), "{page}");
    assert!(!page.contains("| echo line 45 "), "{page}");
    terminal.press(" ");
    let page = terminal.wait_for("q back");
    assert!(page.contains("| echo line 45 "), "{page}");
    terminal.press("G");
    let page = terminal.wait_for("q back");
    for line in ["| echo line 3000 ", "folder: "] {
        assert!(page.contains(line), "no `{line}`");
    }
    terminal.press("q");
    terminal.wait_for("answers later");
    terminal.press("\u{4}");
    terminal.end();
    let id = text(&waiting_approvals(&lango)[0]["id"]).to_owned();
    let shown = lango.run(&["approvals", "show", &id]).ok().stdout;
    for line in [
        "| echo line 1 ",
        "| echo line 1500 ",
        "| echo line 3000 ",
        "script: hello.sh",
    ] {
        assert!(shown.contains(line), "no `{line}`");
    }
}
