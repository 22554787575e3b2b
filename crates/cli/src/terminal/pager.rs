//! A pager on the alternate screen, for texts that are longer than the terminal. The scrollback stays as it was.

use super::text::{fit, width, wrap_lines};
use super::{Key, KeyReader, Output, Region};
use crate::screen::{columns, rows};
use std::io;

const ENTER_ALTERNATE: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE_ALTERNATE: &str = "\u{1b}[?25h\u{1b}[?1049l";

/// How much of a text the user has seen when the pager was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageEnd {
    /// The last line was on the screen.
    Shown,
    NotReached,
}

/// Shows rendered lines until the user leaves with `q`, Escape or Ctrl-C. `lines` returns the lines for a width, so that
/// they fit again after a resize. A longer line is wrapped.
pub async fn page(
    keys: &mut KeyReader,
    title: &str,
    lines: impl Fn(usize) -> Vec<String>,
) -> io::Result<PageEnd> {
    Region::cover();
    Output::write_to_terminal(ENTER_ALTERNATE)?;
    let result = scroll(keys, title, lines).await;
    Output::write_to_terminal(LEAVE_ALTERNATE)?;
    Region::uncover()?;
    result
}

async fn scroll(
    keys: &mut KeyReader,
    title: &str,
    lines: impl Fn(usize) -> Vec<String>,
) -> io::Result<PageEnd> {
    let mut end = PageEnd::NotReached;
    let mut shown = wrapped(&lines(columns()), columns());
    let mut top = 0;
    loop {
        let page_rows = rows().saturating_sub(1).max(1);
        let last_top = shown.len().saturating_sub(page_rows);
        top = top.min(last_top);
        draw(title, &shown, top, page_rows)?;
        if top == last_top {
            end = PageEnd::Shown;
        }
        match keys.next().await {
            Key::Char('q' | 'v') | Key::Escape | Key::Ctrl('c' | 'd') | Key::Closed => {
                return Ok(end);
            }
            Key::Down | Key::Char('j') | Key::Enter => top += 1,
            Key::Up | Key::Char('k') => top = top.saturating_sub(1),
            Key::PageDown | Key::Char(' ' | 'f') => top += page_rows,
            Key::PageUp | Key::Char('b') => top = top.saturating_sub(page_rows),
            Key::Home | Key::Char('g') => top = 0,
            Key::End | Key::Char('G') => top = last_top,
            Key::Resize | Key::Resumed => shown = wrapped(&lines(columns()), columns()),
            _ => {}
        }
    }
}

/// Returns rows that are not wider than the terminal, so that nothing of a line is cut.
fn wrapped(lines: &[String], columns: usize) -> Vec<String> {
    let text = wrap_lines(&lines.join("\n"), columns);
    text.split('\n').map(str::to_owned).collect()
}

fn draw(title: &str, lines: &[String], top: usize, page_rows: usize) -> io::Result<()> {
    let columns = columns();
    let mut text = String::from("\u{1b}[H");
    for row in 0..page_rows {
        text.push_str("\u{1b}[K");
        if let Some(line) = lines.get(top + row) {
            text.push_str(line);
        }
        text.push_str("\r\n");
    }
    let last = lines.len().min(top + page_rows);
    let place = format!(
        " lines {}–{last} of {} ",
        (top + 1).min(lines.len()),
        lines.len()
    );
    let statuses = [
        format!("{place}· {title} · ↑ ↓ space b g G · q back "),
        format!("{place}· {title} · q back "),
        format!("{place}· q back "),
    ];
    let status = statuses
        .into_iter()
        .find(|status| width(status) <= columns)
        .unwrap_or(place);
    text.push_str(&format!(
        "\u{1b}[K\u{1b}[7m{}\u{1b}[0m",
        fit(&status, columns)
    ));
    Output::write_to_terminal(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_wrapped_and_keeps_its_mark() {
        let lines = ["short".to_owned(), "│ folder: /a b/c".to_owned()];
        assert_eq!(wrapped(&lines, 12), ["short", "│ folder: /a", "│   b/c"]);
        assert_eq!(wrapped(&[String::new()], 12), [""]);
    }
}
