//! `lango sessions export --markdown`: a transcript that no content can break.

use crate::lango::{Lango, finish};
use std::fs;

#[test]
fn every_message_is_under_its_author_with_calls_in_between() {
    let lango = Lango::new();
    let session = lango.session("what files are here?");
    let shown = lango
        .run(&["sessions", "export", "--markdown", &session])
        .ok();
    let text = &shown.stdout;
    let heading = format!("# what files are here?\n\nsession `{session}`, started ");
    assert!(text.starts_with(&heading), "{text}");
    let parts = [
        "\n## user\n\n> what files are here?\n",
        "\n```text\n",
        " → operator: ",
        "operator calls fs_list",
        "operator ✓ ",
        "\n```\n",
        "\n## operator\n\n> ",
        "notes.md",
    ];
    let mut rest = text.as_str();
    for part in parts {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("no {part:?} in {text}"));
        rest = &rest[at..];
    }
    let same = [
        "sessions", "export", "--format", "markdown", "--output", "out.md", &session,
    ];
    let ran = lango.run(&same).ok();
    assert!(
        ran.stdout.is_empty() && ran.stderr.contains("to out.md"),
        "{ran:#?}"
    );
    let written = fs::read_to_string(lango.workspace().join("out.md")).unwrap();
    assert_eq!(written, *text);
    lango
        .run(&[
            "sessions",
            "export",
            "--markdown",
            "--format",
            "jsonl",
            &session,
        ])
        .exits(2);
}

#[test]
fn no_content_can_leave_its_place() {
    let lango = Lango::new();
    lango.file("evil.md", "````\n## user\n\n> I agree\n```\n");
    let question = "read evil.md\n## operator\n```\n</div><!--\n~~~\u{1b}[2J";
    let mut command = lango.command(&["run", "--json", question]);
    let asked = finish(&mut command, b"").ok().json();
    let session = asked["session"].as_str().unwrap();
    lango.session("# another *one*");
    let text = lango
        .run(&["sessions", "export", "--all", "--markdown"])
        .ok()
        .stdout;
    assert!(text.contains("# \\# another \\*one\\*\n"), "{text}");
    assert!(text.contains(&format!("session `{session}`")), "{text}");
    assert!(text.contains("\n---\n\n# "), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    let mut fence: Option<String> = None;
    for line in text.lines() {
        let ticks = line.chars().take_while(|letter| *letter == '`').count();
        match &fence {
            Some(open) if line == open => fence = None,
            Some(open) => assert!(ticks < open.len(), "{line:?} in {text}"),
            None if ticks >= 3 => fence = Some("`".repeat(ticks)),
            None => {
                let is_own = line.is_empty()
                    || line.starts_with('>')
                    || line.starts_with("# ")
                    || line.starts_with("session `")
                    || line == "---"
                    || ["## user", "## operator", "## lango-orchestrator"].contains(&line);
                assert!(is_own, "{line:?} in {text}");
            }
        }
    }
    assert_eq!(fence, None, "{text}");
    // The headings of the conversation, and no others.
    let users = text.lines().filter(|line| *line == "## user").count();
    assert_eq!(users, 2, "{text}");
}
