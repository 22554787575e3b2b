//! A pending approval as it is shown to the user: which agent wants to call which tool, exactly as it would run, and
//! why approval is needed.
//!
//! A model chose all of its content. Therefore every line starts with lango's own mark, even the continuation of a
//! long line, and control and invisible characters are escaped.

use super::{count, one_line};
use crate::terminal::{Colour, Palette};
use lango_core::text::is_invisible;
use lango_core::{ApprovalQuestion, ApprovalRequest, PendingApproval, Risk};
use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

/// How much of a call to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestDetail<'a> {
    /// The tool's preview of its changes, or else the arguments.
    Preview(Option<&'a str>),
    /// The tool's full preview of its changes, and every argument.
    Everything(Option<&'a str>),
}

/// The lines of a preview that are shown with the question.
const PREVIEW_LINES: usize = 20;

/// Formats a request for a screen of this width, without the keys that answer it. `more` is the number of other
/// pending requests.
pub fn request(
    waiting: &PendingApproval,
    shown: RequestDetail<'_>,
    more: usize,
    width: usize,
) -> String {
    let request = &waiting.request;
    let risk = match request.risk {
        Risk::Safe => "safe",
        Risk::Moderate => "changes something",
        Risk::Dangerous => "can do harm",
    };
    let (agent, tool) = (
        escape_invisible(request.agent.as_str()),
        escape_invisible(request.tool.as_str()),
    );
    let mut text = match request.question {
        ApprovalQuestion::Permission => format!("┌ {agent} wants to use {tool} · {risk}\n"),
        ApprovalQuestion::UnknownOutcome => {
            format!("┌ {agent} called {tool}, and its outcome is unknown\n")
        }
        ApprovalQuestion::ContinueTurn => {
            "┌ a turn may have continued in another copy of the database\n".to_owned()
        }
    };
    let content = match shown {
        RequestDetail::Preview(Some(preview)) => preview.to_owned(),
        RequestDetail::Everything(Some(preview)) => {
            let preview = preview.trim_end();
            format!("{preview}\nthe arguments:\n{}", arguments(request))
        }
        RequestDetail::Preview(None) | RequestDetail::Everything(None) => arguments(request),
    };
    let lines: Vec<&str> = content.trim_end().lines().collect();
    let max_lines = match shown {
        RequestDetail::Preview(_) => PREVIEW_LINES,
        RequestDetail::Everything(_) => usize::MAX,
    };
    for line in lines.iter().take(max_lines) {
        push_boxed_line(&mut text, line, width);
    }
    if lines.len() > max_lines {
        let left = count((lines.len() - max_lines) as u64, "more line");
        push_boxed_line(&mut text, &format!("… {left} (v shows everything)"), width);
    }
    for note in &request.inspection.notes {
        push_boxed_line(&mut text, note, width);
    }
    let _ = write!(
        text,
        "│ why: {}",
        one_line(&escape_invisible(&request.reason), 200)
    );
    if more > 0 {
        let _ = write!(text, " · {} more", count(more as u64, "request"));
    }
    text
}

/// Colours a formatted request: its heading, and the added and removed lines of a diff.
pub fn colour_request(text: &str, palette: &Palette) -> String {
    let colour = |line: &str| {
        let content = line.strip_prefix("│   ").unwrap_or_default();
        if line.starts_with('┌') {
            palette.bold(line)
        } else if content.starts_with('+') {
            palette.colour(line, Colour::Green)
        } else if content.starts_with('-') {
            palette.colour(line, Colour::Red)
        } else if content.starts_with("@@") {
            palette.colour(line, Colour::Cyan)
        } else {
            line.to_owned()
        }
    };
    let lines: Vec<String> = text.lines().map(colour).collect();
    lines.join("\n")
}

/// Formats every argument; texts with several lines keep their line breaks.
fn arguments(request: &ApprovalRequest) -> String {
    let Some(fields) = request.arguments.as_object() else {
        return format!("{:#}", request.arguments);
    };
    let mut text = String::new();
    for (name, value) in fields {
        let _ = match value.as_str() {
            Some(value) if value.contains('\n') => writeln!(text, "{name}:\n{value}"),
            Some(value) => writeln!(text, "{name}: {value}"),
            None => writeln!(text, "{name}: {value}"),
        };
    }
    text
}

/// Adds a line to the box, wrapped to the width of the screen.
fn push_boxed_line(text: &mut String, line: &str, width: usize) {
    const FIRST: &str = "│   ";
    const NEXT: &str = "│ ↳ ";
    let room = width.saturating_sub(5).max(20);
    let (mut used, mut mark) = (0, FIRST);
    text.push_str(mark);
    for letter in escape_invisible(line).chars() {
        let columns = letter.width().unwrap_or(1);
        if used + columns > room {
            mark = NEXT;
            used = 0;
            let _ = write!(text, "\n{mark}");
        }
        used += columns;
        text.push(letter);
    }
    text.push('\n');
}

/// Escapes everything that a terminal would obey or hide.
pub fn escape_invisible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => shown.push('␊'),
            '\t' => shown.push_str("    "),
            '\u{0}'..='\u{1f}' => {
                let picture = char::from_u32(0x2400 + u32::from(letter));
                shown.push(picture.unwrap_or('�'));
            }
            // Here even a joiner inside an emoji is escaped: the user must see exactly what is requested.
            _ if is_invisible(letter) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(letter));
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// Describes which agent wants to call which tool, on one line.
pub fn subject_line(request: &ApprovalRequest) -> String {
    let arguments = super::tool_line::brief_arguments(&request.arguments);
    let arguments = escape_invisible(&arguments);
    format!(
        "{} {} {}",
        escape_invisible(request.agent.as_str()),
        escape_invisible(request.tool.as_str()),
        one_line(&arguments, 80)
    )
}

/// Returns the rule that would have allowed this call, as a flag; `None` if no rule can.
pub fn allowing_rule(waiting: &PendingApproval) -> Option<String> {
    let request = &waiting.request;
    let pattern = request.pattern.as_ref()?;
    let fields = [("tool", request.tool.as_str()), ("match", pattern)];
    let mut rule = "action=\"allow\"".to_owned();
    for (name, value) in fields {
        let _ = write!(rule, ",{name}={}", toml::Value::from(value));
    }
    let quoted = rule.replace('\'', r"'\''");
    Some(format!("-c 'approval.rules=[{{{quoted}}}]'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_screen_line_is_marked_however_long_the_text_is() {
        let mut text = String::new();
        push_boxed_line(
            &mut text,
            &format!("ls{}│ why: it lists; rm x", " ".repeat(70)),
            40,
        );
        assert!(text.lines().count() > 2);
        assert!(
            text.lines().skip(1).all(|line| line.starts_with("│ ↳ ")),
            "{text}"
        );
    }

    #[test]
    fn control_and_invisible_characters_are_escaped() {
        assert_eq!(
            escape_invisible("a\u{1b}[2J\nb\u{202e}c\u{200b}d"),
            "a␛[2J␊b\\u{202e}c\\u{200b}d"
        );
        assert_eq!(escape_invisible("naïve 日本"), "naïve 日本");
        assert_eq!(
            escape_invisible("a\u{61c}b\u{180e}c\u{3164}d\u{e0041}e\u{fe0f}"),
            "a\\u{61c}b\\u{180e}c\\u{3164}d\\u{e0041}e\\u{fe0f}"
        );
    }
}
