//! A pending approval as it is shown to the user: which agent wants to call which tool, exactly as it would run, and
//! why approval is needed.
//!
//! A model chose all of its content. Therefore every line starts with lango's own mark, even the continuation of a
//! long line, and control and invisible characters are escaped.

use super::{count, one_line};
use crate::terminal::{Colour, Palette, wrap_prefixed};
use lango_core::text::is_invisible;
use lango_core::{ApprovalQuestion, ApprovalRequest, PendingApproval, Risk};
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How much of a call to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestDetail<'a> {
    /// The beginning of the tool's preview of its changes, or else of the arguments, in at most this many rows.
    Preview(Option<&'a str>, usize),
    /// The tool's full preview of its changes, and every argument.
    Everything(Option<&'a str>),
}

/// The most rows of a preview that are shown with the question, and the most rows of one of its lines.
pub const PREVIEW_ROWS: usize = 20;
const LINE_ROWS: usize = 4;

/// A longer run of spaces is shown as its length, so that it cannot push what follows out of sight.
const MAX_SPACES: usize = 40;

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
    let heading = match request.question {
        ApprovalQuestion::Permission => format!("{agent} wants to use {tool} · {risk}"),
        ApprovalQuestion::UnknownOutcome => {
            format!("{agent} called {tool}, and its outcome is unknown")
        }
        ApprovalQuestion::ContinueTurn => {
            "a turn may have continued in another copy of the database".to_owned()
        }
    };
    let heading = wrap_prefixed(&heading, "┌ ", "│ ", width.saturating_sub(1));
    let mut text = heading.join("\n") + "\n";
    let content = match shown {
        RequestDetail::Preview(Some(preview), _) => preview.to_owned(),
        RequestDetail::Everything(Some(preview)) => {
            let preview = preview.trim_end();
            format!("{preview}\nthe arguments:\n{}", arguments(request))
        }
        RequestDetail::Preview(None, _) | RequestDetail::Everything(None) => arguments(request),
    };
    let lines: Vec<&str> = content.trim_end().lines().collect();
    let (max_rows, line_rows) = match shown {
        RequestDetail::Preview(_, rows) => (rows, LINE_ROWS),
        RequestDetail::Everything(_) => (usize::MAX, usize::MAX),
    };
    let mut rows = 0;
    for (index, line) in lines.iter().enumerate() {
        let boxed = boxed_rows(line, width, line_rows);
        rows += boxed.len();
        if rows > max_rows {
            let left = count((lines.len() - index) as u64, "more line");
            let left = format!("… {left} (v shows everything)");
            text.extend(boxed_rows(&left, width, usize::MAX));
            break;
        }
        text.extend(boxed);
    }
    for note in &request.inspection.notes {
        text.extend(boxed_rows(note, width, LINE_ROWS));
    }
    let mut why = format!("why: {}", one_line(&escape_invisible(&request.reason), 200));
    if more > 0 {
        let _ = write!(why, " · {} more", count(more as u64, "request"));
    }
    let why = wrap_prefixed(&why, "│ ", "│ ", width.saturating_sub(1));
    text.push_str(&why.join("\n"));
    text
}

/// Colours a formatted request: its heading, and the added and removed lines of a diff.
pub fn colour_request(text: &str, palette: &Palette) -> String {
    // Markdown never has this colour, so a model cannot draw such a box.
    let frame = |mark: &str| palette.colour(mark, Colour::Yellow);
    let colour = |line: &str| {
        let content = line.strip_prefix("│   ").unwrap_or_default();
        if let Some(heading) = line.strip_prefix('┌') {
            format!("{}{}", frame("┌"), palette.bold(heading))
        } else if content.starts_with('+') {
            palette.colour(line, Colour::Green)
        } else if content.starts_with('-') {
            palette.colour(line, Colour::Red)
        } else if content.starts_with("@@") {
            palette.colour(line, Colour::Cyan)
        } else if let Some(rest) = line.strip_prefix('│') {
            format!("{}{rest}", frame("│"))
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

/// Returns the rows of the box for a line, each with a line break. A line with more rows than `max_rows` is shown with
/// its start and its end.
fn boxed_rows(line: &str, width: usize, max_rows: usize) -> Vec<String> {
    let room = width.saturating_sub(5).max(20);
    let mut rows = broken(&collapse_spaces(&escape_invisible(line)), room);
    if rows.len() > max_rows {
        let end = rows.split_off(rows.len() - max_rows / 2);
        let hidden: Vec<String> = rows.drain(max_rows - max_rows / 2..).collect();
        let hidden: usize = hidden.iter().map(|row| row.chars().count()).sum();
        let hidden = count(hidden as u64, "character");
        rows.push(format!("… {hidden} (v shows everything) …"));
        rows.extend(end);
    }
    let marks = std::iter::once("│   ").chain(std::iter::repeat("│ ↳ "));
    let rows = rows.iter().zip(marks);
    rows.map(|(row, mark)| format!("{mark}{row}\n")).collect()
}

/// Breaks a line into rows of at most `room` columns: after a space, if there is one in the second half of the row.
fn broken(line: &str, room: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    for letter in line.chars() {
        let columns = letter.width().unwrap_or(1);
        if used + columns > room {
            let space = row.rfind(' ').filter(|at| *at >= row.len() / 2);
            let rest = space.map_or(String::new(), |at| row.split_off(at + 1));
            used = rest.width();
            rows.push(std::mem::replace(&mut row, rest));
        }
        used += columns;
        row.push(letter);
    }
    rows.push(row);
    rows
}

fn collapse_spaces(line: &str) -> String {
    let mut shown = String::with_capacity(line.len().min(4096));
    let mut rest = line;
    while let Some(start) = rest.find(' ') {
        let (before, spaces) = rest.split_at(start);
        let length = spaces.len() - spaces.trim_start_matches(' ').len();
        shown.push_str(before);
        if length > MAX_SPACES {
            let _ = write!(shown, " ⟨{length} spaces⟩ ");
        } else {
            shown.push_str(&spaces[..length]);
        }
        rest = &spaces[length..];
    }
    shown + rest
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
        let line = format!("ls {}│ why: it lists; rm x", "x ".repeat(70));
        let rows = boxed_rows(&line, 40, usize::MAX);
        assert!(rows.len() > 2);
        assert!(
            rows.iter().skip(1).all(|row| row.starts_with("│ ↳ ")),
            "{rows:#?}"
        );
        let shown: String = rows
            .iter()
            .map(|row| row.chars().skip(4).collect::<String>().replace('\n', ""))
            .collect();
        assert_eq!(shown, line, "nothing is lost at the breaks");
    }

    #[test]
    fn a_long_line_shows_its_start_and_its_end_and_spaces_cannot_hide_anything() {
        let line = format!("echo a{}; rm x{}# safe", " ".repeat(5000), " ".repeat(5000));
        let rows = boxed_rows(&line, 80, 4).concat();
        assert!(rows.contains("⟨5000 spaces⟩ ; rm x"), "{rows}");
        let line = format!("start {} end", "x".repeat(5000));
        let rows = boxed_rows(&line, 80, 4);
        assert_eq!(rows.len(), 5, "{rows:#?}");
        assert!(rows[0].contains("start") && rows[4].contains("end"));
        assert!(rows[2].contains("characters"), "{rows:#?}");
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
