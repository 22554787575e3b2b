//! The editor for a message: text with several lines and a cursor. It has no opinion on what the text means.

use super::Key;
use super::text::width;
use lango_core::text::sanitize;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// The maximum length of a message in bytes. A longer paste is cut; files are attached with `@path` instead.
const MAX_BYTES: usize = 1_000_000;

/// A longer line is wrapped in parts of this length, so that a frame need not wrap all of it. The last row of a part may be
/// short.
const MAX_PART_BYTES: usize = 16 * 1024;

/// A text with a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Editor {
    text: String,
    /// A byte position at the boundary of a grapheme.
    cursor: usize,
    /// What Ctrl-K, Ctrl-U or Ctrl-W removed last.
    removed: String,
}

/// The rows of an editor that are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorRows {
    pub rows: Vec<String>,
    /// The row and column of the cursor.
    pub cursor: (usize, usize),
    pub has_more_above: bool,
}

impl Editor {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text before the cursor.
    pub fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Whether the cursor is in a word or right before one.
    pub fn is_before_letter(&self) -> bool {
        let mut after = self.text[self.cursor..].chars();
        after.next().is_some_and(|letter| !letter.is_whitespace())
    }

    /// Replaces the text and moves the cursor to its end.
    pub fn set(&mut self, text: &str) {
        self.text = text.to_owned();
        self.cursor = self.text.len();
    }

