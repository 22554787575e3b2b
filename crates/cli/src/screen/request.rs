//! A call that waits for a person, as they are shown it: who wants what, exactly as it would run, and why they are asked.
//!
//! Everything in it was chosen by a model. So every line of the screen begins with a mark of ours, also where a long line
//! goes on, and what a terminal would obey or hide is written out.

use super::{count, one_line};
use crate::markdown::is_disruptive;
use lango_core::{ApprovalRequest, Asks, Risk, Waiting};
use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

/// How much of a call is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown<'a> {
    /// What its tool says it would change; without that, its arguments.
    Preview(Option<&'a str>),
    /// All of what its tool says it would change, and every argument.
    Everything(Option<&'a str>),
}

/// The lines of a request on a screen of this width, without the keys that answer it. `more` others wait behind it.
pub fn request(waiting: &Waiting, shown: Shown<'_>, more: usize, width: usize) -> String {
    let request = &waiting.request;
    let risk = match request.risk {
        Risk::Safe => "safe",
        Risk::Moderate => "changes something",
        Risk::Dangerous => "can do harm",
    };
    let (agent, tool) = (
        visible(request.agent.as_str()),
        visible(request.tool.as_str()),
    );
    let mut text = match request.asks {
        Asks::Permission => format!("┌ {agent} wants to use {tool} · {risk}\n"),
        Asks::Fate => format!("┌ {agent} used {tool}, and nobody knows whether it happened\n"),
        Asks::Turn => "┌ a turn may have gone on in another copy of the database\n".to_owned(),
    };
    let content = match shown {
        Shown::Preview(Some(preview)) => preview.to_owned(),
        Shown::Everything(Some(preview)) => {
            let preview = preview.trim_end();
            format!("{preview}\nthe arguments:\n{}", arguments(request))
        }
        Shown::Preview(None) | Shown::Everything(None) => arguments(request),
    };
    for line in content.trim_end().lines() {
        boxed(&mut text, line, width);
    }
    for note in &request.inspection.notes {
        boxed(&mut text, note, width);
    }
    let _ = write!(text, "│ why: {}", one_line(&visible(&request.reason), 200));
    if more > 0 {
        let _ = write!(text, " · {} behind it", count(more as u64, "request"));
    }
    text
}

/// Every argument, long texts as the lines they have.
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

/// One line in the box, on as many lines of the screen as it needs.
fn boxed(text: &mut String, line: &str, width: usize) {
    const FIRST: &str = "│   ";
    const NEXT: &str = "│ ↳ ";
    let room = width.saturating_sub(5).max(20);
    let (mut used, mut mark) = (0, FIRST);
    text.push_str(mark);
    for letter in visible(line).chars() {
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

/// The same text with everything written out that a terminal would obey or hide.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => shown.push('␊'),
            '\t' => shown.push_str("    "),
            '\u{0}'..='\u{1f}' => {
                let picture = char::from_u32(0x2400 + u32::from(letter));
                shown.push(picture.unwrap_or('�'));
            }
            // Here even a joiner that belongs to an emoji is written out: what is asked for must be seen exactly.
            _ if is_unseen(letter) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(letter));
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// Whether a reader would not see the character: it is for control or format, or looks like nothing.
pub fn is_unseen(letter: char) -> bool {
    letter.is_control() || is_disruptive(letter) || letter.width() == Some(0)
}

/// Who wants what, on one line.
pub fn subject_line(request: &ApprovalRequest) -> String {
    let arguments = super::progress::brief_arguments(&request.arguments);
    let arguments = visible(&arguments);
    format!(
        "{} {} {}",
        visible(request.agent.as_str()),
        visible(request.tool.as_str()),
        one_line(&arguments, 80)
    )
}

/// The rule that would have let this call run, as a flag; none if no rule can.
pub fn allowing_rule(waiting: &Waiting) -> Option<String> {
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
    fn every_line_of_the_screen_is_marked_however_long_a_line_is() {
        let mut text = String::new();
        boxed(
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
    fn what_a_terminal_would_obey_or_hide_is_written_out() {
        assert_eq!(
            visible("a\u{1b}[2J\nb\u{202e}c\u{200b}d"),
            "a␛[2J␊b\\u{202e}c\\u{200b}d"
        );
        assert_eq!(visible("naïve 日本"), "naïve 日本");
        assert_eq!(
            visible("a\u{61c}b\u{180e}c\u{3164}d\u{e0041}e\u{fe0f}"),
            "a\\u{61c}b\\u{180e}c\\u{3164}d\\u{e0041}e\\u{fe0f}"
        );
    }
}
