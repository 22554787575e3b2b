//! A pending approval as it is shown to the user: which agent wants to call which tool, exactly as it would run, and
//! why approval is needed.
//!
//! A model chose all of its content. Therefore every line starts with lango's own mark, even the continuation of a
//! long line, and control and invisible characters are escaped.

use super::{count, one_line};
use crate::terminal::{Colour, Palette, wrap_prefixed};
use lango_core::text::is_invisible;
use lango_core::{ApprovalQuestion, ApprovalRequest, PendingApproval, Risk};
use lango_engine::exact_pattern;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

/// How much of a call to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestDetail<'a> {
    /// The beginning of the tool's preview of its changes, or else of the arguments, in at most this many rows.
    Preview(Option<&'a str>, usize),
    /// The tool's full preview of its changes, and every argument. Nothing is cut.
    Everything(Option<&'a str>),
}

/// The most rows of a preview that are shown with the question, and the most rows of one of its lines.
pub const PREVIEW_ROWS: usize = 20;
const LINE_ROWS: usize = 4;

/// The columns of the mark before each row.
const MARK_COLUMNS: usize = 4;

/// The most characters of the reason that are shown with the question.
const REASON_CHARACTERS: usize = 200;

/// A longer run of blanks is shown as its length, so that it cannot push what follows out of sight.
const MAX_SPACES: usize = 40;

/// How much of the equal beginning of two long lines is shown.
const MAX_SHARED: usize = 60;

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
    match shown {
        RequestDetail::Preview(preview, max_rows) => {
            let is_hunk = |line: &&str| line.starts_with("@@ ");
            let diff = preview.and_then(|_| lines.iter().position(is_hunk));
            text.extend(preview_rows(&lines, diff, width, max_rows));
        }
        RequestDetail::Everything(_) => {
            let rows = lines.iter().map(|line| boxed_rows(line, width, usize::MAX));
            text.extend(rows.flatten());
        }
    }
    let (line_rows, reason_characters) = match shown {
        RequestDetail::Preview(..) => (LINE_ROWS, REASON_CHARACTERS),
        RequestDetail::Everything(_) => (usize::MAX, usize::MAX),
    };
    for note in &request.inspection.notes {
        text.extend(boxed_rows(note, width, line_rows));
    }
    let reason = escape_invisible(&request.reason);
    let mut why = format!("why: {}", one_line(&reason, reason_characters));
    if more > 0 {
        let _ = write!(why, " · {} more", count(more as u64, "request"));
    }
    let why = wrap_prefixed(&why, "│ ", "│ ", width.saturating_sub(1));
    text.push_str(&why.join("\n"));
    text
}

/// Returns the rows of a preview. If they are more than `max_rows`, the middle is left out: a command ends with the facts
/// about its sandbox, and what it does last must not be hidden either.
fn preview_rows(lines: &[&str], diff: Option<usize>, width: usize, max_rows: usize) -> Vec<String> {
    let row_at = |index: usize| boxed_rows(&changed_part(lines, index, diff), width, LINE_ROWS);
    let mut rows = Vec::new();
    for index in 0..lines.len() {
        rows.extend(row_at(index));
        if rows.len() > max_rows {
            break;
        }
    }
    if rows.len() <= max_rows {
        return rows;
    }
    let max_tail = max_rows * 2 / 5;
    let (mut start, mut head) = (1, row_at(0));
    while start < lines.len() && head.len() + row_at(start).len() <= max_rows - max_tail {
        head.extend(row_at(start));
        start += 1;
    }
    let (mut end, mut tail) = (lines.len(), Vec::new());
    while end > start && tail.len() + row_at(end - 1).len() <= max_tail {
        end -= 1;
        tail.splice(0..0, row_at(end));
    }
    let left = count((end - start) as u64, "more line");
    let left = format!("… {left} (v shows everything) …");
    head.extend(boxed_rows(&left, width, usize::MAX));
    head.extend(tail);
    head
}

/// Returns a line of a preview. In a long line of a diff, the beginning that its other version shares is left out, so that
/// the change is on the screen. `diff` is where the tool's diff starts, if there is one: a model can write lines that look
/// like one.
fn changed_part<'a>(lines: &[&'a str], index: usize, diff: Option<usize>) -> Cow<'a, str> {
    let line = lines[index];
    let is_diff = diff.is_some_and(|start| index > start);
    let other = other_version(lines, index).filter(|_| is_diff && line.len() > MAX_SHARED);
    let Some(other) = other else {
        return Cow::Borrowed(line);
    };
    let pairs = line.chars().zip(other.chars()).skip(1);
    let shared = pairs.take_while(|(one, other)| one == other).count();
    let Some(left_out) = shared.checked_sub(MAX_SHARED) else {
        return Cow::Borrowed(line);
    };
    let rest: String = line.chars().skip(1 + left_out).collect();
    Cow::Owned(format!(
        "{}⟨{left_out} equal characters⟩ {rest}",
        &line[..1]
    ))
}