    /// Returns the text and clears the editor.
    pub fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Inserts text at the cursor. Carriage returns become newlines; other control characters are dropped.
    pub fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let room = MAX_BYTES.saturating_sub(self.text.len());
        let is_text = |letter: &char| !letter.is_control() || matches!(letter, '\n' | '\t');
        let mut inserted: String = text.chars().filter(is_text).collect();
        if inserted.len() > room {
            inserted.truncate(inserted.floor_char_boundary(room));
        }
        self.text.insert_str(self.cursor, &inserted);
        self.cursor += inserted.len();
    }

    /// Whether nothing more can be inserted.
    pub fn is_full(&self) -> bool {
        // The last character may have needed more than what was left.
        self.text.len() + 4 > MAX_BYTES
    }

    /// Replaces the last `bytes` bytes before the cursor.
    pub fn replace_before_cursor(&mut self, bytes: usize, text: &str) {
        let start = self.cursor.saturating_sub(bytes);
        self.text.replace_range(start..self.cursor, text);
        self.cursor = start + text.len();
    }

    /// Handles a key that edits the text or moves the cursor. Returns whether it did.
    pub fn handle(&mut self, key: &Key) -> bool {
        match key {
            Key::Char(letter) => self.insert(letter.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => self.insert(text),
            Key::NewLine => self.insert("\n"),
            // A backslash at the end of a line continues it.
            Key::Enter if self.before_cursor().ends_with('\\') => {
                self.replace_before_cursor(1, "\n");
            }
            Key::Backspace => self.remove(self.previous(), self.cursor),
            Key::Delete => self.remove(self.cursor, self.next()),
            Key::Ctrl('d') if !self.is_empty() => self.remove(self.cursor, self.next()),
            Key::DeleteWord | Key::Ctrl('w') => self.kill(self.word_left(), self.cursor),
            Key::Alt('d') => self.kill(self.cursor, self.word_right()),
            Key::Ctrl('k') => self.kill(self.cursor, self.line_end().max(self.next_if_line_end())),
            // At the start of a line it joins the line above, so that more of them clear the message.
            Key::Ctrl('u') => self.kill(self.line_start().min(self.previous()), self.cursor),
            Key::Ctrl('y') => self.insert(&self.removed.clone()),
            Key::Left | Key::Ctrl('b') => self.cursor = self.previous(),
            Key::Right | Key::Ctrl('f') => self.cursor = self.next(),
            Key::WordLeft | Key::Alt('b') => self.cursor = self.word_left(),
            Key::WordRight | Key::Alt('f') => self.cursor = self.word_right(),
            Key::Home | Key::Ctrl('a') => self.cursor = self.line_start(),
            Key::End | Key::Ctrl('e') => self.cursor = self.line_end(),
            Key::Up => return self.move_line(Direction::Up),
            Key::Down => return self.move_line(Direction::Down),
            _ => return false,
        }
        true
    }

    /// Returns the rows to show at this width. Long lines are broken at columns, so that the cursor is always at its
    /// character. At most `max_rows` rows around the cursor are returned, and the rest of a long text costs nothing.
    pub fn rows(&self, columns: usize, max_rows: usize) -> EditorRows {
        let (columns, max_rows) = (columns.max(2), max_rows.max(1));
        let part = self.part_at(self.cursor);
        let (mut start, mut end) = (part.start, part.end);
        let (mut rows, mut cursor) = self.wrapped(part, columns);
        while cursor.0 + 1 < max_rows && start > 0 {
            let part = self.part_at(self.text.floor_char_boundary(start - 1));
            start = part.start;
            let (mut above, _) = self.wrapped(part, columns);
            cursor.0 += above.len();
            above.append(&mut rows);
            rows = above;
        }
        let first = (cursor.0 + 1).saturating_sub(max_rows);
        while rows.len() < first + max_rows && end < self.text.len() {
            let is_line_end = self.text[end..].starts_with('\n');
            let part = self.part_at(end + usize::from(is_line_end));
            end = part.end;
            rows.append(&mut self.wrapped(part, columns).0);
        }
        EditorRows {
            rows: rows.into_iter().skip(first).take(max_rows).collect(),
            cursor: (cursor.0 - first, cursor.1),
            has_more_above: first > 0 || start > 0,
        }
    }

    /// Returns the part of a line that contains this position, without the newline.
    fn part_at(&self, at: usize) -> Range<usize> {
        let line_start = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[at..]
            .find('\n')
            .map_or(self.text.len(), |it| at + it);
        let boundary = |index: usize| {
            let end = line_end.min(line_start + index * MAX_PART_BYTES);
            self.text.floor_char_boundary(end)
        };
        let last = (line_end - line_start).saturating_sub(1) / MAX_PART_BYTES;
        let mut index = last.min((at - line_start) / MAX_PART_BYTES);
        if index < last && boundary(index + 1) <= at {
            index += 1;
        }
        boundary(index)..boundary(index + 1)
    }

    /// Wraps a part of a line. Returns its rows, and the row and column of the cursor if that is in it.
    fn wrapped(&self, part: Range<usize>, columns: usize) -> (Vec<String>, (usize, usize)) {
        let mut rows = vec![String::new()];
        let (mut used, mut cursor) = (0, (0, 0));
        for (position, glyph) in self.text[part.clone()].grapheme_indices(true) {
            let glyph = if glyph == "\t" {
                "    ".into()
            } else {
                sanitize(glyph)
            };
            let glyph_columns = width(&glyph);
            if used + glyph_columns > columns {
                rows.push(String::new());
                used = 0;
            }
            if part.start + position == self.cursor {
                cursor = (rows.len() - 1, used);
            }
            used += glyph_columns;
            if let Some(row) = rows.last_mut() {
                row.push_str(&glyph);
            }
        }
        if self.cursor == part.end {
            if used >= columns && part.end == self.text.len() {
                rows.push(String::new());
                used = 0;
            }
            cursor = (rows.len() - 1, used);
        }
        (rows, cursor)
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn kill(&mut self, from: usize, to: usize) {
        self.removed = self.text[from..to].to_owned();
        self.remove(from, to);
    }

    fn previous(&self) -> usize {
        let mut before = self.before_cursor().grapheme_indices(true);
        before.next_back().map_or(0, |(position, _)| position)
    }

    fn next(&self) -> usize {
        let mut after = self.text[self.cursor..].graphemes(true);
        self.cursor + after.next().map_or(0, str::len)
    }

    fn next_if_line_end(&self) -> usize {
        if self.cursor == self.line_end() {
            self.next()
        } else {
            self.cursor
        }
    }

    fn word_left(&self) -> usize {
        let words = self.before_cursor().split_word_bound_indices();
        let mut words = words.rev().skip_while(|(_, word)| word.trim().is_empty());
        words.next().map_or(0, |(position, _)| position)
    }

    fn word_right(&self) -> usize {
        let after = &self.text[self.cursor..];
        let mut words = after.split_word_bound_indices();
        let word = words.find(|(_, word)| !word.trim().is_empty());
        self.cursor + word.map_or(after.len(), |(position, word)| position + word.len())
    }

    fn line_start(&self) -> usize {
        self.before_cursor().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let after = &self.text[self.cursor..];
        after
            .find('\n')
            .map_or(self.text.len(), |at| self.cursor + at)
    }

    /// Moves the cursor to the same column of the line above or below. Returns false if there is none.
    fn move_line(&mut self, direction: Direction) -> bool {
        let (start, end) = (self.line_start(), self.line_end());
        let column = self.text[start..self.cursor].graphemes(true).count();
        let (target_start, target_end) = match direction {
            Direction::Up if start == 0 => return false,
            Direction::Up => {
                let end = start - 1;
                (self.text[..end].rfind('\n').map_or(0, |at| at + 1), end)
            }
            Direction::Down if end == self.text.len() => return false,
            Direction::Down => {
                let start = end + 1;
                let length = self.text[start..].find('\n');
                (start, length.map_or(self.text.len(), |at| start + at))
            }
        };
        let line = &self.text[target_start..target_end];
        let at = line.grapheme_indices(true).nth(column);
        self.cursor = target_start + at.map_or(line.len(), |(position, _)| position);
        true
    }
}

enum Direction {
    Up,
    Down,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[Key]) -> Editor {
        let mut editor = Editor::default();
        for key in keys {
            editor.handle(key);
        }
        editor
    }

    fn text(text: &str) -> Key {
        Key::Paste(text.to_owned())
    }

    #[test]
    fn a_backslash_before_enter_starts_a_new_line() {
        let editor = typed(&[text("one\\"), Key::Enter, text("two")]);
        assert_eq!(editor.text(), "one\ntwo");
        let mut editor = typed(&[text("one")]);
        assert!(!editor.handle(&Key::Enter), "Enter alone is not an edit");
    }

    #[test]
    fn graphemes_and_words_are_removed_as_a_whole() {
        assert_eq!(typed(&[text("a👩‍👩‍👧"), Key::Backspace]).text(), "a");
        assert_eq!(typed(&[text("one two "), Key::Ctrl('w')]).text(), "one ");
        let editor = typed(&[text("one two"), Key::Ctrl('u'), Key::Ctrl('y')]);
        assert_eq!(editor.text(), "one two");
        let lines = [text("ab"), Key::NewLine, text("cd")];
        let clear = [Key::Ctrl('u'), Key::Ctrl('u'), Key::Ctrl('u')];
        assert_eq!(typed(&[&lines[..], &clear].concat()).text(), "");
        assert_eq!(typed(&[text("ab"), Key::Home, Key::Ctrl('k')]).text(), "");
    }

    #[test]
    fn the_cursor_moves_between_lines_and_stays_in_its_column() {
        let mut editor = typed(&[text("first line\nx\nthird"), Key::Up]);
        assert_eq!(editor.before_cursor(), "first line\nx");
        assert!(editor.handle(&Key::Up));
        assert_eq!(editor.before_cursor(), "f");
        assert!(!editor.handle(&Key::Up), "there is no line above");
    }

    #[test]
    fn rows_are_broken_at_columns_and_follow_the_cursor() {
        let editor = typed(&[text("abcdef日本\nx")]);
        assert_eq!(
            editor.rows(4, 10),
            EditorRows {
                rows: ["abcd", "ef日", "本", "x"].map(str::to_owned).into(),
                cursor: (3, 1),
                has_more_above: false,
            }
        );
        let end = editor.rows(4, 2);
        assert_eq!((end.rows.concat().as_str(), end.cursor), ("本x", (1, 1)));
        assert!(end.has_more_above);
        assert_eq!(typed(&[text("abcd")]).rows(4, 10).cursor, (1, 0));
    }

    #[test]
    fn rows_above_and_below_the_cursor_are_shown_up_to_the_height() {
        let mut editor = typed(&[text("a\nbc\n\nd\n")]);
        let all = editor.rows(4, 10);
        assert_eq!(
            (all.rows.join("|").as_str(), all.cursor),
            ("a|bc||d|", (4, 0))
        );
        for _ in 0..3 {
            editor.handle(&Key::Up);
        }
        let start = editor.rows(4, 3);
        assert_eq!(
            (start.rows.join("|").as_str(), start.cursor),
            ("a|bc|", (1, 0))
        );
        assert!(!start.has_more_above);
        let one = editor.rows(4, 1);
        assert_eq!((one.rows.join("|").as_str(), one.cursor), ("bc", (0, 0)));
        assert!(one.has_more_above);
    }

    #[test]
    fn the_cursor_is_at_its_character_everywhere_in_a_long_line() {
        let line = "日本".repeat(2 * MAX_PART_BYTES / 6) + "end";
        let mut editor = typed(&[text(&format!("x\n{line}\ny"))]);
        for at in (0..editor.text.len())
            .rev()
            .filter(|at| at % 101 == 0 || at % MAX_PART_BYTES < 9)
        {
            if !editor.text.is_char_boundary(at) || editor.text[at..].starts_with('\n') {
                continue;
            }
            editor.cursor = at;
            let shown = editor.rows(40, 3);
            let row = &shown.rows[shown.cursor.0];
            let column = row
                .char_indices()
                .find(|(at, _)| width(&row[..*at]) == shown.cursor.1);
            assert_eq!(
                column.map(|it| it.1),
                editor.text[at..].chars().next(),
                "{at}"
            );
        }
    }

    #[test]
    fn a_frame_does_not_wrap_a_megabyte() {
        for pasted in [
            "line of a log\n".repeat(70_000),
            "a long line ".repeat(80_000),
        ] {
            let editor = typed(&[text(&pasted)]);
            let parts = editor.text.len() / MAX_PART_BYTES;
            assert!(parts > 50);
            let started = std::time::Instant::now();
            for _ in 0..200 {
                assert_eq!(editor.rows(80, 10).rows.len(), 10);
            }
            // All of it takes about a second without optimization.
            assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
        }
    }

    #[test]
    fn pasted_control_characters_are_dropped_and_line_ends_are_kept() {
        assert_eq!(typed(&[text("a\r\nb\u{1b}[2Jc\rd")]).text(), "a\nb[2Jc\nd");
    }
}
