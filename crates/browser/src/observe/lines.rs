//! Arranges items on lines. The items of a small group, such as a table row or a product in a list, share one line.

use super::items::{Item, ItemKind};
use super::print::format_item;
use super::roles::DisplayKind;
use std::borrow::Cow;

/// Maximum number of items on one line.
const MAX_PARTS: usize = 10;
/// Maximum length of a line with several items, in bytes.
const MAX_LINE_BYTES: usize = 320;

#[derive(Debug)]
pub(super) struct Line {
    /// The items on the line; the first one identifies it.
    pub(super) parts: Vec<usize>,
    /// Text before the first item, such as a bullet.
    pub(super) prefix: Cow<'static, str>,
    pub(super) depth: usize,
    /// The line of the surrounding container.
    pub(super) parent: Option<usize>,
    /// The nearest ancestor item that can be used as a scope.
    pub(super) container: Option<usize>,
    pub(super) rank: Rank,
    /// Distance to the viewport in pixels.
    pub(super) distance: u64,
}

/// The priority of a line, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// In an open dialog, or an alert.
    Urgent,
    ControlInView,
    InView,
    OutOfView,
}

pub(super) fn arrange(items: &[Item]) -> Vec<Line> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    let mut roots = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match item.parent {
            Some(parent) => children[parent].push(index),
            None => roots.push(index),
        }
    }
    let mut builder = LineBuilder {
        items,
        children: &children,
        lines: Vec::new(),
    };
    let top = Context {
        depth: 0,
        parent: None,
        container: None,
        is_urgent: false,
    };
    for root in roots {
        builder.add(root, top);
    }
    builder.lines
}

/// Formats a line. `handle_of` looks up the handle of an item.
pub(super) fn write(
    items: &[Item],
    line: &Line,
    mut handle_of: impl FnMut(usize) -> String,
) -> String {
    let is_alone = line.parts.len() == 1;
    let mut text = String::new();
    text.push_str(&line.prefix);
    for (index, item) in line.parts.iter().enumerate() {
        if index > 0 {
            text.push_str(" | ");
        }
        let handle = items[*item].has_handle().then(|| handle_of(*item));
        text.push_str(&format_item(&items[*item], handle.as_deref(), is_alone));
    }
    text
}

#[derive(Clone, Copy)]
struct Context {
    depth: usize,
    parent: Option<usize>,
    container: Option<usize>,
    is_urgent: bool,
}

struct LineBuilder<'a> {
    items: &'a [Item],
    children: &'a [Vec<usize>],
    lines: Vec<Line>,
}

impl LineBuilder<'_> {
    // Recursion is bounded: items beyond the maximum depth have no children.
    fn add(&mut self, index: usize, mut context: Context) {
        let item = &self.items[index];
        if item.is_group() {
            self.add_group(index, context);
            return;
        }
        if item.kind == ItemKind::Element(DisplayKind::CompositeControl)
            && self.add_composite_control(index, context)
        {
            return;
        }
        if item.is_unlisted() {
            context.container = Some(index);
            self.add_children(index, context);
            return;
        }
        context.is_urgent |= matches!(item.role.as_str(), "dialog" | "alertdialog" | "alert");
        let mut parts = vec![index];
        let mut prefix = String::new();
        let mut below = self.children[index].clone();
        // A heading that consists of a single link is shown as one item.
        if let (true, [only]) = (item.role == "heading", &below[..])
            && self.items[*only].name == item.name
            && self.children[*only].is_empty()
        {
            parts = vec![*only];
            prefix = format!("{} ", item.details.trim_start());
            below.clear();
        }
        let line = self.push(parts, prefix, context);
        if item.kind == ItemKind::Element(DisplayKind::Section) {
            context.container = Some(index);
        }
        let inside = Context {
            depth: context.depth + 1,
            parent: Some(line),
            ..context
        };
        for child in below {
            self.add(child, inside);
        }
    }

    fn add_group(&mut self, index: usize, context: Context) {
        let mut parts = Vec::new();
        let fits = self.collect(index, &mut parts);
        if fits && self.width(&parts) <= MAX_LINE_BYTES {
            let prefix = match (self.items[index].role.as_str(), parts.len()) {
                ("row", _) => "row ",
                (_, 1) => "",
                _ => "• ",
            };
            if !parts.is_empty() {
                self.push(parts, prefix, context);
            }
            return;
        }
        // The group does not fit on one line: its first line identifies it, and the others are indented below.
        let start = self.lines.len();
        let inside = Context {
            container: Some(index),
            ..context
        };
        let mut children = self.children[index].iter();
        if let Some(first) = children.next() {
            self.add(*first, inside);
        }
        let below = Context {
            depth: context.depth + 1,
            parent: (self.lines.len() > start)
                .then_some(start)
                .or(context.parent),
            ..inside
        };
        for child in children {
            self.add(*child, below);
        }
    }

    /// Puts a control and its parts, such as a clickable row, on one line; returns `false` if they do not fit.
    fn add_composite_control(&mut self, index: usize, context: Context) -> bool {
        let mut parts = vec![index];
        let fits = !self.children[index].is_empty() && self.collect(index, &mut parts);
        let fits = fits && self.width(&parts) <= MAX_LINE_BYTES;
        if fits {
            self.push(parts, "", context);
        }
        fits
    }

    fn add_children(&mut self, index: usize, context: Context) {
        for child in &self.children[index] {
            self.add(*child, context);
        }
    }

    /// Collects the items of a group. Returns `false` if there are too many, or containers among them.
    fn collect(&self, index: usize, parts: &mut Vec<usize>) -> bool {
        self.children[index].iter().all(|child| {
            let item = &self.items[*child];
            if !item.is_unlisted() && item.role != "heading" || self.children[*child].is_empty() {
                parts.push(*child);
            }
            let is_plain = !item.is_group() && item.kind != ItemKind::Element(DisplayKind::Section);
            is_plain && parts.len() <= MAX_PARTS && self.collect(*child, parts)
        })
    }

    fn width(&self, parts: &[usize]) -> usize {
        let items = parts.iter().map(|part| &self.items[*part]);
        items
            .map(|item| item.name.len() + item.details.len() + item.role.len() + 8)
            .sum()
    }

    fn push(
        &mut self,
        parts: Vec<usize>,
        prefix: impl Into<Cow<'static, str>>,
        context: Context,
    ) -> usize {
        let items = || parts.iter().map(|part| &self.items[*part]);
        let is_in_view = items().any(|item| item.is_in_view);
        let has_control = items().any(|item| item.is_control() || item.role == "heading");
        let rank = match (context.is_urgent, is_in_view, has_control) {
            (true, _, _) => Rank::Urgent,
            (_, true, true) => Rank::ControlInView,
            (_, true, false) => Rank::InView,
            _ => Rank::OutOfView,
        };
        let distance = items().map(|item| item.distance).min().unwrap_or(u64::MAX);
        self.lines.push(Line {
            parts,
            prefix: prefix.into(),
            depth: context.depth,
            parent: context.parent,
            container: context.container,
            rank,
            distance,
        });
        self.lines.len() - 1
    }
}
