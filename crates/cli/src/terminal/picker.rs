//! A list from which the user picks one row with the arrow keys, or by typing a part of it.

use super::text::fit;
use super::{Key, KeyReader, LiveFrame, Output, Palette, Region};
use crate::screen::{columns, rows};
use std::io;

/// How many rows Page Up and Page Down move.
const PAGE: usize = 10;

/// The most rows that describe the selected row.
const MAX_DETAIL_ROWS: usize = 6;

/// The columns of the mark before each row of the list.
const MARK_COLUMNS: usize = 2;

/// The indentation of these rows, in columns.
const INDENT: usize = 4;

/// Describes the rows of a list.
pub trait PickDetail {
    /// Returns what is shown below the list while the row at this position is selected, in lines of this width.
    fn detail(&mut self, position: usize, width: usize) -> impl Future<Output = Vec<String>>;
}

/// Lets the user pick a row. `items` formats the rows for a number of columns. Returns the row's position, or `None` if the
/// user left.
pub async fn pick(
    keys: &mut KeyReader,
    title: &str,
    items: &dyn Fn(usize) -> Vec<String>,
    details: impl PickDetail,
    palette: &Palette,
) -> io::Result<Option<usize>> {
    let was_open = Region::is_open();
    if !was_open {
        Region::open(Output::Stderr);
    }
    let picked = choose(keys, title, items, details, palette).await;
    if was_open {
        Region::draw(&LiveFrame::default())?;
    } else {
        Region::close();
    }
    picked
}

async fn choose(
    keys: &mut KeyReader,
    title: &str,
    items: &dyn Fn(usize) -> Vec<String>,
    mut details: impl PickDetail,
    palette: &Palette,
) -> io::Result<Option<usize>> {
    let mut list = PickList::new(items);
    let mut described = None;
    let mut detail = Vec::new();
    loop {
        let selected = list.selected_item();
        if described != selected {
            detail.clear();
        }
        Region::draw(&list.frame(title, &detail, palette))?;
        // While an arrow key is held down, no row needs its detail.
        let mut key = keys.try_next();
        if let (None, Some(position)) = (&key, selected.filter(|_| described != selected)) {
            detail = details
                .detail(position, columns().saturating_sub(INDENT))
                .await;
            described = selected;
            Region::draw(&list.frame(title, &detail, palette))?;
            key = keys.try_next();
        }
        let key = match key {
            Some(key) => key,
            None => keys.next().await,
        };
        match key {
            Key::Enter if selected.is_some() => return Ok(selected),
            Key::Escape | Key::Ctrl('c' | 'd') | Key::Closed => return Ok(None),
            Key::Resize | Key::Resumed => {
                list.shown = items(columns().saturating_sub(MARK_COLUMNS));
                Region::redraw()?;
            }
            key => list.handle(&key),
        }
    }
}

/// The rows that match what the user typed, and the selected one.
struct PickList {
    /// The rows as they are in a window of any width, for what the user types.
    items: Vec<String>,
    /// The rows for the width of the window.
    shown: Vec<String>,
    typed: String,
    selected: usize,
}

impl PickList {
    fn new(items: &dyn Fn(usize) -> Vec<String>) -> Self {
        Self {
            items: items(usize::MAX),
            shown: items(columns().saturating_sub(MARK_COLUMNS)),
            typed: String::new(),
            selected: 0,
        }
    }

    fn matching(&self) -> Vec<usize> {
        let typed = self.typed.to_lowercase();
        let fits = |item: &String| item.to_lowercase().contains(&typed);
        (0..self.items.len())
            .filter(|position| fits(&self.items[*position]))
            .collect()
    }

    fn selected_item(&self) -> Option<usize> {
        self.matching().get(self.selected).copied()
    }

    fn handle(&mut self, key: &Key) {
        let last = self.matching().len().saturating_sub(1);
        match key {
            Key::Up | Key::Ctrl('p') | Key::BackTab => {
                self.selected = self.selected.saturating_sub(1)
            }
            Key::Down | Key::Ctrl('n') | Key::Tab => self.selected = (self.selected + 1).min(last),
            Key::Home => self.selected = 0,
            Key::End => self.selected = last,
            Key::Char(letter) => {
                self.typed.push(*letter);
                self.selected = 0;
            }
            Key::Backspace => {
                self.typed.pop();
                self.selected = 0;
            }
            Key::Ctrl('u' | 'w') => {
                self.typed.clear();
                self.selected = 0;
            }
            Key::PageUp => self.selected = self.selected.saturating_sub(PAGE),
            Key::PageDown => self.selected = (self.selected + PAGE).min(last),
            _ => {}
        }
    }

    fn frame(&self, title: &str, detail: &[String], palette: &Palette) -> LiveFrame {
        let columns = columns();
        let matching = self.matching();
        // The title, the row below the list, and the keys.
        let others = 4;
        let list_rows = rows().saturating_sub(others + 1 + MAX_DETAIL_ROWS).max(3);
        let detail_rows = rows()
            .saturating_sub(others + list_rows)
            .min(MAX_DETAIL_ROWS);
        let first = (self.selected + 1).saturating_sub(list_rows);
        let mut shown = vec![format!("{title}  {}", self.typed)];
        for (row, position) in matching.iter().enumerate().skip(first).take(list_rows) {
            let text = fit(&self.shown[*position], columns.saturating_sub(MARK_COLUMNS));
            shown.push(if row == self.selected {
                format!("{} {}", palette.bold("❯"), palette.bold(&text))
            } else {
                format!("  {text}")
            });
        }
        if matching.is_empty() {
            shown.push(palette.dim("  no match · `lango sessions search` looks into the texts"));
        }
        let hidden = matching.len().saturating_sub(first + list_rows);
        if hidden > 0 {
            shown.push(palette.dim(&format!("  … {hidden} more below")));
        }
        let detail = detail.iter().take(detail_rows);
        shown.extend(detail.map(|line| palette.dim(&format!("{:INDENT$}{line}", ""))));
        shown.push(palette.dim("  ↑ ↓ select · type to filter · enter opens · esc leaves"));
        let column = title.chars().count() + 2 + self.typed.chars().count();
        LiveFrame {
            rows: shown,
            cursor: Some((0, column)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_filters_the_rows_and_arrows_stay_inside_the_list() {
        let mut list = PickList::new(&|_| ["apple", "banana", "Apricot"].map(str::to_owned).into());
        list.handle(&Key::Up);
        assert_eq!(list.selected_item(), Some(0));
        for key in [Key::Char('a'), Key::Char('p'), Key::Down, Key::Down] {
            list.handle(&key);
        }
        assert_eq!(list.selected_item(), Some(2));
        list.handle(&Key::Char('x'));
        assert_eq!(list.selected_item(), None);
        list.handle(&Key::Ctrl('u'));
        assert_eq!(list.selected_item(), Some(0));
    }
}
