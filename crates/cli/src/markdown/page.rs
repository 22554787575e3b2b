//! The lines of a rendered text: where blocks begin, and what stands before each line inside quotes and lists.
//!
//! The gap before a block is only remembered, and written with the block's first line, so that a block without any
//! text leaves no trace.

use std::cmp::Reverse;

use super::ink::{Ink, Look, Painted};

/// How deep quotes and lists are indented. Deeper ones are shown at this depth, so that a text of nothing but `>` does
/// not grow with the square of its length.
const DEEPEST: usize = 12;

/// The lines so far.
#[derive(Default)]
pub(super) struct Page {
    out: String,
    containers: Vec<Container>,
    /// Nothing was written since the last line break.
    at_line_start: bool,
    /// What sets the current block apart, until its first line is written.
    gap: Option<String>,
    /// The last block has ended and no other has begun.
    is_between_blocks: bool,
}

/// What a block can be inside of.
enum Container {
    Quote,
    List {
        next_number: Option<u64>,
        is_loose: bool,
    },
    Item {
        marker: Option<String>,
        indent: usize,
    },
}

impl Page {
    /// Sets a new block apart from what stands before it. The first block in a container is set apart with it.
    pub fn begin_block(&mut self) {
        if self.gap.is_some() && !self.is_between_blocks {
            return;
        }
        let gap = match (self.out.is_empty(), self.has_room_between_blocks()) {
            (true, _) => String::new(),
            (false, false) => "\n".into(),
            (false, true) => format!("\n{}\n", self.begun_prefix().trim_end()),
        };
        // A block that stayed empty may have left a gap: the higher one holds, or else that of the outer container.
        let rank = |gap: &String| (gap.matches('\n').count(), Reverse(gap.len()));
        self.gap = self.gap.take().into_iter().chain([gap]).max_by_key(rank);
        self.is_between_blocks = false;
    }

    /// A paragraph; inside an item it makes the list a loose one, with room between its items.
    pub fn begin_paragraph(&mut self) {
        if let [.., Container::List { is_loose, .. }, Container::Item { .. }] =
            self.containers.as_mut_slice()
        {
            *is_loose = true;
        }
        self.begin_block();
    }

    pub fn begin_quote(&mut self) {
        self.begin_block();
        self.containers.push(Container::Quote);
    }

    pub fn begin_list(&mut self, first_number: Option<u64>) {
        self.begin_block();
        self.containers.push(Container::List {
            next_number: first_number,
            is_loose: false,
        });
    }

    pub fn begin_item(&mut self) {
        self.begin_block();
        let marker = match self.containers.last_mut() {
            Some(Container::List {
                next_number: Some(number),
                ..
            }) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "• ".into(),
        };
        let indent = marker.chars().count();
        self.containers.push(Container::Item {
            marker: Some(marker),
            indent,
        });
    }

    pub fn end_block(&mut self) {
        self.is_between_blocks = true;
    }

    /// Leaves the innermost quote, list or item. An item that stayed empty still shows its marker.
    pub fn end_container(&mut self) {
        if let Some(Container::Item {
            marker: Some(_), ..
        }) = self.containers.last()
        {
            self.begin_line();
        }
        self.containers.pop();
        self.end_block();
    }

    /// Writes text, which may hold newlines, in the given ink.
    pub fn write(&mut self, text: &str, ink: Ink) {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.break_line();
            }
            let mut painted = Painted::default();
            painted.push(line, ink);
            self.write_painted(&painted.text);
        }
    }

    /// Writes text that carries its own escape sequences.
    pub fn write_painted(&mut self, text: &str) {
        if !text.is_empty() {
            self.begin_line();
            self.out.push_str(text);
        }
    }

    pub fn break_line(&mut self) {
        self.write_gap();
        self.out.push('\n');
        self.at_line_start = true;
    }

    /// The whole text without line breaks at its end.
    pub fn finish(mut self) -> String {
        self.out.truncate(self.out.trim_end_matches('\n').len());
        self.out
    }

    fn write_gap(&mut self) {
        if let Some(gap) = self.gap.take() {
            self.out.truncate(self.out.trim_end_matches('\n').len());
            self.out.push_str(&gap);
            self.at_line_start = true;
        }
    }

    fn begin_line(&mut self) {
        self.write_gap();
        if self.at_line_start {
            let prefix: String = self.begun_prefix() + &self.markers();
            self.out.push_str(&prefix);
            self.at_line_start = false;
        }
    }

    /// What stands before a line, up to the first item whose marker was not written yet.
    fn begun_prefix(&self) -> String {
        let has_begun = |container: &&Container| {
            !matches!(
                container,
                Container::Item {
                    marker: Some(_),
                    ..
                }
            )
        };
        self.containers
            .iter()
            .take(DEEPEST)
            .take_while(has_begun)
            .map(Container::prefix)
            .collect()
    }

    /// What follows it: the markers that were not written yet, with what stands between them. Uses the markers up.
    fn markers(&mut self) -> String {
        let is_new = |container: &Container| {
            matches!(
                container,
                Container::Item {
                    marker: Some(_),
                    ..
                }
            )
        };
        let first_new = self
            .containers
            .iter()
            .position(is_new)
            .unwrap_or(self.containers.len());
        let mut markers = String::new();
        for (depth, container) in self.containers.iter_mut().enumerate().skip(first_new) {
            match container {
                Container::Item {
                    marker: Some(_), ..
                } => markers.push_str(&container.take_marker()),
                _ if depth < DEEPEST => markers.push_str(&container.prefix()),
                _ => {}
            }
        }
        markers
    }

    fn has_room_between_blocks(&self) -> bool {
        let list = self
            .containers
            .iter()
            .rev()
            .find(|container| !matches!(container, Container::Item { .. }));
        !matches!(
            list,
            Some(Container::List {
                is_loose: false,
                ..
            })
        )
    }
}

impl Container {
    /// What stands before each of its lines.
    fn prefix(&self) -> String {
        match self {
            Self::Quote => {
                let mut bar = Painted::default();
                bar.push("│", Ink::default().and(Look::Dim));
                bar.text + " "
            }
            Self::List { .. } => String::new(),
            Self::Item { indent, .. } => " ".repeat(*indent),
        }
    }

    fn take_marker(&mut self) -> String {
        match self {
            Self::Item { marker, .. } => marker.take().unwrap_or_default(),
            _ => String::new(),
        }
    }
}
