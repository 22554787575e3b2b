//! Computes the differences between the current page and the previous observation of its document.

use crate::handles::NodeKey;
use std::collections::{HashMap, HashSet};

/// The shown lines of a document, by the node of each line.
pub(crate) type ShownLines = HashMap<NodeKey, LineRecord>;

/// A line that an observation has shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LineRecord {
    /// Without indentation.
    pub(super) text: String,
    /// The index of the line on the page.
    pub(super) order: usize,
}

/// A line of the current page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CurrentLine {
    pub(super) key: NodeKey,
    pub(super) text: String,
    pub(super) order: usize,
}

/// The changes to report.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) lines: Vec<Change>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The line to report; empty if there is nothing to report.
    pub(super) text: String,
    /// The record to remove once this change is reported.
    pub(super) gone: Option<NodeKey>,
    /// The record to store once this change is reported.
    pub(super) current: Option<CurrentLine>,
}

/// Compares the current lines with the shown ones. `exists` returns whether a node without a current line is still on
/// the page.
pub(super) fn compare(
    shown: &ShownLines,
    current: Vec<CurrentLine>,
    exists: impl Fn(&NodeKey) -> bool,
) -> Changes {
    let keys: HashSet<&NodeKey> = current.iter().map(|line| &line.key).collect();
    let mut gone: Vec<(&NodeKey, &str)> = shown
        .iter()
        .filter(|(key, _)| !keys.contains(key) && !exists(key))
        .map(|(key, record)| (key, record.text.as_str()))
        .collect();
    gone.sort_by_key(|(key, _)| key.node);
    let mut gone_by_text: HashMap<&str, Vec<&NodeKey>> = HashMap::new();
    for (key, text) in gone.iter().rev() {
        gone_by_text
            .entry(without_handles(text))
            .or_default()
            .push(key);
    }
    drop(keys);
    let moved = find_moved(shown, &current);
    let mut above: Option<String> = None;
    let mut changes = Changes::default();
    let mut replaced: HashSet<NodeKey> = HashSet::new();
    for line in current {
        let name = anchor(&line.text);
        let above = above.replace(name);
        match shown.get(&line.key) {
            Some(record) if record.text == line.text && moved.contains(&line.key) => {
                let place = match above {
                    Some(above) => format!("below {above}"),
                    None => "to the top".to_owned(),
                };
                changes.add(format!("~ {} (moved {place})", line.text), None, Some(line));
            }
            Some(record) if record.text == line.text => {}
            Some(_) => changes.add(format!("~ {}", line.text), None, Some(line)),
            None => {
                let same = gone_by_text.get_mut(without_handles(&line.text));
                match same.and_then(Vec::pop) {
                    // The page rendered the line again with the same text. Without a handle, nothing changed for the
                    // reader.
                    Some(old) => {
                        let text = match handle_of(&shown[old].text) {
                            Some(handle) => format!("~ {} (was {handle})", line.text),
                            None => String::new(),
                        };
                        replaced.insert(old.clone());
                        changes.add(text, Some(old.clone()), Some(line));
                    }
                    None => changes.add(format!("+ {}", line.text), None, Some(line)),
                }
            }
        }
    }
    for (key, text) in gone {
        if !replaced.contains(key) {
            changes.add(
                format!("- {}", super::print::cut(text, 100)),
                Some(key.clone()),
                None,
            );
        }
    }
    changes
}

