//! The lines of a rendered text: where blocks start, and the prefix of each line inside quotes and lists.
//!
//! The gap before a block is written together with the block's first line, so that an empty block leaves no trace.

use std::cmp::Reverse;

use super::styled_text::{StyledText, TextAttribute, TextAttributes};

/// The maximum indentation depth of quotes and lists. Deeper ones are shown at this depth, so that a text that
/// consists only of `>` does not grow quadratically.
const MAX_DEPTH: usize = 12;

/// The lines written so far.
#[derive(Default)]
pub(super) struct Page {
    out: String,
    containers: Vec<Container>,
    /// Whether nothing was written since the last line break.
    at_line_start: bool,
    /// The gap before the current block, until its first line is written.
    gap: Option<String>,
    /// Whether the last block has ended and no other has started.
    is_between_blocks: bool,
}

/// A container that blocks can be nested in.
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
    /// Starts a block, separated from the previous one. The first block in a container shares the container's gap.
    pub(crate) fn begin_block(&mut self) {
        if self.gap.is_some() && !self.is_between_blocks {
            return;
        }
        let gap = match (self.out.is_empty(), self.has_blank_line_between_blocks()) {
            (true, _) => String::new(),
            (false, false) => "\n".into(),
            (false, true) => format!("\n{}\n", self.written_prefix().trim_end()),
        };
        // An empty block may have left a gap: the larger one wins, or else the one of the outer container.
        let rank = |gap: &String| (gap.matches('\n').count(), Reverse(gap.len()));
        self.gap = self.gap.take().into_iter().chain([gap]).max_by_key(rank);
        self.is_between_blocks = false;
    }

    /// Starts a paragraph; inside an item it makes the list a loose one, with blank lines between its items.
    pub(crate) fn begin_paragraph(&mut self) {
        if let [.., Container::List { is_loose, .. }, Container::Item { .. }] =
            self.containers.as_mut_slice()
        {
            *is_loose = true;
        }
        self.begin_block();
    }

    pub(crate) fn begin_quote(&mut self) {
        self.begin_block();
        self.containers.push(Container::Quote);
    }

    pub(crate) fn begin_list(&mut self, first_number: Option<u64>) {
        self.begin_block();
        self.containers.push(Container::List {
            next_number: first_number,
            is_loose: false,
        });
    }

    pub(crate) fn begin_item(&mut self) {
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

    pub(crate) fn end_block(&mut self) {
        self.is_between_blocks = true;
    }

    /// Leaves the innermost quote, list or item. An empty item still shows its marker.
    pub(crate) fn end_container(&mut self) {
        if let Some(Container::Item {
            marker: Some(_), ..
        }) = self.containers.last()
        {
            self.begin_line();
        }
        self.containers.pop();
        self.end_block();
    }

    /// Writes text, which may contain newlines, with these attributes.
    pub(crate) fn write(&mut self, text: &str, attributes: TextAttributes) {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.break_line();
            }
            let mut styled = StyledText::default();
            styled.push(line, attributes);
            self.write_styled(&styled.text);
        }
    }

    /// Writes text that already contains its escape sequences.
    pub(crate) fn write_styled(&mut self, text: &str) {
        if !text.is_empty() {
            self.begin_line();
            self.out.push_str(text);
        }
    }

    pub(crate) fn break_line(&mut self) {
        self.write_gap();
        self.out.push('\n');
        self.at_line_start = true;
    }

    /// Returns the whole text without trailing line breaks.
    pub(crate) fn finish(mut self) -> String {
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
            let prefix: String = self.written_prefix() + &self.markers();
            self.out.push_str(&prefix);
            self.at_line_start = false;
        }
    }

    /// Returns the prefix of a line, up to the first item whose marker has not been written.
    fn written_prefix(&self) -> String {
        let is_written = |container: &&Container| {
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
            .take(MAX_DEPTH)
            .take_while(is_written)
            .map(Container::prefix)
            .collect()
    }

    /// Returns what follows that prefix: the unwritten markers and what lies between them. Consumes the markers.
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
                _ if depth < MAX_DEPTH => markers.push_str(&container.prefix()),
                _ => {}
            }
        }
        markers
    }

    fn has_blank_line_between_blocks(&self) -> bool {
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
    /// Returns the prefix of each line in the container.
    fn prefix(&self) -> String {
        match self {
            Self::Quote => {
                let mut bar = StyledText::default();
                bar.push("│", TextAttributes::default().and(TextAttribute::Dim));
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
