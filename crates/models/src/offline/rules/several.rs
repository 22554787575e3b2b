//! The rule that reads several files: `read notes.md and budget.csv`.

use super::{Action, Task};
use crate::offline::clause::{Clause, strip_any};
use crate::offline::extract::{address, certain_path, is_file};

/// More files are not read at once.
const MAX_FILES: usize = 5;

pub(super) fn read(clause: &Clause<'_>) -> Option<Task> {
    let rest = clause.after(&[
        "read me", "read", "show me", "show", "print", "display", "cat", "open",
    ])?;
    let rest = strip_any(rest, &["both", "the files", "files"]).unwrap_or(rest);
    let words = rest
        .split_whitespace()
        .filter(|word| !["and", "&"].contains(word));
    let paths: Option<Vec<String>> = words
        .map(|word| {
            let word = word.trim_end_matches(',');
            certain_path(word).filter(|path| is_file(path) && address(word).is_none())
        })
        .collect();
    let paths = paths.filter(|paths| (2..=MAX_FILES).contains(&paths.len()))?;
    Some(Task {
        action: Action::Read { paths },
        is_open: false,
    })
}
