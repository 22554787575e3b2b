//! A list from which the user picks one row with the arrow keys, or by typing a part of it.

use super::text::fit;
use super::{Key, KeyReader, LiveFrame, Output, Palette, Region};
use crate::screen::{columns, rows};
use std::io;

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickRow {
    pub text: String,
    /// Further rows that are shown while this one is selected.
    pub detail: Vec<String>,
}

/// Lets the user pick a row. Returns its position, or `None` if the user left.
pub async fn pick(
    keys: &mut KeyReader,
    title: &str,
    items: &[PickRow],
    palette: &Palette,
) -> io::Result<Option<usize>> {
    let was_open = Region::is_open();
    if !was_open {
        Region::open(Output::Stderr);
    }
    let picked = choose(keys, title, items, palette).await;
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
    items: &[PickRow],
    palette: &Palette,
) -> io::Result<Option<usize>> {
    let mut list = PickList::new(items);
    loop {
        Region::draw(&list.frame(title, palette))?;
        match keys.next().await {
            Key::Enter => return Ok(list.selected_item()),
            Key::Escape | Key::Ctrl('c' | 'd') | Key::Closed => return Ok(None),
            Key::Resize => Region::resize()?,
            key => list.handle(&key),
        }
    }
}

/// The rows that match what the user typed, and the selected one.
struct PickList<'a> {
    items: &'a [PickRow],
    typed: String,
    selected: usize,
}

impl<'a> PickList<'a> {
    fn new(items: &'a [PickRow]) -> Self {
        Self {
            items,
            typed: String::new(),
            selected: 0,
        }
    }

    fn matching(&self) -> Vec<usize> {
        let typed = self.typed.to_lowercase();
        let fits = |item: &PickRow| item.text.to_lowercase().contains(&typed);
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
            _ => {}
        }
    }

    fn frame(&self, title: &str, palette: &Palette) -> LiveFrame {
        let columns = columns();
        let matching = self.matching();
        let detail_rows = self.items.iter().map(|item| item.detail.len()).max();
        let detail_rows = detail_rows.unwrap_or(0);
        let list_rows = rows().saturating_sub(4 + detail_rows).max(3);
        let first = (self.selected + 1).saturating_sub(list_rows);
        let mut shown = vec![format!("{title}  {}", self.typed)];
        for (row, position) in matching.iter().enumerate().skip(first).take(list_rows) {
            let text = fit(&self.items[*position].text, columns.saturating_sub(2));
            shown.push(if row == self.selected {
                format!("{} {}", palette.bold("❯"), palette.bold(&text))
            } else {
                format!("  {text}")
            });
        }
        if matching.is_empty() {
            shown.push(palette.dim("  no match"));
        }
        if let Some(position) = self.selected_item() {
            let detail = self.items[position].detail.iter();
            shown.extend(detail.map(|line| palette.dim(&format!("    {line}"))));
        }
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
        let items = ["apple", "banana", "Apricot"].map(|text| PickRow {
            text: text.to_owned(),
            detail: Vec::new(),
        });
        let mut list = PickList::new(&items);
        list.handle(&Key::Up);
        assert_eq!(list.selected_item(), Some(0));
        for key in [Key::Char('a'), Key::Char('p'), Key::Down, Key::Down] {
            list.handle(&key);
        }
        assert_eq!(list.selected_item(), Some(2));
        list.handle(&Key::Char('x'));
        assert_eq!(list.selected_item(), None);
    }
}
