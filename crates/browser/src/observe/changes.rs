//! Differences between the current page and the previous observation of its document.

use crate::handles::NodeKey;
use std::collections::{HashMap, HashSet};

/// The shown lines of a document, by the node of each line.
pub(crate) type ShownLines = HashMap<NodeKey, LineRecord>;

/// A shown line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LineRecord {
    /// Without indentation.
    pub(super) words: String,
    /// Its position.
    pub(super) order: usize,
}

/// A current line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Current {
    pub(super) key: NodeKey,
    pub(super) words: String,
    pub(super) order: usize,
}

/// The changes to report, with the records to update for each.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) lines: Vec<Change>,
}

/// One change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) text: String,
    /// The record to remove once the observation has this change.
    pub(super) gone: Option<NodeKey>,
    /// The record to store once the observation has this change.
    pub(super) current: Option<Current>,
}

/// Compares the current lines with the shown ones. `exists` returns whether a node without a current line is still on
/// the page, with its text if known.
pub(super) fn compare(
    shown: &ShownLines,
    current: Vec<Current>,
    exists: impl Fn(&NodeKey) -> bool,
) -> Changes {
    let keys: HashSet<&NodeKey> = current.iter().map(|line| &line.key).collect();
    let mut gone: Vec<(&NodeKey, &str)> = shown
        .iter()
        .filter(|(key, _)| !keys.contains(key) && !exists(key))
        .map(|(key, record)| (key, record.words.as_str()))
        .collect();
    gone.sort_by_key(|(key, _)| key.node);
    let mut gone_by_words: HashMap<&str, Vec<&NodeKey>> = HashMap::new();
    for (key, words) in gone.iter().rev() {
        gone_by_words
            .entry(without_handles(words))
            .or_default()
            .push(key);
    }
    drop(keys);
    let moved = find_moved(shown, &current);
    let mut above: Option<String> = None;
    let mut changes = Changes::default();
    let mut replaced: HashSet<NodeKey> = HashSet::new();
    for line in current {
        let name = anchor(&line.words);
        let above = above.replace(name);
        match shown.get(&line.key) {
            Some(record) if record.words == line.words && moved.contains(&line.key) => {
                let place = match above {
                    Some(above) => format!("below {above}"),
                    None => "to the top".to_owned(),
                };
                changes.add(
                    format!("~ {} (moved {place})", line.words),
                    None,
                    Some(line),
                );
            }
            Some(record) if record.words == line.words => {}
            Some(_) => changes.add(format!("~ {}", line.words), None, Some(line)),
            None => {
                let same = gone_by_words.get_mut(without_handles(&line.words));
                match same.and_then(Vec::pop) {
                    // Re-rendered with the same text: a line without a handle did not change for the reader.
                    Some(old) => {
                        let text = match handle_of(&shown[old].words) {
                            Some(handle) => format!("~ {} (was {handle})", line.words),
                            None => String::new(),
                        };
                        replaced.insert(old.clone());
                        changes.add(text, Some(old.clone()), Some(line));
                    }
                    None => changes.add(format!("+ {}", line.words), None, Some(line)),
                }
            }
        }
    }
    for (key, words) in gone {
        if !replaced.contains(key) {
            changes.add(
                format!("- {}", super::print::cut(words, 100)),
                Some(key.clone()),
                None,
            );
        }
    }
    changes
}

/// Returns the lines that moved, as few as possible.
fn find_moved(shown: &ShownLines, current: &[Current]) -> HashSet<NodeKey> {
    let known: Vec<(usize, &NodeKey)> = current
        .iter()
        .filter_map(|line| Some((shown.get(&line.key)?.order, &line.key)))
        .collect();
    // The longest increasing subsequence stays; `ends[n]` is the lowest end of one with n + 1 lines.
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

/// Returns a short name of a line for references.
fn anchor(words: &str) -> String {
    match handle_of(words) {
        Some(handle) => handle.to_owned(),
        None => super::print::cut(words, 40),
    }
}

impl Changes {
    fn add(&mut self, text: String, gone: Option<NodeKey>, current: Option<Current>) {
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

/// Returns the handle at the start of a line's text.
fn handle_of(words: &str) -> Option<&str> {
    let word = words.split(' ').next()?;
    let digits = word.strip_prefix('e')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(word)
}

/// Returns the text after the handle.
fn without_handles(words: &str) -> &str {
    match handle_of(words) {
        Some(handle) => words[handle.len()..].trim_start(),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(node: i64, words: &str) -> Current {
        let key = NodeKey {
            session: "s".into(),
            node,
        };
        Current {
            key,
            words: words.to_owned(),
            order: 0,
        }
    }

    fn shown(lines: &[(i64, &str)]) -> ShownLines {
        let lines = lines.iter().map(|(node, words)| line(*node, words));
        let record = |(order, line): (usize, Current)| {
            let words = line.words;
            (line.key, LineRecord { words, order })
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
    fn new_other_and_missing_lines_are_told() {
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
    fn a_line_that_was_rendered_anew_tells_its_new_handle_only() {
        let before = shown(&[(1, "e1 button \"A\""), (2, "text \"same\"")]);
        let now = vec![line(11, "e11 button \"A\""), line(12, "text \"same\"")];
        let changes = compare(&before, now, |_| false);
        assert_eq!(texts(&changes), ["~ e11 button \"A\" (was e1)", ""]);
    }

    #[test]
    fn a_line_that_moved_tells_where_it_is_now() {
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
