//! What is different from what an agent was shown of a document before.

use crate::handles::NodeKey;
use std::collections::{HashMap, HashSet};

/// What was shown of a document: the words of each line, without indentation, by the node that stands for it.
pub(crate) type Shown = HashMap<NodeKey, String>;

/// A line as it would be shown now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Current {
    pub(super) key: NodeKey,
    pub(super) words: String,
}

/// The lines to tell, and what is to be remembered for each.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) lines: Vec<Change>,
}

/// One difference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) text: String,
    /// Forgotten when this is told.
    pub(super) gone: Option<NodeKey>,
    /// Remembered when this is told.
    pub(super) current: Option<Current>,
}

/// Compares what would be shown now with what was shown. `exists` tells whether a node that is not among `current` still
/// is on the page, and its words if they are known.
pub(super) fn compare(
    shown: &Shown,
    current: Vec<Current>,
    exists: impl Fn(&NodeKey) -> bool,
) -> Changes {
    let keys: HashSet<&NodeKey> = current.iter().map(|line| &line.key).collect();
    let mut gone: Vec<(&NodeKey, &String)> = shown
        .iter()
        .filter(|(key, _)| !keys.contains(key) && !exists(key))
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
    let mut changes = Changes::default();
    let mut replaced: HashSet<NodeKey> = HashSet::new();
    for line in current {
        match shown.get(&line.key) {
            Some(words) if *words == line.words => {}
            Some(_) => changes.add(format!("~ {}", line.words), None, Some(line)),
            None => {
                let same = gone_by_words.get_mut(without_handles(&line.words));
                match same.and_then(Vec::pop) {
                    // Rendered anew with the same words: what has no handle did not change for the reader.
                    Some(old) => {
                        let old_words = &shown[old];
                        let text = match handle_of(old_words) {
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

/// The handle at the start of a line's words.
fn handle_of(words: &str) -> Option<&str> {
    let word = words.split(' ').next()?;
    let digits = word.strip_prefix('e')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(word)
}

/// The words after the handle, if there is one.
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
        }
    }

    fn shown(lines: &[(i64, &str)]) -> Shown {
        let lines = lines.iter().map(|(node, words)| line(*node, words));
        lines.map(|line| (line.key, line.words)).collect()
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
}
