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
    /// What others wrote between two changes of the turn. Undoing the step moves it to the trash.
    pub(super) other_versions: Vec<SavedVersion>,
    /// Whether others changed the file between two changes of the turn, and what they left is not saved.
    pub(super) has_unsaved_changes: bool,
}

/// A saved version of a file.
#[derive(Debug, PartialEq)]
pub(super) struct SavedVersion {
    pub(super) content: Fingerprint,
    pub(super) mode: u32,
    pub(super) saved: u32,
}

impl Step {
    fn new(change: &Change) -> Self {
        Self {
            path: change.path.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
            other_versions: Vec::new(),
            has_unsaved_changes: false,
        }
    }

    /// Adds a later change of the same file.
    fn add(&mut self, change: &Change) {
        match &change.before {
            Before::File {
                content,
                mode,
                saved: Some(saved),
            } => self.other_versions.push(SavedVersion {
                content: content.clone(),
                mode: *mode,
                saved: *saved,
            }),
            Before::File { content, .. } => self.has_unsaved_changes |= !self.has_version(content),
            // It was created again; that is how it was before the turn, or someone had deleted it.
            Before::Absent => self.has_unsaved_changes |= self.before != Before::Absent,
            Before::Unsaved { .. } | Before::Trash { .. } => self.has_unsaved_changes = true,
        }
        self.after = change.after.clone();
    }

    /// Whether this content is what the step left, or a version that is saved.
    pub(super) fn has_version(&self, content: &Fingerprint) -> bool {
        let is_left = matches!(&self.after, After::File { content: left } if left == content);
        let is_original = matches!(
            &self.before,
            Before::File { content: original, saved: Some(_), .. } if original == content
        );
        let mut others = self.other_versions.iter();
        is_left || is_original || others.any(|version| version.content == *content)
    }

    /// Returns the numbers of the saved versions.
    pub(super) fn saved(&self) -> impl Iterator<Item = u32> {
        let original = match self.before {
            Before::File { saved, .. } => saved,
            _ => None,
        };
        let others = self.other_versions.iter().map(|version| version.saved);
        original.into_iter().chain(others)
    }

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
            Some(step) => step.add(change),
            None => steps.push(Step::new(change)),
        }
    }
    steps
}

/// Finds the step that wrote the same file, unless the file or a parent was deleted since.
fn step_to_continue<'s>(steps: &'s mut [Step], change: &Change) -> Option<&'s mut Step> {
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
        assert!(!found[0].has_unsaved_changes);
    }

    #[test]
    fn a_change_of_something_else_in_between_is_noticed() {
        for between in [Some("formatted"), None] {
            let found = grouped(vec![write("/a", Some("1"), "2"), write("/a", between, "3")]);
            assert_eq!(found.len(), 1);
            assert!(found[0].has_unsaved_changes, "{between:?}");
            assert!(found[0].other_versions.is_empty());
        }
    }

    #[test]
    fn a_change_that_was_recorded_but_not_made_is_not_one_of_something_else() {
        for original in [Some("1"), None] {
            let mut repeated = vec![write("/a", original, "2"), write("/a", original, "2")];
            if let Before::File { saved, .. } = &mut repeated[0].before {
                *saved = Some(1);
            }
            let found = grouped(repeated);
            assert!(!found[0].has_unsaved_changes, "{original:?}");
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
