//! The end of a conversation, shown when it is resumed.

use crate::terminal::{wrap_lines, wrap_prefixed};
use lango_core::text::sanitize;
use lango_core::{Event, EventBody};
use lango_markdown::Style;

/// How many rows of a message are shown.
const MAX_ROWS: usize = 8;

/// Returns the questions and answers of these turns as the chat shows them, each cut to a few rows of this width. Turns
/// that have not ended have no answer here. The rows are safe to print.
pub fn recap(events: &[Event], width: usize, style: Style) -> Vec<String> {
    let mut rows = Vec::new();
    for event in events {
        match &event.body {
            EventBody::UserMessage { text, .. } => {
                let text = sanitize(text.trim());
                rows.push(String::new());
                rows.extend(first_rows(wrap_prefixed(&text, "> ", "  ", width)));
            }
            EventBody::TurnFinished { answer, .. } => {
                let answer = answer.and_then(|seq| events.iter().find(|event| event.seq == seq));
                if let Some(text) = answer.and_then(answer_text) {
                    let answer = lango_markdown::render(&sanitize(text.trim()), style, width);
                    let answer = wrap_lines(answer.trim_end(), width);
                    rows.push(String::new());
                    rows.extend(first_rows(answer.lines().map(str::to_owned).collect()));
                }
            }
            _ => {}
        }
    }
    rows
}

fn answer_text(event: &Event) -> Option<&str> {
    match &event.body {
        EventBody::AgentMessage { text, .. } => Some(text),
        EventBody::RemoteReturned { output, .. } => Some(output),
        _ => None,
    }
}

fn first_rows(mut rows: Vec<String>) -> Vec<String> {
    let left = rows.len().saturating_sub(MAX_ROWS);
    if left > 0 {
        rows.truncate(MAX_ROWS);
        rows.extend(open_fence(&rows));
        rows.push(format!("  … {}", super::count(left as u64, "more line")));
    }
    rows
}

/// Returns the fence that closes the code block in which these rows of markdown source end.
fn open_fence(rows: &[String]) -> Option<String> {
    let mut open: Option<&str> = None;
    for row in rows.iter().map(|row| row.trim_start()) {
        let marks = ['`', '~'].map(|mark| row.len() - row.trim_start_matches(mark).len());
        let fence = &row[..marks[0].max(marks[1])];
        open = match open {
            None if fence.len() >= 3 => Some(fence),
            Some(open) if fence.starts_with(open) && row.trim_end() == fence => None,
            open => open,
        };
    }
    open.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_core::SessionId;
    use lango_testkit::session_store_contract::LogBuilder;

    fn log() -> LogBuilder {
        LogBuilder::new(&SessionId::from("s_1"))
    }

    #[test]
    fn only_questions_and_answers_are_shown() {
        let events = log()
            .ask("what is\nhere?")
            .delegate("f_1", "operator", "list the files", true)
            .say("operator", "f_1", "three files")
            .finish()
            .ask("and now?")
            .say("test-root", "", "not the answer yet")
            .batch();
        assert_eq!(
            recap(&events, 80, Style::Plain).join("\n"),
            "\n> what is\n  here?\n\nthree files\n\n> and now?"
        );
    }

    #[test]
    fn a_code_block_that_is_cut_is_closed() {
        let text = format!("list:\n~~~text\n```\n{}~~~\nend", "line\n".repeat(50));
        let events = log().ask("?").say("test-root", "", &text).finish().batch();
        let lines = recap(&events, 40, Style::Source);
        let end = &lines[lines.len() - 2..];
        assert_eq!(end[0], "~~~");
        assert!(end[1].contains("more lines"), "{lines:#?}");
        let whole = rows_of("```text\na\n```\nb");
        assert_eq!(open_fence(&whole), None);
        assert_eq!(open_fence(&whole[..2]).as_deref(), Some("```"));
    }

    fn rows_of(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn long_messages_are_cut_in_both_directions_and_never_obeyed() {
        let long = format!("{}\n\u{1b}[2Jx", "wide ".repeat(100));
        let text = format!("{long}\n{}", "line\n".repeat(50));
        let events = log().ask(&text).batch();
        let lines = recap(&events, 40, Style::Coloured);
        assert!(lines.len() <= MAX_ROWS + 2, "{lines:#?}");
        assert!(
            lines.iter().all(|line| line.chars().count() <= 40),
            "{lines:#?}"
        );
        assert!(!lines.concat().contains('\u{1b}'));
        assert!(lines.last().unwrap().contains("more lines"), "{lines:#?}");
    }
}
