//! The end of a conversation, shown when it is resumed.

use super::one_line;
use lango_core::text::sanitize;
use lango_core::{AgentName, Event, EventBody};

/// How many lines of a message are shown.
const MAX_LINES: usize = 8;

/// Returns the lines for the questions and answers of these turns: each message under its author, cut to a few lines of
/// this width. Turns that have not ended have no answer here.
pub fn recap(events: &[Event], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for event in events {
        match &event.body {
            EventBody::UserMessage { text, .. } => {
                lines.extend(message(&event.author, text, width));
            }
            EventBody::TurnFinished { answer, .. } => {
                let answer = answer.and_then(|seq| events.iter().find(|event| event.seq == seq));
                if let Some((author, text)) = answer.and_then(answer_text) {
                    lines.extend(message(author, text, width));
                }
            }
            _ => {}
        }
    }
    lines
}

fn answer_text(event: &Event) -> Option<(&AgentName, &str)> {
    match &event.body {
        EventBody::AgentMessage { text, .. } => Some((&event.author, text)),
        EventBody::RemoteReturned { output, .. } => Some((&event.author, output)),
        _ => None,
    }
}

fn message(author: &AgentName, text: &str, width: usize) -> Vec<String> {
    const INDENT: &str = "  ";
    let safe = sanitize(text);
    let content: Vec<&str> = safe.trim().lines().collect();
    let width = width.saturating_sub(INDENT.len()).max(10);
    let mut lines = vec![String::new(), format!("{author}:")];
    let shown = content.iter().take(MAX_LINES);
    lines.extend(shown.map(|line| {
        format!("{INDENT}{}", cut(line, width))
            .trim_end()
            .to_owned()
    }));
    let left = content.len().saturating_sub(MAX_LINES);
    if left > 0 {
        lines.push(format!(
            "{INDENT}… {}",
            super::count(left as u64, "more line")
        ));
    }
    lines
}

/// Cuts a line and keeps its indentation.
fn cut(line: &str, width: usize) -> String {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let indent = line[..indent].replace('\t', "  ");
    let left = width.saturating_sub(indent.chars().count()).max(10);
    format!("{indent}{}", one_line(text, left))
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
    fn only_questions_and_answers_are_shown_under_their_authors() {
        let events = log()
            .ask("what is\nhere?")
            .delegate("f_1", "operator", "list the files", true)
            .say("operator", "f_1", "three files")
            .finish()
            .ask("and now?")
            .say("test-root", "", "not the answer yet")
            .batch();
        assert_eq!(
            recap(&events, 80).join("\n"),
            "\nuser:\n  what is\n  here?\n\noperator:\n  three files\n\nuser:\n  and now?"
        );
    }

    #[test]
    fn long_messages_are_cut_in_both_directions_and_never_obeyed() {
        let long = format!("{}\n\u{1b}[2Jx", "wide ".repeat(100));
        let text = format!("{long}\n{}", "line\n".repeat(50));
        let events = log().ask(&text).batch();
        let lines = recap(&events, 40);
        assert!(lines.len() <= MAX_LINES + 3, "{lines:#?}");
        assert!(
            lines.iter().all(|line| line.chars().count() <= 40),
            "{lines:#?}"
        );
        assert!(!lines.concat().contains('\u{1b}'));
        assert_eq!(lines.last().unwrap(), "  … 44 more lines");
    }
}
