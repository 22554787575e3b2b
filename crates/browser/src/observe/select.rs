//! Selects the lines of an observation when not all of them fit into the token budget.

use super::items::Item;
use super::lines::{Line, Rank, write};
use super::tokens::estimate;
use std::collections::BTreeMap;

/// Selects lines within a token budget: dialogs first, then controls in the viewport, the rest of the viewport, and the
/// nearest lines. Returns for each line whether it is shown.
pub(super) fn select_lines(items: &[Item], lines: &[Line], budget: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|line| (lines[*line].rank, lines[*line].distance, *line));
    let mut is_chosen = vec![false; lines.len()];
    let mut used = 0;
    for line in order {
        if is_chosen[line] {
            continue;
        }
        // Includes its containers that are not shown yet.
        let mut needed = vec![line];
        let mut parent = lines[line].parent;
        while let Some(above) = parent.filter(|above| !is_chosen[*above]) {
            needed.push(above);
            parent = lines[above].parent;
        }
        let cost: usize = needed.iter().map(|line| cost(items, &lines[*line])).sum();
        if used + cost > budget {
            if lines[line].rank == Rank::OutOfView {
                break;
            }
            continue;
        }
        used += cost;
        for line in needed {
            is_chosen[line] = true;
        }
    }
    is_chosen
}

fn cost(items: &[Item], line: &Line) -> usize {
    let text = write(items, line, |_| "e000".to_owned());
    // The line break is often part of the last token, so only the indentation counts.
    estimate(&text) + usize::from(line.depth > 0)
}

/// Maximum indentation of a line.
pub(super) const MAX_INDENT: usize = 8;

/// A line, or a marker for omitted ones.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OutputLine {
    Line(usize),
    Gap(Gap),
}

/// Consecutive omitted lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) count: usize,
    pub(super) controls: usize,
    pub(super) depth: usize,
    /// The item that contains most of the omitted lines, and how many of them it contains.
    pub(super) container: Option<(usize, usize)>,
}

/// Returns the selected lines in reading order, with markers for the gaps between them. A gap of one or two lines
/// without controls gets no marker.
pub(super) fn with_gaps(items: &[Item], lines: &[Line], is_chosen: &[bool]) -> Vec<OutputLine> {
    let mut shown = Vec::new();
    let mut left_out: Vec<usize> = Vec::new();
    for (index, _) in lines.iter().enumerate() {
        if is_chosen[index] {
            shown.extend(gap_of(items, lines, &left_out).map(OutputLine::Gap));
            left_out.clear();
            shown.push(OutputLine::Line(index));
        } else {
            left_out.push(index);
        }
    }
    shown.extend(gap_of(items, lines, &left_out).map(OutputLine::Gap));
    shown
}

fn gap_of(items: &[Item], lines: &[Line], left_out: &[usize]) -> Option<Gap> {
    let first = &lines[*left_out.first()?];
    let has_control = |line: &&usize| {
        lines[**line]
            .parts
            .iter()
            .any(|part| items[*part].is_control())
    };
    let controls = left_out.iter().filter(has_control).count();
    let is_small = left_out.len() < 3 && controls == 0;
    let mut by_container: BTreeMap<usize, usize> = BTreeMap::new();
    for container in left_out.iter().filter_map(|line| lines[*line].container) {
        *by_container.entry(container).or_default() += 1;
    }
    let container = by_container
        .into_iter()
        .max_by_key(|(container, count)| (*count, usize::MAX - container));
    (!is_small).then_some(Gap {
        count: left_out.len(),
        controls,
        depth: first.depth,
        container: container.filter(|(_, count)| *count > 2),
    })
}
