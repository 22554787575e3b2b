//! `lango config trust` shows what it would trust, and asks.

use crate::lango::Lango;
use crate::terminal::Terminal;

fn start(lango: &Lango) -> Terminal {
    Terminal::start(lango, 200, &["config", "trust"], &[])
}

fn model(lango: &Lango) -> String {
    let got = lango.run(&["config", "get", "agent.model", "--json"]).ok();
    got.json()["value"].to_string()
}

#[test]
fn nothing_is_trusted_before_the_user_has_seen_it_and_agreed() {
    let lango = Lango::new();
    lango.file("lango.toml", "# comment\nagent.model = 'offline/rules'\n");
    lango.file("AGENTS.md", "Be brief.\n");
    let refused = lango.run(&["config", "trust"]);
    refused.refused(2, &["lango.toml", "AGENTS.md", "lango config trust --yes"]);
    for typed in ["\r", "n\r", "\u{4}"] {
        let mut terminal = start(&lango);
        let shown = terminal.wait_for("trust these files as shown? [y/N] ");
        for part in [
            "  │ # comment",
            "  │ agent.model = 'offline/rules'",
            "  │ Be brief.",
            "ignored until you trust it:\r\n  agent.model",
        ] {
            assert!(shown.contains(part), "no {part:?} in {shown}");
        }
        terminal.press(typed);
        let (code, shown) = terminal.end();
        assert!(
            code == Some(0) && shown.contains("nothing was trusted"),
            "{shown}"
        );
        assert!(!shown.contains("error:"), "{shown}");
        assert_eq!(model(&lango), "null");
    }
    let mut terminal = start(&lango);
    terminal.wait_for("[y/N] ");
    terminal.press("y\r");
    let (code, shown) = terminal.end();
    assert!(
        code == Some(0) && shown.contains("now in effect: agent.model"),
        "{shown}"
    );
    assert_eq!(model(&lango), "\"offline/rules\"");
}

#[test]
fn a_changed_file_is_shown_as_a_difference_and_the_others_are_only_named() {
    let lango = Lango::new();
    lango.file(
        "lango.toml",
        "agent.maxCost = 1\nagent.model = 'offline/rules'\n",
    );
    lango.file("AGENTS.md", "Be brief.\n");
    lango.run(&["config", "trust", "--yes"]).ok();
    // Nothing is left to ask.
    let ran = lango.run(&["config", "trust"]).ok();
    assert!(
        ran.stdout.contains("is trusted with its current content"),
        "{ran:#?}"
    );
    lango.file(
        "lango.toml",
        "agent.maxCost = 9\nagent.model = 'offline/rules'\n",
    );
    let mut terminal = start(&lango);
    let shown = terminal.wait_for("[y/N] ");
    assert!(
        shown.contains("lango.toml: changed since you trusted it"),
        "{shown}"
    );
    assert!(
        shown.contains("│ -agent.maxCost = 1\r\n  │ +agent.maxCost = 9"),
        "{shown}"
    );
    assert!(
        shown.contains("AGENTS.md: unchanged since you trusted it"),
        "{shown}"
    );
    assert!(!shown.contains("Be brief."), "{shown}");
    terminal.press("y\r");
    assert_eq!(terminal.end().0, Some(0));
    let contents = lango.home().join("trust/contents").read_dir().unwrap();
    assert_eq!(contents.count(), 2, "old contents are removed");
}

#[test]
fn a_file_that_changes_while_the_user_reads_stays_untrusted() {
    let lango = Lango::new();
    lango.file("lango.toml", "agent.model = 'offline/rules'\n");
    let mut terminal = start(&lango);
    terminal.wait_for("[y/N] ");
    lango.file("lango.toml", "agent.model = 'evil/model'\n");
    terminal.press("y\r");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(model(&lango), "null");
}

#[test]
fn a_model_that_cannot_exist_is_an_error_with_the_file_and_line() {
    let lango = Lango::new();
    lango.file("lango.toml", "# comment\n\nagent.model = 'evil/x'\n");
    lango.run(&["config", "trust", "--yes"]).ok();
    let place = format!(
        "{}:3: agent.model",
        lango.workspace().join("lango.toml").display()
    );
    let refused = lango.run(&["run", "hello"]);
    refused.refused(3, &[&place, "no provider `evil`", "`lango models`"]);
}
