//! The steps of an undo. Several changes of one file are one step, from the state before the first to the state after
//! the last. Steps are undone in reverse order, so each finds what it left.

use super::original::Fingerprint;
use super::record::{After, Before, CallLine, Change};
use std::path::{Path, PathBuf};

/// Everything that a turn did to a path, until something was deleted there.
#[derive(Debug, PartialEq)]
pub(super) struct Step {
    pub(super) path: PathBuf,
    pub(super) before: Before,
    pub(super) after: After,
    /// Whether something else changed the file between two changes of the turn. Undoing the step discards that too.
    pub(super) has_other_changes: bool,
}

impl Step {
    /// Whether a later step decides what is at this step's path now.
    pub(super) fn is_covered_by(&self, later: &[Self]) -> bool {
        later.iter().any(|later| self.path.starts_with(&later.path))
    }
}

/// Groups the changes of calls into steps.
pub(super) fn steps(calls: &[CallLine]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for change in calls.iter().flat_map(|call| &call.changes) {
        match step_to_continue(&mut steps, change) {
            Some(step) => {
                step.has_other_changes |= content_before(change) != content_after(&step.after);
                step.after = change.after.clone();
            }
            None => steps.push(Step {
                path: change.path.clone(),
                before: change.before.clone(),
                after: change.after.clone(),
                has_other_changes: false,
            }),
        }
    }
    steps
}

/// Finds the step that wrote the same file, unless the file or a parent was deleted since.
pub(super) fn step_to_continue<'s>(steps: &'s mut [Step], change: &Change) -> Option<&'s mut Step> {
    if !matches!(change.after, After::File { .. }) {
        return None;
    }
    step_that_wrote(steps, &change.path)
}

/// Finds the step that wrote the file at this path, unless it or a parent was deleted since.
pub(super) fn step_that_wrote<'s>(steps: &'s mut [Step], path: &Path) -> Option<&'s mut Step> {
    let concerns_path = |step: &&mut Step| {
        step.path == path || (step.after == After::Absent && path.starts_with(&step.path))
    };
    let last = steps.iter_mut().rev().find(concerns_path)?;
    matches!(last.after, After::File { .. }).then_some(last)
}

fn content_before(change: &Change) -> Option<&Fingerprint> {
    match &change.before {
        Before::File { content, .. } => Some(content),
        Before::Absent | Before::Unsaved { .. } | Before::Trash { .. } => None,
    }
}

fn content_after(after: &After) -> Option<&Fingerprint> {
    match after {
        After::File { content } => Some(content),
        After::Absent | After::Folder => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_core::{CallId, Trust};

    fn content(text: &str) -> Fingerprint {
        Fingerprint::of(text.as_bytes())
    }

    fn write(path: &str, before: Option<&str>, after: &str) -> Change {
        Change {
            path: path.into(),
            before: before.map_or(Before::Absent, |text| Before::File {
                content: content(text),
                mode: 0o644,
                saved: None,
            }),
            after: After::File {
                content: content(after),
            },
        }
    }

    fn delete(path: &str) -> Change {
        Change {
            path: path.into(),
            before: Before::Trash { id: "x".to_owned() },
            after: After::Absent,
        }
    }

    fn grouped(changes: Vec<Change>) -> Vec<Step> {
        let call = |change| CallLine {
            call: CallId::from("c"),
            trust: Trust::Trusted,
            changes: vec![change],
        };
        steps(&changes.into_iter().map(call).collect::<Vec<_>>())
    }

    #[test]
    fn several_changes_of_a_file_are_one_step() {
        let found = grouped(vec![
            write("/a", Some("1"), "2"),
            write("/b", None, "x"),
            write("/a", Some("2"), "3"),
        ]);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].before, write("/a", Some("1"), "").before);
        assert_eq!(found[0].after, write("/a", None, "3").after);
        assert!(!found[0].has_other_changes);
    }

    #[test]
    fn a_change_of_something_else_in_between_is_noticed() {
        for between in [Some("formatted"), None] {
            let found = grouped(vec![write("/a", Some("1"), "2"), write("/a", between, "3")]);
            assert_eq!(found.len(), 1);
            assert!(found[0].has_other_changes, "{between:?}");
        }
    }

    #[test]
    fn a_file_that_was_deleted_in_between_has_several_steps() {
        for deleted in ["/d/a", "/d"] {
            let found = grouped(vec![
                write("/d/a", Some("1"), "2"),
                delete(deleted),
                write("/d/a", None, "3"),
                write("/d/a", Some("3"), "4"),
            ]);
            assert_eq!(found.len(), 3, "{deleted}");
            assert_eq!(found[2].before, Before::Absent);
            assert!(found[0].is_covered_by(&found[1..]));
            assert!(!found[2].is_covered_by(&[]));
        }
    }
}