/// Returns the added line for a removed one of a diff, or the removed line for an added one.
fn other_version<'a>(lines: &[&'a str], index: usize) -> Option<&'a str> {
    let is = |at: usize, sign: char| lines.get(at).is_some_and(|line| line.starts_with(sign));
    let sign = ['-', '+'].into_iter().find(|sign| is(index, *sign))?;
    let mut start = index;
    while start > 0 && is(start - 1, sign) {
        start -= 1;
    }
    let mut end = index + 1;
    while is(end, sign) {
        end += 1;
    }
    let other = if sign == '-' {
        end + (index - start)
    } else {
        // As many lines were removed as were added, or the pairs are not known.
        start.checked_sub(end - start)? + (index - start)
    };
    is(other, if sign == '-' { '+' } else { '-' }).then(|| lines[other])
}

/// Colours a mark of the frame around a request. Markdown never has this colour, so a model cannot draw such a box.
pub fn frame_mark(mark: &str, palette: &Palette) -> String {
    palette.colour(mark, Colour::Yellow)
}

/// Colours a formatted request: its frame, its heading, and the added and removed lines of a diff.
pub fn colour_request(text: &str, palette: &Palette) -> String {
    // The colour of a changed line also applies to the rows that continue it.
    let mut changed = None;
    let mut colour = |line: &str| {
        if let Some(heading) = line.strip_prefix('┌') {
            return format!("{}{}", frame_mark("┌", palette), palette.bold(heading));
        }
        let Some(content) = line.strip_prefix('│') else {
            return line.to_owned();
        };
        if let Some(content) = content.strip_prefix("   ") {
            changed = match content.as_bytes() {
                [b'+', ..] => Some(Colour::Green),
                [b'-', ..] => Some(Colour::Red),
                [b'@', b'@', ..] => Some(Colour::Cyan),
                _ => None,
            };
        } else if !content.starts_with(" ↳ ") {
            changed = None;
        }
        let content = match changed {
            Some(colour) => palette.colour(content, colour),
            None => content.to_owned(),
        };
        format!("{}{content}", frame_mark("│", palette))
    };
    let lines: Vec<String> = text.lines().map(&mut colour).collect();
    lines.join("\n")
}

/// Formats every argument; texts with several lines keep their line breaks.
fn arguments(request: &ApprovalRequest) -> String {
    let Some(fields) = request.arguments.as_object() else {
        return format!("{:#}", request.arguments);
    };
    let mut text = String::new();
    // Short ones first, so that a path is not behind the content of the file.
    let mut fields: Vec<_> = fields.iter().collect();
    let is_long = |value: &Value| value.as_str().is_some_and(|value| value.contains('\n'));
    fields.sort_by_key(|(_, value)| is_long(value));
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
    let room = width.saturating_sub(MARK_COLUMNS + 1).max(1);
    let mut rows = broken(&collapse_spaces(&escape_invisible(line)), room);
    if rows.len() > max_rows {
        let end = rows.split_off(rows.len() - max_rows / 2);
        let hidden: Vec<String> = rows.drain(max_rows - max_rows / 2..).collect();
        let hidden: usize = hidden.iter().map(|row| row.chars().count()).sum();
        let hidden = count(hidden as u64, "character");
        rows.extend(broken(&format!("… {hidden} (v shows everything) …"), room));
        rows.extend(end);
    }
    let marks = std::iter::once("│   ").chain(std::iter::repeat("│ ↳ "));
    let rows = rows.iter().zip(marks);
    rows.map(|(row, mark)| format!("{mark}{row}\n")).collect()
}

/// Returns the columns of a text on a terminal that joins no letters.
pub fn columns_of(text: &str) -> usize {
    text.chars().map(|letter| letter.width().unwrap_or(1)).sum()
}

/// Breaks a line into rows of at most `room` columns: after a space, if there is one in the second half of the row.
fn broken(line: &str, room: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    for letter in line.chars() {
        let columns = letter.width().unwrap_or(1);
        if used + columns > room && !row.is_empty() {
            let space = row.rfind(' ').filter(|at| *at >= row.len() / 2);
            let rest = space.map_or(String::new(), |at| row.split_off(at + 1));
            used = columns_of(&rest);
            rows.push(std::mem::replace(&mut row, rest));
        }
        used += columns;
        row.push(letter);
    }
    rows.push(row);
    rows
}