/// Returns the smallest set of lines whose moves explain the new order.
fn find_moved(shown: &ShownLines, current: &[CurrentLine]) -> HashSet<NodeKey> {
    let known: Vec<(usize, &NodeKey)> = current
        .iter()
        .filter_map(|line| Some((shown.get(&line.key)?.order, &line.key)))
        .collect();
    // Lines of the longest increasing subsequence did not move. `ends[n]` is the lowest end of a sequence of n + 1
    // lines.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(known.len());
    for (index, (order, _)) in known.iter().enumerate() {
        let length = ends.partition_point(|end| known[*end].0 < *order);
        before.push(length.checked_sub(1).map(|last| ends[last]));
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut stays = vec![false; known.len()];
    let mut next = ends.last().copied();
    while let Some(index) = next {
        stays[index] = true;
        next = before[index];
    }
    let moved = known.iter().zip(stays).filter(|(_, stays)| !stays);
    moved.map(|((_, key), _)| (*key).clone()).collect()
}

/// Returns a short name for a line: its handle, or else the start of its text.
fn anchor(text: &str) -> String {
    match handle_of(text) {
        Some(handle) => handle.to_owned(),
        None => super::print::cut(text, 40),
    }
}

impl Changes {
    fn add(&mut self, text: String, gone: Option<NodeKey>, current: Option<CurrentLine>) {
        self.lines.push(Change {
            text,
            gone,
            current,
        });
    }

    pub(super) fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.text.len() + 1).sum()
    }
}

/// Returns the handle at the start of a line's text, if there is one.
fn handle_of(text: &str) -> Option<&str> {
    let word = text.split(' ').next()?;
    let digits = word.strip_prefix('e')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(word)
}

/// Returns a line's text without its handle.
fn without_handles(text: &str) -> &str {
    match handle_of(text) {
        Some(handle) => text[handle.len()..].trim_start(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(node: i64, text: &str) -> CurrentLine {
        let key = NodeKey {
            session: "s".into(),
            node,
        };
        CurrentLine {
            key,
            text: text.to_owned(),
            order: 0,
        }
    }

    fn shown(lines: &[(i64, &str)]) -> ShownLines {
        let lines = lines.iter().map(|(node, text)| line(*node, text));
        let record = |(order, line): (usize, CurrentLine)| {
            let text = line.text;
            (line.key, LineRecord { text, order })
        };
        lines.enumerate().map(record).collect()
    }

    fn texts(changes: &Changes) -> Vec<&str> {
        changes
            .lines
            .iter()
            .map(|line| line.text.as_str())
            .collect()
    }

    #[test]
    fn new_changed_and_removed_lines_are_reported() {
        let before = shown(&[
            (1, "e1 button \"A\""),
            (2, "text \"old\""),
            (3, "e3 link \"gone\""),
            (4, "text \"far\""),
        ]);
        let now = vec![
            line(1, "e1 button \"A\" [disabled]"),
            line(5, "e5 link \"new\""),
        ];
        let changes = compare(&before, now, |key| key.node == 4);
        assert_eq!(
            texts(&changes),
            [
                "~ e1 button \"A\" [disabled]",
                "+ e5 link \"new\"",
                "- text \"old\"",
                "- e3 link \"gone\""
            ]
        );
    }

    #[test]
    fn a_rerendered_line_is_reported_only_for_its_new_handle() {
        let before = shown(&[(1, "e1 button \"A\""), (2, "text \"same\"")]);
        let now = vec![line(11, "e11 button \"A\""), line(12, "text \"same\"")];
        let changes = compare(&before, now, |_| false);
        assert_eq!(texts(&changes), ["~ e11 button \"A\" (was e1)", ""]);
    }

    #[test]
    fn a_moved_line_is_reported_with_its_new_position() {
        let names = [
            "e1 item \"a\"",
            "e2 item \"b\"",
            "e3 item \"c\"",
            "e4 item \"d\"",
        ];
        let before: Vec<(i64, &str)> = (1..).zip(names).collect();
        let now = |order: [usize; 4]| {
            let lines = order.map(|at| line(before[at].0, before[at].1)).to_vec();
            let changes = compare(&shown(&before), lines, |_| true);
            texts(&changes)
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert!(now([0, 1, 2, 3]).is_empty());
        assert_eq!(now([0, 3, 1, 2]), ["~ e4 item \"d\" (moved below e1)"]);
        assert_eq!(now([3, 0, 1, 2]), ["~ e4 item \"d\" (moved to the top)"]);
        assert_eq!(now([1, 2, 0, 3]), ["~ e1 item \"a\" (moved below e3)"]);
    }
}
