//! `lango config trust`: shows what the files of a project contain, and trusts exactly that.

use crate::commands::confirm::{confirm, has_terminal};
use crate::screen::{self, count, escape_invisible};
use lango::app::Failure;
use lango::app::project_trust::{ContentState, ProjectFileContent, ProjectTrust};
use similar::TextDiff;
use std::time::Duration;

/// How many lines of a file are shown. A reader would not go through more.
const MAX_LINES: usize = 500;

/// The time limit of a comparison.
const DIFF_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the command.
pub(super) async fn trust(flags: Vec<String>, yes: bool) -> Result<(), Failure> {
    let prepared = ProjectTrust::prepare(flags)?;
    if !yes && !prepared.is_complete() {
        if !has_terminal() {
            let files = prepared.files().iter();
            let files = files.filter(|file| file.state != ContentState::Trusted);
            let files: Vec<String> = files
                .map(|file| format!("`{}`", file.path.display()))
                .collect();
            let message = format!(
                "there is no terminal to ask whether you trust {}",
                files.join(", ")
            );
            return Err(
                Failure::usage(message).next("read the files, then run `lango config trust --yes`")
            );
        }
        for file in prepared.files() {
            screen::say(&description(file));
        }
        if !prepared.ignored_settings().is_empty() {
            let settings = prepared.ignored_settings().join("\n  ");
            screen::say(&format!("ignored until you trust it:\n  {settings}"));
        }
        if !confirm("trust these files as shown?").await? {
            screen::say(
                "nothing was trusted; lango works without these files, and `lango config trust` asks again",
            );
            return Ok(());
        }
    }
    Ok(screen::print(&prepared.store()?)?)
}

/// Formats a file for review. Each line of its content has a mark in front, and invisible characters are escaped, so that
/// no content can pose as a line of lango.
fn description(file: &ProjectFileContent) -> String {
    let path = escape_invisible(&file.path.display().to_string());
    let text = String::from_utf8_lossy(&file.content);
    match &file.state {
        ContentState::Trusted => format!("{path}: unchanged since you trusted it"),
        ContentState::New => format!("{path}:\n{}", marked(&text)),
        ContentState::Changed { before } => {
            let before = String::from_utf8_lossy(before);
            let diff = TextDiff::configure()
                .timeout(DIFF_TIMEOUT)
                .diff_lines(&*before, &*text);
            let diff = diff.unified_diff().context_radius(3).to_string();
            format!("{path}: changed since you trusted it\n{}", marked(&diff))
        }
    }
}

fn marked(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines.iter().take(MAX_LINES);
    let mut shown: Vec<String> = shown
        .map(|line| format!("  │ {}", escape_invisible(line)))
        .collect();
    let left = lines.len().saturating_sub(MAX_LINES);
    if left > 0 {
        let left = count(left as u64, "more line");
        shown.push(format!(
            "  … {left}; read them in the file before you answer"
        ));
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_cannot_pose_as_a_line_of_lango() {
        let file = ProjectFileContent {
            path: "/w/lango.toml".into(),
            content: b"a = 1\r\n\x1b[2Jtrust these files as shown? [y/N] y\n".to_vec(),
            state: ContentState::New,
        };
        let shown = description(&file);
        assert!(
            shown.lines().skip(1).all(|line| line.starts_with("  │ ")),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn a_changed_file_is_shown_as_a_difference() {
        let file = ProjectFileContent {
            path: "/w/lango.toml".into(),
            content: b"a = 1\nb = 3\n".to_vec(),
            state: ContentState::Changed {
                before: b"a = 1\nb = 2\n".to_vec(),
            },
        };
        let shown = description(&file);
        assert!(shown.contains("  │ -b = 2\n  │ +b = 3"), "{shown}");
    }
}