fn collapse_spaces(line: &str) -> String {
    // An empty Braille cell looks like a space.
    let is_blank = |letter: char| letter.is_whitespace() || letter == '\u{2800}';
    let mut shown = String::with_capacity(line.len().min(4096));
    let mut rest = line;
    while let Some(start) = rest.find(is_blank) {
        let (before, blanks) = rest.split_at(start);
        let after = blanks.trim_start_matches(is_blank);
        let blanks = &blanks[..blanks.len() - after.len()];
        shown.push_str(before);
        match blanks.chars().count() {
            length if length > MAX_SPACES => {
                let _ = write!(shown, " ⟨{length} spaces⟩ ");
            }
            _ => shown.push_str(blanks),
        }
        rest = after;
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

/// Returns the rule that would have allowed this call, and no broader one, as a flag; `None` if no rule can.
pub fn allowing_rule(waiting: &PendingApproval) -> Option<String> {
    let request = &waiting.request;
    let pattern = exact_pattern(request)?;
    let fields = [("tool", request.tool.as_str()), ("match", &*pattern)];
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
    use lango_core::{SessionId, Timestamp, TurnId};
    use serde_json::json;

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
        let line = format!("a{}; rm x", "\u{3000}\u{2800}".repeat(500));
        assert!(
            boxed_rows(&line, 80, 4)
                .concat()
                .contains("⟨1000 spaces⟩ ; rm x")
        );
        let line = format!("start {} end", "x".repeat(5000));
        let rows = boxed_rows(&line, 80, 4);
        assert_eq!(rows.len(), 5, "{rows:#?}");
        assert!(rows[0].contains("start") && rows[4].contains("end"));
        assert!(rows[2].contains("characters"), "{rows:#?}");
    }

    #[test]
    fn a_long_preview_shows_its_start_and_its_end() {
        let lines: Vec<String> = (1..=50).map(|number| format!("line {number}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let rows = preview_rows(&lines, None, 80, 10);
        let expected = [1, 2, 3, 4, 5, 6].map(|number| format!("│   line {number}\n"));
        assert_eq!(rows[..6], expected);
        assert_eq!(rows[6], "│   … 40 more lines (v shows everything) …\n");
        let expected = [47, 48, 49, 50].map(|number| format!("│   line {number}\n"));
        assert_eq!(rows[7..], expected);
        assert_eq!(preview_rows(&lines[..10], None, 80, 10).len(), 10);
        let long = "x".repeat(9000);
        assert!(preview_rows(&[&long, &long, "end"], None, 80, 5).len() <= 8);
    }

    #[test]
    fn a_change_in_the_middle_of_a_long_line_is_shown() {
        let (start, end) = ("a".repeat(3000), "z".repeat(3000));
        let removed = format!("-{start}safe{end}");
        let added = format!("+{start}evil{end}");
        let lines = ["@@ -1,2 +1,2 @@", "-x", &removed, "+y", &added];
        let rows = preview_rows(&lines, Some(0), 80, 20).concat();
        let mark = "│   -⟨2940 equal characters⟩ aaa";
        assert!(rows.contains(mark), "{rows}");
        assert!(rows.contains("safe") && rows.contains("evil"), "{rows}");
        // Arguments that only look like a diff hide nothing but the middle of a line.
        let rows = preview_rows(&lines, None, 80, 20).concat();
        assert!(!rows.contains("equal characters"), "{rows}");
        assert_eq!(other_version(&lines, 1), Some("+y"));
        assert_eq!(other_version(&lines, 4), Some(&*removed));
        assert_eq!(other_version(&["+a", "+b"], 1), None);
        assert_eq!(other_version(&["-ä"], 0), None);
    }

    #[test]
    fn no_row_of_a_box_is_wider_than_the_window() {
        for width in [12, 22, 40, 80] {
            for line in [
                "x".repeat(900),
                "لا".repeat(400),
                "日本".repeat(300),
                "a b ".repeat(400),
            ] {
                for row in boxed_rows(&line, width, LINE_ROWS) {
                    assert!(columns_of(row.trim_end()) < width, "{width}: {row}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_cut_of_everything() {
        let waiting = |note: &str, reason: &str| PendingApproval {
            session: SessionId::from("s_1"),
            turn: TurnId::from("t_1"),
            asked: Timestamp::default(),
            request: serde_json::from_value(json!({
                "id": "a_1", "agent": "coder", "call": "c_1", "tool": "exec", "arguments": {},
                "inspection": { "notes": [note] }, "digest": "d", "effect": "effect",
                "risk": "moderate", "reason": reason,
            }))
            .unwrap(),
        };
        let (note, reason) = ("note ".repeat(200), "reason ".repeat(200));
        let waiting = waiting(&note, &reason);
        let text = request(&waiting, RequestDetail::Everything(None), 0, 80);
        assert_eq!(text.matches("note").count(), 200, "{text}");
        assert_eq!(text.matches("reason").count(), 200, "{text}");
        assert!(!text.contains("shows everything"), "{text}");
        let text = request(&waiting, RequestDetail::Preview(None, 5), 0, 80);
        assert!(text.lines().count() < 12, "{text}");
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
