//! Quotes, lists and items, and what they write before each row: bars, markers and indentation.

use super::render::Style;
use super::styled_text::{TextAttribute, TextAttributes};

/// The maximum number of bars and indentations before a row. Deeper containers are shown at this depth, so that a
/// text that consists only of `>` does not grow quadratically.
const MAX_DEPTH: usize = 12;

/// A container that blocks can be nested in.
#[derive(Debug)]
pub(super) enum Container {
    Quote,
    List {
        next_number: Option<u64>,
        /// Whether the next item follows after a blank row, because the last one contains one.
        is_loose: bool,
    },
    Item {
        /// The marker, until it is written, and the offset of the item in the source.
        marker: Option<(String, usize)>,
        indent: usize,
        /// Whether there is a blank row between its blocks.
        is_loose: bool,
    },
}

/// What is written before the first row of a line and before the rows that continue it.
#[derive(Debug, Default)]
pub(super) struct Prefix {
    pub first: String,
    pub rest: String,
    /// The columns that either of them takes.
    pub width: usize,
    /// The offset of the first item whose marker is written.
    pub item_offset: Option<usize>,
}

impl Container {
    fn width(&self) -> usize {
        match self {
            Self::Quote => 2,
            Self::List { .. } => 0,
            Self::Item { indent, .. } => *indent,
        }
    }

    /// Returns what is before each row in the container, apart from markers.
    fn prefix(&self, style: Style) -> String {
        match self {
            Self::Quote => {
                let mut bar = String::new();
                let dim = TextAttributes::default().and(TextAttribute::Dim);
                dim.paint("│", style, &mut bar);
                bar + " "
            }
            Self::List { .. } => String::new(),
            Self::Item { indent, .. } => " ".repeat(*indent),
        }
    }

    /// Takes the marker. It was taken from all containers around this one at the same time.
    fn take_marker(&mut self) -> Option<(String, usize)> {
        match self {
            Self::Item { marker, .. } => marker.take(),
            _ => None,
        }
    }

    fn has_marker(&self) -> bool {
        matches!(
            self,
            Self::Item {
                marker: Some(_),
                ..
            }
        )
    }
}

/// Returns the prefix of the next line in these containers, and takes the markers.
pub(super) fn take_prefix(containers: &mut [Container], width: usize, style: Style) -> Prefix {
    let mut prefix = Prefix::default();
    let shown = shown_depth(containers, width);
    let (shown, deeper) = containers.split_at_mut(shown);
    for container in shown {
        let rest = container.prefix(style);
        let marker = container.take_marker();
        if let Some((_, offset)) = &marker {
            prefix.item_offset.get_or_insert(*offset);
        }
        prefix.width += container.width();
        prefix.first += marker.as_ref().map_or(&rest, |(marker, _)| marker);
        prefix.rest += &rest;
    }
    let mut item_offset = None;
    for container in deeper.iter_mut().rev() {
        match container.take_marker() {
            Some((_, offset)) => item_offset = Some(offset),
            None if matches!(container, Container::Item { .. }) => break,
            None => {}
        }
    }
    prefix.item_offset = prefix.item_offset.or(item_offset);
    prefix
}

/// Returns the columns that the prefix of the next line takes.
pub(super) fn prefix_width(containers: &[Container], width: usize) -> usize {
    containers[..shown_depth(containers, width)]
        .iter()
        .map(Container::width)
        .sum()
}

/// Returns the prefix of a blank row: that of the containers whose markers are written.
pub(super) fn blank_prefix(containers: &[Container], width: usize, style: Style) -> String {
    let prefix: String = containers[..shown_depth(containers, width)]
        .iter()
        .take_while(|container| !container.has_marker())
        .map(|container| container.prefix(style))
        .collect();
    prefix.trim_end().into()
}

/// Returns how many containers are shown: as many as leave room for the text.
fn shown_depth(containers: &[Container], width: usize) -> usize {
    let budget = width - (width / 3).max(8);
    let (mut used, mut levels) = (0, 0);
    for (depth, container) in containers.iter().enumerate() {
        used += container.width();
        levels += usize::from(container.width() > 0);
        if used > budget || levels > MAX_DEPTH {
            return depth;
        }
    }
    containers.len()
}
